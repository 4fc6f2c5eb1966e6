"""A control plane with all that is shipped, two workers, our Pods on one of them, and everybody's credentials."""

import ssl
import subprocess
from collections.abc import Callable
from pathlib import Path

from deploy.images.programs import binary
from remediator.core import names
from remediator.kube.wire.transport import STRATEGIC_PATCH
from tests.cluster.control_plane import ControlPlane
from tests.cluster.rights import others
from tests.cluster.rights.asking import OPERATIONS, OTHER, OWN, SYSTEM, Object, Request, Speaker, named, patch
from tests.cluster.rights.evictions import CONFIGURATION, EvictionAnswers
from tests.harness.waiting import wait_for

ROOT = Path(__file__).parents[3]
RULES = "/apis/resource.k8s.io/v1/devicetaintrules"
CASE = "11111111-1111-1111-1111-111111111111"
# The accounts of operations, each with a Pod of its name on the worker of the attacker.
PODS = ("drain", "cordon", "uncordon", "isolate-gpu", "restart-device-plugin", "restart-cni", "power-cycle", "host")
# Operands of the GPU operator: one runs, one is paused by us, one by another, and one by both.
OPERANDS = {
    "nvidia.com/gpu.deploy.driver": "true",
    "nvidia.com/gpu.deploy.dcgm": "true",
    "nvidia.com/gpu.deploy.nvsm": "paused-for-remediation",
    "nvidia.com/gpu.deploy.device-plugin": "paused-for-mig-change",
    "nvidia.com/gpu.deploy.client": "paused-for-remediation_paused-for-mig-change",
}
OURS_API = "remediator.dev/v1alpha1"


def operation_pod(program: str, worker: str, *, account: str = "", about: str = OTHER) -> Object:
    """A Pod as the controller makes them."""
    env = {"NODE_NAME": about, "ATTEMPT_ID": f"op-{program}"}
    container = {"name": "c", "image": "i", "env": [{"name": name, "value": value} for name, value in env.items()]}
    spec = {"nodeName": worker, "serviceAccountName": account or f"remediator-{program}", "containers": [container]}
    return named("Pod", pod_name(program), metadata={"labels": {"remediator.dev/operation": program}}, spec=spec)


def order(node: str) -> Object:
    """The order of the watchdog of a node, as the controller makes it: a Pod that is placed nowhere."""
    container = {"name": "c", "image": "i", "env": [{"name": "NODE_NAME", "value": node}]}
    spec = {
        "schedulerName": names.WATCHDOG_SCHEDULER,
        "serviceAccountName": "remediator-host",
        "containers": [container],
    }
    labels = {"remediator.dev/operation": "restart-kubelet", names.WATCHDOG_LABEL: names.watchdog(node)}
    return named("Pod", f"order-{node}", metadata={"labels": labels}, spec=spec)


def pod_name(program: str) -> str:
    """The name of the Pod of a program, as the controller gives it; of a host Pod, which may write nothing, any."""
    return names.name(OTHER, program, "uid") if program in PODS[:-1] else program


def worker(name: str) -> Object:
    """A node that a case holds."""
    marks = {"remediator.dev/cordoned-by": CASE, "example.com/note": "rack 7"}
    taint = {"key": "remediator.dev/case", "value": CASE, "effect": "PreferNoSchedule"}
    labels = {"pool": "gpu", "nvidia.com/gpu.present": "true", **OPERANDS}
    labels |= {"remediator.dev/gpu.present": "true"} if name == OWN else {}
    spec = {"taints": [taint, {"key": "example.com/reserved", "effect": "PreferNoSchedule"}], "unschedulable": True}
    return named(
        "Node",
        name,
        metadata={"annotations": marks, "labels": labels},
        spec=spec,
    )


class World:
    """`with World() as world`: `world.speakers` by name."""

    def __init__(self) -> None:
        self.plane = ControlPlane(controllers=False, scheduler=False, kwok=False)
        self.speakers: dict[str, Speaker] = {}
        self.answers = EvictionAnswers(self.plane)

    def __enter__(self) -> "World":
        self.plane.start()
        try:
            self._fill()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.answers.stop()
        finally:
            self.plane.stop()

    def kubectl(self, *arguments: str) -> str:
        """What kubectl prints for an administrator. Raises RuntimeError where it fails."""
        command = [str(binary("kubectl")), "--kubeconfig", str(self.plane.kubeconfig), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)
        if done.returncode:
            raise RuntimeError(f"{arguments}: {done.stderr}")
        return done.stdout

    def token(self, account: str, namespace: str, bound: tuple[str, str, str] | None = None) -> str:
        """A token of an account, as an administrator gets it; `bound` to (kind, path, name) of an object."""
        spec: Object = {}
        if bound:
            kind, path, name = bound
            uid = self.admin(Request("GET", f"{path}/{name}")).json["metadata"]["uid"]
            spec["boundObjectRef"] = {"apiVersion": "v1", "kind": kind, "name": name, "uid": uid}
        asked = named("TokenRequest", account, "authentication.k8s.io/v1", spec=spec)
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
        reply = self.admin(Request("POST", path, asked, dry=False))
        assert reply.status == 201, reply
        token: str = reply.json["status"]["token"]
        return token

    def bearer(self, token: str) -> Speaker:
        """Whoever holds this token."""
        return Speaker(self.plane.url, ssl.create_default_context(cafile=str(self.plane.ca_file)), token)

    def certified(self, user: str, *groups: str) -> Speaker:
        """Whoever holds a client certificate of this user."""
        kubeconfig = self.plane.kubeconfig_for(user, groups)
        context = ssl.create_default_context(cafile=str(self.plane.ca_file))
        context.load_cert_chain(kubeconfig.with_suffix(".crt"), kubeconfig.with_suffix(".key"))
        return Speaker(self.plane.url, context)

    def make(self, path: str, *objects: Object, by: Speaker | None = None) -> None:
        """Create objects for good."""
        for one in objects:
            reply = (by or self.admin)(Request("POST", path, one, dry=False))
            assert reply.status in (201, 409), reply

    def exact(self, asked: Request) -> Request:
        """The same request; an eviction names its Pod by the uid, too, as the drain program does."""
        if not asked.path.endswith("/eviction"):
            return asked
        uid = self.admin(Request("GET", asked.path.removesuffix("/eviction"))).json["metadata"]["uid"]
        body = dict(asked.body or {})
        return asked._replace(body=body | {"deleteOptions": {**body["deleteOptions"], "preconditions": {"uid": uid}}})

    def until(self, holds: Callable[[], object]) -> None:
        """Wait: a policy, a role, a Pod count at the server a moment after they were made."""
        wait_for(holds, 30)

    def _fill(self) -> None:
        self.admin = self.certified("administrator", "system:masters")
        self.kubectl("apply", "-k", str(ROOT / "deploy/crds"))
        ours = ("crd", "-l", "app.kubernetes.io/name=remediator")
        self.kubectl("wait", "--for=condition=Established", *ours, "--timeout=30s")
        for folder in ("deploy", "deploy/watchdog", "deploy/janitor", "deploy/page", "deploy/scheduler/second"):
            self.kubectl("apply", "-k", str(ROOT / folder))
        others.serve(self)
        self.make("/api/v1/nodes", worker(OWN), worker(OTHER))
        conditions = [{"type": "Ready", "status": "True"}, {"type": "GpuLost", "status": "False"}]
        self.admin(patch(f"/api/v1/nodes/{OWN}/status", {"status": {"conditions": conditions}})._replace(dry=False))
        self._fill_namespaces()
        self._speak()
        self._fill_operations()

    def _fill_namespaces(self) -> None:
        self.make("/api/v1/namespaces", named("Namespace", "team"), named("Namespace", "tenant"))
        for space in ("team", "tenant", "kube-system", SYSTEM):
            self.make(f"/api/v1/namespaces/{space}/serviceaccounts", named("ServiceAccount", "default"))
        for space in ("team", "kube-system"):
            for place in (OWN, OTHER):
                pod = plain_pod(f"on-{place}", place)
                pod["metadata"]["annotations"] = {"remediator.dev/checkpoint": "10m", "example.com/note": "ours"}
                self.make(f"/api/v1/namespaces/{space}/pods", pod)
        owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": CASE, "controller": True}
        daemon, mirror = plain_pod("daemon", OTHER), plain_pod("mirror", OTHER, account="")
        daemon["metadata"]["ownerReferences"] = [owner]
        mirror["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x"}
        here = {**plain_pod("daemon-here", OWN), "metadata": {**daemon["metadata"], "name": "daemon-here"}}
        unplaced = plain_pod("unplaced", "")
        self.make("/api/v1/namespaces/team/pods", daemon, here, mirror, plain_pod("ready", OTHER), unplaced)
        ready = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
        assert self.admin(patch("/api/v1/namespaces/team/pods/ready/status", ready)._replace(dry=False)).status == 200
        ours = (plain_pod(name, OWN, f"remediator-{name}") for name in ("janitor", "scheduler"))
        self.make(f"/api/v1/namespaces/{SYSTEM}/pods", plain_pod("controller", OTHER, "remediator"), *ours)
        for space in ("team", "kube-system"):
            self.make(f"/apis/apps/v1/namespaces/{space}/deployments", deployment())
        bmc = named("Secret", f"remediator-bmc-{OTHER}", stringData={"password": "p"})
        self.make(f"/api/v1/namespaces/{OPERATIONS}/secrets", bmc)
        group = "rbac.authorization.k8s.io"
        subject = {"kind": "ServiceAccount", "name": "default", "namespace": "tenant"}
        # What the role `admin` is made of, by a controller that does not run here.
        of_kubernetes = (f"system:aggregate-to-{part}" for part in ("admin", "edit", "view"))
        for name in (*of_kubernetes, "remediator-view"):
            role = {"apiGroup": group, "kind": "ClusterRole", "name": name}
            bound = named("RoleBinding", f"tenant-{name}", f"{group}/v1", roleRef=role, subjects=[subject])
            self.make(f"/apis/{group}/v1/namespaces/tenant/rolebindings", bound)

    def _speak(self) -> None:
        """The credentials that need no Pod of an operation."""
        pods = f"/api/v1/namespaces/{SYSTEM}/pods"
        controller = self.token("remediator", SYSTEM, ("Pod", pods, "controller"))
        detectors = self.token("node-problem-detector", SYSTEM, ("Node", "/api/v1/nodes", OWN))
        watchdog = self.token("remediator-watchdog", SYSTEM, ("Node", "/api/v1/nodes", OWN))
        self.speakers = {
            "kubelet": self.certified(f"system:node:{OWN}", "system:nodes"),
            "detectors": self.bearer(detectors),
            "watchdog": self.bearer(watchdog),
            "tenant": self.bearer(self.token("default", "tenant")),
            "asks": self.bearer(self.token("asks", "medik8s")),
            "controller": self.bearer(controller),
            **{
                name: self.bearer(self.token(f"remediator-{name}", SYSTEM, ("Pod", pods, name)))
                for name in ("janitor", "scheduler")
            },
        }

    def _fill_operations(self) -> None:
        pods = f"/api/v1/namespaces/{OPERATIONS}/pods"
        ours = (
            *(operation_pod(name, OWN) for name in PODS),
            operation_pod("elsewhere", OTHER, account="remediator-host"),
            order(OWN),
            order(OTHER),
        )
        self.make(pods, *ours, by=self.speakers["controller"])
        self.make(
            f"/api/v1/namespaces/{OPERATIONS}/secrets", named("Secret", "elsewhere", stringData={"BUNDLE_URL": "u"})
        )
        foreign = device_rule("foreign")
        foreign["spec"]["taint"]["key"] = "example.com/broken"
        self.make(RULES, device_rule("isolated"), foreign)
        self.make("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases", lease(OWN), lease(OTHER))
        leader = self.speakers["controller"]
        self.make(f"/apis/coordination.k8s.io/v1/namespaces/{SYSTEM}/leases", lease("remediator"), by=leader)
        for name in PODS:
            token = self.token(f"remediator-{name}", OPERATIONS, ("Pod", pods, pod_name(name)))
            self.speakers[name] = self.bearer(token)
        self._fill_kinds()
        for asked in SIGNS:
            speaker = self.speakers.get(asked[0], self.admin)
            self.until(lambda speaker=speaker, asked=asked: speaker(asked[1]).status == 422)
        self._answer()

    def _answer(self) -> None:
        """The API server asks about evictions of the drain."""
        self.answers.start()
        reply = self.admin(patch(CONFIGURATION, self.answers.patch, STRATEGIC_PATCH)._replace(dry=False))
        assert reply.status == 200, reply
        self.answers.write_authority()
        asked = self.exact(eviction_of("daemon", "team"))
        self.until(lambda: self.speakers["drain"](asked).status == 403)

    def _fill_kinds(self) -> None:
        path, controller = "/apis/remediator.dev/v1alpha1", self.speakers["controller"]
        uid = self.admin(Request("GET", f"/api/v1/nodes/{OTHER}")).json["metadata"]["uid"]
        about = {"nodeName": OTHER, "nodeUID": uid}
        for name in ("drained", "of-another"):
            spec = {**about, "caseUID": CASE, "templateName": "reboot"}
            self.make(
                f"{path}/nodeoperations",
                named("NodeOperation", name, "remediator.dev/v1alpha1", spec=spec),
                by=controller,
            )
        case = {**about, "policyName": "gpu-lost"}
        for name in ("waiting", "escalated"):
            self.make(
                f"{path}/noderemediations",
                named("NodeRemediation", name, "remediator.dev/v1alpha1", spec=case),
                by=controller,
            )
        self._fill_others(path)
        others.fill(self)
        escalated = {"status": {"phase": "Escalated"}}
        reply = controller(patch(f"{path}/noderemediations/escalated/status", escalated)._replace(dry=False))
        assert reply.status == 200, reply
        status = {"status": {"phase": "Draining", "drainPod": pod_name("drain")}}
        reply = controller(patch(f"{path}/nodeoperations/drained/status", status)._replace(dry=False))
        assert reply.status == 200, reply

    def _fill_others(self, path: str) -> None:
        """What a worker is expected to have, the route of a team, and the issue about somebody's idle work."""
        about = {"nodeName": OTHER}
        self.make(f"{path}/nodeinventories", named("NodeInventory", OTHER, OURS_API, spec=about))
        routed = {"match": {"severity": ["Critical"]}, "repository": "team/issues"}
        self.make(f"{path}/namespaces/team/ticketroutes", named("TicketRoute", "theirs", OURS_API, spec=routed))
        owned = {"subject": {"kind": "Owner", "ownerName": "team/idle"}}
        about_node = {"subject": {"kind": "Node", "nodeName": OTHER}}
        self.make(f"{path}/tickets", named("Ticket", "owned", OURS_API, spec=owned))
        self.make(f"{path}/tickets", named("Ticket", "alert", OURS_API, spec=about_node))


def device_rule(name: str, **selector: str | None) -> Object:
    """What keeps Pods off one GPU of the other worker, as isolate-gpu makes it for the case."""
    device = {"driver": "gpu.nvidia.com", "pool": OTHER, "device": "gpu-0", **selector}
    owner = {"apiVersion": "remediator.dev/v1alpha1", "kind": "NodeRemediation", "name": "waiting", "uid": CASE}
    spec = {
        "deviceSelector": {part: word for part, word in device.items() if word},
        "taint": {"key": "remediator.dev/isolated", "effect": "NoSchedule"},
    }
    meta = {"labels": {"remediator.dev/case-uid": CASE}, "ownerReferences": [owner]}
    return named("DeviceTaintRule", name, "resource.k8s.io/v1", metadata=meta, spec=spec)


def eviction_of(pod: str, space: str, **options: object) -> Request:
    """Somebody asks for a Pod to go."""
    body = named("Eviction", pod, "policy/v1", metadata={"namespace": space}, deleteOptions=options)
    return Request("POST", f"/api/v1/namespaces/{space}/pods/{pod}/eviction", body)


def plain_pod(name: str, place: str, account: str = "default") -> Object:
    """A Pod of somebody."""
    spec = {"nodeName": place, "containers": [{"name": "c", "image": "i"}]}
    return named("Pod", name, spec={**spec, **({"serviceAccountName": account} if account else {})})


def deployment() -> Object:
    """Two replicas of what somebody runs."""
    pod = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": pod}
    return named("Deployment", "web", "apps/v1", spec=spec)


def lease(name: str, holder: str = "") -> Object:
    """A Lease that nobody holds, unless a holder is named."""
    held_by = {"holderIdentity": holder} if holder else {}
    return named("Lease", name, "coordination.k8s.io/v1", spec={"leaseDurationSeconds": 15, **held_by})


# Who is refused what by each admission policy, once it counts.
SIGNS = (
    ("controller", patch(f"/api/v1/nodes/{OTHER}", {"metadata": {"labels": {"a": "b"}}})),
    ("cordon", patch(f"/api/v1/nodes/{OTHER}", {"metadata": {"annotations": {"a": "b"}}})),
    ("uncordon", patch(f"/api/v1/nodes/{OWN}", {"metadata": {"annotations": {"remediator.dev/cordoned-by": None}}})),
    ("detectors", patch(f"/api/v1/nodes/{OWN}/status", {"status": {"phase": "x"}})),
    (
        "watchdog",
        patch(f"/api/v1/namespaces/{OPERATIONS}/pods/order-{OTHER}/status", {"status": {"phase": "Running"}}),
    ),
    ("detectors", Request("POST", "/api/v1/namespaces/default/events", named("Event", "e", involvedObject={}))),
    ("drain", Request("DELETE", f"/api/v1/namespaces/kube-system/pods/on-{OTHER}")),
    ("drain", patch("/apis/remediator.dev/v1alpha1/nodeoperations/drained/status", {"status": {"phase": "Failed"}})),
    ("drain", patch(f"/api/v1/namespaces/team/pods/on-{OTHER}", {"metadata": {"labels": {"a": "b"}}})),
    ("isolate-gpu", patch(f"/api/v1/nodes/{OTHER}", {"metadata": {"annotations": {"a": "b"}}})),
    ("isolate-gpu", Request("POST", RULES, device_rule("many", device=None))),
    ("controller", Request("DELETE", f"{RULES}/foreign")),
    ("controller", patch(f"/api/v1/nodes/{OTHER}/status", {"status": {"capacity": {"pods": "1"}}})),
    ("janitor", Request("DELETE", "/api/v1/namespaces/kube-node-lease")),
    ("janitor", patch("/api/v1/namespaces/team", {"metadata": {"annotations": {"a": "b"}}})),
    ("janitor", Request("POST", f"/apis/coordination.k8s.io/v1/namespaces/{SYSTEM}/leases", lease("another"))),
    ("janitor", patch("/apis/remediator.dev/v1alpha1/tickets/alert", {"spec": {"keeps": []}})),
    ("controller", Request("POST", f"/api/v1/namespaces/{OPERATIONS}/secrets", named("Secret", "s"))),
    ("controller", Request("POST", f"/apis/coordination.k8s.io/v1/namespaces/{SYSTEM}/leases", lease("another"))),
    ("controller", patch(f"{others.REPAIRS}/{OTHER}", {"spec": {"operation": "power-cycle"}})),
    ("controller", patch(f"/api/v1/namespaces/team/pods/on-{OTHER}", {"metadata": {"annotations": {"a": "b"}}})),
    (
        "controller",
        Request("POST", f"/api/v1/namespaces/{OPERATIONS}/pods/order-{OTHER}/binding", others.binding(OTHER)),
    ),
    ("scheduler", Request("DELETE", f"/api/v1/namespaces/{OPERATIONS}/pods/host")),
    ("scheduler", Request("POST", f"/apis/coordination.k8s.io/v1/namespaces/{SYSTEM}/leases", lease("another"))),
    ("restart-cni", Request("DELETE", f"/api/v1/namespaces/team/pods/on-{OTHER}")),
    ("restart-cni", Request("DELETE", "/api/v1/namespaces/team/pods/daemon-here")),
    ("administrator", Request("POST", f"/api/v1/namespaces/{OPERATIONS}/pods", plain_pod("x", OWN, "remediator-host"))),
    (
        "administrator",
        patch(f"/api/v1/namespaces/{OPERATIONS}/pods/host", {"metadata": {"labels": {"remediator.dev/a": ""}}}),
    ),
    (
        "administrator",
        Request(
            "POST",
            f"/api/v1/namespaces/{OPERATIONS}/secrets",
            named(
                "Secret",
                "s",
                type="kubernetes.io/service-account-token",
                metadata={"annotations": {"kubernetes.io/service-account.name": "remediator-host"}},
            ),
        ),
    ),
)

"""What whoever has the credentials of a worker, a tenant or one of our Pods would try; docs/security.md shows it."""

from collections.abc import Mapping
from typing import NamedTuple

from remediator.core.names import BUNDLE_SECRET, GPU_PRESENT
from remediator.kube import api
from remediator.kube.wire.transport import STRATEGIC_PATCH
from tests.cluster.rights.asking import OPERATIONS, OTHER, OWN, SYSTEM, Object, Request, named, patch
from tests.cluster.rights.others import EXTERNAL, KINDS, REPAIRS, SIGNING, repair, signing_request
from tests.cluster.rights.world import CASE, PODS, RULES, device_rule, lease, operation_pod, order, plain_pod

NODES, OURS = "/api/v1/nodes", "/apis/remediator.dev/v1alpha1"
SPACES, LEASES = "/api/v1/namespaces", "/apis/coordination.k8s.io/v1/namespaces"
RBAC, ADMISSION = "/apis/rbac.authorization.k8s.io/v1", "/apis/admissionregistration.k8s.io/v1"
APPS, THEIRS = "/apis/apps/v1/namespaces", f"{SPACES}/{OPERATIONS}/pods"
RBAC_API, ADMITS = "rbac.authorization.k8s.io/v1", "admissionregistration.k8s.io/v1"
SERVED, SERVED_API = "/apis/apiregistration.k8s.io/v1/apiservices", "apiregistration.k8s.io/v1"
CONTROLLER = f"{SPACES}/{SYSTEM}/pods/controller"
RELEASED, COMPLETE = "NVSentinelOwnershipReleased", "ExternalRemediationComplete"
MAKES_ROOM = "its work: it makes room"
CALLED = {
    "kubelet": "the kubelet",
    "detectors": "the detectors",
    "watchdog": "the watchdog",
    "controller": "the controller",
    "janitor": "the janitor",
    "scheduler": "the second scheduler",
    "asks": "who asks for repairs",
}


class Attack(NamedTuple):
    """What is tried in words, the request, and who succeeds: name → why that is its own node or its work."""

    words: str
    request: Request
    succeeds: Mapping[str, str] = {}

    @property
    def row(self) -> str:
        """Its row in docs/security.md."""
        by_why: dict[str, list[str]] = {}
        for who, why in self.succeeds.items():
            by_why.setdefault(why, []).append(CALLED.get(who, f"`{who}`"))
        told = "; ".join(f"{', '.join(who)}: {why}" for why, who in by_why.items())
        return f"| {self.words} | {told or 'nobody'} |"


NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
WORK = {"controller": "its work"}
OWNED = {**WORK, "kubelet": "its own node"}
OBEYS = {"controller": "its work: what comments below an issue say"}
ASKS = {"asks": "its work; every guard counts"}
SHARES = {"controller": "with `deploy/shared-gpus`, its work"}
PLACES, TIDIES = {"scheduler": "its work"}, {"janitor": "its work"}
READS = {
    **WORK,
    **TIDIES,
    **PLACES,
    "drain": "it lists the Pods of its node",
    "restart-device-plugin": "it lists the Pods of its node",
    "restart-cni": "it lists the Pods of its node",
}


def condition(kind: str) -> Object:
    return {"status": {"conditions": [{"type": kind, "status": "True", "reason": "Said", "message": "m"}]}}


def gpu_label(node: str, value: str | None) -> Request:
    """Whether policies on GPUs select the node."""
    return patch(f"{NODES}/{node}", {"metadata": {"labels": {GPU_PRESENT: value}}})


def taints(node: str, *keys: str) -> Request:
    """Its taints are these, and that of Kubernetes for a node that has not been Ready yet."""
    given = [{"key": key, "effect": "PreferNoSchedule"} for key in keys]
    return patch(f"{NODES}/{node}", {"spec": {"taints": [*given, NOT_READY]}})


def event(node: str) -> Object:
    about = {"kind": "Node", "name": node, "apiVersion": "v1"}
    return {**named("Event", "said"), "involvedObject": about, "reason": "Said", "message": "m", "type": "Normal"}


def eviction(pod: str, space: str, **options: object) -> Request:
    body = named("Eviction", pod, "policy/v1", metadata={"namespace": space}, deleteOptions=options)
    return Request("POST", f"{SPACES}/{space}/pods/{pod}/eviction", body)


def ours(kind: str, plural: str, **spec: object) -> Request:
    return Request("POST", f"{OURS}/{plural}", named(kind, "forged", "remediator.dev/v1alpha1", spec=spec))


def token_request(account: str, space: str, pod: str = "") -> Request:
    spec: Object = {"boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": pod}} if pod else {}
    body = named("TokenRequest", account, "authentication.k8s.io/v1", spec=spec)
    return Request("POST", f"{SPACES}/{space}/serviceaccounts/{account}/token", body)


def endless() -> Object:
    """A Secret into which Kubernetes writes a token without an end."""
    notes = {"annotations": {"kubernetes.io/service-account.name": "remediator"}}
    return named("Secret", "forged", type="kubernetes.io/service-account-token", metadata=notes)


def answer(kind: str) -> Object:
    """One Condition of a request; beside it, where it is one of NVSentinel, the one that was there."""
    theirs = {"type": RELEASED, "status": "True", "reason": "Said"}
    said = {"type": kind, "status": "False", "reason": "RemediatorSaid"}
    return {"status": {"conditions": [theirs, said] if kind == COMPLETE else [said]}}


def mirror(namespace: str = OPERATIONS) -> Object:
    pod = operation_pod("forged", OWN)
    pod["metadata"]["namespace"] = namespace
    del pod["spec"]["serviceAccountName"]
    pod["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x"}
    owner = {"apiVersion": "v1", "kind": "Node", "name": OWN, "uid": CASE, "controller": True}
    return {**pod, "metadata": {**pod["metadata"], "ownerReferences": [owner]}}


def held() -> Object:
    """The Lease of the leader in a version that is long gone: whoever may write it is told of a conflict."""
    return {**lease("remediator"), "metadata": {"name": "remediator", "resourceVersion": "1"}}


def binding(space: str) -> Object:
    subject = {"kind": "ServiceAccount", "name": "default", "namespace": "tenant"}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    kind = "RoleBinding" if space else "ClusterRoleBinding"
    return named(kind, "forged", "rbac.authorization.k8s.io/v1", roleRef=role, subjects=[subject])


DEVICES = "/apis/resource.k8s.io/v1/resourceslices"


def published(node: str) -> Object:
    """What a driver of DRA says of a node."""
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "gpu.nvidia.com", "nodeName": node, "pool": pool, "devices": [{"name": "gpu-0"}]}
    return named("ResourceSlice", "forged", "resource.k8s.io/v1", spec=spec)


def placed(pod: str = "unplaced") -> Object:
    """A Binding of a Pod that waits for a node."""
    return named("Binding", pod, target={"apiVersion": "v1", "kind": "Node", "name": OTHER})


def ledger() -> Object:
    """A ledger of a node, without a reservation in it."""
    return named("GpuLedger", OTHER, "remediator.dev/v1alpha1", spec={})


def inventory(name: str, spec: Object) -> Object:
    return named("NodeInventory", name, "remediator.dev/v1alpha1", spec=spec)


def bundle_url(pod: str) -> Object:
    """The Secret of the Pod that collects, as the controller makes it."""
    owner = {"apiVersion": "v1", "kind": "Pod", "name": pod, "uid": CASE}
    return named("Secret", pod, metadata={"ownerReferences": [owner]}, type=BUNDLE_SECRET, data={"BUNDLE_URL": "aA=="})


def bmc(node: str) -> Object:
    return named("Secret", f"remediator-bmc-{node}", stringData={"url": "https://mine", "password": "p"})


def route() -> Object:
    spec = {"match": {"severity": ["Critical"]}, "repository": "mine/issues"}
    return named("TicketRoute", "forged", "remediator.dev/v1alpha1", spec=spec)


TEAM = f"{OURS}/namespaces/team"
REQUESTS = {"controller": "with `deploy/requests`, its work"}
A_KIND = "noderemediations.remediator.dev"
CLOSED = {"remediator.dev/breaker-closed-at": "2026-01-01T00:00:00Z"}
KEEP = {"target": "pods/team/idle", "until": "2026-01-01T00:00:00Z", "setBy": "github:mine"}
ELSEWHERE = {
    "fingerprint": "a",
    "name": "a",
    "startsAt": "2026-01-01T00:00:00Z",
    "destination": {"repository": "tenant/open"},
}
WATCHED = {**READS, "watchdog": "a role can name no node"}
TRIGGER = {"condition": "GpuLost", "status": "True", "since": "2026-01-01T00:00:00Z"}
CASE_SPEC = {"nodeName": OTHER, "nodeUID": CASE, "policyName": "gpu-lost", "trigger": TRIGGER}
OPERATION_SPEC = {"nodeName": OTHER, "nodeUID": CASE, "caseUID": CASE, "templateName": "reboot"}
PAUSED = {"spec": {"replicas": 0, "paused": True}}
DEBUG = {"spec": {"ephemeralContainers": [{"name": "x", "image": "i"}]}}

ATTACKS = (
    Attack("label another worker", patch(f"{NODES}/{OTHER}", {"metadata": {"labels": {"pool": "mine"}}})),
    Attack(
        "label its own worker as part of the control plane",
        patch(f"{NODES}/{OWN}", {"metadata": {"labels": {"node-role.kubernetes.io/control-plane": ""}}}),
    ),
    Attack(
        "the same through the status of the Node",
        patch(f"{NODES}/{OWN}/status", {"metadata": {"labels": {"node-role.kubernetes.io/control-plane": ""}}}),
    ),
    Attack(
        "have its own worker chosen for Pods with rights in the API, by a label of `node-restriction.kubernetes.io`",
        patch(f"{NODES}/{OWN}", {"metadata": {"labels": {"node-restriction.kubernetes.io/api-pods": "true"}}}),
    ),
    Attack(
        "the same by the shipped selector: take the labels `nvidia.com/gpu.present` and `remediator.dev/gpu.present` "
        "off its own worker",
        patch(f"{NODES}/{OWN}", {"metadata": {"labels": {"nvidia.com/gpu.present": None, GPU_PRESENT: None}}}),
        {"kubelet": "its own node"},
    ),
    Attack("have policies on GPUs select another worker", gpu_label(OTHER, "true"), WORK),
    Attack("take another worker out of these policies, by another value of the label", gpu_label(OTHER, "false")),
    Attack("take its own worker out of these policies", gpu_label(OWN, "false"), {"kubelet": "its own node"}),
    Attack("taint another worker", taints(OTHER, "remediator.dev/case", "example.com/reserved", "mine")),
    Attack("take a taint of others off its own worker", taints(OWN, "remediator.dev/case")),
    Attack("cancel the case of its own worker: take its taint off", taints(OWN, "example.com/reserved"), WORK),
    Attack("cancel the case of another worker", taints(OTHER, "example.com/reserved"), WORK),
    Attack("uncordon its own worker", patch(f"{NODES}/{OWN}", {"spec": {"unschedulable": False}}), OWNED),
    Attack("uncordon another worker", patch(f"{NODES}/{OTHER}", {"spec": {"unschedulable": False}}), WORK),
    Attack(
        "say whose cordon that of another worker is",
        patch(f"{NODES}/{OTHER}", {"metadata": {"annotations": {"remediator.dev/cordoned-by": "mine"}}}),
        WORK,
    ),
    Attack(
        "write an annotation of others on another worker",
        patch(f"{NODES}/{OTHER}", {"metadata": {"annotations": {"example.com/note": "mine"}}}),
    ),
    Attack(
        "say that another worker is unhealthy",
        patch(f"{NODES}/{OTHER}/status", condition("GpuLost"), STRATEGIC_PATCH),
    ),
    Attack(
        "say that its own worker is unhealthy",
        patch(f"{NODES}/{OWN}/status", condition("GpuLost"), STRATEGIC_PATCH),
        {"kubelet": "its own node", "detectors": "its own node"},
    ),
    Attack(
        "say that its own worker is Ready",
        patch(f"{NODES}/{OWN}/status", condition("Ready"), STRATEGIC_PATCH),
        {"kubelet": "its own node"},
    ),
    Attack(
        "say how many GPUs its own worker has",
        patch(f"{NODES}/{OWN}/status", {"status": {"capacity": {"nvidia.com/gpu": "8"}}}),
        {"kubelet": "its own node"},
    ),
    Attack(
        "say that another worker rejects Pods, or that its GPUs have taints",
        patch(f"{NODES}/{OTHER}/status", condition("PodsRejected"), STRATEGIC_PATCH),
        WORK,
    ),
    Attack("publish GPUs of another worker", Request("POST", DEVICES, published(OTHER))),
    Attack("publish GPUs of its own worker", Request("POST", DEVICES, published(OWN)), {"kubelet": "its own node"}),
    Attack(
        "keep Pods off a GPU of another worker",
        Request("POST", RULES, device_rule("forged")),
        {"isolate-gpu": "its work; the rule ends with its case"},
    ),
    Attack("keep Pods off all GPUs at once", Request("POST", RULES, device_rule("forged", pool=None, device=None))),
    Attack("give a GPU back that a case has isolated", Request("DELETE", f"{RULES}/isolated"), WORK),
    Attack("give a GPU back that somebody else has isolated", Request("DELETE", f"{RULES}/foreign")),
    Attack(
        "place a Pod on another worker",
        Request("POST", f"{SPACES}/team/pods/unplaced/binding", placed()),
        SHARES | PLACES,
    ),
    Attack("write which Pod has which GPU", Request("POST", f"{OURS}/gpuledgers", ledger()), SHARES),
    Attack("delete another worker", Request("DELETE", f"{NODES}/{OTHER}")),
    Attack("delete its own worker", Request("DELETE", f"{NODES}/{OWN}")),
    Attack("delete all workers at once", Request("DELETE", NODES)),
    Attack("ask the kubelet of another worker, through the API server", Request("GET", f"{NODES}/{OTHER}/proxy/pods")),
    Attack("register a worker of another name", Request("POST", NODES, named("Node", "worker-c"))),
    Attack(
        "say that another worker is alive: renew its Lease",
        patch(f"{LEASES}/kube-node-lease/leases/{OTHER}", {"spec": {"holderIdentity": OTHER}}),
    ),
    Attack(
        "tell an Event about another worker",
        Request("POST", f"{SPACES}/default/events", event(OTHER)),
        {
            **WORK,
            **dict.fromkeys(("kubelet", "janitor", "scheduler"), "Kubernetes lets it; nothing of ours reads Events"),
        },
    ),
    Attack("read the Pods of all workers", Request("GET", "/api/v1/pods"), READS),
    Attack(
        "read another Node",
        Request("GET", f"{NODES}/{OTHER}"),
        {
            **WORK,
            **dict.fromkeys(
                ("detectors", "watchdog", *(name for name in PODS if name != "host"), "scheduler"),
                "a role can name no Node; it changes nothing",
            ),
        },
    ),
    Attack(
        "make a Pod that is root on a node",
        Request("POST", THEIRS, operation_pod("forged", OTHER, account="remediator-host")),
        WORK,
    ),
    Attack(
        "make a Pod on its own worker that mirrors a file, with the labels of an operation",
        Request("POST", THEIRS, mirror()),
        WORK,
    ),
    Attack(
        "make a Pod on its own worker that mirrors a file, behind the Services of the controller",
        Request("POST", f"{SPACES}/{SYSTEM}/pods", mirror(SYSTEM)),
    ),
    Attack("get into the Pod of an operation", Request("POST", f"{THEIRS}/host/exec?command=sh&stdout=1")),
    Attack("attach to the Pod of an operation", Request("POST", f"{THEIRS}/host/attach?stdout=1")),
    Attack("forward a port of the Pod of an operation", Request("POST", f"{THEIRS}/host/portforward?ports=80")),
    Attack("read what the Pod of an operation writes", Request("GET", f"{THEIRS}/host/log")),
    Attack("get into the Pod of the controller", Request("POST", f"{CONTROLLER}/exec?command=sh&stdout=1")),
    Attack(
        "get into a Pod of a user on another worker",
        Request("POST", f"{SPACES}/team/pods/on-{OTHER}/exec?command=sh&stdout=1"),
    ),
    Attack(
        "attach to a Pod of a user on another worker", Request("POST", f"{SPACES}/team/pods/on-{OTHER}/attach?stdout=1")
    ),
    Attack(
        "forward a port of a Pod of a user on another worker",
        Request("POST", f"{SPACES}/team/pods/on-{OTHER}/portforward?ports=80"),
    ),
    Attack(
        "put a container into the Pod of an operation",
        patch(f"{THEIRS}/host/ephemeralcontainers", DEBUG, STRATEGIC_PATCH),
    ),
    Attack(
        "change what the Pod of an operation runs",
        patch(f"{THEIRS}/host", {"spec": {"containers": [{"name": "c", "image": "mine"}]}}, STRATEGIC_PATCH),
    ),
    Attack(
        "give the Pod of an operation to another case",
        patch(f"{THEIRS}/host", {"metadata": {"labels": {"remediator.dev/case-uid": "mine"}}}),
    ),
    Attack("delete the Pod of an operation on another worker", Request("DELETE", f"{THEIRS}/elsewhere"), WORK),
    Attack(
        "say how the Pod of an operation on another worker ended",
        patch(f"{THEIRS}/elsewhere/status", {"status": {"phase": "Succeeded"}}),
    ),
    Attack(
        "say how the Pod of an operation on its own worker ended",
        patch(f"{THEIRS}/host/status", {"status": {"phase": "Succeeded"}}),
        {"kubelet": "it runs there"},
    ),
    Attack(
        "make that Pod another's through its status",
        patch(f"{THEIRS}/host/status", {"metadata": {"labels": {"remediator.dev/case-uid": "mine"}}}),
    ),
    Attack(
        "order something of the watchdog of another worker",
        Request("POST", THEIRS, {**order(OTHER), "metadata": {**order(OTHER)["metadata"], "name": "forged"}}),
        WORK,
    ),
    Attack(
        "have an order of its own worker be one of another worker",
        patch(f"{THEIRS}/order-{OWN}/status", {"metadata": {"labels": order(OTHER)["metadata"]["labels"]}}),
    ),
    Attack(
        "place an order on another worker", Request("POST", f"{THEIRS}/order-{OTHER}/binding", placed(f"order-{OTHER}"))
    ),
    Attack("take an order of another worker back", Request("DELETE", f"{THEIRS}/order-{OTHER}"), WORK),
    Attack(
        "say how an order of another worker ended",
        patch(f"{THEIRS}/order-{OTHER}/status", {"status": {"phase": "Succeeded"}}),
    ),
    Attack(
        "say how an order of its own worker ended",
        patch(f"{THEIRS}/order-{OWN}/status", {"status": {"phase": "Succeeded"}}),
        {"watchdog": "it carries it out"},
    ),
    Attack(
        "delete a Pod of another worker",
        Request("DELETE", f"{SPACES}/team/pods/on-{OTHER}"),
        {"drain": "its operation is about that node", **TIDIES, "scheduler": MAKES_ROOM},
    ),
    Attack(
        "delete a Pod of its own worker",
        Request("DELETE", f"{SPACES}/team/pods/on-{OWN}"),
        {"kubelet": "its own node", **TIDIES, "scheduler": MAKES_ROOM},
    ),
    Attack(
        "evict a Pod of another worker",
        eviction(f"on-{OTHER}", "team"),
        {"drain": "its work; budgets count it"},
    ),
    Attack(
        "ask a Pod of another worker for a checkpoint",
        patch(
            f"{SPACES}/team/pods/on-{OTHER}",
            {"metadata": {"annotations": {"remediator.dev/checkpoint-requested": "2026-01-01T00:00:00Z"}}},
        ),
        {"drain": "its operation is about that node"},
    ),
    Attack(
        "run another image in a Pod of another worker",
        patch(
            f"{SPACES}/team/pods/on-{OTHER}",
            {"spec": {"containers": [{"name": "c", "image": "mine"}]}},
            STRATEGIC_PATCH,
        ),
    ),
    Attack("evict a Pod of kube-system", eviction(f"on-{OTHER}", "kube-system")),
    Attack(
        "delete a Pod of kube-system",
        Request("DELETE", f"{SPACES}/kube-system/pods/on-{OTHER}"),
        {"scheduler": MAKES_ROOM},
    ),
    Attack(
        "delete a mirror Pod of another worker",
        Request("DELETE", f"{SPACES}/team/pods/mirror"),
        {
            "scheduler": "its kubelet makes it anew",
            "janitor": "its kubelet makes it anew",
        },
    ),
    Attack(
        "delete the Pod of the controller on another worker",
        Request("DELETE", f"{SPACES}/{SYSTEM}/pods/controller"),
        {"drain": "its operation is about that node"},
    ),
    Attack(
        "say how a Pod of a user on another worker runs",
        patch(f"{SPACES}/team/pods/on-{OTHER}/status", {"status": {"phase": "Failed", "reason": "OutOfcpu"}}),
    ),
    Attack(
        "scale the Deployment of a user to 0", patch(f"{APPS}/team/deployments/web", {"spec": {"replicas": 0}}), TIDIES
    ),
    Attack("delete the Deployment of a user", Request("DELETE", f"{APPS}/team/deployments/web"), TIDIES),
    Attack("change what the Deployment of a user runs", patch(f"{APPS}/team/deployments/web", PAUSED)),
    Attack(
        "scale a Deployment of kube-system to 0",
        patch(f"{APPS}/kube-system/deployments/web", {"spec": {"replicas": 0}}),
    ),
    Attack("delete a Deployment of kube-system", Request("DELETE", f"{APPS}/kube-system/deployments/web")),
    Attack("delete the Leases of all nodes, with their namespace", Request("DELETE", f"{SPACES}/kube-node-lease")),
    Attack("delete our namespace", Request("DELETE", f"{SPACES}/{OPERATIONS}")),
    Attack("read the ConfigMaps of all namespaces", Request("GET", "/api/v1/configmaps"), TIDIES),
    Attack("read the Secrets of all namespaces", Request("GET", "/api/v1/secrets")),
    Attack(
        "read the BMC password of another worker",
        Request("GET", f"{SPACES}/{OPERATIONS}/secrets/remediator-bmc-{OTHER}"),
    ),
    Attack("list the Secrets of operations", Request("GET", f"{SPACES}/{OPERATIONS}/secrets")),
    Attack("read the keys of our endpoints", Request("GET", f"{SPACES}/{SYSTEM}/secrets/remediator-serving"), WORK),
    Attack("ask for a token of the controller", token_request("remediator", SYSTEM)),
    Attack("ask for a token of a drain that is bound to no Pod", token_request("remediator-drain", OPERATIONS)),
    Attack(
        "ask for a token of an account of which no Pod is on its worker",
        token_request("remediator-host", OPERATIONS, "elsewhere"),
    ),
    *(
        Attack(f"ask for a token of {called}", token_request(account, space))
        for account, space, called in (
            ("remediator-janitor", SYSTEM, "the janitor"),
            ("remediator-scheduler", SYSTEM, "the second scheduler"),
            ("remediator-watchdog", SYSTEM, "the watchdog that names no worker"),
            ("node-problem-detector", SYSTEM, "the detectors that names no worker"),
            ("default", "team", "an account of a user"),
        )
    ),
    Attack("have a token of the controller that never ends", Request("POST", f"{SPACES}/{SYSTEM}/secrets", endless())),
    Attack(
        "speak as an administrator",
        Request("GET", NODES, headers={"Impersonate-User": "a", "Impersonate-Group": "system:masters"}),
    ),
    Attack(
        "speak as the controller",
        Request("GET", NODES, headers={"Impersonate-User": f"system:serviceaccount:{SYSTEM}:remediator"}),
    ),
    Attack(
        "speak as the kubelet of another worker",
        Request(
            "GET",
            f"{NODES}/{OTHER}",
            headers={"Impersonate-User": f"system:node:{OTHER}", "Impersonate-Group": "system:nodes"},
        ),
    ),
    Attack(
        "ask for a certificate of the kubelet of another worker",
        Request("POST", SIGNING, signing_request("forged", OTHER)),
    ),
    Attack(
        "ask for a certificate of its own kubelet",
        Request("POST", SIGNING, signing_request("forged", OWN)),
        {"kubelet": "its own node"},
    ),
    Attack(
        "approve that certificate",
        patch(f"{SIGNING}/waiting/approval", {"status": {"conditions": [{"type": "Approved", "status": "True"}]}}),
    ),
    Attack("sign that certificate", patch(f"{SIGNING}/waiting/status", {"status": {"certificate": "aA=="}})),
    Attack("become an administrator", Request("POST", f"{RBAC}/clusterrolebindings", binding(""))),
    Attack(
        "become an administrator of our namespace",
        Request("POST", f"{RBAC}/namespaces/{OPERATIONS}/rolebindings", binding(OPERATIONS)),
    ),
    Attack(
        "write more rights into a role of ours",
        patch(f"{RBAC}/clusterroles/remediator-cordon", {"rules": []}),
    ),
    Attack(
        "write rights for administrators of namespaces",
        Request("POST", f"{RBAC}/clusterroles", {**named("ClusterRole", "forged", RBAC_API), "rules": []}),
    ),
    Attack(
        "take an admission policy away",
        Request("DELETE", f"{ADMISSION}/validatingadmissionpolicybindings/remediator-operations-are-the-controllers"),
    ),
    Attack(
        "have an admission policy only record",
        patch(
            f"{ADMISSION}/validatingadmissionpolicybindings/remediator-operations-are-the-controllers",
            {"spec": {"validationActions": ["Audit"]}},
        ),
    ),
    Attack(
        "change what an admission policy holds",
        patch(
            f"{ADMISSION}/validatingadmissionpolicies/remediator-controller-writes-status",
            {"spec": {"validations": []}},
        ),
    ),
    *(
        Attack(f"have {does}", Request("POST", f"{ADMISSION}/{plural}", named(kind, "forged", ADMITS)))
        for plural, kind, does in (
            (
                "validatingadmissionpolicies",
                "ValidatingAdmissionPolicy",
                "what others write refused, by a policy of its own",
            ),
            (
                "mutatingadmissionpolicies",
                "MutatingAdmissionPolicy",
                "what others write changed, by a policy of its own",
            ),
            ("validatingwebhookconfigurations", "ValidatingWebhookConfiguration", "a webhook of its own asked"),
            (
                "mutatingwebhookconfigurations",
                "MutatingWebhookConfiguration",
                "a webhook of its own change what others write",
            ),
        )
    ),
    Attack("change one of our kinds", patch(f"{KINDS}/{A_KIND}", {"spec": {"scope": "Namespaced"}})),
    Attack("delete one of our kinds, with all its objects", Request("DELETE", f"{KINDS}/{A_KIND}")),
    Attack(
        "make a kind", Request("POST", KINDS, named("CustomResourceDefinition", "forged", "apiextensions.k8s.io/v1"))
    ),
    Attack("answer in the place of the API server", Request("POST", SERVED, named("APIService", "forged", SERVED_API))),
    Attack("open a case", ours("NodeRemediation", "noderemediations", **CASE_SPEC), WORK),
    Attack(
        "approve a case",
        patch(f"{OURS}/noderemediations/waiting", {"spec": {"approved": True}}),
        OBEYS,
    ),
    Attack("hold a case", patch(f"{OURS}/noderemediations/waiting", {"spec": {"hold": True}}), OBEYS),
    Attack("have a case try again", patch(f"{OURS}/noderemediations/escalated", {"spec": {"retry": 1}}), OBEYS),
    Attack(
        "release a case that is Escalated",
        patch(f"{OURS}/noderemediations/escalated", {"spec": {"release": True}}),
        OBEYS,
    ),
    Attack("release a case before that", patch(f"{OURS}/noderemediations/waiting", {"spec": {"release": True}})),
    Attack("delete a case", Request("DELETE", f"{OURS}/noderemediations/waiting"), WORK),
    Attack(
        "take the finalizer off a case",
        patch(f"{OURS}/noderemediations/waiting", {"metadata": {"finalizers": None}}),
        WORK,
    ),
    Attack(
        "write how a case stands",
        patch(f"{OURS}/noderemediations/waiting/status", {"status": {"phase": "Escalated"}}),
        WORK,
    ),
    Attack("start an operation", ours("NodeOperation", "nodeoperations", **OPERATION_SPEC), WORK),
    Attack(
        "write how an operation stands",
        patch(f"{OURS}/nodeoperations/drained/status", {"status": {"phase": "Succeeded"}}),
        WORK,
    ),
    Attack(
        "write the progress of the drain of another operation",
        patch(f"{OURS}/nodeoperations/of-another/status", {"status": {"drain": {"left": 0}}}),
        WORK,
    ),
    Attack("delete an operation", Request("DELETE", f"{OURS}/nodeoperations/drained"), WORK),
    *(Attack(f"delete all {kind.plural} at once", Request("DELETE", f"{OURS}/{kind.plural}")) for kind in api.KINDS),
    Attack(
        "close the breaker of a policy",
        patch(f"{OURS}/remediationpolicies/gpu-lost", {"metadata": {"annotations": CLOSED}}),
    ),
    Attack(
        "close the breaker of a budget",
        patch(f"{OURS}/nodedisruptionbudgets/default", {"metadata": {"annotations": CLOSED}}),
    ),
    Attack("let a policy act", patch(f"{OURS}/remediationpolicies/gpu-lost", {"spec": {"mode": "Enforce"}})),
    Attack(
        "write what an operation runs",
        patch(f"{OURS}/nodeoperationtemplates/reboot", {"spec": {"timeout": "1m"}}),
    ),
    Attack("raise a budget", patch(f"{OURS}/nodedisruptionbudgets/default", {"spec": {"maxUnavailable": "90%"}})),
    Attack(
        "write who holds a budget",
        patch(f"{OURS}/nodedisruptionbudgets/default/status", {"status": {"claims": []}}),
        WORK,
    ),
    Attack(
        "say how many devices another worker has",
        Request("POST", f"{OURS}/nodeinventories", inventory("worker-c", {"nodeName": "worker-c"})),
        WORK,
    ),
    Attack(
        "expect fewer devices of all workers",
        Request("POST", f"{OURS}/nodeinventories", inventory("fewer", {"nodeSelector": {}, "expected": {"gpus": 0}})),
        {"controller": "a role cannot tell the fields of an inventory apart; it expects none"},
    ),
    Attack(
        "have the devices of another worker forgotten",
        patch(f"{OURS}/nodeinventories/{OTHER}", {"spec": {"forgetBefore": "2026-01-01T00:00:00Z"}}),
    ),
    Attack(
        "write which devices another worker had",
        patch(f"{OURS}/nodeinventories/{OTHER}/status", {"status": {"counts": {"gpus": 1}}}),
        WORK,
    ),
    Attack(
        "delete what is known of the devices of another worker",
        Request("DELETE", f"{OURS}/nodeinventories/{OTHER}"),
        WORK,
    ),
    Attack("send the issues of a team elsewhere", Request("POST", f"{TEAM}/ticketroutes", route())),
    Attack(
        "say why the route of a team is not used",
        patch(f"{TEAM}/ticketroutes/theirs/status", {"status": {"issues": 1}}),
        WORK,
    ),
    Attack("have idle Pods deleted", ours("IdlePolicy", "idlepolicies", namespaces=["*"], mode="Enforce")),
    Attack(
        "open an issue about the work of an owner",
        ours("Ticket", "tickets", subject={"kind": "Owner", "ownerName": "team/forged"}),
        {**WORK, **TIDIES},
    ),
    Attack("change the issue about a node", patch(f"{OURS}/tickets/alert", {"metadata": {"labels": {"a": "b"}}}), WORK),
    Attack("have the idle work of an owner kept", patch(f"{OURS}/tickets/owned", {"spec": {"keeps": [KEEP]}}), WORK),
    Attack("close the issue of an owner", Request("DELETE", f"{OURS}/tickets/owned"), WORK),
    Attack(
        "read the Pods of operations on other workers",
        Request("GET", THEIRS),
        WATCHED,
    ),
    Attack(
        "read the signed URL of the bundle of another worker",
        Request("GET", f"{SPACES}/{OPERATIONS}/secrets/elsewhere"),
    ),
    Attack(
        "have the Pod that collects on another worker send its bundle elsewhere",
        Request("POST", f"{SPACES}/{OPERATIONS}/secrets", bundle_url("forged")),
        WORK,
    ),
    Attack(
        "put a BMC of its own in the place of another worker's that is gone",
        Request("POST", f"{SPACES}/{OPERATIONS}/secrets", bmc("worker-c")),
    ),
    Attack("read the key of the store of bundles", Request("GET", f"{SPACES}/{SYSTEM}/secrets/remediator-bundles")),
    Attack(
        "pause everything",
        patch(f"{SPACES}/{SYSTEM}", {"metadata": {"annotations": {"remediator.dev/paused": "true"}}}),
    ),
    Attack(
        "take the label off our namespace that says which Pods may be there",
        patch(f"{SPACES}/{SYSTEM}", {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": None}}}),
    ),
    Attack(
        "send all issues elsewhere, by the file of routes",
        patch(f"{SPACES}/{SYSTEM}/configmaps/remediator-routes", {"data": {"routes.yaml": "mine"}}),
    ),
    Attack("delete the file of routes", Request("DELETE", f"{SPACES}/{SYSTEM}/configmaps/remediator-routes")),
    Attack(
        "read the settings of the controller", Request("GET", f"{SPACES}/{SYSTEM}/configmaps/remediator-routes"), TIDIES
    ),
    Attack(
        "let Pods of others reach the endpoints of the controller",
        Request("DELETE", f"/apis/networking.k8s.io/v1/namespaces/{SYSTEM}/networkpolicies/remediator"),
    ),
    Attack("ask for a repair of another worker", Request("POST", REPAIRS, repair("forged")), ASKS),
    Attack("change what somebody asked for", patch(f"{REPAIRS}/{OTHER}", {"spec": {"operation": "power-cycle"}}), ASKS),
    Attack("take back what somebody asked for", Request("DELETE", f"{REPAIRS}/{OTHER}"), ASKS),
    Attack("answer who has asked", patch(f"{REPAIRS}/{OTHER}/status", answer("Succeeded")), REQUESTS),
    Attack("answer NVSentinel", patch(f"{EXTERNAL}/gpu0-xid79/status", answer(COMPLETE)), REQUESTS),
    Attack("say that NVSentinel has let go of a node", patch(f"{EXTERNAL}/gpu0-xid79/status", answer(RELEASED))),
    Attack(
        "change what NVSentinel asked for",
        patch(f"{EXTERNAL}/gpu0-xid79", {"spec": {"healthEvent": {"nodeName": OWN}}}),
    ),
    Attack(
        "lead in the place of the controller",
        Request("PUT", f"{LEASES}/{SYSTEM}/leases/remediator", held()),
        WORK,
    ),
    Attack(
        "keep every replica of the controller from leading, by a Lease that is made first",
        Request("POST", f"{LEASES}/{SYSTEM}/leases", lease("remediator")),
        WORK,
    ),
    Attack(
        "keep the janitor from leading, by a Lease that is made first",
        Request("POST", f"{LEASES}/{SYSTEM}/leases", lease("remediator-janitor")),
        TIDIES,
    ),
    Attack(
        "keep the second scheduler from leading, by a Lease that is made first",
        Request("POST", f"{LEASES}/kube-system/leases", lease("gpu")),
        PLACES,
    ),
    Attack(
        "lead in the place of the cluster's scheduler",
        Request("PUT", f"{LEASES}/kube-system/leases/kube-scheduler", lease("kube-scheduler")),
    ),
    Attack(
        "say that an attempt of somebody else has begun",
        Request("POST", f"{LEASES}/{OPERATIONS}/leases", lease("op-of-another")),
    ),
    Attack(
        "make a Pod beside the controller",
        Request("POST", f"{SPACES}/{SYSTEM}/pods", plain_pod("x", OWN, "remediator")),
    ),
    Attack(
        "change what the controller runs",
        patch(f"/apis/apps/v1/namespaces/{SYSTEM}/deployments/remediator", {"spec": {"replicas": 0}}),
    ),
    Attack(
        "change what the detectors run",
        patch(f"{APPS}/{SYSTEM}/daemonsets/node-problem-detector", {"spec": {"minReadySeconds": 1}}),
    ),
)

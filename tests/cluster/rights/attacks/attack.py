"""One thing that an attacker would try, and the objects and requests of which the tables are made."""

from collections.abc import Mapping
from typing import NamedTuple

from remediator.core.names import BUNDLE_SECRET, GPU_PRESENT
from tests.cluster.rights.asking import OPERATIONS, OTHER, OWN, SYSTEM, Object, Request, named, patch
from tests.cluster.rights.world import CASE, lease, operation_pod

NODES, OURS = "/api/v1/nodes", "/apis/remediator.dev/v1alpha1"
SPACES, LEASES = "/api/v1/namespaces", "/apis/coordination.k8s.io/v1/namespaces"
RBAC, ADMISSION = "/apis/rbac.authorization.k8s.io/v1", "/apis/admissionregistration.k8s.io/v1"
EVENTS = "/apis/events.k8s.io/v1/namespaces"
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


def new_event(node: str) -> Object:
    """The same as `events.k8s.io` has it."""
    reporter = {"reportingController": "a/b", "reportingInstance": "a", "eventTime": "2026-01-01T00:00:00.000000Z"}
    words = {"reason": "Said", "action": "Say", "note": "m", "type": "Normal"}
    return {
        **named("Event", "said", "events.k8s.io/v1"),
        **reporter,
        **words,
        "regarding": event(node)["involvedObject"],
    }


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

"""The Pods of a node as a drain sees them, and the PodDisruptionBudgets over them. Pure, but for the two that list."""

from collections import namedtuple
from collections.abc import Iterator
from datetime import datetime
from urllib.parse import quote

from nodelib.contract.operation import Failed
from nodelib.k8s.api import Api, Unreachable
from nodelib.k8s.eviction_answers import SEVERAL
from nodelib.k8s.gangs import ALONE, membership_of
from nodelib.k8s.handshake import checkpoint_of
from nodelib.k8s.pod_wishes import NOTHING, data_of, wish_of

PAGE = 100  # Pods at a time: a full Pod is 10 to 50 KiB and only a few fields are kept
MIRROR = "kubernetes.io/config.mirror"
GRACE = 30.0  # seconds that Kubernetes gives a Pod that says nothing else
NONE_MAY_GO = {"maxUnavailable": ("0", "0%"), "minAvailable": ("100%",)}  # what a budget says that lets no Pod go
CLUSTER = "kube-system"  # the namespace of what the cluster itself needs
COMPONENTS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "cloud-controller-manager")


class Pod(
    namedtuple(
        "Pod",
        "namespace name uid labels ending overdue owner wish data finalizers member checkpoint ready grace owner_name "
        "created pending",
        defaults=[0.0, "ReplicaSet", NOTHING, (), (), ALONE, None, True, GRACE, "", "", False],
    )
):
    """What a drain must know of one Pod. `overdue`: seconds since it should have ended; 0 while nobody asked it to.

    `owner`, `owner_name`: kind and name of its controller, "" for a bare Pod. `data`: its emptyDir volumes.
    `finalizers`: those that alone keep it, once its grace is nothing. `member`: of which gang. `checkpoint`: what it
    says of its checkpoint, None where it does not want to be asked. `grace`: seconds that it has to end once it was
    asked to go. `created`: when, as text. `pending`: it runs nothing yet, and no budget protects it.
    """

    __slots__ = ()

    @property
    def key(self) -> str:
        """namespace/name, as kubectl shows it."""
        return f"{self.namespace}/{self.name}"

    @property
    def maker(self) -> tuple:
        """What makes it again: one controller, or whoever makes bare Pods of its namespace."""
        return (self.namespace, self.owner, self.owner_name)

    @property
    def path(self) -> str:
        """Its address at the API server."""
        return f"/api/v1/namespaces/{quote(self.namespace)}/pods/{quote(self.name)}"


def pod_of(item: dict, now: datetime | None) -> Pod:
    """Keep the few fields of a Pod object, read at `now`. A deletionTimestamp has the Pod's grace in it."""
    meta, notes = item["metadata"], item["metadata"].get("annotations") or {}
    end = meta.get("deletionTimestamp")
    controller = controller_of(meta)
    alone = end is not None and meta.get("deletionGracePeriodSeconds") == 0
    return Pod(
        meta["namespace"],
        meta["name"],
        meta["uid"],
        meta.get("labels") or {},
        end is not None,
        _seconds_since(end, now),
        controller[0],
        wish_of(notes, _seconds_since((item.get("status") or {}).get("startTime"), now)),
        data_of((item.get("spec") or {}).get("volumes") or [], notes),
        tuple(meta.get("finalizers") or ()) if alone else (),
        membership_of(item),
        checkpoint_of(item, now),
        _is_ready(item),
        _grace_of(item),
        controller[1],
        meta.get("creationTimestamp") or "",
        (item.get("status") or {}).get("phase") == "Pending",
    )


def _grace_of(item: dict) -> float:
    seconds = (item.get("spec") or {}).get("terminationGracePeriodSeconds")
    return GRACE if seconds is None else float(seconds)


def _is_ready(item: dict) -> bool:
    conditions = (item.get("status") or {}).get("conditions") or []
    return any(condition.get("type") == "Ready" and condition.get("status") == "True" for condition in conditions)


def _seconds_since(moment: str | None, now: datetime | None) -> float:
    return max(0.0, (now - datetime.fromisoformat(moment)).total_seconds()) if moment and now else 0.0


def controller_of(meta: dict) -> tuple[str, str]:
    """Return kind and name of what makes a Pod again when it has gone, "" and "" where nothing does."""
    owners = meta.get("ownerReferences") or []
    named = ((owner.get("kind") or "", owner.get("name") or "") for owner in owners if owner.get("controller"))
    return next(named, ("", ""))


def stays(item: dict, own_namespace: str) -> bool:
    """Tell whether a drain leaves this Pod alone: it cannot be moved, has ended, or is the cluster's or one of ours."""
    meta = item["metadata"]
    return (
        meta["namespace"] in (CLUSTER, own_namespace)
        or MIRROR in (meta.get("annotations") or {})
        or controller_of(meta)[0] == "DaemonSet"
        or (item.get("status") or {}).get("phase") in ("Succeeded", "Failed")
    )


class NodePods(namedtuple("NodePods", "leaving control_plane")):
    """The Pods that must leave a node, and the name of a static one of the control plane there, "" for none."""

    __slots__ = ()


def list_pods(api: Api, node: str) -> NodePods:
    """Return the Pods of `node`, by namespace and name. Raises Unreachable, or Failed when not allowed."""
    static = list[str]()
    path, what = "/api/v1/pods", f"pods of {node}"
    leaving = _listed(api, path, what, static, fieldSelector=f"spec.nodeName={node}")
    return NodePods(leaving, min(static, default=""))


def list_elsewhere(api: Api, node: str, namespace: str, selector: str) -> list[Pod]:
    """Return the Pods of a namespace on other nodes with this label; all of them where it is "". Raises as above."""
    more = {"labelSelector": selector} if selector else {}
    path = f"/api/v1/namespaces/{quote(namespace)}/pods"
    return _listed(api, path, f"pods of {namespace}", [], fieldSelector=f"spec.nodeName!={node}", **more)


def _listed(api: Api, path: str, what: str, static: list[str], **query: str) -> list[Pod]:
    """Return those that do not stay, and note the names of static ones of the control plane: of no Pod more is kept."""
    pods = []
    for item, now in _pages(api, path, what, {**query, "limit": str(PAGE)}):
        if not stays(item, api.namespace):
            pods.append(pod_of(item, now))
        elif is_of_control_plane(item):
            static.append(item["metadata"]["name"])
    return sorted(pods, key=lambda pod: pod.key)


def is_of_control_plane(item: dict) -> bool:
    """Tell whether a Pod is a static one of the control plane. kube-proxy, of the same tier, is none."""
    meta, labels = item["metadata"], item["metadata"].get("labels") or {}
    mirror = meta["namespace"] == CLUSTER and MIRROR in (meta.get("annotations") or {})
    return mirror and labels.get("tier") == "control-plane" and labels.get("component") in COMPONENTS


def _pages(api: Api, path: str, what: str, query: dict[str, str]) -> Iterator[tuple[dict, datetime | None]]:
    """Yield Pod objects with the server's time, page by page, of one resourceVersion: "none left" is of one moment."""
    while True:
        reply = api.get(path, **query)
        if reply.status != 200:
            raise Failed(f"{what} cannot be listed: {reply.message}")
        now = reply.at
        yield from ((item, now) for item in reply.body.get("items") or [])
        token = (reply.body.get("metadata") or {}).get("continue")
        if not token:
            return
        query["continue"] = token


def budgets_over(pod: Pod, budgets: list[dict]) -> str:
    """Return the names of the PodDisruptionBudgets of its namespace that select `pod`, sorted, joined by a comma."""
    names = [
        budget["metadata"]["name"]
        for budget in budgets
        if selects((budget.get("spec") or {}).get("selector"), pod.labels)
    ]
    return ",".join(sorted(names))


def never_evicted(pods: list[Pod], budgets: list[dict]) -> dict[str, tuple[str, str]]:
    """Return by uid the Pods that the API server never evicts: why, and the names of their budgets.

    These are Pods that several budgets select, and those of a budget that lets none go, whatever is healthy. The server
    asks no budget for a Pod without labels, nor for one that runs nothing yet.
    """
    over = {pod.uid: (pod, budgets_over(pod, budgets)) for pod in pods if pod.labels and not pod.pending}
    by_name = {budget["metadata"]["name"]: budget for budget in budgets}
    reasons = {uid: (_why_never(pod, names, by_name), names) for uid, (pod, names) in over.items() if names}
    return {uid: (reason, names) for uid, (reason, names) in reasons.items() if reason}


def _why_never(pod: Pod, names: str, budgets: dict[str, dict]) -> str:
    if "," in names:
        return f"more than one PodDisruptionBudget selects it, and the API server evicts it never; {SEVERAL}"
    spec = budgets[names].get("spec") or {}
    if spec.get("unhealthyPodEvictionPolicy") == "AlwaysAllow" and not pod.ready:
        return ""
    field = next((field for field, values in NONE_MAY_GO.items() if str(spec.get(field)) in values), "")
    rule = f"PodDisruptionBudget {names} says {field}: {spec.get(field)}"
    return f"{rule}, and the API server evicts it never; let the budget let one go" if field else ""


def list_budgets(api: Api, namespace: str) -> list[dict]:
    """Return the PodDisruptionBudgets of a namespace; [] when they cannot be read, for they only name the blocker."""
    try:
        reply = api.get(f"/apis/policy/v1/namespaces/{quote(namespace)}/poddisruptionbudgets")
    except Unreachable:
        return []
    return (reply.body.get("items") or []) if reply.status == 200 else []


def selects(selector: dict | None, labels: dict[str, str]) -> bool:
    """Tell whether a label selector (policy/v1: {} selects all, none selects nothing) selects these labels."""
    if selector is None:
        return False
    wanted = selector.get("matchLabels") or {}
    rules = selector.get("matchExpressions") or []
    return all(labels.get(key) == value for key, value in wanted.items()) and all(
        _holds(rule, labels) for rule in rules
    )


def _holds(rule: dict, labels: dict[str, str]) -> bool:
    value, values = labels.get(rule.get("key", "")), rule.get("values") or []
    return {
        "In": value in values,
        "NotIn": value not in values,
        "Exists": value is not None,
        "DoesNotExist": value is None,
    }.get(rule.get("operator", ""), False)

"""The Pods of a node as a drain sees them, and the PodDisruptionBudgets over them. Pure, but for the two that list."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any, NamedTuple
from urllib.parse import quote

from nodelib.contract.operation import Failed
from nodelib.k8s.api import Api

PAGE = 100  # Pods at a time: a full Pod is 10 to 50 KiB and only a few fields are kept
MIRROR = "kubernetes.io/config.mirror"


class Pod(NamedTuple):
    """What a drain must know of one Pod. `overdue`: seconds since it should have ended; 0 while nobody asked it to."""

    namespace: str
    name: str
    uid: str
    labels: dict[str, str]
    ending: bool
    overdue: float = 0.0

    @property
    def key(self) -> str:
        """namespace/name, as kubectl shows it."""
        return f"{self.namespace}/{self.name}"

    @property
    def path(self) -> str:
        """Its address at the API server."""
        return f"/api/v1/namespaces/{quote(self.namespace)}/pods/{quote(self.name)}"


def pod_of(item: dict[str, Any], now: datetime | None) -> Pod:
    """Keep the few fields of a Pod object, read at `now`. A deletionTimestamp has the Pod's grace in it."""
    meta = item["metadata"]
    end = meta.get("deletionTimestamp")
    overdue = max(0.0, (now - datetime.fromisoformat(end)).total_seconds()) if end and now else 0.0
    return Pod(meta["namespace"], meta["name"], meta["uid"], meta.get("labels") or {}, end is not None, overdue)


def stays(item: dict[str, Any], own_namespace: str) -> bool:
    """Tell whether a drain leaves this Pod alone: it cannot be moved, has ended, or is one of ours."""
    meta = item["metadata"]
    owners = meta.get("ownerReferences") or []
    return (
        meta["namespace"] == own_namespace
        or MIRROR in (meta.get("annotations") or {})
        or any(owner.get("controller") and owner.get("kind") == "DaemonSet" for owner in owners)
        or (item.get("status") or {}).get("phase") in ("Succeeded", "Failed")
    )


def list_pods(api: Api, node: str) -> list[Pod]:
    """Return the Pods that must leave `node`, by namespace and name. Raises Unreachable, or Failed when not allowed."""
    pods = [pod_of(item, now) for item, now in _pages(api, node) if not stays(item, api.namespace)]
    return sorted(pods, key=lambda pod: pod.key)


def _pages(api: Api, node: str) -> Iterator[tuple[dict[str, Any], datetime | None]]:
    """Yield Pod objects with the server's time, page by page, of one resourceVersion: "none left" is of one moment."""
    query = {"fieldSelector": f"spec.nodeName={node}", "limit": str(PAGE)}
    while True:
        reply = api.get("/api/v1/pods", **query)
        if reply.status != 200:
            raise Failed(f"pods of {node} cannot be listed: {reply.message}")
        now = reply.at
        yield from ((item, now) for item in reply.body.get("items") or [])
        token = (reply.body.get("metadata") or {}).get("continue")
        if not token:
            return
        query["continue"] = token


def budgets_over(pod: Pod, budgets: list[dict[str, Any]]) -> str:
    """Return the names of the PodDisruptionBudgets of its namespace that select `pod`, sorted, joined by a comma."""
    names = [
        budget["metadata"]["name"]
        for budget in budgets
        if selects((budget.get("spec") or {}).get("selector"), pod.labels)
    ]
    return ",".join(sorted(names))


def list_budgets(api: Api, namespace: str) -> list[dict[str, Any]]:
    """Return the PodDisruptionBudgets of a namespace; [] when they cannot be read, for they only name the blocker."""
    reply = api.get(f"/apis/policy/v1/namespaces/{quote(namespace)}/poddisruptionbudgets")
    return (reply.body.get("items") or []) if reply.status == 200 else []


def selects(selector: dict[str, Any] | None, labels: dict[str, str]) -> bool:
    """Tell whether a label selector (policy/v1: {} selects all, none selects nothing) selects these labels."""
    if selector is None:
        return False
    wanted = selector.get("matchLabels") or {}
    rules = selector.get("matchExpressions") or []
    return all(labels.get(key) == value for key, value in wanted.items()) and all(
        _holds(rule, labels) for rule in rules
    )


def _holds(rule: dict[str, Any], labels: dict[str, str]) -> bool:
    value, values = labels.get(rule.get("key", "")), rule.get("values") or []
    return {
        "In": value in values,
        "NotIn": value not in values,
        "Exists": value is not None,
        "DoesNotExist": value is None,
    }.get(rule.get("operator", ""), False)

"""How everything stands at the end, in words that say nothing of times, names and order."""

from typing import Any, NamedTuple

from remediator.core.gpu_operator import resumed
from remediator_sim.apiserver.store import Store
from remediator_sim.invariants.contract import BUDGETS, CASES, NODES, OURS, PODS, Obj, part, phase

GROUP = "remediator.dev/"


class CaseEnding(NamedTuple):
    """A case: its policy, phase and reason, its attempts as (template, outcome), the reasons of its timeline."""

    policy: str
    phase: str
    reason: str
    attempts: tuple[tuple[str, str], ...]
    reasons: tuple[str, ...]


class NodeEnding(NamedTuple):
    """A node: its cases, its marks of ours (taints, keys of labels and annotations, operands that stay paused), its
    bad conditions.
    """

    cases: tuple[CaseEnding, ...]
    marks: tuple[str, ...]
    cordoned: bool
    bad: tuple[str, ...]


class SeedEnding(NamedTuple):
    """By node, and the nodes that ledgers name and the Pods of ours that are left."""

    nodes: dict[str, NodeEnding]
    claims: tuple[str, ...]
    pods: tuple[str, ...]


def ending_of(store: Store) -> SeedEnding:
    """What is stored now, as an ending."""
    cases, budgets = _objects(store, CASES), _objects(store, BUDGETS)
    nodes = {node["metadata"]["name"]: _node(node, cases) for node in _objects(store, NODES)}
    claims = [claim["node"] for budget in budgets for claim in part(budget, "status").get("claims") or ()]
    pods = [pod["metadata"]["name"] for pod in _objects(store, PODS) if pod["metadata"].get("namespace") == OURS]
    return SeedEnding(nodes, tuple(sorted(claims)), tuple(sorted(pods)))


def _objects(store: Store, kind: str) -> list[Obj]:
    return [entry.obj for entry in store.collection(kind).entries.values()]


def _node(node: Obj, cases: list[Obj]) -> NodeEnding:
    meta, spec = node["metadata"], part(node, "spec")
    ours = [case for case in cases if case["spec"]["nodeName"] == meta["name"]]
    keys = [*(meta.get("labels") or ()), *(meta.get("annotations") or ())]
    keys += [taint["key"] for taint in spec.get("taints") or ()]
    marks = tuple(sorted({key for key in keys if key.startswith(GROUP)} | resumed(meta.get("labels") or {}).keys()))
    by_age = sorted(ours, key=lambda case: str(case["metadata"]["creationTimestamp"]))
    conditions = [(entry["type"], entry["status"]) for entry in part(node, "status").get("conditions") or ()]
    bad = sorted(kind for kind, status in conditions if status == ("False" if kind == "Ready" else "True"))
    return NodeEnding(tuple(map(_case, by_age)), marks, bool(spec.get("unschedulable")), tuple(bad))


def _case(case: Obj) -> CaseEnding:
    status: dict[str, Any] = part(case, "status")
    attempts = [(attempt["template"], attempt.get("outcome", "")) for attempt in status.get("attempts") or ()]
    reasons = {entry["reason"] for entry in status.get("timeline") or ()}
    return CaseEnding(
        case["spec"].get("policyName", ""),
        phase(case),
        status.get("reason", ""),
        tuple(attempts),
        tuple(sorted(reasons)),
    )

"""What a budget lets be unavailable, and what its ledger says: read from plain JSON objects, as in contract.py."""

from collections.abc import Iterable, Iterator

from remediator_sim.invariants.contract import Obj, part, selects


def claims(budget: Obj | None) -> dict[str, str]:
    """The ledger of a budget: case uid → node."""
    return {entry["case"]: entry["node"] for entry in part(budget, "status", "claims") or ()}


def grouped(budget: Obj | None) -> str:
    """The label key that a budget has a budget for each value of; "" for none."""
    return str(part(budget, "spec").get("groupBy", ""))


def group(budget: Obj | None, node: Obj | None) -> str:
    """The group of a node under a budget; "" where it has none."""
    return str(part(node, "metadata", "labels").get(grouped(budget), "")) if grouped(budget) else ""


def entry_group(budget: Obj | None, case: str) -> str:
    """The group in which a ledger says that a case was admitted; "" for none."""
    entries = part(budget, "status", "claims") or ()
    return next((entry.get("group", "") for entry in entries if entry["case"] == case), "")


def quarantined(budget: Obj | None) -> set[str]:
    """The nodes whose entries say that they wait for a user."""
    return {entry["node"] for entry in part(budget, "status", "claims") or () if entry.get("quarantined")}


def most(budget: Obj, total: int) -> int:
    """How many of `total` nodes a budget lets be unavailable.

    maxUnavailable as a percentage is rounded down, but not below one node unless it is 0 %; minAvailable is rounded up.
    """
    spec = budget["spec"]
    at_most, at_least = spec.get("maxUnavailable"), spec.get("minAvailable")
    if at_most is None:
        return max(0, total - (-(-total * _percent(at_least) // 100) if isinstance(at_least, str) else at_least))
    if isinstance(at_most, int):
        return at_most
    return max(total * _percent(at_most) // 100, min(total, _percent(at_most), 1))


def most_quarantined(budget: Obj, total: int) -> int:
    """At how many quarantined nodes out of `total` a budget lets nothing start.

    A percentage is rounded down, but not below two nodes unless it is 0 %.
    """
    at_most = budget["spec"].get("maxQuarantined", "20%")
    if isinstance(at_most, int):
        return at_most
    return max(total * _percent(at_most) // 100, min(_percent(at_most), 1) * 2)


def percentage(budget: Obj, amount: str, default: object = None) -> bool:
    """Whether a budget says this amount as a percentage."""
    return isinstance(budget["spec"].get(amount, default), str)


def _percent(text: str) -> int:
    return int(text.rstrip("%"))


def under(budget: Obj, nodes: Iterable[Obj], budgets: Iterable[Obj]) -> Iterator[Obj]:
    """The nodes that a budget counts: those it selects; for a fallback, those that no other budget selects."""
    spec = budget["spec"]
    others = [one["spec"]["selector"] for one in budgets if spec.get("fallback") and not one["spec"].get("fallback")]
    for node in nodes:
        if selects(spec["selector"], node) and not any(selects(other, node) for other in others):
            yield node

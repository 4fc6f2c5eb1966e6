"""I1: tests of idle nodes never hold more than their share. Counted anew from the Pods each time that one is made."""

from collections.abc import Iterator

from remediator_sim.invariants import contract
from remediator_sim.invariants.contract import PODS, POLICIES, Obj, clock, part
from remediator_sim.invariants.event import Event
from remediator_sim.invariants.history import History
from remediator_sim.invariants.results import HELD


def within_share(history: History, event: Event) -> Iterator[str]:
    """A Pod was written. Counts each new test: with the others of its policy it is within the share, and may begin."""
    policy_name = contract.tests_for(event.new)
    if event.old is not None or not policy_name:
        return
    policy = history.objects[POLICIES].get(policy_name)
    if history.lately_edited(policy_name):
        return
    made = f"test {event.key} was made at {clock(event.at)}"
    test = part(policy, "spec").get("idleTest")
    if policy is None or not test or policy["spec"].get("mode") != "Enforce":
        yield f"{made} for policy {policy_name}, which asks for none"
        return
    selected = sum(_selects(policy, node) for node in history.nodes.values())
    most = _most(test["share"], selected)
    there = sum(_of(pod, policy_name) for pod in history.objects[PODS].values())
    yield HELD if there <= most else f"{made}, number {there} of policy {policy_name} where {most} may be"


def _selects(policy: Obj, node: Obj) -> bool:
    return contract.selects(policy["spec"].get("nodeSelector") or {}, node)


def _of(pod: Obj, policy: str) -> bool:
    return contract.tests_for(pod) == policy and contract.phase(pod) not in ("Succeeded", "Failed")


def _most(share: int | str, selected: int) -> int:
    wanted = selected * int(share.rstrip("%")) // 100 if isinstance(share, str) else share
    return min(max(1, wanted), selected)

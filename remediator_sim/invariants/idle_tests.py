"""Tests of idle nodes: never more than the share, never beside a repair, and each is taken back.

Counted anew from the Pods each time that one is made.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta

from remediator_sim.invariants import contract, new_nodes, pod_words
from remediator_sim.invariants.contract import OPERATIONS, PODS, POLICIES, TEMPLATES, Obj, clock, part
from remediator_sim.invariants.event import Event
from remediator_sim.invariants.history import PAUSE, History, control_plane
from remediator_sim.invariants.results import HELD
from remediator_sim.invariants.tracked import Tracked

# After a backup was restored: its versions may go on where it ends, and a watch hears of nothing until they have passed
# those that it knew.
CAUGHT_UP = timedelta(minutes=5)
GIVES_WAY = timedelta(minutes=1)  # beyond its grace, for which an operation waits for a test
PLACED, BEYOND = timedelta(minutes=2), timedelta(minutes=1)  # until a test has a node, and beyond its longest time


def within_share(history: History, event: Event) -> Iterator[str]:
    """A Pod was written. Counts each new test: with the others of its policy it is within the share, and may begin.

    So is each new Pod on a neighbour to which an operation measures, with the others of its template.
    """
    policy_name = pod_words.tests_for(event.new)
    if event.old is not None or not policy_name:
        return
    if pod_words.neighbour_of(event.new):
        yield _of_neighbours(history, event)
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


def _of_neighbours(history: History, event: Event) -> str:
    """Whether the template of a Pod on a neighbour lets so many be at once."""
    name = part(event.new, "metadata", "labels").get(contract.TEMPLATE, "")
    most = part(history.objects[TEMPLATES].get(name), "spec", "neighbours").get("atOnce", 0)
    pods = [pod for pod in history.objects[PODS].values() if pod_words.neighbour_of(pod) and _runs(pod)]
    there = sum(part(pod, "metadata", "labels").get(contract.TEMPLATE) == name for pod in pods)
    made = f"Pod {event.key} on a neighbour was made at {clock(event.at)}"
    return HELD if there <= most else f"{made}, number {there} of template {name} where {most} may be"


def _selects(policy: Obj, node: Obj) -> bool:
    return contract.selects(policy["spec"].get("nodeSelector") or {}, node)


def _of(pod: Obj, policy: str) -> bool:
    return pod_words.tests_for(pod) == policy and _runs(pod) and not pod_words.neighbour_of(pod)


def _runs(pod: Obj) -> bool:
    return not contract.pod_ended(pod)


def _most(share: int | str, selected: int) -> int:
    wanted = selected * int(share.rstrip("%")) // 100 if isinstance(share, str) else share
    return min(max(1, wanted), selected)


# --- I4: beside nobody -----------------------------------------------------------------------------------------------


def begins(history: History, event: Event) -> Iterator[str]:
    """A Pod was written. Counts each new test: nobody works on its node, and no user has stopped it."""
    policy, node, boot = pod_words.tested(event.new)
    if event.old is not None or not policy:
        return
    lately = history.lately(node)
    obstacles = [_obstacle(history, node, state, boot) for state in lately]
    why = obstacles[-1] if all(obstacles) else _in_use(history, node, event)
    yield f"test {event.key} of {node} was made at {clock(event.at)}, and {why}" if why else HELD


def _obstacle(history: History, name: str, node: Obj, boot: str) -> str:
    """Why a node in this state must not be tested; "" for nothing."""
    labels = part(node, "metadata", "labels")
    rows = (
        (contract.says(node, "Ready") != "True", "it is not Ready"),
        (bool(contract.held_by(node)), f"case {contract.held_by(node)} has it"),
        (bool(part(node, "spec").get("unschedulable")), "it is cordoned"),
        (labels.get(contract.EXCLUDE, "false") != "false", "a person has excluded it"),
        (contract.of_control_plane(node), control_plane(name)),
        (contract.maintained(node), "another system works on it"),
        (new_nodes.waits(history, node), "it waits behind a gate"),
        (contract.boot(node) != boot, f"its boot is {contract.boot(node)}, not {boot}"),
    )
    return next((why for holds, why in rows if holds), "")


def _in_use(history: History, node: str, event: Event) -> str:
    """What has stood beside the node for longer than somebody may not have heard of it; "" for nothing."""
    if event.at < history.set_back + CAUGHT_UP:
        return ""
    before = event.at - history.limits.grace
    if history.stops.get(PAUSE, event.at) < before:
        return "everything is paused"
    for key, pod in history.objects[PODS].items():
        there = history.tracked[contract.uid(pod)].made < before and _runs(pod) and key != event.key
        if there and pod_words.tested(pod)[1] == node:
            return f"test {key} goes on there"
        if there and part(pod, "spec").get("nodeName") == node and _holds_gpus(pod):
            return f"Pod {key} holds GPUs there"
    return ""


def _holds_gpus(pod: Obj) -> bool:
    wanted = (part(each, "resources", "limits") for each in part(pod, "spec", "containers") or ())
    return any(
        name.startswith("nvidia.com/") and count not in ("0", 0) for each in wanted for name, count in each.items()
    )


def gave_way(history: History, event: Event) -> Iterator[str]:
    """A Pod was written. Counts each new one that works on its own node for a repair, beside a test of that node."""
    node = part(event.new, "spec").get("nodeName", "")
    if event.old is not None or pod_words.template(event.obj) in ("", contract.LOOKS):
        return
    if pod_words.environment(event.obj).get("NODE_NAME", node) != node:  # it works on another one
        return
    for test in _standing(history, node):
        if history.at - test.made > history.limits.grace:
            late = _ends(test.last, history) < history.at + history.limits.grace
            yield HELD if late else f"Pod {event.key} was made at {clock(event.at)} beside test {test.name} of {node}"


def _standing(history: History, node: str = "") -> list[Tracked]:
    """The tests that have not ended, of one node or of all."""
    there = (test for test in history.tests if test.gone is None and _runs(test.last))
    return [test for test in there if node in ("", pod_words.tested(test.last)[1])]


def _ends(test: Obj, history: History) -> datetime:
    """When a test that has not ended holds nobody up any more."""
    deleted = part(test, "metadata").get("deletionTimestamp")
    return contract.moment(deleted) + GIVES_WAY if deleted else history.at + GIVES_WAY


# --- I5: nothing is left behind --------------------------------------------------------------------------------------


def _measured(history: History, pod: Obj) -> list[datetime]:
    """When the operation was over for which a Pod is the other end; nothing for any other Pod, and before that."""
    uid = pod_words.neighbour_of(pod)
    its = (each for each in history.objects[OPERATIONS].values() if uid and contract.uid(each) == uid)
    ended = [part(operation, "status").get("finishedAt") for operation in its]
    return [contract.moment(at) for at in ended if at]


def taken_back(history: History, event: Event) -> Iterator[str]:
    """Time passed. Tells of each test that nobody takes back though its time was over long ago."""
    for test in _standing(history):
        longest = timedelta(seconds=part(test.first, "spec").get("activeDeadlineSeconds") or 0)
        longest_time = test.made + PLACED + longest + BEYOND
        due = min([longest_time, *_measured(history, test.last)]) + history.limits.settle
        left = not contract.deleted(test.last)
        if left and history.passed(due) and history.acts():
            yield f"test {test.name} stands since {clock(test.made)}, and nobody takes it back"

"""Tests of idle nodes: which nodes may be tested, on how many at once, and what the end of a test proves. Pure.

A test is a Pod that asks for all GPUs of its node, with a priority below that of any other Pod: it holds them against
nobody. It takes no claim: the node stays in service. Only what its program says proves anything.
"""

from collections.abc import Collection, Iterable, Iterator
from datetime import datetime, timedelta
from enum import StrEnum
from heapq import nsmallest
from typing import NamedTuple

from remediator.core import names
from remediator.core.case import AttemptOutcome, Case
from remediator.core.idle_result import IDLE_TEST_FAILED, LONGEST, IdleResult
from remediator.core.maintenance import maintained
from remediator.core.node import Node, Status, Taint
from remediator.core.outcome import PodEnd, pod_end
from remediator.core.own_condition import OwnCondition
from remediator.core.pod import Pod
from remediator.core.policy import IdleTest, Policy
from remediator.core.spare import repelling
from remediator.core.template import RunOn, Template

FAILED, PASSED, REPAIRED, UNTESTED = "ProbeFailed", "ProbePassed", "NotTestedSince", "NoPolicyTestsIt"  # its reasons
PLACED_WITHIN = timedelta(minutes=2)  # a test that has no node by then is taken back: the node is not idle any more
END_GRACE = timedelta(minutes=1)  # beyond the time of its template
GIVES_WAY_WITHIN = timedelta(
    minutes=1
)  # beyond its grace: an operation waits no longer for a test that cannot be ended
LOST_AFTER = timedelta(minutes=5)  # a deleted Pod that no kubelet has ended by then is told of
AGAIN, LONGEST_PAUSE = (
    timedelta(minutes=10),
    timedelta(hours=2),
)  # until a node is tried again of which nothing is known


class IdleEnd(StrEnum):
    """How a test ended. Only the first two say anything of the node."""

    PASSED = "Passed"
    FAILED = "Failed"
    CANNOT_TELL = "CannotTell"
    PREEMPTED = "Preempted"
    EVICTED = "Evicted"
    DELETED = "Deleted"
    TIMED_OUT = "TimedOut"
    KILLED = "Killed"
    NOT_PLACED = "NotPlaced"
    NOT_STARTED = "NotStarted"
    GAVE_WAY = "GaveWay"
    LOST = "Lost"

    @property
    def proves(self) -> bool:
        """Whether it says something of the node."""
        return self in (IdleEnd.PASSED, IdleEnd.FAILED)


_UNSAID = {
    PodEnd.EVICTED: IdleEnd.EVICTED,
    PodEnd.DELETED: IdleEnd.DELETED,
    PodEnd.UNPLACED: IdleEnd.NOT_PLACED,
    PodEnd.LOST: IdleEnd.KILLED,
    PodEnd.RUNNING: IdleEnd.TIMED_OUT,
}
_SAID = {0: IdleEnd.PASSED, 1: IdleEnd.FAILED, 2: IdleEnd.CANNOT_TELL}
_OUT_OF_MEMORY, _PREEMPTED = "OOMKilled", "PreemptionByScheduler"


def end_of(pod: Pod) -> IdleEnd:
    """How a test ended that has ended, or is taken back now. A program that was being killed proves nothing by 1."""
    if pod.disrupted:
        return IdleEnd.PREEMPTED if pod.disrupted == _PREEMPTED else IdleEnd.EVICTED
    if pod.ran_too_long:
        return IdleEnd.TIMED_OUT
    if pod.reason == _OUT_OF_MEMORY:
        return IdleEnd.KILLED
    if pod.deleting:
        return IdleEnd.DELETED
    end = pod_end(pod)
    return _SAID[pod.exit_code or 0] if end is PodEnd.SAID else _UNSAID.get(end, IdleEnd.NOT_STARTED)


def result_of(pod: Pod, template: str, end: IdleEnd, boot_id: str, now: datetime) -> IdleResult:
    """What is kept of a test that proves something."""
    return IdleResult(pod.idle_test, template, end is IdleEnd.PASSED, now, boot_id, pod.message[:LONGEST])


def allowed(test: IdleTest, selected: int) -> int:
    """On how many nodes at once: a percentage is rounded down, and never stands for none unless it is 0."""
    if not test.share:
        return 0
    share = selected * test.share // 100 if test.percent else test.share
    return min(max(1, share), selected)


def slot(policy: str, number: int) -> str:
    """The name of a test's Pod: there are as many names as nodes may be tested, so that no two leaders exceed that."""
    return names.name("idle-test", policy, policy, str(number))


def free_slots(policy: str, most: int, taken: Collection[str]) -> list[str]:
    """The names that new tests may have. Those beyond `most`, of a share that was larger, count, too."""
    free = (name for name in (slot(policy, number) for number in range(most)) if name not in taken)
    return list(free)[: max(0, most - len(taken))]


class NodeUse(NamedTuple):
    """What is known of a node beside itself. `held`: whether Pods hold GPUs there, or nobody knows."""

    cases: Collection[Case]
    held: bool


def obstacle(node: Node, standing: NodeUse, template: Template) -> str:
    """Why a node is not tested now; "" for nothing."""
    if why := in_the_way(node, standing.cases):
        return why
    if not whole_gpus(node):
        return "it offers no GPUs that a Pod could have for itself"
    if standing.held:
        return "Pods hold GPUs there"
    unborne = sorted(taint.key for taint in repelling(node) if not bears(taint, node, template))
    return f"the template's Pod does not tolerate the taint {', '.join(unborne)}" if unborne else ""


def in_the_way(node: Node, cases: Iterable[Case]) -> str:
    """Why a test must not be on a node, also one that goes on; "" for nothing."""
    if node.ready is not Status.TRUE:
        return "it is not Ready"
    if node.opted_out:
        return f"a user has excluded it ({names.EXCLUDE})"
    if node.control_plane:
        return "it is part of the control plane"
    open_case = next((case for case in cases if case.open or case.finalizer), None)
    if open_case is not None:
        return f"case {open_case.name} is open"
    if node.unschedulable or node.marks:
        return "it is cordoned"
    if node.gates:
        return f"it waits behind the taint {node.gates[0]}"
    if node.drain_requested is not None:
        return "another system is asked to drain it"
    return maintained(node)


def whole_gpus(node: Node) -> tuple[tuple[str, int], ...]:
    """All GPUs of the node, as a Pod asks for them; nothing where Pods share some."""
    if node.cards.shared or any(name.endswith(".shared") for name, _ in node.gpus):
        return ()
    return tuple((name, count) for name, count in node.gpus if count)


def bears(taint: Taint, node: Node, template: Template) -> bool:
    """Whether a test may go to a node in spite of a taint: its template says so, or it keeps off Pods without GPUs."""
    return any(each.bears(taint) for each in template.tolerations) or taint.key in dict(node.gpus)


def cannot_run(template: Template | None, test: IdleTest) -> str:
    """Why a template tests no idle node; "" where it does."""
    if template is None:
        return f"no NodeOperationTemplate {test.probe}"
    if template.run_on is not RunOn.TARGET:
        return f"{test.probe} does not run on the node that it is about"
    return f"{test.probe} drains the node first" if template.drains else ""


class Candidate(NamedTuple):
    """A node that may be tested: the longest untested first."""

    tested: float
    name: str


def longest_untested(candidates: Iterable[Candidate], count: int) -> list[str]:
    """The names of so many nodes."""
    return [each.name for each in nsmallest(count, candidates)]


def is_due(tested: IdleResult | None, policy: str, opened: datetime) -> bool:
    """Whether a node has not been tested for this policy since the window opened."""
    return tested is None or tested.policy != policy or tested.at < opened


def overdue(pod: Pod, timeout: timedelta, now: datetime) -> bool:
    """Whether a test is to be taken back: no node has been found for it, or it should have ended by itself."""
    if pod.created is None:
        return False
    limit = PLACED_WITHIN if pod.unplaced else PLACED_WITHIN + timeout + END_GRACE
    return now - pod.created > limit


def holds_up(tests: Iterable[Pod], now: datetime) -> bool:
    """Whether an operation waits for tests of its node to end: they are being taken back, and may hold its GPUs."""
    going_on = (test for test in tests if not test.ended)
    return any(test.deletion is None or now - test.deletion < GIVES_WAY_WITHIN for test in going_on)


def lost(pod: Pod, now: datetime) -> bool:
    """Whether no kubelet has ended a Pod that was deleted."""
    return pod.deletion is not None and now - pod.deletion > LOST_AFTER


def pause(times: int) -> timedelta:
    """How long a node is left alone whose test has said nothing so many times in a row."""
    doublings: int = min(times - 1, 10)
    wanted: timedelta = AGAIN * 2**doublings
    return min(wanted, LONGEST_PAUSE)


def tester(node: Node, policies: Iterable[Policy]) -> str:
    """The policy that tests a node: of those that may, the one whose name sorts first; "" where none does.

    Two probes would contradict each other: the node is tested once each time that the window of this policy opens.
    """
    own = (policy.name for policy in policies if _tests(policy) and policy.selects(node))
    return min(own, default="")


def _tests(policy: Policy) -> bool:
    return policy.idle_test is not None and not policy.unreadable and policy.mode.value == "Enforce"


def stops_new(policy: Policy, paused: bool) -> str:
    """What a user has stopped new tests by; "" for nothing."""
    if paused:
        return "everything is paused"
    return "" if policy.mode.value == "Enforce" else f"its mode is {policy.mode.value}"


def asked(node: Node, tested: IdleResult, policies: Iterable[Policy]) -> bool:
    """Whether a policy tests the node, whatever its mode, or the one that has tested it cannot be read."""
    return any(
        policy.name == tested.policy if policy.unreadable else policy.idle_test is not None and policy.selects(node)
        for policy in policies
    )


def condition(
    node: Node, tested: IdleResult | None, cases: Iterable[Case], *, asked: bool = True
) -> OwnCondition | None:
    """What IdleTestFailed should say; None where nothing was ever found, so that it is said of no node that passes.

    What has failed is found until the node passes, or until an operation of a case that was opened for it has succeeded
    since: then the proof is `verify.probe`. A boot alone proves nothing of a GPU. Where no policy has the node tested
    any more (`asked`) no test can take it back, and nobody can tell.
    """
    if tested is None or (tested.passed and IDLE_TEST_FAILED not in node.conditions):
        return None
    if tested.passed:
        return OwnCondition(IDLE_TEST_FAILED, Status.FALSE, PASSED, f"{tested.probe} has succeeded")
    if _treated(node, tested, cases):
        sentence = f"{tested.probe} has not been tried since the node was repaired"
        known = IDLE_TEST_FAILED in node.conditions
        return OwnCondition(IDLE_TEST_FAILED, Status.FALSE, REPAIRED, sentence) if known else None
    if not asked:
        sentence = f"{tested.probe} has failed, and no policy has this node tested any more"
        known = IDLE_TEST_FAILED in node.conditions
        return OwnCondition(IDLE_TEST_FAILED, Status.UNKNOWN, UNTESTED, sentence) if known else None
    return OwnCondition(IDLE_TEST_FAILED, Status.TRUE, FAILED, tested.message or f"{tested.probe} has failed")


def _treated(node: Node, tested: IdleResult, cases: Iterable[Case]) -> bool:
    """Whether an operation that is more than a probe has succeeded on it since, of a case for IdleTestFailed itself."""
    of_it = (case for case in cases if case.node_uid == node.uid and _is_for_it(case))
    attempts = (attempt for case in of_it for attempt in case.attempts if not attempt.probe)
    succeeded = (attempt.finished for attempt in attempts if attempt.outcome is AttemptOutcome.SUCCEEDED)
    return any(at is not None and at >= tested.at for at in succeeded)


def _is_for_it(case: Case) -> bool:
    return case.trigger is not None and case.trigger.condition == IDLE_TEST_FAILED


def standing(node: Node, tested: IdleResult | None, tests: Iterable[Pod], policies: Iterable[Policy]) -> Iterator[str]:
    """What a user reads of the tests of a node, a sentence each."""
    for pod in tests:
        since = f" since {pod.created:%Y-%m-%d %H:%M} UTC" if pod.created else ""
        if pod.neighbour_of:
            yield f"idle test: another node measures its InfiniBand to this one{since}, for policy {pod.idle_test}"
            continue
        yield f"idle test: {pod.template} is being tried{since}, for policy {pod.idle_test}"
    if tested is not None:
        end = IdleEnd.PASSED if tested.passed else IdleEnd.FAILED
        why = f": {tested.message}" if tested.message and not tested.passed else ""
        yield f"idle test: {end.value} {tested.at:%Y-%m-%d %H:%M} UTC, {tested.probe} for policy {tested.policy}{why}"
    asking = [policy for policy in policies if policy.idle_test is not None and policy.selects(node)]
    first, why = tester(node, asking), in_the_way(node, ())
    for policy in sorted(asking, key=lambda policy: policy.name):
        if why:
            yield f"idle test: policy {policy.name} does not test it: {why}"
        elif first and policy.name != first:
            yield f"idle test: policy {policy.name} does not test it: policy {first} does"

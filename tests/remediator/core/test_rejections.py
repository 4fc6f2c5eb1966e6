"""A node that rejects Pods: what counts, how the Condition turns, and what it proves to a policy."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta

import pytest

from remediator.core import judgement
from remediator.core.health import Health, health_of
from remediator.core.node import NodeCondition, Status
from remediator.core.policy import Clause
from remediator.core.proof import Proof, prove
from remediator.core.rejections import (
    BEATS,
    NONE,
    ONE_NAMESPACE,
    OUT_OF_RESOURCES,
    PODS_REJECTED,
    STAYS,
    WINDOW,
    JudgedRejections,
    Rejection,
    judge,
    rejection_reason,
    to_write,
)
from tests.builders import a_node, a_policy, at, condition, when

NODE = "gpu-1"


def rejected(owner: str, minute: float = 0, reason: str = "UnexpectedAdmissionError", node: str = NODE) -> Rejection:
    return Rejection(node, owner, reason, at(minute))


def judged(
    *rejections: Rejection, before: NodeCondition | None = None, minute: float = 1, at_work: Iterable[str] = ()
) -> JudgedRejections:
    """`at_work`: namespaces whose Pods work on the node."""
    nodes = {
        owner: {each.node for each in rejections if each.owner == owner} for owner in {r.owner for r in rejections}
    }
    here = [each for each in rejections if each.node == NODE]
    return judge(here, lambda own: len(nodes[own]), before, at(minute), lambda mine: any(it != mine for it in at_work))


def said(status: str = "True", since: float = 0, heartbeat: float = 0) -> NodeCondition:
    return condition(PODS_REJECTED, status, since=since, heartbeat=heartbeat, reason="Said", message="as it was")


COUNTS = [
    pytest.param([rejected("a"), rejected("b")], Status.FALSE, id="two owners"),
    pytest.param([rejected("a"), rejected("b"), rejected("c")], Status.TRUE, id="three owners"),
    pytest.param([rejected("a") for _ in range(9)], Status.FALSE, id="nine Pods of one owner"),
    pytest.param([rejected("a") for _ in range(10)], Status.TRUE, id="ten Pods of one owner, all on this node"),
    pytest.param(
        [rejected("a", node=node) for node in ("gpu-1", "gpu-2", "gpu-3") for _ in range(10)],
        Status.FALSE,
        id="a Pod that three nodes reject is to blame itself",
    ),
    pytest.param(
        [rejected("a"), rejected("b"), rejected("c", -WINDOW.total_seconds() / 60 + 1)],
        Status.FALSE,
        id="one of them ten minutes ago",
    ),
    pytest.param([rejected("a"), rejected("b"), rejected("c", 60)], Status.FALSE, id="one of them ahead of the clock"),
]


@pytest.mark.parametrize(("rejections", "status"), COUNTS)
def test_how_many_pods_of_how_many_owners_make_a_fault(rejections: list[Rejection], status: Status) -> None:
    assert judged(*rejections).status is status


ATTACK = [replace(rejected(f"team-a/{index}"), namespace="team-a") for index in range(12)]
NEIGHBOUR = replace(rejected("team-b/1"), namespace="team-b")


@pytest.mark.parametrize(
    ("rejections", "at_work", "status"),
    [
        pytest.param(ATTACK, ["team-a"], Status.TRUE, id="only its own work is at stake"),
        pytest.param(ATTACK, [], Status.TRUE, id="nobody works there"),
        pytest.param(ATTACK, ["team-a", "team-b"], Status.FALSE, id="another works there"),
        pytest.param(
            [*ATTACK, NEIGHBOUR], ["team-a", "team-b"], Status.TRUE, id="a Pod of the other was rejected, too"
        ),
    ],
)
def test_what_the_pods_of_one_namespace_show_ends_no_work_of_another(rejections, at_work, status) -> None:
    """Twelve Pods with `spec.nodeName` of the victim, or whose command does not exist."""
    found = judged(*rejections, at_work=at_work)
    assert found.status is status
    assert (found.reason == ONE_NAMESPACE) is (status is Status.FALSE)


def test_a_condition_that_is_true_stays_when_others_come_to_work_there() -> None:
    assert judged(*ATTACK, before=said(since=0), at_work=["team-b"]).status is Status.TRUE


def test_the_reason_is_the_most_frequent_one_and_the_message_has_the_numbers() -> None:
    found = judged(rejected("a", reason=OUT_OF_RESOURCES), rejected("b"), rejected("c"), rejected("c"))
    assert found.reason == "UnexpectedAdmissionError"
    assert found.message == ("rejected 4 Pods of 3 owners within 10 minutes, most of them: UnexpectedAdmissionError")
    assert found.until == at() + WINDOW


@pytest.mark.parametrize(("minute", "status"), [(29, Status.TRUE), (30, Status.FALSE)])
def test_a_node_that_gets_no_work_rejects_none_and_counts_as_rejecting_for_half_an_hour(minute, status) -> None:
    found = judged(before=said(since=0), minute=minute)
    assert found.status is status
    assert found.reason == ("Said" if status is Status.TRUE else NONE)
    assert timedelta(minutes=30) == STAYS


WORDS = [
    ("UnexpectedAdmissionError", (), "UnexpectedAdmissionError"),
    ("OutOfcpu", (), OUT_OF_RESOURCES),
    ("OutOfnvidia.com/gpu", (), OUT_OF_RESOURCES),
    ("TopologyAffinityError", (), "TopologyAffinityError"),
    ("Evicted", (), ""),
    ("NodeAffinity", (), ""),
    ("", ("CreateContainerError",), "CreateContainerError"),
    ("", ("CreateContainerConfigError",), ""),
    ("", ("ImagePullBackOff", "RunContainerError"), "RunContainerError"),
]


@pytest.mark.parametrize(("reason", "waiting", "expected"), WORDS)
def test_what_the_pod_itself_is_at_fault_for_does_not_count(reason, waiting, expected) -> None:
    assert rejection_reason(reason, waiting) == expected


TRUE, FALSE = JudgedRejections(Status.TRUE, "Full", "many"), JudgedRejections(Status.FALSE, NONE, "few")
ALONE = JudgedRejections(Status.FALSE, ONE_NAMESPACE, "one")
TOLD = replace(said("False", heartbeat=9), reason=ONE_NAMESPACE)
WRITES = [
    pytest.param(FALSE, None, False, None, id="a node that rejects nothing gets no Condition"),
    pytest.param(TRUE, None, False, ("True", "Full", 10, 10), id="the first time"),
    pytest.param(TRUE, said(since=0, heartbeat=9), False, None, id="the heartbeat is one minute old"),
    pytest.param(TRUE, said(since=0, heartbeat=8), False, ("True", "Said", 0, 10), id="two: words and numbers stay"),
    pytest.param(FALSE, said(since=0, heartbeat=8), False, ("False", NONE, 10, 10), id="it is over"),
    pytest.param(ALONE, None, False, ("False", ONE_NAMESPACE, 10, 10), id="one namespace's Pods alone: told"),
    pytest.param(ALONE, said("False"), False, ("False", ONE_NAMESPACE, 0, 10), id="the same, and False since long"),
    pytest.param(ALONE, TOLD, False, None, id="told once"),
    pytest.param(FALSE, TOLD, False, None, id="and not taken back"),
    pytest.param(FALSE, said("False"), False, None, id="nobody waits for it: no heartbeats"),
    pytest.param(FALSE, said("False"), True, ("False", "Said", 0, 10), id="a case waits for what it says"),
]


@pytest.mark.parametrize(("now", "before", "awaited", "expected"), WRITES)
def test_what_is_written(now: JudgedRejections, before: NodeCondition | None, awaited: bool, expected) -> None:
    new = to_write(now, before, awaited, at(10))
    assert (new and (new.status.value, new.reason, new.since, new.heartbeat)) == (
        expected and (*expected[:2], at(expected[2]), at(expected[3]))
    )
    assert timedelta(minutes=2) == BEATS


POLICY = a_policy("pods-rejected", when(Clause(PODS_REJECTED)))


def test_a_node_of_which_nothing_was_ever_counted_is_healthy_as_far_as_that_goes() -> None:
    assert health_of(a_node(), POLICY, at(0)) is Health.HEALTHY
    assert judgement.judge(a_node(), POLICY, at(0)).health is Health.HEALTHY


@pytest.mark.parametrize(
    ("status", "minute", "health"),
    [
        ("True", 15, Health.UNHEALTHY),
        ("True", 16, Health.UNKNOWN),
        ("False", 15, Health.HEALTHY),
        ("False", 1000, Health.HEALTHY),
    ],
)
def test_true_needs_heartbeats_and_false_needs_none(status: str, minute: float, health: Health) -> None:
    node = a_node(NODE, said(status), heartbeat=minute)
    assert health_of(node, POLICY, at(minute)) is health


def test_detectors_that_have_stopped_do_not_matter_since_none_writes_it() -> None:
    stale = condition("DetectorStale", "True")
    assert health_of(a_node(NODE, said(), stale), POLICY, at(0)) is Health.UNHEALTHY


def test_a_node_proves_to_be_well_without_a_condition_that_was_never_written() -> None:
    both = a_policy("both", when(), when(Clause(PODS_REJECTED)), settle=1, fresh=1)
    node = a_node(NODE, condition(status="False", since=0, heartbeat=9), heartbeat=9)
    assert prove(node, both, {}, at(1), at(9))[0] is Proof.PASSED


def test_five_hundred_rejected_pods_become_a_handful() -> None:
    """pytorch/ci-infra#1058: 554 Pods of as many owners in 106 minutes, one each 11.5 s, on a Ready node.

    The node takes no Pod while the Condition is True, since its policy has it refused. Nobody repairs it here: each
    half hour three more Pods show that nothing has changed, four times in all.
    """
    before: NodeCondition | None = None
    pods: list[Rejection] = []
    for index in range(554):
        minute = index * 11.5 / 60
        found = judged(*pods, before=before, minute=minute)
        before = to_write(found, before, False, at(minute)) or before
        if before is None or before.status is Status.FALSE:
            pods.append(rejected(f"owner-{index}", minute))
    assert len(pods) == 4 * 3
    assert max(Counter(each.owner for each in pods).values()) == 1

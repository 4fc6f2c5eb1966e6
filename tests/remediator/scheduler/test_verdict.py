"""What is said of a node: every reason, every phase of a case, and which of two reasons speaks."""

import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from remediator.core import names
from remediator.core.case import Block, Case, Manual, Phase
from remediator.core.node import Node, Taint
from remediator.core.policy import Mode, Urgency
from remediator.core.reasons import Reason
from remediator.core.trust import STALE_AFTER
from remediator.scheduler.attributes.catalog import facts_of
from remediator.scheduler.attributes.selector import selector
from remediator.scheduler.health.case_summary import RECENT, summary
from remediator.scheduler.health.node_health import health
from remediator.scheduler.health.policy_index import PolicyIndex
from remediator.scheduler.reasons import FAILED, UNRESOLVABLE, VerdictReason
from remediator.scheduler.row import STRANGER, NodeState, proven_again
from remediator.scheduler.score import TIER
from remediator.scheduler.shared.cards import CardsReason
from remediator.scheduler.verdict import Shape, verdict
from tests.builders import a_case, a_node, a_policy, a_sick_node, an_attempt, at, condition, held_by, pool, when

PAGE = Path(__file__).parents[3] / "docs" / "scheduler.md"
GPU = "nvidia.com/gpu"
R, P = VerdictReason, Phase
WELL = a_node("gpu-1", condition(status="False"))
SICK = a_sick_node()
BUDGET, BREAKER, UNREADY = (
    Block(Reason.BUDGET_SPENT, ""),
    Block(Reason.BREAKER_OPEN, ""),
    Block(Reason.BUDGET_UNREADY, ""),
)
PERSON = Block(Reason.HELD_BY_USER, "")
CLAIMED = held_by(a_case())
MEMORY = frozenset(R(reason.value) for reason in CardsReason)
MPS = frozenset({R.MPS_NOT_OFFERED, R.MPS_TOO_OLD, R.MPS_UNHEALTHY})  # their table is in test_mps.py
DEGRADED = Taint(names.DEGRADED_TAINT, "", "PreferNoSchedule")
REPAIRED = a_case(phase=P.RECOVERED, ended=at(-60), attempts=(an_attempt(),))


def health_of(node: Node, *cases: Case, mode: Mode = Mode.ENFORCE, minute: float = 0) -> VerdictReason:
    """With one policy on GpuLost over the pool `a`, whose tolerance is an hour."""
    policy = a_policy("gpu-lost", when(tolerance=60), selector=pool("a"), mode=mode)
    return health(node, [summary(case) for case in cases], PolicyIndex([policy]), at(minute))


NODES = [
    pytest.param(WELL, R.FIT, id="a node that is seen to be well is fit"),
    pytest.param(a_node(labels={"pool": "b"}), R.FIT, id="a node that no policy selects is fit"),
    pytest.param(a_node(), R.HEALTH_UNKNOWN, id="a condition that is absent is unclear"),
    pytest.param(
        a_node("gpu-1", condition(status="Unknown")), R.HEALTH_UNKNOWN, id="a condition that is Unknown is unclear"
    ),
    pytest.param(SICK, R.UNHEALTHY, id="a condition that holds is sick before its tolerance is over"),
    pytest.param(
        a_sick_node(labels={"pool": "a", names.EXCLUDE: "true"}), R.UNHEALTHY, id="an excluded node is sick, too"
    ),
    pytest.param(a_node(ready="False"), R.NOT_READY, id="not ready"),
    pytest.param(a_node(ready="Unknown"), R.NOT_READY, id="a kubelet that is silent is not ready"),
    pytest.param(a_sick_node(ready="False"), R.NOT_READY, id="not ready outranks sick"),
    pytest.param(a_sick_node(taints=[DEGRADED]), R.WAITING, id="the mark of a node that waits lets it through"),
    pytest.param(a_sick_node(taints=[CLAIMED]), R.CLAIMED, id="our taint is a claim"),
    pytest.param(a_node(taints=[CLAIMED], ready="False"), R.CLAIMED, id="a claim outranks not ready: it reboots"),
    pytest.param(a_node(unschedulable=True, cordoned_by="uid"), R.CORDONED, id="our cordon"),
    pytest.param(
        a_node("gpu-1", condition(status="False"), unschedulable=True), R.FIT, id="a person's cordon is not our word"
    ),
    pytest.param(
        a_node("gpu-1", condition(status="False"), condition("MaintenancePlanned")), R.WAITING, id="maintenance is near"
    ),
    pytest.param(
        a_node("gpu-1", condition(status="False"), condition("MaintenancePlanned", status="False")), R.FIT, id="or not"
    ),
    pytest.param(
        a_node("gpu-1", condition(), condition("MaintenancePlanned")), R.UNHEALTHY, id="sick outranks maintenance"
    ),
    pytest.param(
        Node("gpu-1", "uid-gpu-1", {"pool": "b"}, {}),
        R.HEALTH_UNKNOWN,
        id="a node that has not said whether it is ready",
    ),
]


@pytest.mark.parametrize(("node", "reason"), NODES)
def test_of_a_node_without_a_case(node: Node, reason: VerdictReason) -> None:
    assert health_of(node) is reason


CASES = [
    pytest.param(P.NEW, (), R.UNHEALTHY, id="a case that has just been opened"),
    pytest.param(P.HELD, (), R.UNHEALTHY, id="a case that is about to claim"),
    pytest.param(P.HELD, (PERSON,), R.UNHEALTHY, id="held by a person"),
    pytest.param(P.HELD, (BUDGET,), R.WAITING, id="waits for the budget"),
    pytest.param(P.HELD, (BREAKER, UNREADY), R.WAITING, id="waits for the breaker and the budget"),
    pytest.param(P.HELD, (BUDGET, PERSON), R.UNHEALTHY, id="waits, and is held by a person"),
    pytest.param(P.DRAINING, (), R.CLAIMED, id="draining"),
    pytest.param(P.DRAINING, (BREAKER,), R.CLAIMED, id="claimed, and its next attempt waits"),
    pytest.param(P.OPERATING, (), R.CLAIMED, id="operating"),
    pytest.param(P.VERIFYING, (), R.CLAIMED, id="verifying"),
    pytest.param(P.ESCALATED, (), R.QUARANTINED, id="escalated"),
    pytest.param(P.RECOVERED, (), R.FIT, id="recovered without a repair"),
    pytest.param(P.CANCELLED, (), R.FIT, id="cancelled"),
]
ENDED = (P.RECOVERED, P.CANCELLED)


@pytest.mark.parametrize(("phase", "blocks", "reason"), CASES)
def test_of_a_node_with_a_case(phase: Phase, blocks: tuple[Block, ...], reason: VerdictReason) -> None:
    case = a_case(phase=phase, blocks=blocks, ended=at(0) if phase in ENDED else None)
    assert health_of(SICK if phase not in ENDED else WELL, case) is reason


def test_every_phase_of_a_case_has_a_row() -> None:
    assert {row.values[0] for row in CASES} == set(Phase)


def test_an_open_case_stands_though_its_evidence_has_become_unclear() -> None:
    assert health_of(a_node(), a_case(phase=P.HELD, blocks=(Block(Reason.HEALTH_UNKNOWN, ""),))) is R.UNHEALTHY


def test_a_case_of_a_namesake_says_nothing() -> None:
    assert health_of(WELL, a_case(phase=P.ESCALATED, node_uid="uid-of-another")) is R.FIT


@pytest.mark.parametrize(
    ("mode", "reason"), [(Mode.ENFORCE, R.UNHEALTHY), (Mode.PAUSED, R.UNHEALTHY), (Mode.DRY_RUN, R.ONLY_SCORED)]
)
def test_a_policy_in_dry_run_only_scores(mode: Mode, reason: VerdictReason) -> None:
    assert health_of(SICK, mode=mode) is reason
    assert health_of(SICK, a_case(phase=P.HELD, blocks=(Block(Reason.DRY_RUN, ""),)), mode=mode) is reason
    assert health_of(SICK, a_case(), mode=mode) is reason, "also before the controller has judged the case"


def test_a_claim_outranks_that_its_policy_is_in_dry_run_now() -> None:
    assert health_of(SICK, a_case(phase=P.DRAINING), mode=Mode.DRY_RUN) is R.CLAIMED


@pytest.mark.parametrize(
    ("older", "reason"), [(0, R.UNHEALTHY), (1, R.HEALTH_UNKNOWN)], ids=["fresh enough", "too old"]
)
def test_a_condition_that_holds_counts_for_as_long_as_it_is_heard_of(older: float, reason: VerdictReason) -> None:
    assert health_of(SICK, minute=STALE_AFTER.total_seconds() / 60 + older) is reason


@pytest.mark.parametrize(
    ("after", "reason"),
    [(RECENT - timedelta(hours=1, seconds=1), R.REPAIRED), (RECENT - timedelta(hours=1), R.FIT)],
    ids=["remembered", "forgotten"],
)
def test_a_repair_is_remembered_for_72_hours(after: timedelta, reason: VerdictReason) -> None:
    minute = after.total_seconds() / 60
    node = a_node("gpu-1", condition(status="False", heartbeat=minute), heartbeat=minute)
    assert health_of(node, REPAIRED, minute=minute) is reason


EIGHT = ((GPU, 8),)
PODS = [
    pytest.param(NodeState(R.FIT, EIGHT, ((GPU, 6),)), ((GPU, 2),), R.FIT, id="the last two GPUs"),
    pytest.param(
        NodeState(R.FIT, EIGHT, ((GPU, 7),)), ((GPU, 2),), R.NO_FREE_GPUS, id="one is free, two are asked for"
    ),
    pytest.param(NodeState(R.FIT, EIGHT), ((GPU, 9),), R.TOO_FEW_GPUS, id="nine of eight"),
    pytest.param(NodeState(R.FIT, ((GPU, 0),)), ((GPU, 1),), R.TOO_FEW_GPUS, id="the device plugin offers none"),
    pytest.param(
        NodeState(R.FIT), ((GPU, 1),), R.FIT, id="a resource that the node does not list is not ours to judge"
    ),
    pytest.param(NodeState(R.FIT, EIGHT, ((GPU, 8),)), (), R.FIT, id="no GPU asked for"),
    pytest.param(NodeState(R.FIT, EIGHT, ((GPU, 9),)), ((GPU, 1),), R.NO_FREE_GPUS, id="more in use than there are"),
    pytest.param(
        NodeState(R.UNHEALTHY, EIGHT, ((GPU, 8),)), ((GPU, 1),), R.UNHEALTHY, id="sick outranks full: nobody is evicted"
    ),
    pytest.param(NodeState(R.WAITING, EIGHT, ((GPU, 8),)), ((GPU, 1),), R.NO_FREE_GPUS, id="waits, and is full"),
    pytest.param(NodeState(R.WAITING, EIGHT), ((GPU, 1),), R.WAITING, id="waits, and has room"),
    pytest.param(STRANGER, ((GPU, 1),), R.UNKNOWN_NODE, id="a node that nobody has told us of"),
    pytest.param(
        NodeState(R.FIT, (("amd.com/gpu", 8), (GPU, 8)), ((GPU, 8),)),
        (("amd.com/gpu", 1), (GPU, 1)),
        R.NO_FREE_GPUS,
        id="each resource must be free",
    ),
]


@pytest.mark.parametrize(("row", "gpus", "reason"), PODS)
def test_of_a_node_for_a_pod(row: NodeState, gpus: tuple[tuple[str, int], ...], reason: VerdictReason) -> None:
    assert verdict(row, Shape(gpus)) is reason


PROVEN = [
    pytest.param(R.FIT, 0, R.FIT, id="proven"),
    pytest.param(R.REPAIRED, 0, R.REPAIRED, id="repaired, and proven since"),
    pytest.param(R.FIT, 2, R.SOME_FAILURES, id="has failed, and is well now"),
    pytest.param(R.HEALTH_UNKNOWN, 0, R.UNPROVEN, id="nobody can tell"),
    pytest.param(R.DETECTORS_SILENT, 0, R.UNPROVEN, id="nobody can tell any more"),
    pytest.param(R.UNKNOWN_NODE, 0, R.UNPROVEN, id="nobody has told us of it"),
    pytest.param(R.WAITING, 0, R.UNPROVEN, id="is sick, and waits"),
    pytest.param(R.ONLY_SCORED, 0, R.UNPROVEN, id="is sick, and health only scores"),
    pytest.param(R.UNHEALTHY, 0, R.UNHEALTHY, id="sick is sick"),
]


@pytest.mark.parametrize(("reason", "history", "expected"), PROVEN)
def test_a_pod_that_requires_proven_health_is_kept_off_what_nobody_can_tell(reason, history, expected) -> None:
    row = NodeState(reason, EIGHT, history=history)
    assert verdict(row, Shape(((GPU, 1),), proven=True)) is expected
    assert verdict(row, Shape(((GPU, 1),))) is row.standing
    assert verdict(row, Shape(daemon=True, proven=True)) is R.FIT


def test_proven_health_is_required_also_while_health_only_scores() -> None:
    assert verdict(NodeState(R.UNHEALTHY, EIGHT), Shape(((GPU, 1),), proven=True), only_scores=True) is R.UNPROVEN


@pytest.mark.parametrize(
    ("health", "history", "expected"),
    [
        (R.FIT, 0, R.FIT),
        (R.FIT, 1, R.FEW_FAILURES),
        (R.REPAIRED, 2, R.SOME_FAILURES),
        (R.FIT, 3, R.MANY_FAILURES),
        (R.HEALTH_UNKNOWN, 3, R.HEALTH_UNKNOWN),
        (R.UNHEALTHY, 3, R.UNHEALTHY),
    ],
)
def test_failures_count_against_a_node_that_is_well_and_refuse_none(health, history, expected) -> None:
    row = NodeState(health, EIGHT, history=history)
    assert verdict(row, Shape(((GPU, 1),))) is expected
    assert expected in UNRESOLVABLE or TIER[expected] <= TIER[health]


@pytest.mark.parametrize(("before", "after"), [(R.HEALTH_UNKNOWN, R.FIT), (R.DETECTORS_SILENT, R.REPAIRED)])
def test_a_node_that_is_proven_again_may_take_pods_that_it_was_refused_to(before, after) -> None:
    assert proven_again(NodeState(before, EIGHT), NodeState(after, EIGHT))
    assert not proven_again(NodeState(after, EIGHT), NodeState(before, EIGHT))


A100 = facts_of({"nvidia.com/gpu.memory": "40960", "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB"})
ATTRIBUTES = [
    pytest.param(NodeState(R.FIT, EIGHT, (), A100), "memory>=40Gi", R.FIT, id="the GPUs are what is required"),
    pytest.param(NodeState(R.FIT, EIGHT, (), A100), "memory>40Gi", R.OTHER_ATTRIBUTES, id="they are not"),
    pytest.param(NodeState(R.FIT, EIGHT, (), A100), "ecc=true", R.ATTRIBUTES_UNKNOWN, id="nobody knows"),
    pytest.param(
        NodeState(R.FIT, EIGHT, (), A100), "ecc=true, memory>40Gi", R.OTHER_ATTRIBUTES, id="no outranks unknown"
    ),
    pytest.param(NodeState(R.FIT, EIGHT, (), A100), "memroy>1", R.ATTRIBUTES_MALFORMED, id="nobody can read it"),
    pytest.param(NodeState(R.UNHEALTHY, EIGHT, (), A100), "memroy>1", R.UNHEALTHY, id="sick outranks attributes"),
    pytest.param(
        NodeState(R.FIT, EIGHT, EIGHT, A100),
        "memory>40Gi",
        R.OTHER_ATTRIBUTES,
        id="other outranks full: nobody is evicted",
    ),
    pytest.param(NodeState(R.WAITING, EIGHT, (), A100), "memory>=40Gi", R.WAITING, id="waits, and has them"),
    pytest.param(STRANGER, "memory>40Gi", R.UNKNOWN_NODE, id="a node that nobody has told us of is let through"),
]


@pytest.mark.parametrize(("row", "required", "reason"), ATTRIBUTES)
def test_of_a_node_for_a_pod_that_asks_by_attributes(row: NodeState, required: str, reason: VerdictReason) -> None:
    asked = selector(required, None, None)
    assert verdict(row, Shape(((GPU, 1),), attributes=asked)) is reason
    if row.health is R.FIT:
        assert verdict(row, Shape(((GPU, 1),), daemon=True, attributes=asked)) is not reason or reason is R.FIT


def test_a_preference_refuses_no_node() -> None:
    shape = Shape(((GPU, 1),), attributes=selector(None, "memory>40Gi, ecc=true", None))
    assert verdict(NodeState(R.FIT, EIGHT, (), A100), shape) is R.FIT


@pytest.mark.parametrize("reason", VerdictReason)
def test_a_pod_of_a_daemonset_is_let_through_whatever_is_so_of_the_node(reason: VerdictReason) -> None:
    assert verdict(NodeState(reason), Shape(daemon=True)) is R.FIT


def test_the_tables_above_have_every_reason() -> None:
    elsewhere = {R.REPAIRED, R.ONLY_SCORED, R.DETECTORS_SILENT, R.FEW_FAILURES, R.MANY_FAILURES}
    tables = (*NODES, *CASES, *PODS, *PROVEN, *ATTRIBUTES)
    assert {row.values[-1] for row in tables} | elsewhere | MEMORY | MPS == set(VerdictReason)
    assert {reason.value for reason in MEMORY} == set(CardsReason), "their table is in shared/test_cards.py"


def test_only_a_lack_of_free_gpus_leaves_the_node_to_preemption() -> None:
    assert set(FAILED) == {R.NO_FREE_GPUS, R.NO_GPU_MEMORY}
    attributes = {R.OTHER_ATTRIBUTES, R.ATTRIBUTES_UNKNOWN, R.ATTRIBUTES_MALFORMED}
    health = {R.UNPROVEN, R.UNHEALTHY, R.NOT_READY, R.CORDONED, R.CLAIMED, R.QUARANTINED}
    assert set(UNRESOLVABLE) == {*health, R.TOO_FEW_GPUS, *attributes, *MPS, *MEMORY - {R.NO_GPU_MEMORY}}


def test_texts_are_few_and_name_no_number_since_the_scheduler_counts_nodes_by_text() -> None:
    texts = [*FAILED.values(), *UNRESOLVABLE.values()]
    assert len(set(texts)) == len(texts)
    assert len([reason for reason in (*FAILED, *UNRESOLVABLE) if reason not in MEMORY | MPS]) <= 12
    assert (len(MEMORY) <= 5, len(MPS) <= 3) == (True, True), "more for Pods that share GPUs, and only for these"
    assert all(text.startswith("node(s) ") for text in texts)
    assert not any(character.isdigit() or character == "," for text in texts for character in text)


def test_the_page_has_a_row_for_every_reason_with_what_the_scheduler_shows() -> None:
    rows = dict(re.findall(r"^\| `([A-Z]\w+)` \| .* \| (.*) \|$", PAGE.read_text(), flags=re.MULTILINE))
    assert set(rows) == {reason.value for reason in VerdictReason}
    for reason, text in UNRESOLVABLE.items():
        assert rows[reason.value] == f"unresolvable: {text}"
    for reason, text in FAILED.items():
        assert rows[reason.value] == f"failed: {text}"
    for reason, base in TIER.items():
        assert rows[reason.value] == f"let through, tier {base}"


CALLS = a_case("call", policy="nfs", blocks=(Block(Reason.TICKET_ONLY, ""),))


@pytest.mark.parametrize(
    ("urgency", "expected"), [(Urgency.NOW, R.UNHEALTHY), (Urgency.WHEN_IDLE, R.UNHEALTHY), (Urgency.NEVER, R.WAITING)]
)
def test_what_is_repaired_when_it_is_idle_gets_no_new_work_now(urgency, expected):
    """A Pod that came would keep the node from being repaired."""
    assert health(SICK, [], PolicyIndex([a_policy("nfs", when(), urgency=urgency)]), at(0)) is expected


@pytest.mark.parametrize(
    ("node", "cases", "expected"),
    [
        pytest.param(SICK, (), R.WAITING, id="what only calls a person lets the node through, behind the others"),
        pytest.param(SICK, (CALLS,), R.WAITING, id="so does its case"),
        pytest.param(
            SICK, (CALLS, a_case(blocks=(PERSON,))), R.UNHEALTHY, id="another case beside it makes the node sick"
        ),
        pytest.param(WELL, (), R.FIT, id="a node that is well is fit"),
    ],
)
def test_a_dead_file_server_leaves_nodes_to_those_who_do_not_need_it(node, cases, expected):
    policy = a_policy("nfs", when(), urgency=Urgency.NEVER, ladder=())
    assert health(node, [summary(case) for case in cases], PolicyIndex([policy]), at(0)) is expected


def test_a_node_that_waits_for_what_a_user_asks_for_is_not_refused_for_its_health() -> None:
    asked = a_case(trigger=None, policy="", manual=Manual("by-hand", "u", "reboot", {}))
    well = a_node("gpu-1", condition(status="False"))
    assert health_of(well, replace(asked, phase=Phase.HELD)) is VerdictReason.WAITING
    over = replace(asked, phase=Phase.RECOVERED, ended=at(0), attempts=(an_attempt(),))
    assert health_of(well, over) is VerdictReason.FIT, "nor does a cure count that was none"

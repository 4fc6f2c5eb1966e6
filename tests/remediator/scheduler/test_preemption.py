"""Where it helps to evict Pods for another one: both forms of the request, and nobody is evicted in vain."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remediator.core.shared_gpus import Ask, CardPod
from remediator.core.spare import PodHolding
from remediator.metrics import REGISTRY
from remediator.scheduler.attributes.catalog import facts_of
from remediator.scheduler.fail_open import OpenReason
from remediator.scheduler.preemption import without, worthwhile
from remediator.scheduler.reasons import FAILED, UNRESOLVABLE, VerdictReason
from remediator.scheduler.row import NodeState
from remediator.scheduler.shared.cards import Cards
from remediator.scheduler.verdict import Shape, verdict
from remediator.scheduler.victims import Victim, Victims, decode
from tests.harness.scheduler import GPU, SchedulerHarness, names_body, pod, victims_body, whole_victims_body
from tests.harness.waiting import until
from tests.remediator.scheduler.test_extender import bodies, warm

MIG = "nvidia.com/mig-1g.5gb"
EIGHT = ((GPU, 8),)
ROWS = {
    "well": NodeState(VerdictReason.FIT, EIGHT, EIGHT),
    "sick": NodeState(VerdictReason.UNHEALTHY, EIGHT, EIGHT),
    "claimed": NodeState(VerdictReason.CLAIMED, EIGHT, EIGHT),
    "waiting": NodeState(VerdictReason.WAITING, EIGHT, EIGHT),
    "small": NodeState(VerdictReason.FIT, ((GPU, 2),), ((GPU, 2),)),
    "other": NodeState(VerdictReason.FIT, EIGHT, EIGHT, facts_of({f"{GPU}.memory": "40960"})),
}
PODS = {
    f"{name}-{index}": PodHolding(name, ((GPU, 2),), f"{name}-{index}") for name in ROWS for index in range(4)
}  # four Pods of two GPUs on each node


def asked(body: bytes, rows: dict[str, NodeState] = ROWS) -> dict[str, Any]:
    extender = warm(dict(rows))
    extender._fleet.holdings.by_uid.update(PODS)
    answer = json.loads(extender.preempt(body))
    assert list(answer) == ["NodeNameToMetaVictims"]
    return answer["NodeNameToMetaVictims"]


def all_of(*nodes: str, count: int = 2) -> dict[str, list[str]]:
    return {name: [f"{name}-{index}" for index in range(count)] for name in nodes}


def test_nobody_is_evicted_from_a_node_that_would_be_refused_all_the_same() -> None:
    left = asked(victims_body(all_of(*ROWS), pod(gpus=4)))
    assert list(left) == ["well", "waiting", "other"]
    assert "small" not in left, "it has two GPUs in all"


def test_the_answer_names_the_victims_by_uid_as_they_came() -> None:
    body = victims_body(all_of("well"), pod(gpus=4), violations=3)
    assert asked(body) == {"well": {"Pods": [{"UID": "well-0"}, {"UID": "well-1"}], "NumPDBViolations": 3}}


def test_pods_that_come_whole_are_answered_by_uid_too() -> None:
    both = all_of("well", "sick")
    assert asked(whole_victims_body(both, pod(gpus=4))) == asked(victims_body(both, pod(gpus=4)))
    assert list(asked(whole_victims_body(both, pod(gpus=4)))) == ["well"]


@pytest.mark.parametrize(("evicted", "fits"), [(1, False), (2, True), (4, True)])
def test_nobody_is_evicted_where_that_frees_too_few_gpus(evicted: int, fits: bool) -> None:
    assert bool(asked(victims_body(all_of("well", count=evicted), pod(gpus=4)))) is fits


def test_pods_of_another_node_and_pods_without_gpus_free_nothing() -> None:
    assert asked(victims_body({"well": ["small-0", "small-1", "a-pod-without-gpus"]}, pod(gpus=2))) == {}


def test_a_pod_that_is_named_twice_frees_its_gpus_once() -> None:
    assert asked(victims_body({"well": ["well-0", "well-0"]}, pod(gpus=4))) == {}


def test_gpus_of_another_kind_do_not_help() -> None:
    row = NodeState(VerdictReason.FIT, ((GPU, 8), (MIG, 7)), ((GPU, 2), (MIG, 7)))
    pods = {"u": PodHolding("n", ((GPU, 2),), "u"), "v": PodHolding("n", ((MIG, 3),), "v")}
    shape = Shape(((MIG, 3),))
    for uid, fits in (("u", False), ("v", True)):
        victims = {"n": Victims((Victim(uid),))}
        assert bool(worthwhile(victims, {"n": row}, pods, shape, False)) is fits


@pytest.mark.parametrize(("victims", "fits"), [(("a",), False), (("a", "c"), False), (("a", "b"), True)])
def test_nobody_is_evicted_from_cards_where_no_single_one_has_enough_then(victims: tuple[str, ...], fits: bool) -> None:
    cards = {"a": ((0, 6),), "b": ((0, 6),), "c": ((1, 4),)}  # of 16 each, so that 4 and 10 are free
    row = NodeState(VerdictReason.FIT, cards=Cards(((0, 4), (1, 10)), (16, 16), (16, 16)))
    pods = {
        uid: PodHolding("n", uid=uid, cards=CardPod("ns", uid, uid, "n", shares=shares))
        for uid, shares in cards.items()
    }
    sent = {"n": Victims(tuple(map(Victim, victims)))}
    wanted = Shape(memory=Ask(16))
    assert bool(worthwhile(sent, {"n": row}, pods, wanted, False)) is fits
    assert not worthwhile(sent, {"n": row}, pods, Shape(memory=Ask(17)), False), "no card is as large"


def test_a_node_without_gpus_of_the_required_attributes_is_not_emptied() -> None:
    wanted = pod(gpus=2)
    wanted["metadata"]["annotations"] = {"remediator.dev/gpu": "memory>=80G"}
    assert asked(victims_body(all_of("other", "well"), wanted)) == {}
    wanted["metadata"]["annotations"] = {"remediator.dev/gpu": "memory>=40G"}
    assert list(asked(victims_body(all_of("other"), wanted))) == ["other"]


def test_a_node_that_is_not_in_the_cluster_is_left_to_the_scheduler() -> None:
    assert list(asked(victims_body({"template": ["x"]}, pod(gpus=8)))) == ["template"]


def test_a_node_without_victims_is_dropped_since_the_scheduler_takes_it_for_an_error() -> None:
    assert asked(victims_body({"well": [], "template": []}, pod(gpus=0))) == {}


def test_where_health_only_scores_it_keeps_nobody_from_evicting() -> None:
    rows = {"sick": ROWS["sick"], "claimed": ROWS["claimed"]}
    extender = warm(rows)
    extender._fleet.holdings.by_uid.update(PODS)
    extender._open = OpenReason.PAUSED
    left = json.loads(extender.preempt(victims_body(all_of(*rows), pod(gpus=4))))["NodeNameToMetaVictims"]
    assert list(left) == ["sick"], "a node that a case holds stays refused"


def test_keys_may_be_in_any_case_at_every_level() -> None:
    wanted, victims = pod(gpus=4), {"pods": [{"uid": "well-0"}, {"Uid": "well-1"}], "numPdbViolations": 1}
    body = json.dumps({"pod": wanted, "nodeNameToMetaVictims": {"well": victims}}).encode()
    assert asked(body) == {"well": {"Pods": [{"UID": "well-0"}, {"UID": "well-1"}], "NumPDBViolations": 1}}
    whole = {"pods": [{"metadata": {"uid": "well-0"}}, {"metadata": {"uid": "well-1"}}]}
    body = json.dumps({"POD": wanted, "NODENAMETOVICTIMS": {"well": whole}}).encode()
    assert list(asked(body)) == ["well"]


BAD = [
    pytest.param(b"", id="empty"),
    pytest.param(b"[]", id="no object"),
    pytest.param(b"{}", id="no key"),
    pytest.param(b'{"Pod": {}}', id="no nodes"),
    pytest.param(b'{"Pod": {}, "NodeNames": ["a"]}', id="a request to filter"),
    pytest.param(b'{"Pod": null, "NodeNameToMetaVictims": {}}', id="Pod is null"),
    pytest.param(b'{"NodeNameToMetaVictims": {"well": {"Pods": []}}}', id="no Pod"),
    pytest.param(b'{"Pod": {}, "NodeNameToMetaVictims": {"well": {"Pods": [7]}}}', id="a Pod that is a number"),
    pytest.param(b'{"Pod": {}, "NodeNameToMetaVictims": {"well": []}}', id="victims in a list"),
    pytest.param(b'{"Pod": {}, "NodeNameToVictims": {"well": {"Pods": [{}]}}}', id="a Pod without a UID"),
    pytest.param(b'{"Pod": {}, "NodeNameToVictims": ' + b"[" * 200_000, id="too deep"),
    pytest.param(victims_body({"well": ["well-0"]}, pod(gpus="half")), id="half a GPU"),  # type: ignore[arg-type]
    pytest.param(victims_body({f"n{index}": ["u"] for index in range(5_000)}), id="far more nodes than there are"),
]


@pytest.mark.parametrize("body", BAD)
def test_what_is_malformed_evicts_nobody_and_is_counted(body: bytes) -> None:
    before = _answers("malformed")
    assert asked(body) == {}
    assert _answers("malformed") == before + 1


def _answers(outcome: str) -> float:
    labels = {"call": "preempt", "result": outcome}
    return REGISTRY.get_sample_value("remediator_extender_answers_total", labels) or 0


def test_an_extender_that_is_cold_evicts_nobody() -> None:
    extender = warm(dict(ROWS))
    extender._fleet.complete.clear()
    assert json.loads(extender.preempt(victims_body(all_of("well"), pod(gpus=0)))) == {"NodeNameToMetaVictims": {}}


@given(
    st.dictionaries(st.sampled_from([*ROWS, "template"]), st.lists(st.sampled_from([*PODS, "nobody"]), max_size=5)),
    st.integers(0, 9),
    st.booleans(),
)
def test_what_is_left_is_a_part_of_what_was_asked_and_fits(
    victims: dict[str, list[str]], gpus: int, daemon: bool
) -> None:
    wanted = pod(gpus=gpus, daemon=daemon)
    left = asked(victims_body(victims, wanted))
    assert left == asked(whole_victims_body(victims, wanted))
    assert all([pod["UID"] for pod in theirs["Pods"]] == victims[name] for name, theirs in left.items())
    shape = Shape(((GPU, gpus),) if gpus else (), daemon)
    for name, uids in victims.items():
        gone = [PODS[uid] for uid in set(uids) if uid in PODS and PODS[uid].node == name]
        reason = verdict(without(ROWS.get(name, NodeState(VerdictReason.UNKNOWN_NODE)), gone), shape)
        assert (name in left) is (bool(uids) and reason not in (*UNRESOLVABLE, *FAILED))


@given(bodies)
def test_whatever_is_sent_the_answer_is_valid_json_and_nothing_is_raised(body: bytes) -> None:
    asked(body)


def test_a_request_is_read_in_its_own_words() -> None:
    asked_for = decode(victims_body({"n": ["u"]}, pod(gpus=1)))
    assert asked_for.victims == {"n": Victims((Victim("u"),), 0)}


# --- with the cluster ------------------------------------------------------------------------------------------------


async def test_who_holds_what_is_known_by_uid_as_pods_come_and_go(harness: SchedulerHarness) -> None:
    await harness.add_node("n1", 4, GpuLost="False")
    for name in ("a", "b"):
        await harness.bind(name, "n1", 2)
    await until(lambda: harness.held("n1") == {GPU: 4})
    holdings = harness.extender._fleet.holdings.by_uid
    assert sorted(holding.gpus for holding in holdings.values()) == [((GPU, 2),), ((GPU, 2),)]
    (first, second) = holdings
    for uids, left in (([first], []), ([first, second], ["n1"])):
        answer = json.loads(harness.extender.preempt(victims_body({"n1": uids}, pod(gpus=4))))
        assert list(answer["NodeNameToMetaVictims"]) == left
    await harness.delete_pod("a")
    await until(lambda: len(holdings) == 1)
    await harness.finish("b")
    await until(lambda: not holdings)


async def test_a_node_that_nobody_may_be_evicted_from_is_marked_when_it_is_well(harness: SchedulerHarness) -> None:
    await harness.add_node("n1", 2, GpuLost="True")
    await harness.bind("a", "n1", 2)
    await harness.sees("n1", "Unhealthy")
    await until(lambda: harness.held("n1") == {GPU: 2})
    (uid,) = harness.extender._fleet.holdings.by_uid
    before = REGISTRY.get_sample_value("remediator_extender_requeues_total") or 0
    refused = harness.extender.preempt(victims_body({"n1": [uid]}, pod(gpus=2)))
    assert json.loads(refused) == {"NodeNameToMetaVictims": {}}
    await harness.condition("n1", "GpuLost", "False")
    await until(lambda: (REGISTRY.get_sample_value("remediator_extender_requeues_total") or 0) == before + 1)
    assert json.loads(harness.extender.filter(names_body(["n1"], pod(gpus=2))))["FailedNodes"]

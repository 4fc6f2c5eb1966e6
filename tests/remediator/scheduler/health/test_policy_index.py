"""What policies ask of nodes is found out once for all nodes whose labels make no difference to it."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remediator.core.node import Node
from remediator.core.policy import Clause, CriterionState, Mode, NewCriterion, Policy, Urgency
from remediator.core.selector import Operator, Requirement, Selector
from remediator.scheduler.health import policy_index
from remediator.scheduler.health.policy_index import PolicyIndex
from tests.builders import a_node, a_policy, when

KEYS, VALUES = ("pool", "gpu", "rack"), ("a", "b")
LABELS = st.dictionaries(st.sampled_from([*KEYS, "noise"]), st.sampled_from(VALUES))
ROWS = st.builds(
    Requirement, st.sampled_from(KEYS), st.sampled_from(Operator), st.lists(st.sampled_from(VALUES)).map(tuple)
)


def node(labels: dict[str, str]) -> Node:
    return replace(a_node(), labels=labels)


def of(selector: Selector, name: str = "p") -> Policy:
    return replace(a_policy(name), selector=selector)


@given(st.lists(st.lists(ROWS, max_size=3), max_size=4), st.lists(LABELS, max_size=8))
def test_of_each_node_it_says_what_each_policy_says_of_itself(selectors, fleet) -> None:
    policies = [of(Selector(tuple(rows)), f"p{index}") for index, rows in enumerate(selectors)]
    index = PolicyIndex(policies)
    for labels in fleet:
        expected = [policy.name for policy in policies if policy.selects(node(labels))]
        assert [policy.name for policy in index.selecting(node(labels))] == expected


def test_of_nodes_that_differ_in_what_nobody_asks_for_only_the_first_is_looked_at() -> None:
    index = PolicyIndex([of(Selector((Requirement("pool", Operator.IN, ("a",)),)))])
    first, other = (index.selecting(node({"pool": "a", "noise": value})) for value in ("1", "2"))
    assert first is other
    assert [policy.name for policy in first] == ["p"]


def test_what_is_remembered_is_bounded_where_a_policy_selects_nodes_by_name(monkeypatch) -> None:
    monkeypatch.setattr(policy_index, "MOST_SELECTIONS", 10)
    index = PolicyIndex([of(Selector((Requirement("name", Operator.NOT_IN, ("7",)),)))])
    assert [len(index.selecting(node({"name": str(number)}))) for number in range(100)].count(0) == 1
    assert len(index._selections) <= 10


def test_policies_are_told_apart_by_what_they_do_and_by_how_long_they_believe() -> None:
    policies = [
        replace(a_policy("acts"), mode=Mode.ENFORCE),
        replace(a_policy("tries"), mode=Mode.DRY_RUN),
        replace(a_policy("watches"), urgency=Urgency.NEVER),
        a_policy("believes", when(Clause("GpuLost", stale_after=timedelta(hours=1)))),
    ]
    index = PolicyIndex(policies)
    assert index.repairing == {"acts", "tries", "believes"}
    assert index.only_scoring == {"tries"}
    assert [policy.name for policy in index.own_ages] == ["believes"]


@pytest.mark.parametrize(
    ("state", "trusts", "entries", "only_scores"),
    [
        (None, "", ["NvmlHung"], True),  # the controller of the release has not looked at it yet
        (CriterionState.QUIET, "", ["NvmlHung"], True),
        (CriterionState.MUTED, "", ["NvmlHung"], True),
        (CriterionState.ACTS, "", ["NvmlHung"], False),
        (CriterionState.QUIET, "NvmlHung", ["NvmlHung"], False),
        (CriterionState.QUIET, "", ["NvmlHung", "GpuLost"], False),  # its older half keeps Pods off
    ],
)
def test_a_policy_of_which_all_is_new_keeps_no_pod_off_until_it_acts(state, trusts, entries, only_scores) -> None:
    moment = datetime(2026, 11, 20, tzinfo=UTC)
    rows = () if state is None else (NewCriterion("NvmlHung", state, moment, moment + timedelta(days=7)),)
    policy = a_policy("links", *(when(Clause(condition)) for condition in entries))
    policy = replace(policy, mode=Mode.ENFORCE, criteria=rows, trusts=frozenset({trusts} - {""}))
    assert PolicyIndex([policy]).only_scoring == ({"links"} if only_scores else set())

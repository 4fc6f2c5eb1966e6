"""How many nodes may be unavailable, and who is counted."""

from dataclasses import replace

import pytest

from remediator.core.account import Members
from remediator.core.account import account as stands
from remediator.core.budget import Claim, with_claims, without_claims
from remediator.core.census import BudgetIndex, snapshot
from tests.builders import EVERY, a_budget, a_node, at, pool


@pytest.mark.parametrize(
    ("most", "total", "expected"),
    [
        pytest.param(3, 100, 3, id="a count is a count"),
        pytest.param(3, 2, 3, id="however few nodes there are"),
        pytest.param(0, 100, 0, id="0 is never"),
        pytest.param("10%", 100, 10, id="a percentage of the nodes"),
        pytest.param("10%", 19, 1, id="rounds down"),
        pytest.param("10%", 5, 1, id="but never below one node"),
        pytest.param("10%", 0, 0, id="of nothing, nothing"),
        pytest.param("0%", 100, 0, id="0 % is never, too"),
        pytest.param("100%", 7, 7, id="100 % is all"),
    ],
)
def test_max_unavailable(most, total, expected):
    assert a_budget(most=most).most(total) == expected


@pytest.mark.parametrize(
    ("least", "total", "expected"),
    [
        pytest.param(3, 10, 7, id="all but so many"),
        pytest.param(3, 2, 0, id="none where there are fewer"),
        pytest.param("90%", 19, 1, id="what must stay rounds up: 17.1 are 18"),
        pytest.param("90%", 5, 0, id="even where nothing may go then"),
        pytest.param("100%", 7, 0, id="all must stay"),
    ],
)
def test_min_available(least, total, expected):
    assert a_budget(least=least).most(total) == expected


def test_a_budget_that_says_neither_admits_nothing():
    assert a_budget(most=None).most(100) == 0


def account(budget, nodes):
    return stands(budget, snapshot([budget], nodes).members[budget.name])


def test_claimed_not_ready_and_unschedulable_nodes_are_unavailable_each_once():
    nodes = [
        a_node("well"),
        a_node("claimed"),
        a_node("down", ready="False"),
        a_node("silent", ready="Unknown"),
        a_node("cordoned", unschedulable=True),
        a_node("claimed-and-down", ready="False"),
    ]
    budget = a_budget(most=6, claims=[("claimed", "c1"), ("claimed-and-down", "c2")])
    found = account(budget, nodes)
    assert found.unavailable == {"claimed", "down", "silent", "cordoned", "claimed-and-down"}
    assert (found.total, found.most, found.allowed) == (6, 6, 1)


def test_a_claim_counts_even_where_the_selector_has_left_its_node():
    found = account(a_budget(most=1, claims=[("elsewhere", "c")]), [a_node("here")])
    assert (found.unavailable, found.allowed) == ({"elsewhere"}, 0)
    assert not found.admits("here")


def test_a_node_that_is_down_already_is_not_counted_twice():
    found = account(a_budget(most=1), [a_node("down", ready="False"), a_node("well")])
    assert found.admits("down")
    assert not found.admits("well")


def test_nodes_that_are_down_do_not_wait_for_each_other_for_ever():
    nodes = [a_node("down", ready="False"), a_node("down-too", ready="False"), a_node("well")]
    found = account(a_budget(most=1), nodes)
    assert found.admits("down")
    assert found.admits("down-too")
    assert not account(a_budget(most=1, claims=[("down", "c")]), nodes).admits("down-too"), "one at a time"


ONE_OF_EIGHT = {"kept_cordoned": "uid-of-its-case", "unschedulable": True}


@pytest.mark.parametrize(
    ("facts", "counts"),
    [
        ({"unschedulable": True}, (1, 0, 0)),
        (ONE_OF_EIGHT, (0, 1, 1)),
        (ONE_OF_EIGHT | {"cordoned_by": "uid-of-another"}, (1, 0, 0)),
        (ONE_OF_EIGHT | {"unschedulable": False}, (0, 1, 0)),
    ],
    ids=["cordoned by a user", "kept out by a rung", "claimed anew", "uncordoned by a user"],
)
def test_a_node_that_a_rung_keeps_out_for_a_person_is_quarantined_also_after_its_case(facts, counts):
    """A rack of eight with one bad DIMM, whose case is over, was never repaired again."""
    found = account(a_budget(most=1), [*(a_node(f"n{n}") for n in range(7)), a_node("dimm", **facts)])
    assert (len(found.unavailable), found.allowed, len(found.quarantined)) == counts
    assert found.admits("n1") is bool(found.allowed)


def test_min_available_counts_quarantined_nodes_as_unavailable():
    """95 of 100 are to stay: with five that wait for a person no other one may go, but one that is down already may."""
    nodes = [*(a_node(f"n{n}") for n in range(99)), a_node("down", ready="False")]
    waiting = tuple(Claim(f"n{n}", f"c{n}", at(0), quarantined=True) for n in range(5))
    assert account(a_budget(least="95%"), nodes).allowed == 4
    full = account(replace(a_budget(least="95%"), claims=waiting), nodes)
    assert (len(full.unavailable), full.allowed, len(full.quarantined)) == (6, 0, 5)
    assert not full.admits("n50")
    assert full.admits("down")


def test_a_fallback_counts_only_the_nodes_that_no_other_selects():
    nodes = [a_node("x", labels={"pool": "x"}), a_node("y", labels={"pool": "y"}, ready="False")]
    budgets = {"x": a_budget("x", selector=pool("x")), "default": a_budget("default", fallback=True)}
    members = snapshot(budgets.values(), nodes).members
    assert members == {"default": Members(1, frozenset({"y"})), "x": Members(1, frozenset())}


def test_what_is_over_the_limit_already_is_not_less_than_nothing():
    assert account(a_budget(most=0), [a_node("down", ready="False")]).allowed == 0


def over(node, budgets):
    return BudgetIndex(budgets.values()).over(node)


def test_every_budget_that_selects_a_node_speaks_for_it_in_name_order():
    budgets = {name: a_budget(name, selector=EVERY) for name in ("b", "a")}
    budgets["other"] = a_budget("other", selector=pool("other"))
    budgets["default"] = a_budget("default", fallback=True)
    assert over(a_node(), budgets) == ("a", "b")


def test_a_fallback_speaks_only_where_no_other_does():
    budgets = {"x": a_budget("x", selector=pool("x")), "default": a_budget("default", fallback=True)}
    assert over(a_node(labels={"pool": "y"}), budgets) == ("default",)
    assert over(a_node(labels={"pool": "x"}), budgets) == ("x",)


def test_a_fallback_may_choose_its_nodes_as_well():
    assert over(a_node(), {"default": a_budget("default", fallback=True, selector=pool("x"))}) == ()


def test_claims_are_added_once_for_each_case_and_taken_away_by_case():
    budget = a_budget(claims=[("n1", "c1")])
    more = with_claims(budget, [Claim("n1", "c1", at(5)), Claim("n2", "c2", at(5))])
    found = [(claim.node, claim.case, claim.since) for claim in more.claims]
    assert found == [("n1", "c1", at(0)), ("n2", "c2", at(5))]
    assert [claim.case for claim in without_claims(more, frozenset({"c1", "unknown"})).claims] == ["c2"]

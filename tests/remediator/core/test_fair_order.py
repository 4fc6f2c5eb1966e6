"""Who goes first, and that a case that is held starves nobody: laws with numbers."""

from dataclasses import replace
from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from remediator.core.admission import Basis, StartRequest, admit
from remediator.core.breaker import Breaker
from remediator.core.budget import BreakerRule
from remediator.core.case import Block
from remediator.core.census import snapshot
from remediator.core.reasons import Reason
from tests.builders import a_budget, a_case, a_sick_node, at, minutes, pool

WIDE = Breaker(1000, minutes(10))
POOLS = "abc"


def asking(name, severity=1, created=0, of="a", blocks=()):
    case = a_case(name, node=f"node-{name}", created=created)
    return StartRequest(case, a_sick_node(f"node-{name}", labels={"pool": of}), severity, tuple(blocks))


def budgets(most=1, **more):
    return [replace(a_budget(f"pool-{name}", most, selector=pool(name)), **more) for name in POOLS]


def admitted(requests, ledgers, breaker=WIDE):
    nodes = [request.node for request in requests]
    admission = admit(requests, Basis(snapshot(ledgers, nodes), [], breaker, at(9)))
    return [request.case.name for request in admission.admitted]


rows = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3), st.sampled_from(POOLS)), max_size=12)


def of(rows):
    return [asking(f"c{number:02}", *row) for number, row in enumerate(rows)]


@given(rows, st.randoms())
def test_the_order_in_which_cases_are_handed_over_changes_nothing(rows, chance):
    requests = of(rows)
    mixed = chance.sample(requests, len(requests))
    assert admitted(requests, budgets()) == admitted(mixed, budgets())


@given(rows)
def test_of_each_full_budget_the_most_severe_goes_then_the_oldest_then_by_name(rows):
    """Room for one in each pool: it is the first of that pool by severity, age and name."""
    requests = of(rows)
    first = {}
    for request in sorted(requests, key=lambda each: (each.severity, each.case.created, each.case.name)):
        first.setdefault(request.node.labels["pool"], request.case.name)
    assert sorted(admitted(requests, budgets())) == sorted(first.values())


def test_three_equal_cases_go_by_name_whoever_asks_first():
    for order in permutations("abc"):
        assert admitted([asking(name) for name in order], budgets()) == ["a"]


@given(rows, st.sets(st.integers(0, 11)))
def test_a_case_that_something_holds_for_itself_changes_nothing_for_the_others(rows, held):
    """As if it were not there: it takes no room, no start and no place."""
    requests = of(rows)
    hold = Block(Reason.HELD_BY_USER, "")
    some = [replace(each, blocks=(hold,)) if number in held else each for number, each in enumerate(requests)]
    others = [each for number, each in enumerate(requests) if number not in held]
    few = Breaker(3, minutes(10))
    assert admitted(some, budgets(), few) == admitted(others, budgets(), few)


@given(rows)
def test_cases_of_a_full_budget_keep_none_of_another_waiting(rows):
    """Pool a admits nothing, and its cases are the most severe: b and c admit what they would without it."""
    requests = [replace(each, severity=-1) if each.node.labels["pool"] == "a" else each for each in of(rows)]
    others = [each for each in requests if each.node.labels["pool"] != "a"]
    full = [replace(each, max_unavailable=a_budget(most=0).max_unavailable) for each in budgets()[:1]]
    few = Breaker(2, minutes(10))
    assert admitted(requests, [*full, *budgets()[1:]], few) == admitted(others, budgets(), few)


@given(rows)
def test_cases_behind_an_open_breaker_of_one_budget_keep_none_of_another_waiting(rows):
    """Pool a may start one; of the others so many go as without the breaker."""
    requests = of(rows)
    limited = [replace(each, breaker=BreakerRule(starts=1)) for each in budgets(5)[:1]]
    names = {each.case.name for each in requests if each.node.labels["pool"] != "a"}
    some = admitted(requests, [*limited, *budgets(5)[1:]])
    assert [name for name in some if name in names] == [n for n in admitted(requests, budgets(5)) if n in names]
    assert len(set(some) - names) <= 1


def test_a_hundred_cases_of_one_room_all_get_their_turn_the_oldest_first():
    """Each pass admits one, and the one before has recovered: case n goes in pass n, and none waits for longer."""
    waiting, turns = [asking(f"c{number:03}", created=number) for number in range(100)], []
    while waiting:
        (name,) = admitted(waiting, budgets())
        turns.append(name)
        waiting = [each for each in waiting if each.case.name != name]
    assert turns == [f"c{number:03}" for number in range(100)]

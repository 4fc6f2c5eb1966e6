"""One budget for each value of a label: what is counted, who is admitted, what is shown."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remediator.core import admission as core_admission
from remediator.core.account import MOST_GROUPS, NOBODY, account, account_of_group, claims_by_group, counts, limits
from remediator.core.admission import Basis, StartRequest
from remediator.core.breaker import Breaker
from remediator.core.budget import MOST_CLAIMS, Amount, Claim, GroupCounts, regrouped
from remediator.core.census import Census, snapshot
from remediator.core.reasons import REMEDY, Reason
from tests.builders import EVERY, a_budget, a_case, a_node, a_sick_node, at, minutes, pool

RACK = "rack"


def racks(**more):
    """One node of each rack, unless told otherwise."""
    return a_budget("racks", **{"most": 1} | more, group_by=RACK, grouped_by=RACK)


def in_rack(rack, *names, **more):
    return [a_node(name, labels={RACK: rack} if rack is not None else {}, **more) for name in names]


def accounts(budget, members):
    """Where each group stands, one after the other."""
    claims = claims_by_group(budget)
    groups = claims.keys() | members.groups.keys()
    return {group: account_of_group(budget, members, group, claims) for group in groups}


def admit(budget, nodes, *names, others=()):
    """What a pass says of cases on these nodes, all asked at once."""
    by_name = {node.name: node for node in nodes}
    requests = [
        StartRequest(a_case(f"case-{name}", node=name), a_sick_node(name, labels=by_name[name].labels), 1, ())
        for name in names
    ]
    admission = core_admission.admit(
        requests, Basis(snapshot([budget, *others], nodes), [], Breaker(10_000, minutes(10)), at(5))
    )
    admitted = {request.node.name: None for request in admission.admitted}
    return admitted | {request.node.name: blocks[0] for request, blocks in admission.held}, admission


def test_each_rack_of_eight_gives_one_node_and_no_rack_waits_for_another():
    nodes = [node for rack in "abc" for node in in_rack(rack, *(f"{rack}{n}" for n in range(8)))]
    answers, admission = admit(racks(), nodes, "a0", "a1", "b0", "c0", "c1")
    assert {name for name, block in answers.items() if block is None} == {"a0", "b0", "c0"}
    assert answers["a1"].reason is Reason.BUDGET_SPENT
    assert answers["a1"].message.startswith("budget racks, rack a: 1 of 1 unavailable (a0);")
    assert [(claim.node, claim.group) for claim in admission.claims["racks"]] == [("a0", "a"), ("b0", "b"), ("c0", "c")]


@pytest.mark.parametrize(
    ("amounts", "allowed"),
    [
        ({"most": "50%"}, {"a": 1, "b": 4}),
        ({"most": "10%"}, {"a": 1, "b": 1}),
        ({"most": "0%"}, {"a": 0, "b": 0}),
        ({"least": "75%"}, {"a": 0, "b": 2}),
        ({"least": 2}, {"a": 1, "b": 6}),
    ],
    ids=["half, rounded down", "never below one", "none", "rounded up", "a count"],
)
def test_amounts_hold_for_each_group_of_three_and_of_eight(amounts, allowed):
    nodes = [*in_rack("a", *(f"a{n}" for n in range(3))), *in_rack("b", *(f"b{n}" for n in range(8)))]
    budget = racks(**amounts)
    standing = accounts(budget, snapshot([budget], nodes).members["racks"])
    assert {group: account.allowed for group, account in standing.items()} == allowed


@pytest.mark.parametrize("rack", [None, ""], ids=["no label", "an empty one"])
def test_nothing_starts_on_a_node_that_may_stand_in_any_rack(rack):
    nodes = [*in_rack("a", "a0", "a1"), *in_rack(rack, "stray")]
    answers, _ = admit(racks(), nodes, "stray", "a0")
    assert (answers["stray"].reason, answers["a0"]) == (Reason.GROUP_UNKNOWN, None)
    assert answers["stray"].message.endswith(f"{RACK}; {REMEDY[Reason.GROUP_UNKNOWN]}")
    assert "(1 of 3 nodes of the budget lack it)" in answers["stray"].message
    assert "correct spec.groupBy" in answers["stray"].message


def pairs(count):
    return [node for pair in range(count) for node in in_rack(f"p{pair:03}", f"{pair:03}-0", f"{pair:03}-1")]


def test_five_percent_of_a_thousand_nodes_in_pairs_are_fifty_and_not_one_of_each_pair():
    nodes, firsts = pairs(500), [f"{pair:03}-0" for pair in range(500)]
    answers, admission = admit(racks(most="5%"), nodes, *firsts)
    assert len(admission.admitted) == 50
    assert {block.reason for block in answers.values() if block} == {Reason.BUDGET_SPENT}
    message = "budget racks, all groups: 50 of 50 unavailable (000-0, 001-0, 002-0, 003-0, 004-0);"
    assert answers["499-0"].message.startswith(message)
    _, by_count = admit(racks(most=1), nodes, *firsts)
    assert len(by_count.admitted) == 500


def test_claims_that_stand_leave_no_group_room_where_the_percentage_of_the_whole_is_used():
    nodes = pairs(500)
    claims = tuple(Claim(f"{pair:03}-0", f"c{pair}", at(0), group=f"p{pair:03}") for pair in range(49))
    one_left = replace(racks(most="5%"), claims=claims)
    shown = counts(one_left, snapshot([one_left], nodes).members["racks"])
    assert (shown.unavailable, shown.allowed, shown.groups_full) == (49, 1, 49)
    answers, admission = admit(one_left, nodes, "100-0", "100-1", "101-0", "102-0")
    assert [request.node.name for request in admission.admitted] == ["100-0"]
    assert answers["100-1"].message.startswith("budget racks, rack p100: 1 of 1 unavailable")
    full = replace(one_left, claims=(*claims, Claim("100-0", "c100", at(0), group="p100")))
    shown = counts(full, snapshot([full], nodes).members["racks"])
    assert (shown.unavailable, shown.allowed, shown.groups_full) == (50, 0, 500)


def test_the_percentage_of_the_whole_is_never_below_one_node_and_counts_what_is_down():
    """10 % of ten pairs are two: of three nodes that are down two are repaired, and no fourth is taken."""
    few, _ = admit(racks(most="5%"), pairs(3), "000-0", "001-0")
    assert {name: block and block.reason for name, block in few.items()} == {
        "000-0": None,
        "001-0": Reason.BUDGET_SPENT,
    }
    down = [replace(node, unschedulable=node.name in {"000-0", "001-0", "002-0"}) for node in pairs(10)]
    answers, _ = admit(racks(most="10%"), down, "003-0", "000-0", "001-0", "002-0")
    assert {name for name, block in answers.items() if block is None} == {"000-0", "001-0"}


@pytest.mark.parametrize(
    ("amounts", "expected"),
    [
        ({"most": 1}, (3, 6)),
        ({"most": "50%"}, (3, 6)),
        ({"most": "10%"}, (1, 6)),
        ({"most": 1, "max_quarantined": Amount(1)}, (3, 3)),
        ({"most": 1, "max_quarantined": Amount(20, percent=True)}, (3, 2)),
    ],
    ids=["a count", "half of each", "10 % of the whole", "one quarantined in each", "20 % of the whole"],
)
def test_limits_over_three_pairs_leave_out_the_nodes_without_a_label(amounts, expected):
    nodes = [*pairs(3), *in_rack(None, "s0", "s1")]
    budget = racks(**{"max_quarantined": Amount(2)} | amounts)
    assert limits(budget, snapshot([budget], nodes).members["racks"]) == expected


def test_a_group_with_too_many_quarantined_nodes_is_full():
    waiting = Claim("000-0", "c0", at(0), quarantined=True, group="p000")
    budget = replace(racks(max_quarantined=Amount(1)), claims=(waiting,))
    assert counts(budget, snapshot([budget], pairs(3)).members["racks"]).groups_full == 1


def test_a_claim_keeps_its_group_where_the_label_of_its_node_is_changed():
    """gpu-1 was claimed in rack a and stands in rack b now: rack a has no room, and rack b counts it as it is."""
    claimed = replace(racks(), claims=(Claim("gpu-1", "c1", at(0), group="a"),))
    moved = in_rack("b", "gpu-1", unschedulable=True)
    answers, _ = admit(
        claimed, [*in_rack("a", "a0", "a1"), *moved, *in_rack("b", "b0"), *in_rack("c", "c0")], "a0", "b0", "c0"
    )
    assert {name: block.reason if block else None for name, block in answers.items()} == {
        "a0": Reason.BUDGET_SPENT,
        "b0": Reason.BUDGET_SPENT,
        "c0": None,
    }


def test_claims_go_to_new_groups_only_where_the_key_itself_was_changed():
    budget = replace(racks(), claims=(Claim("n1", "c1", at(0), group="a"), Claim("n2", "c2", at(0), group="a")))
    assert regrouped(budget, {"n1": "b"}) is budget
    changed = regrouped(replace(budget, group_by="zone"), {"n1": "z"})
    assert [(claim.node, claim.group) for claim in changed.claims] == [("n1", "z"), ("n2", "")]


def test_a_quarantined_node_counts_in_its_group_and_a_percentage_in_all_groups_together():
    """20 % of four racks of five are 4 nodes: with two in each of two racks nothing starts anywhere."""
    nodes = [node for rack in "abcd" for node in in_rack(rack, *(f"{rack}{n}" for n in range(5)))]
    waiting = [
        Claim(f"{rack}{n}", f"c-{rack}{n}", at(0), quarantined=True, group=rack) for rack in "ab" for n in range(2)
    ]
    three, _ = admit(replace(racks(), claims=tuple(waiting[:3])), nodes, "a3", "b3", "c3")
    assert {name: block.reason if block else None for name, block in three.items()} == {
        "a3": Reason.QUARANTINE_FULL,
        "b3": None,
        "c3": None,
    }
    four, _ = admit(replace(racks(), claims=tuple(waiting)), nodes, "c3")
    assert four["c3"].message.startswith("budget racks, all groups: 4 of 4 quarantined (a0, a1, b0, b1)")


def test_all_groups_share_one_ledger_of_two_thousand():
    nodes = [node for rack in range(3) for node in in_rack(str(rack), *(f"{rack}-{n}" for n in range(4)))]
    full = tuple(Claim(f"gone-{n}", f"c{n}", at(0), group=f"old-{n}") for n in range(MOST_CLAIMS - 2))
    answers, _ = admit(replace(racks(), claims=full), nodes, "0-0", "1-0", "2-0")
    assert [answers[name].reason if answers[name] else None for name in ("0-0", "1-0", "2-0")] == [
        None,
        None,
        Reason.BUDGET_SPENT,
    ]


def test_the_status_shows_the_fullest_groups_and_how_many_there_are():
    nodes = [node for rack in range(625) for node in in_rack(f"r{rack:03}", *(f"{rack}-{n}" for n in range(8)))]
    down = [
        replace(node, unschedulable=True) for node in nodes if node.name.endswith("-7") and int(node.name[:-2]) < 100
    ]
    nodes = [*(node for node in nodes if node.name not in {each.name for each in down}), *down, *in_rack(None, "stray")]
    budget = racks()
    shown = counts(budget, snapshot([budget], nodes).members["racks"])
    numbers = (shown.total, shown.unavailable, shown.allowed, shown.group_total, shown.groups_full, shown.ungrouped)
    assert numbers == (5001, 100, 525, 625, 100, 1)
    assert shown.groups[0] == GroupCounts("r000", 8, 1, 0, 0)
    assert len(shown.groups) == MOST_GROUPS == 64


STATES = {
    "up": {},
    "down": {"ready": "False"},
    "cordoned": {"unschedulable": True},
    "kept out": {"unschedulable": True, "kept_cordoned": "uid"},
}


@given(
    states=st.lists(st.tuples(st.sampled_from(["a", "b", "c", "d", "", None]), st.sampled_from(list(STATES)))),
    claimed=st.lists(st.tuples(st.integers(0, 12), st.sampled_from(["a", "b", "e", ""]), st.booleans())),
    amounts=st.sampled_from([{"most": 1}, {"most": "34%"}, {"least": 2}, {"least": "50%"}, {"most": 0}]),
    quarantined=st.sampled_from([Amount(0), Amount(1), Amount(20, percent=True)]),
)
def test_numbers_of_a_budget_are_those_of_its_groups_counted_one_by_one(states, claimed, amounts, quarantined):
    nodes = [node for n, (rack, state) in enumerate(states) for node in in_rack(rack, f"n{n}", **STATES[state])]
    claims = {f"case-{n}": Claim(f"n{n}", f"case-{n}", at(0), spent, group) for n, group, spent in claimed}
    budget = replace(racks(**amounts), claims=tuple(claims.values()), max_quarantined=quarantined)
    members = snapshot([budget], nodes).members["racks"]
    whole, groups = account(budget, members), accounts(budget, members)
    ungrouped = groups.pop("", account(replace(budget, claims=()), NOBODY))
    room = whole.allowed if budget.limits_all_groups else members.total
    allowed = [min(room, group.allowed) for group in groups.values()]
    full = [not may or group.full_of_quarantine for may, group in zip(allowed, groups.values(), strict=True)]
    every = [*groups.values(), ungrouped]
    shown = counts(budget, members)
    assert shown.unavailable == sum(len(group.unavailable) for group in every)
    assert shown.quarantined == sum(len(group.quarantined) for group in every)
    assert (shown.total, shown.group_total, shown.ungrouped) == (len(nodes), len(groups), ungrouped.total)
    assert shown.allowed == min(room, sum(allowed))
    full_groups = len(groups) if quarantined.percent and whole.full_of_quarantine else sum(full)
    assert shown.groups_full == full_groups
    assert {group.group for group in shown.groups} == {
        name for name, group in groups.items() if group.unavailable or group.quarantined
    }
    most, spent = (sum(getattr(group, of) for group in groups.values()) for of in ("most", "most_quarantined"))
    assert limits(budget, members) == (
        min(most, whole.most) if budget.limits_all_groups else most,
        min(spent, whole.most_quarantined) if quarantined.percent else spent,
    )


def test_a_census_kept_node_by_node_is_that_which_is_taken_at_once():
    budgets = [racks(), a_budget("default", fallback=True, selector=EVERY), a_budget("x", selector=pool("x"))]
    budgets[0] = replace(budgets[0], selector=pool("y"))
    steps = [
        a_node("n1", labels={"pool": "y", RACK: "a"}),
        a_node("n2", labels={"pool": "y", RACK: "b"}, unschedulable=True),
        a_node("n1", labels={"pool": "y", RACK: "b"}, unschedulable=True),
        a_node("n3", labels={"pool": "x"}, ready="False"),
        a_node("n2", labels={"pool": "x"}),
        a_node("n4"),
    ]
    census, nodes = Census(budgets), {}
    for node in steps:
        census.put(node.name, node)
        nodes[node.name] = node
        assert census.members() == snapshot(budgets, nodes.values()).members
    for name in list(nodes):
        census.put(name, None)
        del nodes[name]
        assert census.members() == snapshot(budgets, nodes.values()).members

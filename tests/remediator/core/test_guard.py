"""Who may start now: what stands against one case, and what a pass over all of them gives."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remediator.core import account
from remediator.core import admission as core_admission
from remediator.core.admission import Basis, StartRequest
from remediator.core.breaker import Breaker
from remediator.core.budget import MOST_CLAIMS, Amount, with_claims
from remediator.core.case import Block, Phase, SetBy
from remediator.core.census import snapshot
from remediator.core.correlation import Burst, SharedCause
from remediator.core.guard import FleetContext, preconditions, waits_in_queue
from remediator.core.node import Taint
from remediator.core.policy import Correlation, Mode, Urgency
from remediator.core.reasons import REMEDY, Reason
from tests.builders import (
    EVERY,
    a_budget,
    a_case,
    a_node,
    a_policy,
    a_sick_node,
    an_attempt,
    at,
    condition,
    held_by,
    minutes,
    pool,
)

NOW = at(5)
AROUND = FleetContext(frozenset({"reset-gpu", "reboot"}), paused=False, controller_nodes=frozenset({"cp-1", "cp-2"}))
COMMON = SharedCause("gpu-lost", "GpuLost", "GPU fell off the bus")
MANY = Burst(tuple(f"gpu-{number}" for number in range(1, 8)), at(0), at(3))
TOGETHER = a_policy(correlation=Correlation(3, minutes(10), ("message",)))
OF_ONE_BOOT = replace(AROUND, boots=frozenset({"reboot"}))
CLAIMED = {"phase": Phase.DRAINING, "started": at(1)}


def reasons(*, case=None, node=None, policy=None, past=(), around=AROUND, now=NOW):
    """The reasons against a case that nothing else stands against."""
    asked = case or a_case()
    found = preconditions(asked, node or a_sick_node(), policy or a_policy(), [*past, asked], around, now)
    assert all(REMEDY[block.reason] in block.message for block in found), "each says what a person can do"
    return [block.reason for block in found]


def test_nothing_stands_against_a_clear_case():
    assert reasons() == []


OVER = a_case("before", started=at(-9), ended=at(0), phase=Phase.RECOVERED, attempts=(an_attempt(),))
OTHER = a_case("other", **CLAIMED)


@pytest.mark.parametrize(
    ("world", "reason"),
    [
        ({"around": replace(AROUND, paused=True)}, Reason.PAUSED),
        ({"policy": a_policy(mode=Mode.PAUSED)}, Reason.POLICY_PAUSED),
        ({"policy": a_policy(mode=Mode.DRY_RUN)}, Reason.DRY_RUN),
        ({"case": a_case(hold=True)}, Reason.HELD_BY_USER),
        ({"node": a_sick_node(labels={"remediator.dev/exclude": "true"})}, Reason.OPTED_OUT),
        *(
            ({"node": a_sick_node(labels={f"node-role.kubernetes.io/{role}": "true"})}, Reason.CONTROL_PLANE)
            for role in ("control-plane", "master", "etcd", "controlplane")
        ),
        ({"around": replace(AROUND, control_plane={"gpu-1": "etcd-gpu-1"})}, Reason.CONTROL_PLANE),
        ({"around": replace(AROUND, controller_nodes=frozenset({"gpu-1"}))}, Reason.HOSTS_CONTROLLER),
        ({"past": [replace(OTHER, ended=at(4))]}, Reason.COOLDOWN),
        ({"node": a_sick_node(unschedulable=True)}, Reason.CORDONED_BY_USER),
        ({"node": a_sick_node(unschedulable=True), "case": a_case(**CLAIMED)}, Reason.CORDONED_BY_USER),
        *(
            ({"node": a_sick_node(labels={"remediator.dev/exclude": value})}, Reason.OPTED_OUT)
            for value in ("True", "yes", "", "False")
        ),
        ({"node": a_sick_node(taints=(Taint("karpenter.sh/disrupted", "", "NoSchedule"),))}, Reason.UNDER_MAINTENANCE),
        ({"past": [OTHER]}, Reason.NODE_BUSY),
        ({"around": replace(AROUND, templates=frozenset({"reboot"}))}, Reason.UNKNOWN_OPERATION),
        ({"node": a_node("gpu-1", condition(status="Unknown"))}, Reason.HEALTH_UNKNOWN),
        ({"now": at(15, seconds=1)}, Reason.HEALTH_UNKNOWN),
        ({"node": a_sick_node(boot_id=""), "around": OF_ONE_BOOT}, Reason.HEALTH_UNKNOWN),
        ({"past": [OVER]}, Reason.COOLDOWN),
        ({"policy": a_policy(urgency=Urgency.NEVER, ladder=())}, Reason.TICKET_ONLY),
        ({"around": replace(AROUND, causes={COMMON: (MANY,)}), "policy": TOGETHER}, Reason.SHARED_CAUSE),
    ],
    ids=lambda value: value.value if isinstance(value, Reason) else "",
)
def test_each_thing_that_stands_against_a_case_by_itself(world, reason):
    assert reasons(**world) == [reason]


@pytest.mark.parametrize(("by", "words"), [(("reason",), "reason"), (("reason", "rack"), "reason and rack")])
def test_the_message_names_what_the_nodes_have_in_common_and_five_of_them(by, words):
    policy = a_policy(correlation=Correlation(3, minutes(10), by))
    common = SharedCause("gpu-lost", "GpuLost", "reason Xid79" + (", rack a" if "rack" in by else ""))
    node = a_sick_node(labels={"rack": "a"})
    (block,) = preconditions(a_case(), node, policy, [], replace(AROUND, causes={common: (MANY,)}), NOW)
    assert block.message.startswith(f"7 nodes show the same {words} (gpu-1, gpu-2, gpu-3, gpu-4, gpu-5);")


def test_who_finds_a_case_on_the_control_plane_reads_what_to_do():
    around = replace(AROUND, control_plane={"gpu-1": "etcd-gpu-1"})
    (block,) = preconditions(a_case(), a_sick_node(), a_policy(), [], around, NOW)
    assert block.message.endswith("; where a case holds the node: repair it, or delete the case")


@pytest.mark.parametrize("escalated", [False, True])
def test_who_waits_beside_a_case_that_a_person_has_reads_how_to_give_the_node_back(escalated):
    other = replace(OTHER, phase=Phase.ESCALATED) if escalated else OTHER
    (block,) = preconditions(a_case(), a_sick_node(), a_policy(), [other], AROUND, NOW)
    command = """kubectl patch noderemediation other --type=merge -p '{"spec":{"release":true}}'"""
    words = f" and is Escalated: repair the node, then give it back with: {command}" if escalated else ""
    assert block.message == f"case other holds gpu-1{words}; {REMEDY[Reason.NODE_BUSY]}"
    assert "delete" not in block.message, "nobody deletes the case that keeps a sick node out"


def test_without_its_policy_nothing_else_is_asked():
    found = preconditions(a_case(hold=True), a_sick_node(), None, [], AROUND, NOW)
    assert [block.reason for block in found] == [Reason.POLICY_MISSING]


def test_who_holds_a_case_is_told_where_that_is_known():
    said = [
        preconditions(a_case(hold=True, set_by=SetBy(hold=user)), a_sick_node(), a_policy(), [], AROUND, NOW)[0].message
        for user in ("alice@example.com", "")
    ]
    remedy = "; set spec.hold of the case to false"
    assert said == [f"spec.hold is true, set by alice@example.com{remedy}", f"spec.hold is true{remedy}"]


@pytest.mark.parametrize("edit", [{"mode": Mode.DRY_RUN}, {"urgency": Urgency.NEVER}])
def test_whoever_edits_a_policy_in_mid_case_so_that_it_only_watches_reads_how_to_give_the_node_back(edit):
    node = replace(a_sick_node(), unschedulable=True, cordoned_by=a_case().uid)
    (block,) = preconditions(a_case(**CLAIMED), node, a_policy(**edit), [], AROUND, NOW)
    assert ", and holds gpu-1 until the case is deleted; " in block.message
    (block,) = preconditions(a_case(), a_sick_node(), a_policy(**edit), [], AROUND, NOW)
    assert "holds" not in block.message


def test_everything_that_stands_in_the_way_is_said_at_once():
    world = {"case": a_case(hold=True), "policy": a_policy(mode=Mode.DRY_RUN), "past": [OVER]}
    assert reasons(**world) == [Reason.DRY_RUN, Reason.HELD_BY_USER, Reason.COOLDOWN]


@pytest.mark.parametrize(
    ("world", "why"),
    [
        pytest.param(
            {
                "case": a_case(**CLAIMED),
                "past": [OVER],
                "node": a_sick_node(unschedulable=True, cordoned_by="uid-case-1"),
            },
            "already begun",
            id="a cooldown once claimed",
        ),
        pytest.param(
            {"node": a_sick_node(unschedulable=True, cordoned_by="uid-case-1")}, "ours", id="a cordon of our own"
        ),
        pytest.param({"node": a_sick_node(labels={"remediator.dev/exclude": "false"})}, "no", id="exclude=false"),
        pytest.param({"around": OF_ONE_BOOT}, "the boot is known", id="an operation for one boot"),
        pytest.param({"node": a_sick_node(boot_id="")}, "for no boot", id="a node of which no boot is known"),
        pytest.param({"past": [replace(OVER, policy="other")]}, "another policy", id="a repair under another policy"),
        pytest.param({"past": [replace(OVER, attempts=(), started=None)]}, "untouched", id="a case that did nothing"),
        pytest.param({"now": at(30), "node": a_sick_node(minute=30), "past": [OVER]}, "over", id="30 minutes later"),
        pytest.param({"past": [replace(OTHER, ended=at(4), policy="other")]}, "over", id="another case that has ended"),
        pytest.param({"past": [a_case("queued", phase=Phase.HELD)]}, "waits", id="another case that only waits"),
        pytest.param({"past": [replace(OTHER, node_uid="gone")]}, "gone", id="a case of a namesake"),
        pytest.param(
            {"around": replace(AROUND, controller_nodes=frozenset({"gpu-1", "cp-1"}))},
            "another replica",
            id="one of two replicas",
        ),
    ],
)
def test_what_does_not_stand_in_the_way(world, why):
    assert reasons(**world) == [], why


def test_a_cooldown_says_when_it_ends():
    found = preconditions(a_case(), a_sick_node(), a_policy(cooldown=30), [OVER], AROUND, NOW)
    assert found[0].until == at(30)


# --- a pass over all -----------------------------------------------------------------------------------------------

WIDE = Breaker(100, minutes(10))


def asking(name, *, node=None, severity=1, blocks=(), labels=None, **more):
    """A request of a case for a node of the same name, unless another is given."""
    where = node or f"node-{name}"
    return StartRequest(a_case(name, node=where, **more), a_sick_node(where, labels=labels), severity, tuple(blocks))


def admit(requests, nodes, ledgers, starts, breaker, now):
    return core_admission.admit(requests, Basis(snapshot(ledgers.values(), nodes), starts, breaker, now))


def ask(requests, budgets, *, starts=(), breaker=WIDE, nodes=None):
    found = nodes if nodes is not None else [request.node for request in requests]
    return admit(requests, found, {budget.name: budget for budget in budgets}, starts, breaker, NOW)


def names(requests):
    return [request.case.name for request in requests]


def why(admission):
    return {request.case.name: [block.reason for block in blocks] for request, blocks in admission.held}


@pytest.mark.parametrize(
    ("budget", "count", "says"),
    [
        (a_budget(most=0), 1, "lets no node of 1 be unavailable"),
        (a_budget(most=None, least="99%"), 50, "lets no node of 50 be unavailable"),
        (a_budget(most=None, least="98%"), 50, ""),
    ],
)
def test_a_budget_that_lets_nothing_be_unavailable_says_so_and_not_to_wait_for_other_nodes(budget, count, says):
    nodes = [a_sick_node(f"node-{name}") for name in ("a", *range(count - 1))]
    held = ask([asking("a")], [budget], nodes=nodes).held
    said = [block.message for _, blocks in held for block in blocks]
    assert said == ([f"budget pool-a {says}; raise the budget"] if says else [])


def test_a_budget_of_one_admits_one_and_says_who_has_it():
    admission = ask([asking("a"), asking("b")], [a_budget(most=1)])
    assert names(admission.admitted) == ["a"]
    assert why(admission) == {"b": [Reason.BUDGET_SPENT]}
    assert "budget pool-a: 1 of 1 unavailable (node-a)" in admission.held[0][1][0].message
    assert [(claim.node, claim.case, claim.since) for claim in admission.claims["pool-a"]] == [("node-a", "uid-a", NOW)]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param({"severity": 0, "created": 9}, {"severity": 1, "created": 1}, id="the more severe"),
        pytest.param({"created": 1}, {"created": 9}, id="then the older"),
        pytest.param({}, {}, id="then the name"),
    ],
)
def test_who_goes_first(first, second):
    requests = [asking("b", **second), asking("a", **first)]
    assert names(ask(requests, [a_budget(most=1)]).admitted) == ["a"]


def test_a_case_that_holds_its_node_goes_before_any_that_does_not():
    """One start is left: climbing on is worth more than beginning."""
    climbing = asking("z", severity=2, created=9, attempts=(an_attempt(),), **CLAIMED)
    admission = ask([asking("a", severity=0), climbing], [a_budget(most=5)], breaker=Breaker(1, minutes(10)))
    assert names(admission.admitted) == ["z"]
    assert why(admission) == {"a": [Reason.BREAKER_OPEN]}


def test_the_breaker_stops_starts_and_says_until_when():
    admission = ask([asking("a")], [a_budget(most=5)], starts=[at(0), at(1)], breaker=Breaker(2, minutes(10)))
    assert admission.held[0][1] == (Block(Reason.BREAKER_OPEN, admission.held[0][1][0].message, at(10)),)
    assert admission.claims == {}


def test_each_climb_counts_as_a_start():
    climbers = [asking(name, attempts=(an_attempt(),), **CLAIMED) for name in "abc"]
    assert len(ask(climbers, [], breaker=Breaker(2, minutes(10))).admitted) == 2


def test_the_first_attempt_was_counted_when_its_case_claimed():
    begun = asking("a", **CLAIMED)
    assert names(ask([begun], [], starts=[at(1)], breaker=Breaker(1, minutes(10))).admitted) == ["a"]


def test_a_case_whose_node_has_its_mark_goes_before_a_more_severe_one_though_it_does_not_say_yet_that_it_holds_it():
    case = a_case("z", node="node-z")
    marked = StartRequest(case, a_sick_node("node-z", taints=(held_by(case),)), 2, ())
    admission = ask([asking("a", severity=0), marked], [a_budget(most=5)], breaker=Breaker(1, minutes(10)))
    assert names(admission.admitted) == ["z"]
    assert why(admission) == {"a": [Reason.BREAKER_OPEN]}


@pytest.mark.parametrize(("window", "admitted"), [(11, ["a"]), (9, [])], ids=["counts", "is over"])
def test_a_case_in_a_ledger_is_its_own_start_while_its_entry_lies_in_the_window(window, admitted):
    """Its entry is 10 minutes old, and another case has taken the only start a minute ago."""
    ledger = a_budget(most=5, claims=[("node-a", "uid-a")])
    ledger = replace(ledger, claims=(replace(ledger.claims[0], since=NOW - minutes(10)),))
    admission = ask([asking("a")], [ledger], starts=[NOW - minutes(1)], breaker=Breaker(1, minutes(window)))
    assert names(admission.admitted) == admitted


def test_a_claimed_case_needs_no_budget():
    assert names(ask([asking("a", **CLAIMED)], [a_budget(most=0)]).admitted) == ["a"]


def test_every_budget_over_the_node_must_admit_it():
    budgets = [a_budget("big", most=5), a_budget("small", most=0)]
    admission = ask([asking("a")], budgets)
    assert why(admission) == {"a": [Reason.BUDGET_SPENT]}
    assert admission.claims == {}, "and none is charged where one refuses"


def test_a_budget_that_holds_our_entry_is_not_asked_again():
    budgets = [a_budget("one", most=1, claims=[("node-a", "uid-a")]), a_budget("two", most=1)]
    admission = ask([asking("a")], budgets)
    assert names(admission.admitted) == ["a"]
    assert list(admission.claims) == ["two"]


def test_a_budget_that_has_not_adopted_admits_nobody():
    assert why(ask([asking("a")], [a_budget(most=5, adopted=False)])) == {"a": [Reason.BUDGET_UNREADY]}


def test_a_node_without_any_budget_waits_for_one():
    assert why(ask([asking("a")], [a_budget(selector=pool("other"))])) == {"a": [Reason.BUDGET_UNREADY]}


def test_what_stands_against_a_case_alone_costs_no_budget_and_no_start():
    blocked = asking("a", blocks=[Block(Reason.DRY_RUN, "")])
    admission = ask([blocked, asking("b")], [a_budget(most=1)], breaker=Breaker(1, minutes(10)))
    assert names(admission.admitted) == ["b"]
    assert why(admission) == {"a": [Reason.DRY_RUN]}


def test_two_cases_of_one_node_never_go_together():
    admission = ask([asking("a", node="n"), asking("b", node="n")], [a_budget(most=5)])
    assert (names(admission.admitted), why(admission)) == (["a"], {"b": [Reason.NODE_BUSY]})


def test_a_ledger_is_never_filled_beyond_what_its_field_holds():
    full = a_budget(most=9999, claims=[(f"n{i}", f"c{i}") for i in range(MOST_CLAIMS)])
    assert why(ask([asking("a")], [full])) == {"a": [Reason.BUDGET_SPENT]}


@pytest.mark.parametrize(
    ("blocked", "expected"),
    [
        ([Reason.BUDGET_SPENT], True),
        ([Reason.BREAKER_OPEN], True),
        ([Reason.BUDGET_UNREADY], True),
        ([Reason.DRY_RUN], False),
        pytest.param([Reason.BUDGET_SPENT, Reason.HELD_BY_USER], False, id="a person stops it as well"),
        pytest.param([], False, id="nothing stands against it"),
    ],
)
def test_only_a_node_that_merely_waits_its_turn_is_marked(blocked, expected):
    assert waits_in_queue([Block(reason, "") for reason in blocked]) is expected


# --- laws ----------------------------------------------------------------------------------------------------------

POOLS = ("a", "b", "c")


@st.composite
def worlds(draw, budgets=("a", "b", "every", "rest")):
    """Nodes of three pools, some down, some claimed, some asking, under overlapping budgets."""
    count = draw(st.integers(1, 12))
    nodes, requests = [], []
    for number in range(count):
        labels = {"pool": draw(st.sampled_from(POOLS))}
        down = draw(st.booleans()) and draw(st.booleans())
        node = a_node(f"n{number}", condition(), labels=labels, ready="False" if down else "True")
        nodes.append(node)
        if draw(st.booleans()):
            claimed = draw(st.booleans()) and draw(st.booleans())
            more = CLAIMED | {"attempts": (an_attempt(),)} if claimed else {}
            case = a_case(f"c{number}", node=node.name, created=draw(st.integers(0, 3)), **more)
            requests.append(StartRequest(case, node, draw(st.integers(0, 2)), ()))
    selectors = {"a": pool("a"), "b": pool("b"), "every": EVERY, "rest": EVERY}
    ledgers = {}
    for name in budgets:
        if draw(st.booleans()):
            most = draw(st.one_of(st.integers(0, 5), st.sampled_from(["10%", "30%", "50%"])))
            ledger = a_budget(name, most=most, selector=selectors[name], fallback=name == "rest")
            standing = [(r.node.name, r.case.uid) for r in requests if r.case.claimed and _over(ledger, r)]
            ledgers[name] = replace(a_budget(name, claims=standing), **_limits(ledger))
    return nodes, requests, ledgers


def _over(ledger, request):
    return ledger.selector.matches(request.node.labels)


def _limits(ledger):
    kept = ("max_unavailable", "selector", "fallback")
    return {name: getattr(ledger, name) for name in kept}


def _unavailable(ledger, nodes, ledgers):
    return account.account(ledger, snapshot(ledgers.values(), nodes).members[ledger.name])


@given(worlds(), st.integers(0, 4), st.integers(1, 4))
def test_no_budget_and_no_breaker_is_ever_exceeded_by_our_doing(world, before, most):
    nodes, requests, ledgers = world
    breaker = Breaker(most, minutes(10))
    admission = admit(requests, nodes, ledgers, [at(1)] * before, breaker, NOW)
    for name, claims in admission.claims.items():
        was = _unavailable(ledgers[name], nodes, ledgers)
        after = _unavailable(with_claims(ledgers[name], claims), nodes, ledgers)
        assert len(after.claimed) <= max(after.most, len(was.claimed))
        assert after.unavailable == was.unavailable or len(after.unavailable) <= after.most
    assert before + len(admission.admitted) <= max(most, before)


@given(worlds(), st.randoms())
def test_the_order_in_which_requests_come_does_not_matter(world, chance):
    nodes, requests, ledgers = world
    shuffled = chance.sample(requests, len(requests))
    assert admit(shuffled, nodes, ledgers, [], WIDE, NOW) == admit(requests, nodes, ledgers, [], WIDE, NOW)


@given(worlds())
def test_everybody_is_answered_exactly_once_and_every_claim_is_of_somebody_admitted(world):
    nodes, requests, ledgers = world
    admission = admit(requests, nodes, ledgers, [], WIDE, NOW)
    answered = [*names(admission.admitted), *(request.case.name for request, _ in admission.held)]
    assert Counter(answered) == Counter(names(requests))
    admitted = {request.case.uid for request in admission.admitted if not request.case.claimed}
    claimed = {claim.case for claims in admission.claims.values() for claim in claims}
    assert claimed == admitted


@given(worlds())
def test_asking_again_after_the_ledgers_were_written_gives_the_same_and_charges_nothing_new(world):
    nodes, requests, ledgers = world
    first = admit(requests, nodes, ledgers, [], WIDE, NOW)
    written = {name: with_claims(ledger, first.claims.get(name, ())) for name, ledger in ledgers.items()}
    again = admit(requests, nodes, written, [], WIDE, NOW)
    assert set(names(again.admitted)) == set(names(first.admitted))
    assert again.claims == {}


@given(worlds(budgets=("every",)), st.integers(1, 5))
def test_a_larger_budget_never_admits_fewer(world, more):
    nodes, requests, ledgers = world
    larger = {name: replace(ledger, max_unavailable=_raised(ledger, more)) for name, ledger in ledgers.items()}
    before, after = (admit(requests, nodes, found, [], WIDE, NOW) for found in (ledgers, larger))
    assert set(names(before.admitted)) <= set(names(after.admitted))


def _raised(ledger, more):
    most = ledger.max_unavailable
    return Amount(min(100, most.value + 10 * more), percent=True) if most.percent else Amount(most.value + more)

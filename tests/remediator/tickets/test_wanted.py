"""Which cases want a ticket, and what it is about: tables."""

from dataclasses import replace
from datetime import timedelta

import pytest

from remediator.clock import SYSTEM
from remediator.core.case import Block, CaseEvent, KeepOut, Manual, Phase, slim
from remediator.core.names import Namespaces
from remediator.core.policy import Correlation, Mode, Severity, TicketWhen
from remediator.core.reasons import Reason
from remediator.core.ticket import About, CauseState, ReportedCause, Subject, Ticket
from remediator.kube.informers import Informers
from remediator.kube.wire.client import Client
from remediator.tickets.reconcile.cache import TicketCache
from remediator.tickets.reconcile.causes import all_reported, new_causes, still_active
from remediator.tickets.reconcile.input import ticket_input
from remediator.tickets.reconcile.wanted import concerns, keeps_open, of_case, wants
from remediator_sim.apiserver import EmbeddedServer
from tests.remediator.tickets.test_render import AT, MINUTE, POLICY, a_case

TOGETHER = Correlation(3, timedelta(minutes=10))
BASE = replace(a_case("the bus", Phase.OPERATING), blocks=())
SHARED = replace(BASE, phase=Phase.HELD, blocks=(Block(Reason.SHARED_CAUSE, "x"),))
CALLS = replace(BASE, phase=Phase.HELD, blocks=(Block(Reason.TICKET_ONLY, "x"),))
ESCALATED = replace(BASE, phase=Phase.ESCALATED)
OVER = replace(BASE, phase=Phase.RECOVERED, ended=AT)
ON, NEVER = TicketWhen.ON_ESCALATION, TicketWhen.NEVER
NODE = Subject(About.NODE, node="gpu-17")
COMMON = Subject(About.CAUSE, policy="gpu-lost", condition="GpuLost", message="the bus")


@pytest.mark.parametrize(
    ("case", "changes", "wanted"),
    [
        (BASE, {}, True),
        (replace(BASE, phase=Phase.NEW), {}, False),
        (OVER, {}, False),
        (ESCALATED, {"mode": Mode.DRY_RUN}, False),
        (BASE, {"mode": Mode.PAUSED}, True),
        (ESCALATED, {"ticket": NEVER}, False),
        (BASE, {"ticket": ON}, False),
        (ESCALATED, {"ticket": ON}, True),
        (CALLS, {"ticket": ON}, True),
        (SHARED, {"ticket": ON}, True),
        (replace(BASE, blocks=(Block(Reason.BUDGET_SPENT, "x"),)), {"ticket": ON}, False),
        (replace(BASE, phase=Phase.HELD, blocks=(Block(Reason.APPROVAL_NEEDED, "x"),)), {"ticket": ON}, True),
        (replace(BASE, phase=Phase.HELD, blocks=(Block(Reason.OUTSIDE_WINDOW, "x"),)), {"ticket": ON}, False),
        (replace(BASE, phase=Phase.HELD, blocks=(Block(Reason.BLAST_RADIUS, "x"),)), {"ticket": ON}, True),
        (replace(BASE, phase=Phase.HELD, blocks=(Block(Reason.BLAST_RADIUS_UNKNOWN, "x"),)), {"ticket": ON}, False),
        (replace(BASE, blocks=(Block(Reason.NEW_CRITERION, "x"),)), {"ticket": ON}, False),
        (replace(BASE, blocks=(Block(Reason.NEW_CRITERION, "x", reported=True),)), {"ticket": ON}, True),
        (replace(BASE, blocks=(Block(Reason.CRITERION_MUTED, "x"),)), {"ticket": ON}, True),
        (replace(BASE, blocks=(Block(Reason.WAITING_FOR_IDLE, "x"),)), {"ticket": ON}, False),
        (replace(BASE, blocks=(Block(Reason.WAITING_FOR_IDLE, "x", reported=True),)), {"ticket": ON}, True),
        (replace(ESCALATED, ended=AT), {"ticket": ON}, False),
    ],
    ids=[
        "always, open",
        "always, not judged yet",
        "always, over",
        "dry run",
        "paused",
        "never",
        "on escalation, goes on",
        "escalated",
        "only escalates to a person",
        "shares its cause",
        "waits for a budget",
        "waits for an approval",
        "waits for its window",
        "would end too much",
        "nobody can tell what it would end",
        "is new, and only shown",
        "is new, and shown for an hour",
        "is new, and on too many nodes",
        "waits for Pods to end",
        "waits for them for a day",
        "released",
    ],
)
def test_a_case_wants_a_ticket(case, changes, wanted) -> None:
    assert wants(case, replace(POLICY, **changes)) is wanted


NEW = replace(BASE, phase=Phase.HELD, blocks=(Block(Reason.NEW_CRITERION, "x", reported=True),))
MUTED = replace(BASE, phase=Phase.HELD, blocks=(Block(Reason.CRITERION_MUTED, "x"), Block(Reason.PAUSED, "x")))
OF_NEW = Subject(About.CAUSE, policy="gpu-lost", condition="GpuLost", message="held: NewCriterion")
OF_MUTED = replace(OF_NEW, message="held: CriterionMuted")


@pytest.mark.parametrize(
    ("cases", "subject", "severity"),
    [
        ((NEW,), OF_NEW, Severity.INFO),
        ((NEW, replace(NEW, node="gpu-18", name="other")), OF_NEW, Severity.INFO),
        ((MUTED,), OF_MUTED, Severity.INFO),
        ((NEW, MUTED, BASE), NODE, Severity.CRITICAL),  # of the node itself only the case that goes on is told
        ((replace(NEW, blocks=()),), NODE, Severity.CRITICAL),  # the period is over
    ],
)
def test_of_what_is_new_one_ticket_for_a_policy_and_condition_tells_with_the_severity_info(
    cases, subject, severity
) -> None:
    always = replace(POLICY, severity=Severity.CRITICAL, ticket=TicketWhen.ALWAYS)
    found = ticket_input(Ticket("t", "u", subject, opened=AT), [(case, always) for case in cases])
    assert (found.active, found.severity) == (True, severity)
    assert {linked.case for linked in found.cases} == {slim(case) for case in cases if of_case(case) == subject}


@pytest.mark.parametrize(
    ("routes", "route"),
    [
        (((Severity.WARNING, "gpu"),), "gpu"),
        (((Severity.WARNING, ""),), ""),
        (((Severity.WARNING, "gpu"), (Severity.CRITICAL, "net")), "net"),
        (((Severity.WARNING, "gpu"), (Severity.CRITICAL, "")), "gpu"),
    ],
)
def test_an_issue_goes_where_the_policy_of_its_most_severe_case_says(routes, route) -> None:
    policies = [replace(POLICY, severity=severity, route=name) for severity, name in routes]
    assert ticket_input(Ticket("t", "u", NODE, opened=AT), [(BASE, policy) for policy in policies]).route == route


def test_without_its_policy_a_case_opens_nothing_and_keeps_what_is_open() -> None:
    assert (wants(ESCALATED, None), keeps_open(ESCALATED, None), keeps_open(OVER, None)) == (False, True, False)
    assert concerns(BASE, None, NODE)
    assert concerns(BASE, None, COMMON)
    assert not concerns(BASE, None, Subject(About.NODE, node="gpu-18"))


TAKEN = replace(
    ESCALATED, policy="", manual=Manual("o", "u", "drain", {}, "olga"), keep_out=KeepOut(AT), reason=Reason.TAKEN_OUT
)
OVERDUE = replace(TAKEN, reason=Reason.TAKE_OUT_OVERDUE)


@pytest.mark.parametrize(
    ("case", "wanted"), [(TAKEN, False), (OVERDUE, True), (replace(OVERDUE, ended=AT, phase=Phase.CANCELLED), False)]
)
def test_a_node_that_a_user_has_wants_a_ticket_once_its_time_is_over(case, wanted) -> None:
    assert (wants(case, None), of_case(case)) == (wanted, NODE)


@pytest.mark.parametrize(
    ("case", "subject"),
    [
        (SHARED, COMMON),
        (BASE, NODE),
        (CALLS, NODE),
        (replace(OVER, timeline=(CaseEvent(AT, Reason.SHARED_CAUSE, "x"),)), COMMON),
        (slim(replace(OVER, timeline=(CaseEvent(AT, Reason.SHARED_CAUSE, "x"),))), COMMON),
        (replace(BASE, timeline=(CaseEvent(AT, Reason.SHARED_CAUSE, "x"),)), NODE),
        (replace(SHARED, trigger=None), NODE),
    ],
    ids=[
        "shared",
        "not shared",
        "alone",
        "shared to its end",
        "the same, slim",
        "not shared any more",
        "opened by hand",
    ],
)
def test_a_case_is_about_its_node_or_what_many_share(case, subject) -> None:
    assert of_case(case) == subject


def test_only_the_ended_cases_that_a_ticket_keeps_are_made_slim() -> None:
    """A copy of each of 20,000 ended cases in each look at a ticket would take 0.1 s."""
    cache = TicketCache(Informers(Client(EmbeddedServer().transport()), SYSTEM, Namespaces()))
    cache.cases.note(OVER.name, OVER)
    ((case, _),) = cache.about(of_case(OVER))
    assert case is OVER


ACTIVE, OVER_, CALLED = CauseState.ACTIVE, CauseState.OVER, CauseState.ESCALATED


def reported(key: str, state: CauseState = ACTIVE, minute: int = 0) -> ReportedCause:
    """What was reported of a cause that began at this minute."""
    return ReportedCause(key, state, AT + minute * MINUTE)


def test_a_cause_is_fresh_where_it_began_after_what_was_told_of_it() -> None:
    before = (reported("alert:A", minute=5), reported("alert:B", minute=5))
    now = (reported("alert:A", minute=5), reported("alert:B", minute=6), reported("alert:C", minute=1))
    assert [cause.key for cause in new_causes(before, now)] == ["alert:B", "alert:C"]


def test_what_is_remembered_grows_no_younger_and_says_what_is_over() -> None:
    before = (reported("alert:A", minute=5), reported("case:x", CALLED))
    assert all_reported(before, (reported("alert:A", minute=2),)) == (
        reported("alert:A", minute=5),
        reported("case:x", OVER_),
    )


def test_what_is_remembered_is_bounded_and_what_stands_stays() -> None:
    before = tuple(reported(f"case:{number}", minute=number) for number in range(200))
    kept = all_reported(before, (reported("case:new"),))
    assert len(kept) == 96
    assert kept[0] == reported("case:new")
    assert kept[1].key == "case:199"


def test_of_what_a_person_closed_only_what_stood_then_and_stands_now_lasts() -> None:
    before = (reported("a"), reported("b"), reported("cause", OVER_))
    assert still_active(before, (reported("a"), reported("cause"))) == (reported("a"),)


def test_a_hold_that_lasts_wants_a_ticket_and_one_that_many_share_wants_one_for_all() -> None:
    alone = replace(BASE, phase=Phase.HELD, blocks=(Block(Reason.NODE_BUSY, "x", reported=True),))
    full = replace(BASE, phase=Phase.HELD, blocks=(Block(Reason.BUDGET_SPENT, "3 of 3", reported=True),))
    for case in (alone, full):
        assert wants(case, replace(POLICY, ticket=TicketWhen.ON_ESCALATION))
        assert not wants(case, replace(POLICY, ticket=TicketWhen.NEVER))
    assert of_case(alone) == NODE
    message = "held: BudgetSpent"
    assert of_case(full) == Subject(About.CAUSE, policy="gpu-lost", condition="GpuLost", message=message)
    other = replace(full, name="other", node="gpu-99", blocks=(Block(Reason.BUDGET_SPENT, "4 of 3", reported=True),))
    assert of_case(other) == of_case(full)


def test_fifty_nodes_that_a_prometheus_cannot_tell_of_are_one_issue_and_each_that_it_denies_is_its_own() -> None:
    unknown, denied = (
        [replace(BASE, name=f"c{n}", node=f"gpu-{n}", phase=Phase.HELD, blocks=(block,)) for n in range(50)]
        for block in (
            Block(Reason.CONFIRMATION_UNKNOWN, "it cannot be reached", reported=True),
            Block(Reason.NOT_CONFIRMED, "Prometheus says 0", reported=True),
        )
    )
    assert {of_case(case).message for case in unknown} == {"held: ConfirmationUnknown"}
    assert len({of_case(case) for case in denied}) == 50


def test_fifty_nodes_without_the_label_that_a_budget_groups_by_are_one_issue() -> None:
    blocks = (Block(Reason.GROUP_UNKNOWN, "budget racks", reported=True),)
    cases = [replace(BASE, name=f"c{n}", node=f"gpu-{n}", phase=Phase.HELD, blocks=blocks) for n in range(50)]
    subjects = {of_case(case) for case in cases}
    assert subjects == {Subject(About.CAUSE, policy="gpu-lost", condition="GpuLost", message="held: GroupUnknown")}

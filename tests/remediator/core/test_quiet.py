"""What is new in a release is shown for a while before a policy acts on it, and mutes itself where many show it."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import pytest

from remediator.core import new_criteria
from remediator.core.case import Trigger
from remediator.core.guard import FleetContext, preconditions
from remediator.core.new_criteria import Criterion
from remediator.core.policy import Clause, CriterionState, NewCriterion, Urgency
from remediator.core.quiet import QuietRule, judged
from remediator.core.quiet_hold import only_shows
from remediator.core.reasons import Reason
from tests.builders import a_case, a_node, a_policy, at, condition, when

NEW = "LinkNew"
DAY = 24 * 60
WEEK = 7 * DAY
QUIET, MUTED, ACTS = CriterionState.QUIET, CriterionState.MUTED, CriterionState.ACTS
AROUND = FleetContext(frozenset({"reset-gpu", "reboot"}), paused=False, controller_nodes=frozenset({"cp-1", "cp-2"}))
OLDER = a_policy("links", when(Clause(NEW)), created=at(-30 * DAY))
CASE = a_case(policy="links", trigger=Trigger(NEW, "True", "LinkNew", "port 1 is down", at(0)))


@pytest.fixture(autouse=True)
def table(monkeypatch):
    """LinkNew is new as a Condition, and Xid 154 is as words of an older one."""
    rows = (Criterion(NEW, "9.1.0"), Criterion("GpuXid", "9.1.0", says="Xid 154"))
    monkeypatch.setattr(new_criteria, "TABLE", rows)


@dataclass
class Nodes:
    """Twenty nodes, unless a test says otherwise."""

    shown: int = 0
    doubtful: int = 0
    heard: int = 20
    count: int = 20

    def selected(self):
        return self.count

    def showing(self, criterion):
        return self.shown

    def unclear(self, criterion):
        return self.doubtful

    def heard_since(self, at):
        return self.heard


def row(state=QUIET, *, since=0.0, shared=None, days=7):
    return NewCriterion(NEW, state, at(since), at(since + days * DAY), None if shared is None else at(shared))


def after(policy, minute, nodes=None, rule=None):
    """What the status says after a pass."""
    (found,) = judged(policy, nodes or Nodes(), rule or QuietRule(), at(minute))
    return found


@pytest.mark.parametrize(
    ("created", "expected"),
    [
        (-30 * DAY, QUIET),  # it is older than the release
        (-11, QUIET),
        (-9, ACTS),  # written while the controller knew the criterion: its user means it
        (0, ACTS),
        (4, ACTS),
        (6, QUIET),  # one of the clocks is wrong: nobody can tell
    ],
)
def test_a_policy_that_is_more_than_ten_minutes_older_than_the_first_sight_of_a_criterion_only_shows_it(
    created, expected
):
    assert after(replace(OLDER, created=at(created)), 0).state is expected


def test_nobody_can_tell_of_a_policy_without_a_time_and_it_only_shows():
    assert after(replace(OLDER, created=None), 0) == row()


@pytest.mark.parametrize(
    ("minute", "heard", "expected"),
    [
        (WEEK - 1, 20, QUIET),
        (WEEK, 20, ACTS),
        (WEEK, 10, ACTS),
        (WEEK, 9, QUIET),  # by the clocks of most nodes it is not over: ours has jumped
    ],
)
def test_after_seven_days_by_our_clock_and_by_those_of_half_of_the_nodes_it_acts(minute, heard, expected):
    assert after(replace(OLDER, criteria=(row(),)), minute, Nodes(heard=heard)).state is expected


def test_a_start_that_lies_ahead_counts_from_now_and_one_that_was_lost_begins_anew():
    ahead = replace(OLDER, criteria=(row(since=9999 * DAY),))
    assert after(ahead, 0) == row()
    assert after(replace(OLDER, criteria=()), 3 * DAY) == row(since=3 * DAY)


def test_the_period_is_that_of_the_setting_and_with_0_it_acts_at_once_and_mutes_nothing():
    quiet = replace(OLDER, criteria=(row(),))
    assert after(quiet, DAY, rule=QuietRule(timedelta(days=1))).state is ACTS
    assert after(quiet, 1, Nodes(shown=20), QuietRule(timedelta())).state is ACTS


@pytest.mark.parametrize(
    ("shown", "count", "expected"),
    [
        (2, 4, QUIET),  # half of the nodes, but fewer than three
        (3, 30, QUIET),  # exactly 10 %
        (3, 29, MUTED),
        (3, 4, MUTED),
        (500, 5000, QUIET),
        (501, 5000, MUTED),
    ],
)
def test_more_than_ten_percent_and_at_least_three_nodes_mute_it(shown, count, expected):
    assert after(replace(OLDER, criteria=(row(),)), 5, Nodes(shown, count=count)).state is expected


def test_a_policy_that_acts_is_muted_within_the_period_and_not_later():
    acts = replace(OLDER, criteria=(row(ACTS),))
    assert after(acts, WEEK - 1, Nodes(shown=10)) == row(MUTED, shared=WEEK - 1)
    assert after(acts, WEEK, Nodes(shown=10)) == row(ACTS)


@pytest.mark.parametrize(
    ("minute", "nodes", "state", "shared"),
    [
        (9, Nodes(10), MUTED, 0),  # its time was written less than ten minutes ago
        (10, Nodes(10), MUTED, 10),
        (59, Nodes(2), MUTED, 0),
        (60, Nodes(2), QUIET, None),
        (60, Nodes(2, doubtful=1), MUTED, 60),  # of one nobody can tell: it may still show it
        (WEEK + 60, Nodes(10), MUTED, WEEK + 60),  # the period being over ends no mute
        (WEEK + 60, Nodes(2), ACTS, None),
        (WEEK + 60, Nodes(2, heard=9), QUIET, None),
    ],
)
def test_it_stays_muted_until_few_nodes_have_shown_it_for_an_hour(minute, nodes, state, shared):
    found = after(replace(OLDER, criteria=(row(MUTED, shared=0),)), minute, nodes)
    assert found == row(state, shared=shared)


def test_a_mute_whose_time_lies_ahead_or_is_missing_lasts_an_hour_from_now():
    assert after(replace(OLDER, criteria=(row(MUTED, shared=9999),)), 5, Nodes(0)) == row(MUTED, shared=5)
    assert after(replace(OLDER, criteria=(row(MUTED),)), 5, Nodes(0)) == row(MUTED, shared=5)


def test_a_policy_that_was_written_for_the_criterion_acts_again_after_a_mute():
    meant = replace(OLDER, created=at(-1), criteria=(row(MUTED, shared=0),))
    assert after(meant, 60, Nodes(0)).state is ACTS


@pytest.mark.parametrize("state", [QUIET, MUTED])
def test_what_a_user_trusts_acts_however_many_nodes_show_it(state):
    trusting = replace(OLDER, trusts=frozenset({NEW}), criteria=(row(state, shared=0),))
    assert after(trusting, 1, Nodes(shown=20)).state is ACTS
    assert held(policy=trusting) == []


def held(*conditions, policy=OLDER, case=CASE, around=AROUND):
    """The reasons of what is new that hold a case of a node that shows LinkNew, unless a test names conditions."""
    node = a_node("gpu-1", *(conditions or (condition(NEW, heartbeat=5),)), heartbeat=5)
    blocks = preconditions(case, node, policy, [case], around, at(5))
    return [block.reason for block in blocks if block.reason in (Reason.NEW_CRITERION, Reason.CRITERION_MUTED)]


@pytest.mark.parametrize(
    ("criteria", "expected"),
    [
        ((), [Reason.NEW_CRITERION]),  # nothing is known yet: it starts nothing
        ((row(QUIET),), [Reason.NEW_CRITERION]),
        ((row(MUTED, shared=0),), [Reason.CRITERION_MUTED]),
        ((row(ACTS),), []),
    ],
)
def test_what_the_status_says_holds_a_case_or_does_not(criteria, expected):
    assert held(policy=replace(OLDER, criteria=criteria)) == expected


def test_what_the_nodes_show_in_this_pass_counts_before_the_status_says_so():
    muted = replace(AROUND, criteria={"links": (row(MUTED, shared=5),)})
    assert held(policy=replace(OLDER, criteria=(row(ACTS),)), around=muted) == [Reason.CRITERION_MUTED]


def test_the_hold_names_the_release_the_time_and_the_command_with_what_is_trusted_already():
    policy = replace(OLDER, criteria=(row(),), trusts=frozenset({"Other"}))
    node = a_node("gpu-1", condition(NEW, heartbeat=5), heartbeat=5)
    (block,) = [each for each in preconditions(CASE, node, policy, [CASE], AROUND, at(5)) if "new in" in each.message]
    assert block.message.startswith(
        "LinkNew is new in 9.1.0: policy links acts on it from 2026-01-08 12:00 UTC on; to let it act now: "
        "kubectl annotate --overwrite rp links remediator.dev/trusted-criteria=LinkNew,Other; "
    )


MIXED = a_policy("links", when(Clause(NEW)), when(Clause("GpuLost")), created=at(-30 * DAY))


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ([condition(NEW)], [Reason.NEW_CRITERION]),
        ([condition(NEW), condition("GpuLost")], []),  # an older fault stands beside it
        ([condition("GpuLost")], []),
        ([condition(NEW, "Unknown")], [Reason.NEW_CRITERION]),  # it shows nothing: what the case was opened for counts
    ],
)
def test_a_case_is_held_while_all_that_its_node_shows_is_new(conditions, expected):
    assert held(*conditions, policy=MIXED) == expected


@pytest.mark.parametrize(
    "other", [condition("GpuLost", heartbeat=25), condition("GpuLost", since=4)], ids=["from the future", "not yet due"]
)
def test_evidence_that_does_not_count_ends_no_quiet_time(other):
    """An older fault stands beside the new one: heard of in 20 minutes, or for 1 of the 2 minutes it is tolerated."""
    tolerant = a_policy(
        "links",
        when(Clause(NEW)),
        replace(when(Clause("GpuLost")), tolerance=timedelta(minutes=2)),
        created=at(-30 * DAY),
    )
    assert held(condition(NEW), other, policy=tolerant) == [Reason.NEW_CRITERION]


@pytest.mark.parametrize(
    ("message", "expected"), [("Xid 154 on GPU 2", [Reason.NEW_CRITERION]), ("Xid 79 on GPU 2", [])]
)
def test_of_an_older_condition_only_the_words_that_are_new_are_held(message, expected):
    policy = a_policy("xid", when(Clause("GpuXid")), created=at(-30 * DAY))
    case = a_case(policy="xid", trigger=Trigger("GpuXid", "True", "GpuXid", message, at(0)))
    assert held(condition("GpuXid", message=message), policy=policy, case=case) == expected
    assert not only_shows(policy), "its other words keep Pods off"


def test_a_case_that_only_calls_a_person_or_that_a_user_asks_for_is_not_held_by_what_is_new():
    assert held(policy=replace(OLDER, urgency=Urgency.NEVER)) == []
    assert held(policy=replace(OLDER, manual=True)) == []


def test_a_policy_that_asks_for_nothing_but_what_is_new_keeps_no_pod_off_until_it_acts():
    assert only_shows(OLDER)
    assert not only_shows(MIXED)
    assert not only_shows(replace(OLDER, criteria=(row(ACTS),)))


FIRST, LAST = datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)


@pytest.mark.parametrize("state", [QUIET, MUTED, ACTS])
@pytest.mark.parametrize("shared", [None, FIRST, LAST])
@pytest.mark.parametrize("since", [FIRST, LAST])
@pytest.mark.parametrize("created", [None, FIRST, LAST])
def test_a_status_with_absurd_times_is_judged_and_names_no_period_that_ends_later_than_in_seven_days(
    created, since, shared, state
):
    absurd = replace(OLDER, created=created, criteria=(NewCriterion(NEW, state, since, LAST, shared),))
    found = after(absurd, 0, Nodes(heard=0))
    assert found.since in (at(0), FIRST)
    assert found.until == found.since + timedelta(days=7)
    assert found.shared is None or FIRST < found.shared <= at(0) or found.shared == shared


def test_a_status_and_an_annotation_that_name_what_nobody_knows_or_one_criterion_twice_start_nothing():
    twice = replace(OLDER, criteria=(row(ACTS), row(QUIET)), trusts=frozenset({"", "*", "linknew", "LinkNew/other"}))
    assert len(judged(twice, Nodes(), QuietRule(), at(1))) == 1
    assert held(policy=twice) == [Reason.NEW_CRITERION]
    unknown = replace(OLDER, criteria=(replace(row(ACTS), criterion="LinkNew/"), replace(row(ACTS), criterion="")))
    assert held(policy=unknown) == [Reason.NEW_CRITERION]
    assert after(unknown, 0) == row()

"""Events as evidence: which repeat, what that says of a node, and what the times of others may not bring about."""

from datetime import timedelta

import pytest

from remediator.core.health import Health, health_of
from remediator.core.judgement import judge
from remediator.core.node import NodeCondition, Status
from remediator.core.node_events import (
    EventRule,
    NodeEvent,
    Sighting,
    asked,
    furthest,
    kept,
    of_condition,
    of_machine,
    own_condition,
    sightings,
)
from remediator.core.policy import Clause, Mode, Policy, When
from remediator.kube import api
from remediator.kube.api import decode
from tests.builders import a_node, a_policy, at

RULE = EventRule("TaskHung", 3, timedelta(minutes=10))
TYPE = "Event/TaskHung/3-in-600s"


def event(count: int, first: float, last: float, uid: str = "uid") -> NodeEvent:
    """An Event that has happened so often, first and last at these minutes."""
    return NodeEvent("gpu-1", count, at(first), at(last), uid)


def test_the_type_of_the_condition_is_the_rule() -> None:
    assert (RULE.condition, of_condition(TYPE)) == (TYPE, RULE)


@pytest.mark.parametrize(
    "type",
    [
        "Event/TaskHung",
        "Event/",
        "Event/a/b/3-in-600s",
        "Event/TaskHung/3-in-s",
        "GpuLost",
        "Event/TaskHung/0-in-600s",  # of none there are always enough
        "Event/TaskHung/101-in-600s",
        "Event/TaskHung/03-in-600s",
        "Event/TaskHung/3-in-599s",
        "Event/TaskHung/3-in-3601s",
    ],
)
def test_a_condition_that_a_user_made_up_is_no_rule_and_harms_no_other(type: str) -> None:
    policy = a_policy("made-up", When((Clause(type), Clause(TYPE)), timedelta(0)))
    assert list(asked(policy)) == [TYPE]
    with pytest.raises(ValueError, match="is no Condition of Events"):
        of_condition(type)


TOLD = [
    ("one", None, event(1, 5, 5), [(5, 1)]),
    ("five at the first sight: four of them may be as old as the first", None, event(5, 0, 30), [(0, 4), (30, 1)]),
    ("one more", event(5, 0, 30), event(6, 0, 31), [(31, 1)]),
    ("three more: two of them may be as old as the one before", event(5, 0, 30), event(8, 0, 60), [(30, 2), (60, 1)]),
    ("the same again", event(5, 0, 30), event(5, 0, 30), []),
    ("another one of the same name", event(5, 0, 30), event(1, 40, 40), [(40, 1)]),
    ("another one, made while nobody looked", event(2, 0, 30), event(3, 20, 40, "other"), [(20, 2), (40, 1)]),
    ("its time goes back", event(5, 0, 30), event(5, 0, 20), []),
    ("its time goes back, and there is one more", event(5, 0, 30), event(6, 0, 20), [(20, 1)]),
    ("its time goes back, and there are three more", event(5, 0, 30), event(8, 0, 20), [(20, 2), (20, 1)]),
    ("its count goes back", event(5, 0, 30), event(3, 0, 40), []),
    ("nothing", None, event(0, 0, 0), []),
]


@pytest.mark.parametrize(("old", "new", "wanted"), [row[1:] for row in TOLD], ids=[row[0] for row in TOLD])
def test_an_occurrence_counts_at_the_earliest_time_at_which_it_can_have_been(
    old: NodeEvent | None, new: NodeEvent, wanted: list[tuple[float, int]]
) -> None:
    assert [(seen.at, seen.count) for seen in sightings(old, new)] == [(at(minute), count) for minute, count in wanted]


@pytest.mark.parametrize("back", [event(5, 0, 20), event(3, 0, 30), event(0, -90, -90)], ids=["time", "count", "both"])
def test_what_goes_back_and_on_again_is_counted_once(back: NodeEvent) -> None:
    """Five, one that says less, and five again: they have been seen when the first one was."""
    five = event(5, 0, 30)
    assert sightings(furthest(five, back), five) == ()
    assert [seen.count for seen in sightings(furthest(five, back), event(6, 0, 31))] == [1]


def test_what_happened_before_the_node_was_made_is_of_another_machine() -> None:
    """Made at minute 20."""
    known = [Sighting(at(minute), 1) for minute in (19, 20, 21)]
    assert [seen.at for seen in of_machine(known, a_node("gpu-1", created=at(20)))] == [at(20), at(21)]


def said(status: Status, minute: float = 29, type: str = TYPE) -> NodeCondition:
    return NodeCondition(type, status, "r", at(0), at(minute))


def by_type(*conditions: NodeCondition | None) -> dict[str, NodeCondition]:
    return {condition.type: condition for condition in conditions if condition}


HOLDS, QUIET = said(Status.TRUE), said(Status.FALSE)
OTHER = "Event/TaskHung/5-in-1200s"
OTHER_HOLDS, OTHER_QUIET = said(Status.TRUE, type=OTHER), said(Status.FALSE, type=OTHER)
SAID = [  # the minutes at which one was seen, what the node says, what is to be said at minute 30
    ([], None, None),
    ([29, 30], None, None),  # one too few
    ([21, 29, 30], None, Status.TRUE),
    ([19, 29, 30], None, None),  # the first is 11 minutes ago
    ([29], HOLDS, Status.TRUE),  # less than its count, and not yet silent for as long
    ([19], HOLDS, Status.FALSE),
    ([], HOLDS, Status.FALSE),
    ([], QUIET, Status.FALSE),
    ([29], QUIET, None),
    ([21, 29, 30], QUIET, Status.TRUE),
    ([], OTHER_HOLDS, Status.FALSE),  # the rule was edited
    ([29], OTHER_HOLDS, None),
    ([21, 29, 30], OTHER_HOLDS, Status.TRUE),
    ([], OTHER_QUIET, Status.FALSE),
]


@pytest.mark.parametrize(("minutes", "before", "wanted"), SAID)
def test_what_is_said_of_events(minutes: list[float], before: NodeCondition | None, wanted: Status | None) -> None:
    """On a node with a case."""
    seen = [Sighting(at(minute), 1) for minute in minutes]
    words = own_condition(TYPE, seen, by_type(before), True, at(30))
    assert (words and words.status) == wanted


@pytest.mark.parametrize("before", [QUIET, OTHER_HOLDS, OTHER_QUIET])
def test_where_no_case_waits_for_silence_fewer_than_its_count_are_said_to_be_few(before: NodeCondition) -> None:
    """Else a False would grow old, and prove nothing, on a node with one Event now and then."""
    words = own_condition(TYPE, [Sighting(at(29), 1)], by_type(before), False, at(30))
    assert words == (TYPE, Status.FALSE, "Quiet", "fewer than 3 Events TaskHung within 10 min")


def test_times_that_no_clock_can_have_count_for_nothing_and_only_so_many_are_kept() -> None:
    """An hour ahead, and two hours ago; five minutes ahead clocks may be."""
    times = (at(90), at(-90), at(35), at(30))
    assert [seen.at for seen in kept([Sighting(time, 1) for time in times], at(30))] == [at(30), at(35)]
    assert len(kept([Sighting(at(30), 1)] * 1000, at(30))) == 256


def test_256_old_events_that_arrive_late_hide_no_young_one() -> None:
    """Three within 10 minutes, then 256 that are told later and are 59 minutes old."""
    young, old = [Sighting(at(minute), 1) for minute in (58, 59, 60)], [Sighting(at(1), 1)] * 256
    known = kept([*young, *old], at(60))
    assert (len(known), known[-3:]) == (256, tuple(young))
    words = own_condition(TYPE, known, by_type(HOLDS), True, at(60))
    assert words is not None
    assert words.status is Status.TRUE


PROVEN = [
    (None, Health.HEALTHY),
    (HOLDS, Health.UNHEALTHY),
    (said(Status.TRUE, 14), Health.UNKNOWN),  # nobody could tell for 16 minutes
    (QUIET, Health.HEALTHY),
    (said(Status.FALSE, 14), Health.UNKNOWN),
    (OTHER_HOLDS, Health.UNKNOWN),  # by the rule that the policy had before it was edited
    (OTHER_QUIET, Health.UNKNOWN),
    (said(Status.TRUE, type="Event/TaskHungTwice/3-in-600s"), Health.HEALTHY),
]


@pytest.mark.parametrize(("condition", "proves"), PROVEN)
def test_what_the_condition_proves(condition: NodeCondition | None, proves: Health) -> None:
    node = a_node("gpu-1", *filter(None, [condition]))
    policy = a_policy("task-hung", When((Clause(TYPE),), timedelta(0)))
    assert (health_of(node, policy, at(30)), judge(node, policy, at(30)).health) == (proves, proves)


def test_a_doubt_about_a_rule_that_was_edited_says_when_it_ends() -> None:
    policy = a_policy("task-hung", When((Clause(TYPE),), timedelta(0)))
    (doubt,) = judge(a_node("gpu-1", OTHER_HOLDS), policy, at(30)).doubts
    why = "the rule on these Events is new, and is said once it is met, or once there was none for its time"
    assert str(doubt) == f"{TYPE} is absent: {why}"


@pytest.mark.parametrize(("count", "within"), [(1, "10m"), (100, "1h")])
def test_the_least_and_the_most_that_a_policy_may_ask_for_are_rules(count: int, within: str) -> None:
    policy = a_policy_on(api.EventMatch(reason="TaskHung", count=count, within=within))
    (type,) = asked(policy)
    assert of_condition(type).count == count


def a_policy_on(event: api.EventMatch, reported_by: api.ReportedBy | None = None) -> Policy:
    entries = (api.When(event=event, for_="0s", reported_by=reported_by),)
    spec = api.RemediationPolicySpec(mode=Mode.DRY_RUN, node_selector=api.LabelSelector(), when=entries, ladder=())
    return decode.remediation_policy(api.RemediationPolicy(metadata=api.ObjectMeta(name="p"), spec=spec))


NPD = api.ReportedBy(namespace="monitoring", match_labels={"app": "npd"})
ALIVE = "ReportedBy/monitoring/app=npd"


REPORTED = [  # what the node says of Events, whether a Pod that tells them is Ready, and what both prove
    (HOLDS, Status.TRUE, Health.UNHEALTHY),
    (HOLDS, Status.FALSE, Health.UNKNOWN),
    (HOLDS, None, Health.UNKNOWN),
    (QUIET, Status.TRUE, Health.HEALTHY),
    (QUIET, Status.FALSE, Health.UNKNOWN),
    (QUIET, None, Health.UNKNOWN),
    (None, Status.TRUE, Health.HEALTHY),
    (None, Status.FALSE, Health.UNKNOWN),
    (None, None, Health.UNKNOWN),
]


@pytest.mark.parametrize(("events", "alive", "proves"), REPORTED)
def test_where_a_policy_names_the_pods_of_the_detector_events_and_their_absence_are_believed_while_one_is_ready(
    events: NodeCondition | None, alive: Status | None, proves: Health
) -> None:
    policy = a_policy_on(api.EventMatch(reason="TaskHung"), NPD)
    assert policy.when[0].clauses == (Clause(TYPE, reporter=ALIVE),)
    signs = [NodeCondition(ALIVE, alive, "r", at(0), at(29))] if alive else []
    node = a_node("gpu-1", *filter(None, [events]), *signs)
    assert health_of(node, policy, at(30)) == proves

"""Events as evidence: which repeat, what that says of a node, and what the times of others may not bring about."""

from datetime import timedelta

import pytest

from remediator.core.health import Health, health_of
from remediator.core.node import NodeCondition, Status
from remediator.core.node_events import (
    EventRule,
    NodeEvent,
    Sighting,
    asked,
    kept,
    of_condition,
    own_condition,
    sightings,
)
from remediator.core.policy import Clause, Mode, When
from remediator.kube import api
from remediator.kube.api import decode
from tests.builders import a_node, a_policy, at

RULE = EventRule("TaskHung", 3, timedelta(minutes=10))
TYPE = "Event/TaskHung/3-in-600s"


def event(count: int, first: float, last: float) -> NodeEvent:
    """An Event that has happened so often, first and last at these minutes."""
    return NodeEvent("gpu-1", count, at(first), at(last))


def test_the_type_of_the_condition_is_the_rule() -> None:
    assert (RULE.condition, of_condition(TYPE)) == (TYPE, RULE)


@pytest.mark.parametrize(
    "type", ["Event/TaskHung", "Event/", "Event/a/b/3-in-600s", "Event/TaskHung/3-in-s", "GpuLost"]
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
    ("nothing", None, event(0, 0, 0), []),
]


@pytest.mark.parametrize(("old", "new", "wanted"), [row[1:] for row in TOLD], ids=[row[0] for row in TOLD])
def test_an_occurrence_counts_at_the_earliest_time_at_which_it_can_have_been(
    old: NodeEvent | None, new: NodeEvent, wanted: list[tuple[float, int]]
) -> None:
    assert [(seen.at, seen.count) for seen in sightings(old, new)] == [(at(minute), count) for minute, count in wanted]


def said(status: Status, minute: float = 29) -> NodeCondition:
    return NodeCondition(TYPE, status, "r", at(0), at(minute))


HOLDS, QUIET = said(Status.TRUE), said(Status.FALSE)
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
]


@pytest.mark.parametrize(("minutes", "before", "wanted"), SAID)
def test_what_is_said_of_events(minutes: list[float], before: NodeCondition | None, wanted: Status | None) -> None:
    words = own_condition(TYPE, [Sighting(at(minute), 1) for minute in minutes], before, at(30))
    assert (words and words.status) == wanted


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
    words = own_condition(TYPE, known, HOLDS, at(60))
    assert words is not None
    assert words.status is Status.TRUE


PROVEN = [
    (None, Health.HEALTHY),
    (HOLDS, Health.UNHEALTHY),
    (said(Status.TRUE, 14), Health.UNKNOWN),  # nobody could tell for 16 minutes
    (QUIET, Health.HEALTHY),
]


@pytest.mark.parametrize(("condition", "proves"), PROVEN)
def test_what_the_condition_proves(condition: NodeCondition | None, proves: Health) -> None:
    node = a_node("gpu-1", *filter(None, [condition]))
    policy = a_policy("task-hung", When((Clause(TYPE),), timedelta(0)))
    assert health_of(node, policy, at(30)) == proves


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
    event = api.EventMatch(reason="TaskHung")
    entries = (api.When(event=event, for_="0s", reported_by=NPD),)
    spec = api.RemediationPolicySpec(mode=Mode.DRY_RUN, node_selector=api.LabelSelector(), when=entries, ladder=())
    policy = decode.remediation_policy(api.RemediationPolicy(metadata=api.ObjectMeta(name="p"), spec=spec))
    assert policy.when[0].clauses == (Clause(TYPE, reporter=ALIVE),)
    signs = [NodeCondition(ALIVE, alive, "r", at(0), at(29))] if alive else []
    node = a_node("gpu-1", *filter(None, [events]), *signs)
    assert health_of(node, policy, at(30)) == proves

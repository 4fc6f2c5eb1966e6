"""Boots that nobody asked for: which count, how the Condition RebootLoop turns, and what it proves to a policy."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from remediator.core.case import Attempt, AttemptOutcome, Case, Phase
from remediator.core.health import Health, health_of
from remediator.core.node import Node, NodeCondition, Status, Taint
from remediator.core.policy import Clause
from remediator.core.reboot_loop import (
    BOOTS,
    MOST_BOOTS,
    REBOOT_LOOP,
    WINDOW,
    BootCause,
    Boots,
    cause_of,
    counts,
    own_condition,
    released,
    seen,
    tells_boot,
)
from remediator.core.template import RunOn
from tests.builders import a_case, a_node, a_policy, a_template, an_attempt, at, condition, when

CAUSES = {"reboot": BootCause.ALWAYS, "reset-gpu": BootCause.PERHAPS, "cordon": BootCause.NEVER}
OPEN = AttemptOutcome.OPEN


def kept(*minutes: float, boot: str = "boot-1", uid: str = "uid-gpu-1") -> Boots:
    return Boots(boot, uid, tuple(map(at, minutes)))


def stands(status: str = "True", since: float = 0) -> NodeCondition:
    return condition(REBOOT_LOOP, status, since=since, reason="BootsRepeat", message="as it was")


def booted(node: Node, number: int = 2) -> Node:
    return replace(node, boot_id=f"boot-{number}")


def in_boot(template: str, boot: str = "boot-1", outcome: AttemptOutcome = AttemptOutcome.SUCCEEDED, **more) -> Attempt:
    return an_attempt(outcome=outcome, template=template, boot_id=boot, **more)


def counted(node: Node, cases: Iterable[Case] = (), minute: float = 600) -> bool:
    return counts(booted(node), kept(), cases, CAUSES, at(minute))


def said(*minutes: float, now: float, before: NodeCondition | None = None, ready: str = "True"):
    node = a_node("gpu-1", *filter(None, (before,)), ready=ready)
    words = own_condition(node, kept(*minutes), None, at(now))
    return words and (words.status, words.reason)


def test_the_first_sight_of_a_node_and_the_same_boot_are_no_boots():
    node = a_node()
    assert seen(None, node, True, at(0)) == kept()
    assert seen(kept(5), node, True, at(9)) == kept(5)


def test_a_new_boot_is_kept_with_the_time_of_the_sight_where_it_counts_and_without_where_not():
    assert seen(kept(5), booted(a_node()), True, at(9)) == kept(5, 9, boot="boot-2")
    assert seen(kept(5), booted(a_node()), False, at(9)) == kept(5, boot="boot-2")


def test_a_node_tells_its_boot_unless_there_is_none_or_no_bootid_is_so_long():
    assert [tells_boot(a_node(boot_id=boot)) for boot in ("", "b", "b" * 64, "b" * 65)] == [False, True, True, False]


def test_a_node_that_was_made_again_begins_anew():
    assert seen(kept(5, 6, 7, uid="uid-of-old"), booted(a_node()), True, at(9)) == kept(boot="boot-2")


def test_no_more_times_are_kept_than_there_is_room_for_and_none_that_is_old_or_lies_ahead():
    many = kept(*range(MOST_BOOTS))
    assert seen(many, booted(a_node()), True, at(9)).unasked == tuple(map(at, [*range(1, MOST_BOOTS), 9]))
    over = WINDOW.total_seconds() / 60
    assert seen(kept(0, 100, over + 60), booted(a_node()), True, at(over)).unasked == (at(100), at(over))


WHO = [
    pytest.param(a_node(), [], True, id="nobody asked"),
    pytest.param(a_node(), [a_case()], True, id="a case that has tried nothing"),
    pytest.param(a_node(), [a_case(attempts=(in_boot("reboot"),))], False, id="a reboot of ours, hours ago"),
    pytest.param(a_node(), [a_case(attempts=(in_boot("mine"),))], False, id="a template that is not there any more"),
    pytest.param(a_node(), [a_case(attempts=(in_boot("reboot", "boot-0"),))], True, id="a reboot of ours before that"),
    pytest.param(a_node(), [a_case(attempts=(in_boot("reset-gpu"),))], True, id="a reset of ours, hours ago"),
    pytest.param(
        a_node(), [a_case(attempts=(in_boot("reset-gpu", finished=599),))], False, id="a reset of ours, a minute ago"
    ),
    pytest.param(a_node(), [a_case(attempts=(in_boot("reset-gpu", outcome=OPEN),))], False, id="a reset that goes on"),
    pytest.param(
        a_node(),
        [a_case(attempts=(in_boot("reboot", reason="DrainTimedOut", counts=False),))],
        True,
        id="a reboot of which nothing ran",
    ),
    pytest.param(
        a_node(),
        [a_case(ended=at(598), attempts=(in_boot("reboot", "", finished=598),))],
        False,
        id="a case that is over keeps no boots, and its reboot was lately",
    ),
    pytest.param(
        a_node(), [a_case(attempts=(in_boot("cordon", finished=599),))], True, id="a cordon, which boots nothing"
    ),
    pytest.param(
        a_node(taints=[Taint("remediator.dev/unproven", "", "NoSchedule")]),
        [],
        False,
        id="a new node that does not work yet",
    ),
    pytest.param(a_node(), [a_case(unreadable=True)], False, id="a case that cannot be read"),
    pytest.param(a_node(unschedulable=True), [], False, id="a user, or a tool that reboots in turn, has cordoned it"),
    pytest.param(a_node(unschedulable=True, cordoned_by="uid-case-1"), [a_case()], True, id="we have cordoned it"),
    pytest.param(
        a_node(unschedulable=True, cordoned_by="uid-case-1"),
        [a_case(phase=Phase.ESCALATED)],
        False,
        id="a person looks after it",
    ),
    pytest.param(
        a_node("gpu-1", stands(), unschedulable=True, cordoned_by="uid-case-1"),
        [a_case(phase=Phase.ESCALATED)],
        True,
        id="a person looks after it, and it loops",
    ),
    pytest.param(a_node("gpu-1", stands("Unknown"), unschedulable=True), [], True, id="a cordon, and it may loop"),
    pytest.param(a_node("gpu-1", stands("False"), unschedulable=True), [], False, id="a cordon, and it loops no more"),
    pytest.param(a_node(labels={"remediator.dev/exclude": "true"}), [], False, id="a user keeps us off it"),
    pytest.param(
        a_node(taints=[Taint("medik8s.io/drain", "", "NoSchedule")]), [], False, id="another system works on it"
    ),
    pytest.param(
        a_node("gpu-1", stands(), condition("MaintenanceInProgress")), [], False, id="maintenance, and it loops"
    ),
    pytest.param(a_node("gpu-1", condition("CloudMaintenance")), [], False, id="the cloud stops the machine"),
    pytest.param(a_node("gpu-1", condition("CloudMaintenance", "False")), [], True, id="the cloud stops nothing"),
]


@pytest.mark.parametrize(("node", "cases", "expected"), WHO)
def test_which_boots_count(node: Node, cases: list[Case], expected: bool) -> None:
    assert counted(node, cases) is expected


def test_four_boots_within_two_hours_raise_it_and_three_or_four_in_more_time_do_not():
    assert said(0, 40, 80, 119, now=119) == (Status.TRUE, "BootsRepeat")
    assert said(0, 40, 80, now=119) is None
    assert said(0, 40, 80, 121, now=121) is None


def test_the_message_has_the_times_of_the_boots():
    words = own_condition(a_node(), kept(0, 31, 62, 93), None, at(95))
    assert words is not None
    assert words.message == "4 boots that nobody asked for within 2 hours: 12:00, 12:31, 13:02, 13:33 UTC"


def test_while_it_stands_one_boot_within_the_window_is_enough_and_then_it_ends_by_itself():
    assert said(0, 40, 80, 110, now=229, before=stands()) == (Status.TRUE, "BootsRepeat")
    assert said(0, 40, 80, 110, now=230, before=stands()) == (Status.FALSE, "NoRebootLoop")
    assert said(240, now=241, before=stands("False")) == (Status.FALSE, "NoRebootLoop")


def test_of_a_node_whose_kubelet_is_silent_nobody_can_tell_that_it_has_ended():
    """It comes back in the same boot, or by one more."""
    assert said(0, now=300, before=stands(), ready="Unknown") == (Status.UNKNOWN, "BootsUnknown")
    assert said(0, now=300, before=stands(), ready="False") == (Status.FALSE, "NoRebootLoop")
    assert said(0, now=300, before=stands("Unknown")) == (Status.FALSE, "NoRebootLoop")
    assert said(299, now=300, before=stands("Unknown")) == (Status.TRUE, "BootsRepeat")
    assert said(0, now=300, before=stands("False"), ready="Unknown") == (Status.FALSE, "NoRebootLoop")


def test_where_what_was_kept_is_gone_nobody_can_tell_for_as_long_as_boots_count():
    words = [
        own_condition(a_node("gpu-1", stands(status, since=since)), None, None, at(300))
        for status, since in (("True", 0), ("Unknown", 181), ("Unknown", 180), ("False", 299))
    ]
    expected = [Status.UNKNOWN, Status.UNKNOWN, Status.FALSE, Status.FALSE]
    assert [each and each.status for each in words] == expected
    assert own_condition(a_node(), None, None, at(300)) is None


def test_boots_before_a_user_gave_the_node_back_raise_nothing_and_four_more_do():
    over = released([a_case(ended=at(100), release=True), a_case(ended=at(110)), a_case()])
    assert over == at(100)
    node = a_node("gpu-1", stands())
    words = [own_condition(node, kept(80, 90, 99, *more), over, at(110)) for more in ((), (101,))]
    assert [each and each.status for each in words] == [Status.FALSE, Status.TRUE]
    again = a_node("gpu-1", stands("False"))
    words = [own_condition(again, kept(80, 90, 99, *range(101, last)), over, at(110)) for last in (104, 105)]
    assert [each and each.status for each in words] == [Status.FALSE, Status.TRUE]


def test_who_runs_elsewhere_and_does_not_succeed_by_a_boot_boots_nothing():
    elsewhere, here = a_template("cordon", run_on=RunOn.ELSEWHERE), a_template("reset-gpu")
    power = a_template("power-cycle", run_on=RunOn.ELSEWHERE, boot_id_changed=True)
    assert list(map(cause_of, (elsewhere, here, power))) == [BootCause.NEVER, BootCause.PERHAPS, BootCause.ALWAYS]


def test_times_that_lie_ahead_prove_nothing():
    assert said(60, 70, 80, 90, now=10) is None
    assert said(12, 13, 14, 14, now=10) == (Status.TRUE, "BootsRepeat"), "within the difference of two clocks"


HEALTH = [(None, Health.HEALTHY), ("False", Health.HEALTHY), ("True", Health.UNHEALTHY), ("Unknown", Health.UNKNOWN)]


@pytest.mark.parametrize(("status", "expected"), HEALTH)
def test_what_it_proves_to_a_policy(status: str | None, expected: Health) -> None:
    """Silence of ours is no proof of a fault: nothing starts where nobody could tell."""
    policy = a_policy("reboot-loop", when(Clause(REBOOT_LOOP), tolerance=0))
    own = [stands(status, since=0)] if status else []
    assert health_of(a_node("gpu-1", *own, heartbeat=1), policy, at(1)) is expected


def test_a_word_that_nobody_has_repeated_for_long_starts_nothing():
    policy = a_policy("reboot-loop", when(Clause(REBOOT_LOOP), tolerance=0))
    assert health_of(a_node("gpu-1", stands(), heartbeat=60), policy, at(60)) is Health.UNKNOWN


def test_one_boot_fewer_than_it_takes_is_told_of_nobody():
    assert said(*range(BOOTS - 1), now=5) is None

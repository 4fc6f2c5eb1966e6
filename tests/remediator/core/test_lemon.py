"""After so many cases of a node or a board a person is called, and is shown them."""

import pytest

from remediator.core.case import PastCase, Phase
from remediator.core.gpus import Gpu
from remediator.core.lemon import MOST_SHOWN, history, known
from remediator.core.policy import Lemon
from remediator.core.reasons import Reason
from tests.builders import a_case, a_policy, an_attempt, at, minutes

DAY = 24 * 60
BOARD = Gpu("1563521020414", "GPU-9f3c01ab-77aa")
POLICY = a_policy(lemon=Lemon(3, minutes(30 * DAY)))
NEW = a_case("new", created=40 * DAY, gpus=(BOARD,))


def past(day: int, node="gpu-1", phase=Phase.RECOVERED, **more):
    facts = {"attempts": (an_attempt(started=day * DAY),), "ended": at(day * DAY + 30)} | more
    return a_case(f"{node}-{day}", node=node, created=day * DAY, phase=phase, **facts)


def verdict(of_node=(), of_board=(), policy=POLICY, case=NEW):
    found = known(policy, case, list(of_node), {BOARD: list(of_board)})
    return (found.reason, found.message, [one.name for one in found.cases]) if found else None


THREE = [past(20), past(30), past(39)]


def test_after_three_cases_in_thirty_days_a_person_is_called_for_the_node():
    message = "gpu-1 had 3 cases in 30 days"
    assert verdict(THREE) == (Reason.LEMON, message, ["gpu-1-20", "gpu-1-30", "gpu-1-39"])
    assert verdict(THREE[1:]) is None


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"ended": at(10 * DAY)}, "it ended 30 days ago"),
        ({"attempts": ()}, "it did nothing"),
        ({"attempts": (an_attempt(reason="DrainFailed"),)}, "it only drained"),
        ({"phase": Phase.CANCELLED, "reason": Reason.CASE_DELETED}, "a user has cancelled it"),
        ({"ended": None}, "it goes on"),
    ],
)
def test_what_does_not_count(change, why):
    cases = [past(20, **change), *THREE[1:]]
    assert verdict(cases) is None, why
    assert verdict((), cases) is None, why


def test_cases_of_every_policy_and_of_a_node_that_was_set_up_anew_count():
    again = {"phase": Phase.CANCELLED, "reason": Reason.NODE_GONE, "node_uid": "another"}
    assert verdict([past(20, policy="nfs-stale"), past(30, **again), past(39)]) is not None


def test_a_node_that_a_person_has_given_back_begins_anew_and_its_board_does_not():
    released = past(38, phase=Phase.ESCALATED, reason=Reason.RELEASED_BY_USER, attempts=())
    cases = [past(20), past(30), past(35), released]
    assert verdict(cases) is None
    assert verdict(cases, cases) is not None


@pytest.mark.parametrize("reason", [Reason.RELEASED_HEALTHY, Reason.NODE_GONE])
def test_a_node_that_no_person_has_given_back_does_not_begin_anew(reason):
    released = past(38, phase=Phase.ESCALATED, reason=reason, attempts=())
    assert verdict([past(20), past(30), past(35), released]) is not None


def test_a_board_is_known_on_whatever_node_it_was():
    cases = [past(20, "gpu-7"), past(30, "gpu-7"), past(39, "gpu-9")]
    message = "board 1563521020414 (GPU-9f3c01ab) had 3 cases in 30 days, on gpu-7, gpu-9"
    assert verdict((), cases) == (Reason.LEMON, message, ["gpu-7-20", "gpu-7-30", "gpu-9-39"])


def test_a_case_that_has_tried_something_goes_on_and_without_the_field_nobody_is_called():
    assert verdict(THREE, case=a_case("new", created=40 * DAY, attempts=(an_attempt(),))) is None
    assert verdict(THREE, policy=a_policy()) is None


def test_the_second_relapse_is_told_first():
    policy = a_policy(lemon=POLICY.lemon, relapse=minutes(3 * DAY))
    cases = [past(36), past(38), past(39)]
    assert verdict(cases, policy=policy)[:2] == (Reason.RELAPSED, "the second relapse of gpu-1 within 7 days")


def test_a_history_has_the_newest_ten_cases_each_with_what_was_done():
    cases = [past(day) for day in range(12)]
    shown = history(reversed(cases))
    assert len(shown) == MOST_SHOWN == 10
    assert shown[0] == PastCase("gpu-1-2", "gpu-1", "gpu-lost", at(2 * DAY + 30), ("reboot",), Phase.RECOVERED)


def test_what_one_other_node_says_of_a_board_alone_condemns_no_hardware_here():
    """Whoever is root on gpu-7 may name any board in its evidence. The first case is repaired, the second not."""
    of_other = [past(20, "gpu-7"), past(25, "gpu-7"), past(30, "gpu-7")]
    assert verdict((), of_other) is None
    assert verdict((), [*of_other, past(39)]) is not None


def test_cases_of_another_node_do_not_count_once_the_board_was_seen_here():
    """The board is in gpu-1 since day 20 at least, so that gpu-7 and gpu-8 cannot have it."""
    named = [past(25, "gpu-7"), past(30, "gpu-7"), past(35, "gpu-8")]
    assert verdict((), [past(20), *named]) is None
    assert verdict((), [past(20, ended=at(20 * DAY + 5), attempts=()), *named]) is None, (
        "a case that did nothing saw it"
    )
    assert verdict((), named) is not None


def test_a_board_that_another_node_still_names_is_not_condemned_by_it():
    goes_on = [past(20, "gpu-7"), past(30, "gpu-8"), past(39, "gpu-7", ended=at(41 * DAY))]
    assert verdict((), goes_on) is None

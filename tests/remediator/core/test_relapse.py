"""A fault that comes back soon: one rung higher, and the second time within 7 days a person."""

import pytest

from remediator.core.case import AttemptOutcome, Phase
from remediator.core.ladder import Next, next_rung
from remediator.core.reasons import Reason
from remediator.core.relapse import earlier_relapse, followed
from tests.builders import a_case, a_policy, an_attempt, at, minutes

HOUR, DAY = 60, 24 * 60
LADDER = (("restart-service", 1), ("reset-gpu", 1), ("reboot", 1), ("power-cycle", 1))
POLICY = a_policy(ladder=LADDER, relapse=minutes(72 * HOUR), attempts=9)
COVERS = {"reboot": ("reset-gpu",)}


def tried(*rungs: int, day: float = 0, outcome: AttemptOutcome = AttemptOutcome.SUCCEEDED):
    """One try of each of these rungs, the last of which had this outcome."""
    outcomes = [AttemptOutcome.FAILED] * (len(rungs) - 1) + [outcome]
    return tuple(
        an_attempt(rung, said, started=day * DAY, template=LADDER[rung][0])
        for rung, said in zip(rungs, outcomes, strict=True)
    )


def only_drained(*rungs: int):
    """A try of each of these rungs that Pods kept from its operation, and one that was cancelled before it."""
    kept = [(AttemptOutcome.FAILED, "DrainTimeout"), (AttemptOutcome.CANCELLED, "ClearedItself")]
    return tuple(
        an_attempt(rung, said, started=rung, template=LADDER[rung][0], reason=reason)
        for rung, (said, reason) in zip(rungs, kept, strict=False)
    )


def past(name="past", *, day: float = 0, rungs=(0,), phase=Phase.RECOVERED, **more):
    """A case of one hour that ended on this day, after these rungs."""
    opened = day * DAY - HOUR
    facts = {"attempts": tried(*rungs, day=day), "ended": at(day * DAY), "phase": phase} | more
    return a_case(name, created=opened, **facts)


def new(day: float):
    return a_case("new", created=day * DAY)


def begins(case, *others, policy=POLICY, covers=None):
    """The rung with which a new case begins, counted from 1, or why with none."""
    following = next_rung(policy, case, [*others, case], case.created, covers or {})
    return following.rung + 1 if isinstance(following, Next) else following


@pytest.mark.parametrize(
    ("day", "last", "expected"),
    [
        pytest.param(1, past(), 2, id="a day after rung 1 it starts with rung 2"),
        pytest.param(1, past(rungs=(0, 1)), 3, id="above the highest that was used"),
        pytest.param(1, past(rungs=(3,)), 4, id="bounded by the last rung"),
        pytest.param(2.99, past(), 2, id="just inside the window of 72 h"),
        pytest.param(3, past(), 1, id="at its end it is over"),
        pytest.param(1, past(phase=Phase.CANCELLED), 1, id="a cancelled case does not count"),
        pytest.param(1, past(phase=Phase.ESCALATED), 1, id="a person has repaired it: it begins anew"),
        pytest.param(1, past(attempts=()), 1, id="one that did nothing does not count"),
        pytest.param(1, past(attempts=only_drained(0, 1)), 1, id="nor one in which only drains ran"),
        pytest.param(
            1, past(attempts=(*tried(0), *only_drained(1))), 2, id="a rung that was only drained for is not used"
        ),
        pytest.param(1, past(policy="nfs-stale"), 1, id="nor one of another policy"),
    ],
)
def test_a_new_case_soon_after_the_last_one_starts_one_rung_higher(day, last, expected):
    assert begins(new(day), last) == expected


def test_without_relapse_each_case_starts_with_the_first_rung():
    assert begins(new(1), past(), policy=a_policy(ladder=LADDER)) == 1


def test_the_rungs_of_a_relapse_are_those_of_the_ladder_as_it_is_now():
    """The last case did `reset-gpu` on rung 2; a user has put it on rung 1 since, below `reboot`."""
    shorter = a_policy(ladder=LADDER[1:], relapse=minutes(72 * HOUR))
    assert begins(new(1), past(rungs=(0, 1)), policy=shorter) == 2
    without = a_policy(ladder=(("reboot", 1),), relapse=minutes(72 * HOUR))
    assert begins(new(1), past(rungs=(0, 1)), policy=without) == 1


def test_once_begun_the_case_goes_on_from_its_own_rung():
    case = a_case("new", created=DAY, rung=1, attempts=tried(1, outcome=AttemptOutcome.FAILED))
    assert begins(case, past()) == 3


@pytest.mark.parametrize(
    ("ladder", "outcome", "expected"),
    [
        pytest.param(("reboot", "reset-gpu", "power-cycle"), AttemptOutcome.SUCCEEDED, 3, id="reset-gpu is skipped"),
        pytest.param(
            ("reboot", "reset-gpu", "power-cycle"), AttemptOutcome.FAILED, 2, id="a reboot that failed covers none"
        ),
        pytest.param(
            ("reboot", "reset-gpu"), AttemptOutcome.SUCCEEDED, 1, id="nothing else is left: the same once more"
        ),
    ],
)
def test_what_the_last_case_has_covered_is_skipped(ladder, outcome, expected):
    policy = a_policy(ladder=tuple((name, 1) for name in ladder), relapse=minutes(72 * HOUR))
    done = (an_attempt(0, outcome, template="reboot"),)
    assert begins(new(1), past(attempts=done), policy=policy, covers=COVERS) == expected


@pytest.mark.parametrize(
    ("days", "day", "expected"),
    [
        pytest.param((0,), 1, [], id="the first relapse is repaired"),
        pytest.param((0, 1), 2, ["0", "1"], id="the second within 7 days is not"),
        pytest.param((0, 2, 4, 6), 8.9, ["4", "6"], id="nor the one after it"),
        pytest.param((0, 1), 5, [], id="4 days after the last case it is no relapse"),
        pytest.param((0, 1, 9), 10, [], id="the relapse before it was 9 days ago"),
    ],
)
def test_the_second_relapse_within_seven_days_is_known_by_its_cases(days, day, expected):
    cases = [past(str(ended), day=ended) for ended in days]
    assert [case.name for case in earlier_relapse(POLICY, new(day), cases)] == expected
    assert (followed(POLICY, new(day), cases) is None) == (day - days[-1] >= 3)


def test_what_a_person_has_repaired_is_no_relapse_of_what_was_before():
    told = past("told", day=2, phase=Phase.ESCALATED, attempts=(), reason=Reason.RELEASED_BY_USER)
    assert earlier_relapse(POLICY, new(2.5), [past("0"), past("1", day=1), told]) == ()

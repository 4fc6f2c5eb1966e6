"""What becomes of one object: deadlines, notices bound to them, and all that keeps it."""

from datetime import UTC, datetime, timedelta

import pytest

from remediator.core import names
from remediator.janitor.decide import Decision, Held, JanitorReason, Nothing, Notify, Overdue, Waits, decide
from remediator.janitor.rules import RuleMatch, read
from remediator.janitor.settings import Terms
from remediator.janitor.subject import JanitorSubject
from remediator.kube.api.builtin import POD

BORN = datetime(2026, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
TELLS = Terms(notice=HOUR)
DEPLOYED = Terms(deployment_time="deployed")
(LONG,) = read("rules: [{id: long, resources: [pods], jmespath: metadata, ttl: 5h}]")


def pod(owner: str = "", deleting: bool = False, created: datetime | None = BORN, **annotations: str) -> JanitorSubject:
    names_ = {"ttl": names.JANITOR_TTL, "expires": names.JANITOR_EXPIRES, "keep": names.KEEP_UNTIL}
    names_ |= {"notified": names.JANITOR_NOTIFIED, "notified_at": names.JANITOR_NOTIFIED_AT}
    said = {names_.get(name, name): text for name, text in annotations.items()}
    return JanitorSubject(POD, "team", "p", "u", "1", created, deleting, said, owner)


def at(hours: float, subject: JanitorSubject, terms: Terms | None = None, match: RuleMatch | None = None) -> Decision:
    return decide(subject, match or RuleMatch(), terms or Terms(), BORN + hours * HOUR)


def test_an_object_of_which_nothing_is_said_stays() -> None:
    assert at(10_000, pod()) == Nothing()


def test_a_ttl_counts_from_the_creation() -> None:
    assert isinstance(at(0.99, pod(ttl="1h")), Waits)
    done = at(1, pod(ttl="1h"))
    assert isinstance(done, Overdue)
    assert done.deadline.reason is JanitorReason.TTL
    assert done.deadline.because == "janitor/ttl: 1h"


def test_an_expiry_time_is_reached_at_that_moment() -> None:
    assert isinstance(at(0.99, pod(expires="2026-01-01T01:00Z")), Waits)
    done = at(1, pod(expires="2026-01-01T01:00Z"))
    assert isinstance(done, Overdue)
    assert done.deadline.reason is JanitorReason.EXPIRY


def test_of_two_deadlines_the_earlier_one_counts_and_gives_one_deletion() -> None:
    done = at(3, pod(ttl="1h", expires="2026-01-01T02:00"))
    assert isinstance(done, Overdue)
    assert done.deadline.reason is JanitorReason.TTL
    sooner = at(3, pod(ttl="3h", expires="2026-01-01T02:00"))
    assert isinstance(sooner, Overdue)
    assert sooner.deadline.reason is JanitorReason.EXPIRY


def test_for_ever_is_never_over_but_an_expiry_time_beside_it_is() -> None:
    assert at(10_000, pod(ttl="forever")) == Nothing()
    assert isinstance(at(3, pod(ttl="forever", expires="2026-01-01T02:00")), Overdue)


@pytest.mark.parametrize("later", [{"ttl": "forever"}, {"ttl": "9h"}])
def test_the_annotation_comes_before_the_rule(later: dict[str, str]) -> None:
    match = RuleMatch(LONG, LONG.ttl)
    done = at(5, pod(), match=match)
    assert isinstance(done, Overdue)
    assert done.deadline.because == "rule long matches: 5h"
    assert not isinstance(at(5, pod(**later), match=match), Overdue)


def test_a_rule_for_ever_deletes_nothing() -> None:
    assert at(10_000, pod(), match=RuleMatch(LONG, None)) == Nothing()


@pytest.mark.parametrize(
    ("deployed", "hours", "ends"),
    [("2026-01-01T02:00:00Z", 2.5, False), ("2026-01-01T02:00:00Z", 3, True), ("2025-12-01T00:00:00Z", 1, True)],
)
def test_a_ttl_counts_from_the_deployment_where_that_is_later(deployed: str, hours: float, ends: bool) -> None:
    assert isinstance(at(hours, pod(ttl="1h", deployed=deployed), DEPLOYED), Overdue) is ends
    assert isinstance(at(1, pod(ttl="1h", deployed=deployed)), Overdue), "nobody has named that annotation"


@pytest.mark.parametrize(
    ("written", "names_"),
    [
        ({"ttl": "1x"}, "janitor/ttl"),
        ({"expires": "soon"}, "janitor/expires"),
        ({"ttl": "1x", "expires": "2026-01-01"}, "janitor/ttl"),
        ({"ttl": "1h", "expires": "soon"}, "janitor/expires"),
        ({"ttl": "1h", "deployed": "yesterday"}, "deployed"),
        ({"ttl": "1h", "keep": "long"}, "remediator.dev/keep-until"),
    ],
)
def test_what_cannot_be_read_deletes_nothing_and_names_the_annotation(written: dict[str, str], names_: str) -> None:
    held = at(10_000, pod(**written), DEPLOYED)
    assert isinstance(held, Held)
    assert held.reason is JanitorReason.UNREADABLE
    assert held.message.startswith(f"{names_}: ")
    assert "write" in held.message


def test_an_object_without_a_time_of_creation_is_not_judged_by_its_ttl() -> None:
    assert at(5, pod(ttl="1h", created=None)) == Held(JanitorReason.UNREADABLE, "nobody can tell when it was created")


def test_an_object_that_is_being_deleted_is_left_alone() -> None:
    assert at(5, pod(ttl="1h", deleting=True)) == Nothing()


def test_an_object_that_its_owner_would_make_anew_is_held_and_names_the_owner() -> None:
    held = at(5, pod(ttl="1h", owner="ReplicaSet/web-1"))
    assert isinstance(held, Held)
    assert held.reason is JanitorReason.OWNED
    assert "put the annotation on ReplicaSet/web-1" in held.message


@pytest.mark.parametrize(
    ("until", "kept"), [("2026-01-01T06:00:00Z", True), ("2026-01-01T04:00", False), ("forever", True)]
)
def test_a_user_keeps_an_object_until_a_time(until: str, kept: bool) -> None:
    decision = at(5, pod(ttl="1h", keep=until))
    assert isinstance(decision, Held if kept else Overdue)
    assert not kept or (isinstance(decision, Held) and decision.reason is JanitorReason.KEPT)


def test_what_is_in_a_namespace_that_is_kept_is_kept() -> None:
    done = decide(pod(ttl="1h"), RuleMatch(), Terms(), BORN + 5 * HOUR, namespace_kept="because")
    assert done == Held(JanitorReason.NAMESPACE_KEPT, "because")


def test_a_rule_that_cannot_tell_holds_an_object_that_nothing_else_speaks_of() -> None:
    assert at(5, pod(), match=RuleMatch(doubts=("rule a: b",))) == Held(JanitorReason.RULE_UNKNOWN, "rule a: b")
    assert isinstance(at(5, pod(expires="2026-01-01T02:00"), match=RuleMatch(doubts=("rule a: b",))), Overdue)


# --- notices ---

TOLD = {"notified": "2026-01-01T05:00:00Z", "notified_at": "2026-01-01T04:00:00Z"}


@pytest.mark.parametrize("ends", [{"ttl": "5h"}, {"expires": "2026-01-01T05:00"}])
def test_the_owner_is_told_an_hour_before(ends: dict[str, str]) -> None:
    assert isinstance(at(3.99, pod(**ends), TELLS), Waits)
    assert isinstance(at(4, pod(**ends), TELLS), Notify)
    assert isinstance(at(4, pod(**ends, **TOLD), TELLS), Waits)
    assert isinstance(at(5, pod(**ends, **TOLD), TELLS), Overdue)


def test_nobody_is_told_where_no_notice_is_asked_for_or_nothing_ends() -> None:
    assert isinstance(at(4, pod(ttl="5h")), Waits)
    assert at(4, pod(ttl="forever"), TELLS) == Nothing()
    assert at(4, pod(), TELLS) == Nothing()


def test_a_notice_counts_for_its_own_deadline_alone() -> None:
    assert isinstance(at(8, pod(ttl="9h", **TOLD), TELLS), Notify), "the owner has made the TTL longer since"
    assert isinstance(at(5, pod(ttl="5h", notified="yes"), TELLS), Notify), "the mark of kube-janitor"


def test_who_is_told_late_has_as_long_all_the_same() -> None:
    late = pod(ttl="5h", notified="2026-01-01T05:00:00Z", notified_at="2026-01-01T07:00:00Z")
    notice = at(7, pod(ttl="5h"), TELLS)
    assert isinstance(notice, Notify)
    assert notice.at == BORN + 8 * HOUR
    assert isinstance(at(7.99, late, TELLS), Waits)
    assert isinstance(at(8, late, TELLS), Overdue)


@pytest.mark.parametrize("when", ["", "soon", "2027-01-01T00:00:00Z"])
def test_a_notice_of_which_nobody_can_tell_when_it_was_is_none(when: str) -> None:
    assert isinstance(at(6, pod(ttl="5h", notified="2026-01-01T05:00:00Z", notified_at=when), TELLS), Notify)


@pytest.mark.parametrize("kept", [{"keep": "forever"}, {"owner": "Job/x"}])
def test_nobody_is_told_of_a_deletion_that_would_not_come(kept: dict[str, str]) -> None:
    assert isinstance(at(4, pod(ttl="5h", **kept), TELLS), Held)

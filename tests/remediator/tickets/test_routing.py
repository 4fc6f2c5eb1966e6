"""Where issues go and who is asked: rows of the routes file, rotations, quiet hours, and a file that changes."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from remediator.core.policy import Severity
from remediator.core.window import Window
from remediator.live_file import LOOK_EVERY
from remediator.tickets.channels.github.limits import problem
from remediator.tickets.channels.live_routes import LiveRoutes
from remediator.tickets.channels.matching import traits
from remediator.tickets.channels.oncall import Layer, OncallSchedule, Override, assignees, load, on_call
from remediator.tickets.channels.routes_file import load as load_routes
from remediator.tickets.metrics import ROUTES_OUTDATED
from remediator.tickets.reconcile.conditions import ROOMS_OUTDATED
from remediator.tickets.reconcile.conditions import ROUTES_OUTDATED as CONDITION
from tests.harness.kinds import NODES
from tests.harness.tickets import TicketHarness, delivery, fires

RACK = "topology.kubernetes.io/rack"
ROUTES = f"""
default: {{repository: org/ops}}
schedules: oncall.yaml
routes:
  hall: {{repository: org/hall}}
  gpu: {{repository: org/gpu, assignees: [alice], onCall: hardware}}
  ml: {{repository: org/ml, onCall: hardware, quiet: [{{cron: "0 22 * * *", duration: 9h, timeZone: Asia/Tokyo}}]}}
match:
- {{labels: {{{RACK}: [r12, r13]}}, route: hall}}
- {{severity: [Critical], labels: {{team: hw}}, route: gpu}}
- {{labels: {{team: [ml, hw]}}, route: ml}}
"""
ONCALL = """
hardware:
  timeZone: Asia/Tokyo
  layers:
  - {people: [bob, carol], start: "2026-11-02T09:00", every: 7d}
"""
NOW = datetime(2026, 11, 20, 9, 0, tzinfo=UTC)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Routes and schedules in a folder of their own."""
    (tmp_path / "routes.yaml").write_text(ROUTES)
    (tmp_path / "oncall.yaml").write_text(ONCALL)
    return tmp_path


@pytest.mark.parametrize(
    ("severity", "labels", "asked", "repository"),
    [
        ("Critical", {"team": "hw"}, "", "org/gpu"),
        ("Warning", {"team": "hw"}, "", "org/ml"),
        ("Warning", {"team": "ml"}, "", "org/ml"),
        ("Critical", {"team": "hw", RACK: "r13"}, "", "org/hall"),
        ("Critical", {"team": "hw", RACK: "r14"}, "", "org/gpu"),
        ("Critical", {}, "", "org/ops"),
        ("Critical", {"team": "hw"}, "hall", "org/hall"),
    ],
    ids=["both", "less severe", "team", "the first row", "another rack", "none", "named by a policy or an alert"],
)
def test_the_first_row_that_fits_severity_and_labels_gives_the_route_where_none_is_named(
    folder: Path, severity: str, labels: Mapping[str, str], asked: str, repository: str
) -> None:
    routes = load_routes(folder / "routes.yaml", problem)
    route, known = routes.choose(asked, traits(Severity(severity), labels.items()))
    assert (route.repository, known) == (repository, True)


TOKYO, local = ZoneInfo("Asia/Tokyo"), datetime.fromisoformat
NIGHTS = Layer(
    ("dan",), local("2026-01-01"), timedelta(days=1), (Window("0 18 * * *", timedelta(hours=15), "Asia/Tokyo"),)
)
ROTATION = OncallSchedule(
    (Layer(("bob", "carol"), local("2026-11-02T09:00"), timedelta(days=7)), NIGHTS),
    "Asia/Tokyo",
    (Override("erin", local("2026-11-21"), local("2026-11-22")),),
)


@pytest.mark.parametrize(
    ("day", "hour", "person"),
    [(2, 8, "dan"), (2, 9, "bob"), (9, 8, "dan"), (9, 9, "carol"), (16, 10, "bob"), (20, 18, "dan"), (21, 20, "erin")],
    ids=["before the first turn, at night", "first turn", "last night", "next", "first again", "night", "stands in"],
)
def test_who_is_on_call_changes_with_turns_layers_and_overrides_by_the_clocks_of_its_zone(
    day: int, hour: int, person: str
) -> None:
    assert on_call(ROTATION, datetime(2026, 11, day, hour, tzinfo=TOKYO).astimezone(UTC)) == person


def test_a_turn_ends_at_the_same_hour_after_a_clock_was_set_back() -> None:
    weekly = OncallSchedule((Layer(("a", "b"), local("2026-10-19T09:00"), timedelta(days=7)),), "Europe/Berlin")
    assert on_call(weekly, datetime(2026, 10, 26, 7, 59, tzinfo=UTC)) == "a"
    assert on_call(weekly, datetime(2026, 10, 26, 8, 0, tzinfo=UTC)) == "b"  # 09:00 in winter time
    assert on_call(weekly, datetime(2026, 10, 19, 6, 59, tzinfo=UTC)) == ""


def test_in_quiet_hours_who_is_on_call_is_asked_only_for_what_is_critical() -> None:
    quiet = (Window("0 22 * * *", timedelta(hours=9), "Asia/Tokyo"),)
    night = datetime(2026, 11, 18, 23, tzinfo=TOKYO).astimezone(UTC)
    assert assignees(("alice",), ROTATION, quiet, Severity.WARNING, night) == ("alice",)
    assert assignees(("alice",), ROTATION, quiet, Severity.CRITICAL, night) == ("alice", "dan")
    assert assignees(("alice",), ROTATION, quiet, Severity.WARNING, night + timedelta(hours=9)) == ("alice", "dan")
    assert assignees(("dan",), ROTATION, (), Severity.WARNING, night) == ("dan",)


@pytest.mark.parametrize(
    ("file", "old", "new", "why"),
    [
        ("routes.yaml", "route: hall", "route: hell", "match[0].route: there is no route 'hell' under routes"),
        ("routes.yaml", "severity: [Critical]", "severity: [Bad]", "Invalid enum value 'Bad'"),
        ("routes.yaml", "severity: [Critical], labels: {team: hw}, ", "", "match[1] has neither severity nor labels"),
        ("routes.yaml", "onCall: hardware}", "onCall: software}", "routes.gpu.onCall: there is no schedule 'software'"),
        ("routes.yaml", "0 22 * * *", "0 25 * * *", "routes.ml.quiet[0].cron: '0 25 * * *' is not minute"),
        ("oncall.yaml", "Asia/Tokyo", "Asia/Tokio", "'Asia/Tokio' is unknown"),
        ("oncall.yaml", "every: 7d", "every: 0d", "hardware.layers[0].every is '0d'; write such as 7d or 12h"),
        ("oncall.yaml", "T09:00", " 9:00", "`[...].layers[0].start`"),
        ("oncall.yaml", "[bob, carol]", "[]", "people"),
        ("oncall.yaml", "2026-11-02T", "2026-13-02T", "month must be in 1..12"),
    ],
)
def test_a_file_with_a_mistake_is_refused_by_file_field_and_remedy(
    folder: Path, file: str, old: str, new: str, why: str
) -> None:
    written = (folder / file).read_text()
    assert old in written
    (folder / file).write_text(written.replace(old, new, 1))
    with pytest.raises(ValueError) as refused:
        load_routes(folder / "routes.yaml", problem)
    assert why in str(refused.value)
    assert file in str(refused.value)
    assert "correct" in str(refused.value)


def test_routes_are_read_again_when_a_file_changes_and_kept_while_it_has_a_mistake(folder: Path) -> None:
    routes = LiveRoutes(folder / "routes.yaml", problem)
    (folder / "routes.yaml").write_text("default: {repository: org/new}")
    assert routes.current(NOW).default.repository == "org/new"
    (folder / "routes.yaml").write_text("default: {repository: nowhere}")
    assert routes.current(NOW + LOOK_EVERY / 2).outdated == ""
    kept = routes.current(NOW + LOOK_EVERY)
    assert kept.default.repository == "org/new"
    assert "default.repository is 'nowhere', not owner/name; correct that field; until then the routes" in kept.outdated
    assert ROUTES_OUTDATED._value.get() == 1
    (folder / "routes.yaml").unlink()
    assert "No such file" in routes.current(NOW + 2 * LOOK_EVERY).outdated
    (folder / "routes.yaml").write_text("default: {repository: org/newer}")
    mended = routes.current(NOW + 3 * LOOK_EVERY)
    assert (mended.default.repository, mended.outdated) == ("org/newer", "")
    assert ROUTES_OUTDATED._value.get() == 0


def test_a_schedule_is_read_again_when_its_file_changes(folder: Path) -> None:
    routes = LiveRoutes(folder / "routes.yaml", problem)
    (folder / "oncall.yaml").write_text(ONCALL.replace("carol", "zoe"))
    schedule = routes.current(NOW).named["gpu"].on_call
    assert schedule is not None
    assert schedule.people == {"bob", "zoe"}
    assert load(folder / "oncall.yaml")["hardware"] == schedule


async def test_an_issue_goes_where_the_row_of_its_rack_leads_and_is_assigned_to_who_is_on_call(
    harness: TicketHarness, folder: Path
) -> None:
    (folder / "routes.yaml").write_text(ROUTES.replace("org/hall}", "org/hall, onCall: hardware}"))
    harness.routes = load_routes(folder / "routes.yaml", problem)
    harness.restart()
    await harness.client.patch(NODES, "gpu-17", {"metadata": {"labels": {RACK: "r12"}}})
    await harness.hear(delivery(fires(), fires(node="gpu-18", team="ml")))
    await harness.work()
    shown = {issue.title.split()[0]: (issue.repository, issue.assignees) for issue in harness.channel.issues}
    assert shown == {"gpu-17:": ("org/hall", ("bob",)), "gpu-18:": ("org/ml", ("bob",))}


async def test_a_ticket_says_while_the_routes_file_has_a_mistake(harness: TicketHarness) -> None:
    await harness.hear(delivery(fires()))
    harness.routes = replace(harness.routes, outdated="routes.yaml: line 3")
    harness.restart()
    await harness.work()
    said = (await harness.ticket()).condition(CONDITION)
    assert said is not None
    assert (said.reason, said.message) == ("RoutesInvalid", "routes.yaml: line 3")
    harness.routes = replace(harness.routes, outdated="")
    harness.restart()
    await harness.later(minutes=2)
    assert (await harness.ticket()).condition(CONDITION) is None


async def test_a_ticket_says_while_the_file_of_rooms_has_a_mistake(harness: TicketHarness) -> None:
    await harness.hear(delivery(fires()))
    problem = ["chat.yaml: rooms.a.apprise"]
    harness.reconciler._rooms_outdated = lambda: problem[-1]
    await harness.work()
    condition = (await harness.ticket()).condition(ROOMS_OUTDATED)
    assert condition is not None
    assert (condition.reason, condition.message) == ("RoomsInvalid", "chat.yaml: rooms.a.apprise")
    problem.append("")
    await harness.later(minutes=10)
    assert (await harness.ticket()).condition(ROOMS_OUTDATED) is None

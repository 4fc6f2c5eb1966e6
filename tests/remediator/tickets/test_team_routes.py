"""TicketRoutes: a team's own, within what the routes file leaves to its namespace; their status says what is used."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from remediator.cli.every import app
from remediator.core.names import Namespaces
from remediator.core.policy import Severity
from remediator.core.ticket_route import RouteReason, TicketRoute
from remediator.kube import api
from remediator.kube.informers import Informers
from remediator.tickets.channels.github.limits import problem
from remediator.tickets.channels.live_routes import LiveRoutes
from remediator.tickets.channels.matching import traits
from remediator.tickets.channels.routes import Routes
from remediator.tickets.channels.routes_file import load
from remediator.tickets.channels.team_routes import judged, verdict
from remediator.tickets.reconcile.team_routes import TeamRoutes
from tests.harness.kinds import NAMESPACES
from tests.harness.tickets import TicketHarness, delivery, fires
from tests.remediator.tickets.test_digest import Leading

FILE = """
default: {repository: org/ops}
match: [{severity: [Info], labels: {team: ml}, route: quiet}]
routes: {quiet: {repository: org/quiet}}
teams:
  ml: {repositories: [org/ml, lab/*], labels: {team: [ml, nlp]}}
  hw: {repositories: [org/hw], severity: [Critical]}
"""
ML = TicketRoute("ml", "all", "org/ml", ("ml",), ("zoe",), "2026-Q4", labels_match={"team": frozenset({"ml", "hw"})})


@pytest.fixture
def routes(tmp_path: Path) -> Routes:
    """What the file leaves to two teams."""
    (tmp_path / "routes.yaml").write_text(FILE)
    return load(tmp_path / "routes.yaml", problem)


def led(routes: Routes, objects: list[TicketRoute], severity: str = "Warning", **labels: str) -> str:
    """Where an issue goes."""
    known = replace(routes, rows=judged(routes, objects).rows)
    return known.choose("", traits(Severity(severity), labels.items()))[0].repository


@pytest.mark.parametrize(
    ("severity", "labels", "repository"),
    [
        ("Warning", {"team": "ml"}, "org/ml"),
        ("Warning", {"team": "nlp"}, "org/ops"),  # of the team, but the object does not ask for it
        ("Warning", {"team": "hw"}, "org/ops"),  # asked for, but of another team
        ("Warning", {}, "org/ops"),
        ("Info", {"team": "ml"}, "org/quiet"),  # a row of the file counts more
    ],
)
def test_an_issue_goes_by_a_team_s_route_where_both_fit_and_no_row_of_the_file_does(
    routes: Routes, severity: str, labels: Mapping[str, str], repository: str
) -> None:
    assert led(routes, [ML], severity, **labels) == repository


def test_why_one_is_not_used_fits_into_its_status_however_many_repositories_its_team_has(routes: Routes) -> None:
    many = replace(routes.teams["ml"], repositories=tuple(f"org/{number:0>100}" for number in range(41)))
    refused = verdict(replace(routes, teams={"ml": many}), replace(ML, repository="org/other"))
    assert refused.reason is RouteReason.REPOSITORY_NOT_ALLOWED
    assert refused.message.endswith(" and 31 more")
    assert len(refused.message) < 4096, "it would never be what the status shows, and be written again and again"


def test_of_two_that_fit_the_first_by_namespace_and_name_counts_in_whatever_order_they_came(routes: Routes) -> None:
    other = replace(ML, name="a", repository="lab/gpu")
    hardware = TicketRoute("hw", "z", "org/hw", severities=frozenset({Severity.CRITICAL}))
    for order in ([ML, other, hardware], [hardware, other, ML]):
        assert led(routes, order, "Warning", team="ml") == "lab/gpu"
        assert led(routes, order, "Critical", team="ml") == "org/hw"


@pytest.mark.parametrize(
    ("changes", "reason", "why"),
    [
        ({}, "Accepted", "issues that fit go to org/ml"),
        ({"namespace": "web"}, "NamespaceNotAllowed", "leaves nothing to namespace web: ask for an entry in teams"),
        ({"repository": "org/ops"}, "RepositoryNotAllowed", "spec.repository is org/ops; the routes file allows"),
        ({"namespace": "hw"}, "RepositoryNotAllowed", "allows namespace hw only org/hw"),
        ({"labels": ("x" * 51,)}, "Invalid", "spec.labels are more than 32, or one has not 1 to 50 characters"),
    ],
)
def test_one_that_is_not_used_says_why(routes: Routes, changes: dict[str, Any], reason: str, why: str) -> None:
    told = verdict(routes, replace(ML, **changes))
    assert (told.reason, why in told.message) == (RouteReason(reason), True)
    assert [row.key for row in judged(routes, [replace(ML, **changes)]).rows] == (["ml/all"] if told.ready else [])


def test_without_teams_in_the_file_none_is_used(routes: Routes) -> None:
    assert judged(replace(routes, teams={}), [ML]).rows == ()


def test_a_team_writes_into_a_public_repository_only_where_the_file_says_so(routes: Routes) -> None:
    (row,) = judged(routes, [ML]).rows
    assert not row.route.public
    shown = replace(routes.default, repository="Org/ML", public=True)
    (row,) = judged(replace(routes, default=shown), [ML]).rows
    assert row.route.public


@pytest.mark.parametrize(
    ("teams", "why"),
    [
        (
            "{ml: {repositories: [org/ml]}}",
            "teams.ml has neither severity nor labels: its TicketRoutes could",
        ),
        ("{ml: {repositories: [], severity: [Info]}}", "repositories"),
        ("{ml: {repositories: ['*'], severity: [Info]}}", "repositories"),
        ("{ml: {repositories: ['org/a*'], severity: [Info]}}", "repositories"),
        ("{ml: {repositories: [org/ml], severity: [Bad]}}", "Invalid enum value 'Bad'"),
    ],
)
def test_teams_that_cannot_be_right_are_refused_with_their_field(tmp_path: Path, teams: str, why: str) -> None:
    (tmp_path / "routes.yaml").write_text(f"default: {{repository: org/a}}\nteams: {teams}")
    with pytest.raises(ValueError, match=r"routes\.yaml") as refused:
        load(tmp_path / "routes.yaml", problem)
    assert why in str(refused.value)


# --- as objects ------------------------------------------------------------------------------------------------------

SPEC = {"repository": "org/ml", "match": {"labels": {"team": ["ml"]}}, "labels": ["ml"]}


class Place:
    """A routes file, a leader that judges TicketRoutes, and their watch."""

    def __init__(self, harness: TicketHarness, folder: Path) -> None:
        self.harness, self.file = harness, folder / "routes.yaml"
        self.file.write_text(FILE)
        self.informers = Informers(harness.client, harness.clock, Namespaces())
        self.live = LiveRoutes(self.file, problem)
        self.live.take(self.informers.ticket_routes)
        harness.reconciler._routes = self.live
        fitting = harness.reconciler.fitting
        leader: Any = Leading()
        self.teams = TeamRoutes(harness.client, self.informers.ticket_routes, self.live, fitting, leader, harness.clock)

    async def make(self, namespace: str, name: str, **spec: Any) -> None:
        """A team writes one."""
        await self.harness.client.create(NAMESPACES, {"metadata": {"name": namespace}})
        meta = {"name": name, "namespace": namespace}
        body = {"apiVersion": api.API_VERSION, "kind": "TicketRoute", "metadata": meta, "spec": SPEC | spec}
        await self.harness.client.create(api.TICKET_ROUTE, body, namespace=namespace)

    async def look(self) -> None:
        """What the watch tells, and a pass over them."""
        await self.informers.ticket_routes.read()
        self.live._mark()
        await self.teams.serve("")

    async def status(self, namespace: str, name: str) -> tuple[str, str, int]:
        """Ready, why, and how many issues."""
        wire = await self.harness.client.get(api.TICKET_ROUTE, name, namespace=namespace)
        (ready,) = wire.status.conditions
        assert ready.observed_generation == wire.metadata.generation
        return ready.status.value, ready.reason, wire.status.issues


@pytest.fixture
async def place(harness: TicketHarness, tmp_path: Path) -> Place:
    """Two teams may have TicketRoutes."""
    return Place(harness, tmp_path)


async def test_an_issue_goes_where_an_object_leads_whose_status_says_so(harness: TicketHarness, place: Place) -> None:
    await place.make("ml", "all")
    await place.make("web", "all")
    await place.look()
    assert await place.status("web", "all") == ("False", "NamespaceNotAllowed", 0)
    await harness.hear(delivery(fires(team="ml"), fires(node="gpu-18")))
    await harness.work()
    assert {issue.repository for issue in harness.channel.issues} == {"org/ml", "org/ops"}
    await harness.later(minutes=2)
    await place.look()
    assert await place.status("ml", "all") == ("True", "Accepted", 1)


async def test_a_status_that_says_what_is_so_is_not_written_again(harness: TicketHarness, place: Place) -> None:
    await place.make("ml", "all")
    await place.look()
    before = await harness.client.get(api.TICKET_ROUTE, "all", namespace="ml")
    harness.now = harness.now.replace(hour=12)
    await place.look()
    assert await harness.client.get(api.TICKET_ROUTE, "all", namespace="ml") == before


async def test_a_file_that_changes_is_looked_at_again_without_a_restart(harness: TicketHarness, place: Place) -> None:
    await place.make("ml", "all")
    await place.look()
    assert await place.status("ml", "all") == ("True", "Accepted", 0)
    place.file.write_text(FILE.replace("[org/ml, lab/*]", "[lab/*]"))
    harness.now = harness.now.replace(minute=5)
    await place.look()
    assert await place.status("ml", "all") == ("False", "RepositoryNotAllowed", 0)
    assert place.live.newest.rows == ()


async def test_whoever_begins_to_lead_keeps_the_number_until_every_ticket_was_looked_at(
    harness: TicketHarness, place: Place
) -> None:
    await place.make("ml", "all")
    await harness.hear(delivery(fires(team="ml")))
    await place.look()
    await harness.work()
    await harness.later(minutes=3)
    await place.look()
    assert (await place.status("ml", "all"))[2] == 1
    place.teams._fitting = dict
    place.teams.began()
    await place.look()
    assert (await place.status("ml", "all"))[2] == 1
    harness.now = harness.now.replace(hour=12)
    await place.look()
    assert (await place.status("ml", "all"))[2] == 0


def test_render_takes_ticket_routes_and_says_which_are_not_used(tmp_path: Path) -> None:
    (tmp_path / "routes.yaml").write_text(FILE)
    objects = Path(__file__).with_name("preview.yaml").read_text()
    for namespace in ("ml", "web"):
        objects += (
            "\n---\napiVersion: remediator.dev/v1alpha1\nkind: TicketRoute\n"
            f"metadata: {{name: all, namespace: {namespace}}}\n"
            "spec: {repository: org/ml, match: {severity: [Critical]}}\n"
        )
    (tmp_path / "objects.yaml").write_text(objects)
    asked = ["ticket", "render", str(tmp_path / "objects.yaml")]
    answer = CliRunner().invoke(app, [*asked, "--routes", str(tmp_path / "routes.yaml")])
    assert answer.exit_code == 1
    assert "remediator: TicketRoute web/all: the routes file leaves nothing to namespace web" in answer.output
    assert "ml/all" not in answer.output
    answer = CliRunner().invoke(app, asked)
    assert (answer.exit_code, "name that with --routes" in answer.output) == (2, True)

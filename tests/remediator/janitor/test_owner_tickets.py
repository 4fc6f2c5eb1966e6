"""An issue for each owner: all of what the janitor has told them, kept up to date, and closed when it is over."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from remediator.clock import Clock
from remediator.core.command import Keep
from remediator.core.idle_policy import JanitorMode
from remediator.core.owner_work import firing, object_of
from remediator.core.ticket import About, Subject, Ticket
from remediator.janitor.directory import Contact, Directory
from remediator.janitor.idle.sources import Sources
from remediator.janitor.run import LOOK, Janitor
from remediator.janitor.settings import JanitorSettings
from remediator.kube import api
from remediator.kube.api import encode
from remediator.live_file import Unchanging
from remediator.prometheus.alerts import Firing
from remediator.prometheus.reading import CannotTell, Doubt
from remediator.tickets.alertmanager.decide import decide
from tests.harness.kinds import EVENTS, PODS
from tests.harness.tickets import TicketHarness
from tests.remediator.janitor.idle_place import JOBS, Cluster
from tests.remediator.janitor.place import NOW

ALICE = Subject(About.OWNER, owner="alice")
KNOWN = Directory({"alice": Contact(github="alice-k", team="ml")})


class Owners(Cluster):
    """Two Pods of alice, the janitor with its looks, and a tracker."""

    async def begin(self, **spec: Any) -> None:
        self.seconds = 0.0
        await self.policy(ticket="EachOwner", **spec)
        for name in ("p", "q"):
            await self.gpus(name)
        self.tracker = TicketHarness(server=self.server)
        self.restart()

    def restart(self, mode: JanitorMode = JanitorMode.ENFORCE) -> None:
        """Another janitor: nothing in memory survives."""
        clock = Clock(lambda: NOW + timedelta(seconds=self.seconds), lambda: self.seconds)
        settings = JanitorSettings(mode, directory=Unchanging(KNOWN))
        self.janitor = Janitor(self.client, settings, clock, sources=Sources(self.asked))

    async def look(self, seconds: float = LOOK) -> Ticket:
        """Time goes by, the janitor looks, and the tracker follows; alice's Ticket after that."""
        self.seconds += seconds
        report = await self.janitor.once()
        assert report.problems == []
        self.tracker.now = NOW + timedelta(seconds=self.seconds)
        await self.tracker.work()
        return await self.tracker.ticket(ALICE)

    async def told(self) -> list[str]:
        return sorted(object_of(alert) for alert in firing(await self.tracker.ticket(ALICE)))


@pytest.fixture
async def at() -> Owners:
    made = Owners()
    await made.begin()
    return made


async def test_an_owner_gets_one_issue_of_all_that_is_updated_and_closed_when_all_is_over(at: Owners) -> None:
    await at.look()
    (issue,) = at.tracker.channel.issues
    assert (issue.title, issue.assignees) == ("[prod] alice: IdleGPUs of pods/team/p", ("ann", "alice-k"))
    line = "- `pods/team/p`: `2 GPUs idle for 120 minutes; will be deleted after 2026-01-10T04:10:00Z`."
    assert line in issue.body
    assert "remediator keep pods/q 8h -n team" in issue.body
    await at.gpus("r")
    at.asked.pods["p"] = (7, 2, 120)
    await at.look()
    assert await at.told() == ["pods/team/q", "pods/team/r"]
    assert at.tracker.channel.comments[1] == ["- **New:** `IdleGPUs of pods/team/r`."]
    (issue,) = at.tracker.channel.issues
    assert ("`pods/team/p`" in issue.body, "`pods/team/r`" in issue.body) == (False, True)
    for name in ("q", "r"):
        at.asked.pods[name] = (7, 2, 120)
    await at.look()
    (issue,) = at.tracker.channel.issues
    assert (issue.open, await at.told()) == (False, [])
    assert "- notice `IdleGPUs of pods/team/q` ended at" in at.tracker.channel.comments[1][-1]


async def test_what_was_taken_is_over_and_an_issue_closes_with_the_last_of_it(at: Owners) -> None:
    await at.look()
    assert len(await at.told()) == 2
    await at.look(4 * 3600)
    assert (await at.told(), await at.names(PODS, "team")) == ([], set())
    assert not at.tracker.channel.issues[0].open


@pytest.mark.parametrize("how", ["prometheus", "policies"])
async def test_while_nobody_can_tell_no_notice_ends_not_even_for_another_janitor(at: Owners, how: str) -> None:
    await at.look()
    at.restart()
    if how == "prometheus":
        at.asked.doubt = CannotTell(Doubt.WARNED, "a store is away")
    else:
        at.server.faults.refuse(403, when=lambda asked: asked.path.endswith("/idlepolicies"))
    before = await at.tracker.ticket(ALICE)
    after = await at.look()
    assert (await at.told(), after.alerts) == (["pods/team/p", "pods/team/q"], before.alerts)


async def test_a_notice_that_is_the_same_is_written_once(at: Owners) -> None:
    before = (await at.look()).version
    at.transport.asked.clear()
    await at.look()
    assert [path for method, path in at.writes() if "/tickets" in path] == []
    at.restart()
    at.transport.asked.clear()
    await at.look()
    assert [path for method, path in at.writes() if "/tickets" in path] == []
    assert before


@pytest.mark.parametrize(("mode", "spec"), [(JanitorMode.DRY_RUN, {}), (JanitorMode.ENFORCE, {"mode": "DryRun"})])
async def test_in_dry_run_no_ticket_is_made(mode: JanitorMode, spec: dict[str, str]) -> None:
    at = Owners()
    await at.begin(**spec)
    at.restart(mode)
    at.seconds += LOOK
    assert (await at.janitor.once()).idle[0].lines
    assert await at.tracker.tickets() == []


async def test_a_janitor_in_dry_run_ends_no_notice_and_obeys_no_comment(at: Owners) -> None:
    ticket = await at.look()
    keep = Keep("pods/team/q", NOW + timedelta(hours=9), "github:ann")
    await at.admin.patch(api.TICKET, ticket.name, encode.with_keeps(ticket, [keep]))
    at.restart(JanitorMode.DRY_RUN)
    after = await at.look()
    assert (after.keeps, after.alerts) == ((keep,), ticket.alerts)


async def test_what_a_comment_asks_to_keep_is_kept_with_its_authors_name_and_its_notice_taken_back(at: Owners) -> None:
    ticket = await at.look()
    until = NOW + timedelta(hours=9)
    keep = Keep("pods/team/q", until, "github:alice-k")
    await at.admin.patch(api.TICKET, ticket.name, encode.with_keeps(ticket, [keep]))
    after = await at.look(60)
    assert after.keeps == ()
    notes = await at.marks(PODS, "q")
    assert notes["remediator.dev/keep-until"] == "2026-01-10T09:00:00Z"
    assert notes["remediator.dev/keep-set-by"] == "github:alice-k 2026-01-10T09:00:00Z"
    assert ("KeptByUser", "q") in await at.events()
    said = [event["message"] for event in await at.admin.list_all(EVENTS) if event["reason"] == "KeptByUser"]
    assert said == [f"Pod q is kept until 2026-01-10T09:00:00Z, as github:alice-k has asked in {ticket.issue.url}"]  # type: ignore[union-attr]
    await at.look()
    assert await at.told() == ["pods/team/p"]

    async def kept() -> list[str]:
        await at.look()
        assert at.janitor.last is not None
        return [line.message for line in at.janitor.last.idle[0].lines if line.what == "pods/team/q"]

    says = "alice: 2 GPUs idle for 120 minutes; remediator.dev/keep-until says 2026-01-10T"
    assert await kept() == [f"{says}09:00:00Z, as github:alice-k has asked"]
    await at.annotate(PODS, "q", **{"remediator.dev/keep-until": "2026-01-10T10:00:00Z"})
    assert await kept() == [f"{says}10:00:00Z"], "it is not the time that alice has asked for"
    await at.look(4 * 3600)
    assert await at.names(PODS, "team") == {"q"}, "the other was taken"


async def test_a_keep_never_shortens_another_and_what_is_gone_or_over_asks_for_nothing(at: Owners) -> None:
    await at.annotate(PODS, "p", **{"remediator.dev/keep-until": "forever"})
    await at.annotate(PODS, "q", **{"remediator.dev/keep-until": "no time"})
    await at.serve(JOBS)
    made = await at.admin.create(api.TICKET, encode.new_ticket(ALICE))
    soon, over = NOW + timedelta(hours=1), NOW - timedelta(hours=1)
    asked = [("pods/team/p", soon), ("pods/team/q", soon), ("jobs/team/gone", soon), ("pods/team/q", over)]
    asked += [("secrets/team/s", soon), ("pods", soon)]
    body = encode.with_keeps(ticket_of(made), [Keep(*one, "github:ann") for one in asked])
    await at.admin.patch(api.TICKET, ALICE.name, body)
    assert (await at.look()).keeps == ()
    assert (await at.marks(PODS, "p"))["remediator.dev/keep-until"] == "forever"
    assert (await at.marks(PODS, "q"))["remediator.dev/keep-until"] == "2026-01-10T01:00:00Z"


async def test_a_ticket_of_an_owner_that_cannot_be_read_spoils_no_other(at: Owners) -> None:
    """Bob's, as a newer version writes it: what alice asks to keep is kept, and what she is told is written."""
    ticket = await at.look()
    await at.admin.create(api.TICKET, encode.new_ticket(Subject(About.OWNER, owner="bob")))
    name = Subject(About.OWNER, owner="bob").name
    store, kind = at.server.cluster.store, f"{api.TICKET.plural}.{api.TICKET.group}"
    spoiled = store.collection(kind).entries["", name].copy()
    spoiled["spec"]["keeps"] = [{"target": "pods/team/p", "until": "tomorrow", "setBy": "github:bob"}]
    store.write(kind, ("", name), spoiled)
    until = NOW + timedelta(hours=9)
    await at.admin.patch(api.TICKET, ticket.name, encode.with_keeps(ticket, [Keep("pods/team/q", until, "github:ann")]))
    (problem,) = (await at.janitor.once()).problems
    assert problem.startswith(f"the ticket {name} cannot be read: ")
    assert problem.endswith("; correct it, or delete it to have it made anew")
    assert (await at.marks(PODS, "q"))["remediator.dev/keep-until"] == "2026-01-10T09:00:00Z"


def ticket_of(wire: api.Ticket) -> Ticket:
    return Ticket(wire.metadata.name, "", ALICE, version=wire.metadata.resource_version)


@pytest.mark.parametrize(("status", "problems"), [(403, 1), (409, 0)])
async def test_a_keep_that_is_refused_is_told_and_tried_again_by_the_next_pass(
    at: Owners, status: int, problems: int
) -> None:
    ticket = await at.look()
    keep = Keep("pods/team/q", NOW + timedelta(hours=9), "github:ann")
    await at.admin.patch(api.TICKET, ticket.name, encode.with_keeps(ticket, [keep]))
    at.server.faults.refuse(status, when=lambda asked: asked.method == "PATCH" and asked.path.endswith("/pods/q"))
    why = [problem.partition(" has asked: ")[0] for problem in (await at.janitor.once()).problems]
    assert why == ["pods/team/q is not kept as github:ann"] * problems
    assert (await at.tracker.ticket(ALICE)).keeps == (keep,)
    assert (await at.look(60)).keeps == ()


async def test_alertmanager_says_nothing_of_the_notices_of_owners(at: Owners) -> None:
    ticket = await at.look()
    assert len(ticket.alerts) == 2
    nothing = Firing({}, whole=True)
    long_ago = {alert.fingerprint: NOW for alert in ticket.alerts}
    assert decide([ticket], nothing, "remediator", [], long_ago, NOW + timedelta(hours=9)).changes == ()
    other = replace(ticket, subject=Subject(About.NODE, node="gpu-17"))
    assert len(decide([other], nothing, "remediator", [], long_ago, NOW + timedelta(hours=9)).changes) == 1

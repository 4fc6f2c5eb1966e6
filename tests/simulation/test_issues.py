"""Issues in virtual time: two replicas, a GitHub that fails by a fixed schedule, and issues counted at every change."""

import asyncio
import contextvars
from collections import Counter
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

import msgspec
import pytest

from remediator.kube.wire.client import Client
from remediator.prometheus.alerts import Listing, of_answer
from remediator.prometheus.reading import CannotTell, Doubt
from remediator_sim.github import GithubFault
from remediator_sim.invariants.tickets import SeenIssue
from remediator_sim.simulation import cluster, loop
from remediator_sim.simulation.clock import HostClock, now, true_time
from remediator_sim.simulation.hub import Hub
from remediator_sim.simulation.replica import ReplicaModel
from remediator_sim.simulation.wire import Network, WireFault
from tests.harness.alertmanager import listed
from tests.harness.kinds import NODES
from tests.harness.tickets import delivery

pytestmark = pytest.mark.sampled("issues")
POSTS = "/issues$"
STRETCH = 60.0  # times as long as the shipped intervals of the Lease: no schedule here is about them


class Stage:
    """Two replicas on one API server. `twice`: subjects that had two open issues at one moment."""

    def __init__(self, nodes: int = 6, **given: Any) -> None:
        alertmanager = given.pop("alertmanager", None)
        self.server = cluster.fresh(HostClock().clock, 1)
        self.hub, network = Hub(self._look, lambda who, text: None), Network()
        self.twice: set[str] = set()
        self.looks: list[Callable[[list[SeenIssue]], None]] = []
        self.nodes = [f"n-{number:02}" for number in range(nodes)]
        self.replicas = [
            ReplicaModel(
                name,
                self.server,
                network,
                self.hub,
                Random(f"replica {name}"),
                lambda who, text: None,
                partial(self._killed, name),
                lambda text: None,
                settings={"issues_per_hour": 60} | given,
                alertmanager=alertmanager,
            )
            for name in ("A", "B")
        ]

    def _killed(self, name: str) -> None:
        """Its Pod starts again after a minute."""
        replica = next(replica for replica in self.replicas if replica.name == name)
        asyncio.get_running_loop().call_later(60, replica.start, context=contextvars.Context())

    def _look(self, seen: list[SeenIssue]) -> None:
        counts = Counter(issue.subject for issue in seen if issue.open)
        self.twice |= {subject for subject, count in counts.items() if count > 1}
        for look in self.looks:
            look(seen)

    async def begin(self) -> None:
        client = Client(self.server.transport())
        for node in self.nodes:
            await client.create(NODES, {"metadata": {"name": node}})
        for replica in self.replicas:
            replica.start()
            replica.stretch(STRETCH)
        await asyncio.sleep(60)

    @property
    def leader(self) -> ReplicaModel:
        return next(replica for replica in self.replicas if replica.is_leader)

    async def post(self, *alerts: dict[str, Any]) -> None:
        """Alertmanager posts until one of the replicas has stored it."""
        for turn in range(100):
            if await self.replicas[turn % 2].post(delivery(*alerts)) == 200:
                return
            await asyncio.sleep(5)
        raise AssertionError("no replica takes posts")

    def open(self) -> list[str]:
        """The titles of the issues that are open."""
        return sorted(issue.title for issue in self.hub.there() if issue.open)


def played(story: Callable[[Stage], Any], **given: Any) -> Stage:
    cluster.shipped_server()

    async def whole() -> Stage:
        stage = Stage(**given)
        try:
            await stage.begin()
            await story(stage)
            return stage
        finally:
            for replica in stage.replicas:
                replica.crash()
            stage.hub.close()

    return loop.run(whole())


def alert(node: str, severity: str = "warning") -> dict[str, Any]:
    """One alert of a node that begins now."""
    return {
        "status": "firing",
        "labels": {"alertname": f"NodeDown-{node}", "node": node, "severity": severity},
        "annotations": {},
        "startsAt": true_time().isoformat(),
        "endsAt": "0001-01-01T00:00:00Z",
        "fingerprint": f"NodeDown-{node}",
    }


def ended(fires: dict[str, Any]) -> dict[str, Any]:
    """The same alert, which ends now."""
    return fires | {"status": "resolved", "endsAt": true_time().isoformat()}


def _fault(fault: GithubFault, times: int = 1) -> Callable[[Stage], None]:
    return lambda stage: stage.hub.github.fail("POST", POSTS, fault, times)


def _dies(what: str) -> Callable[[Stage], None]:
    return lambda stage: stage.leader.line.faults.append(WireFault(what, methods=("POST",), part="/issues"))


def _lags(stage: Stage) -> None:
    stage.hub.github.lag(search=600.0, listing=60.0)


def _spent(stage: Stage) -> None:
    reset = round(true_time().timestamp()) + 300
    for status in (403, 429):
        stage.hub.github.fail("POST", POSTS, GithubFault.primary(reset=reset, status=status))


# One after the other, each for an alert of its own: what goes wrong when its issue is to be opened.
SCHEDULES: dict[str, tuple[Callable[[Stage], None], ...]] = {
    "the answer is lost, while search lags by 10 minutes and lists by one": (
        _lags,
        _fault(GithubFault(carried_out=True, drop=True)),
    ),
    "the leader dies before it has created, and the next one sees old lists": (_lags, _dies("die-before")),
    "the leader dies after it has created, and the next one sees old lists": (_lags, _dies("die-after")),
    "502, three times, of which one was carried out": (
        _fault(GithubFault(502)),
        _fault(GithubFault(502, carried_out=True)),
        _fault(GithubFault(502)),
    ),
    "429 and the 403 of a secondary limit, with and without Retry-After": (
        _fault(GithubFault.secondary(status=429, retry_after=70)),
        _fault(GithubFault.secondary(status=429)),
        _fault(GithubFault.secondary(retry_after=70)),
        _fault(GithubFault.secondary()),
    ),
    "the 403 and the 429 of a quota that is spent for 5 minutes": (_spent,),
}


def test_there_is_one_open_issue_of_each_alert_whatever_happens_when_it_is_opened() -> None:
    opened: dict[str, list[str]] = {}

    async def story(stage: Stage) -> None:
        firing = []
        for node, (name, schedule) in zip(stage.nodes, SCHEDULES.items(), strict=True):
            for go_wrong in schedule:
                go_wrong(stage)
            firing.append(alert(node))
            await stage.post(firing[-1])
            await asyncio.sleep(40 * 60)
            stage.hub.github.lag(search=0.0, listing=0.0)
            opened[name] = [title for title in stage.open() if title.startswith(node)]
        await stage.post(*map(ended, firing))
        await asyncio.sleep(15 * 60)

    stage = played(story)
    assert opened == {name: [f"{node}: NodeDown-{node}"] for node, name in zip(stage.nodes, SCHEDULES, strict=True)}
    assert stage.twice == set()
    assert stage.open() == []
    assert len(stage.hub.there()) == len(SCHEDULES)


# Half a minute of a processor: with tests on real servers, and in each run of them.
DAY = [pytest.mark.cluster, pytest.mark.sampled("a day of issues", on_server=True), pytest.mark.timeout(1800)]


@pytest.mark.parametrize("hours", [1, pytest.param(24, marks=DAY)])
def test_github_away_for_an_hour_or_a_day_is_caught_up_with_once_in_order_of_severity(hours: int) -> None:
    severities = [("info", "warning", "critical")[number % 3] for number in range(12)]

    async def story(stage: Stage) -> None:
        stage.hub.away = True
        for node, severity in zip(stage.nodes, severities, strict=True):
            await stage.post(alert(node, severity))
            await asyncio.sleep(hours * 300)
        assert stage.hub.there() == []
        stage.hub.away = False
        await asyncio.sleep(15 * 60)

    stage = played(story, nodes=12)
    labels = [label for issue in stage.hub.there() for label in issue.labels if label.startswith("severity")]
    wanted = ["critical"] * 4 + ["warning"] * 4 + ["info"] * 4
    assert [label.removeprefix("severity: ") for label in labels] == wanted
    assert stage.twice == set()


class Pair:
    """Two Alertmanagers that list what is true, or not: one restarts and knows nothing for a minute, one is away."""

    def __init__(self) -> None:
        self.firing: dict[str, dict[str, Any]] = {}
        self._made = 0

    def make(self, *given: Any, **named: Any) -> "Peer":
        self._made += 1
        return Peer(self, first=self._made % 2 == 1)


class Peer:
    """One of them, as a replica asks it."""

    def __init__(self, pair: Pair, *, first: bool) -> None:
        self._pair, self._first = pair, first

    async def alerts(self) -> Listing:
        """The first forgets everything in the first minute of each 20, the second is away in every eighth."""
        minute = int(now() / 60)
        if not self._first and minute % 8 == 7:
            return CannotTell(Doubt.UNREACHABLE, "it cannot be reached")
        forgets = self._first and minute % 20 == 0
        shown = [] if forgets else [listed(fires) for fires in self._pair.firing.values()]
        return of_answer(200, msgspec.json.encode(shown))

    async def aclose(self) -> None:
        """Nothing to give back."""


def test_posts_that_are_lost_doubled_late_reordered_or_never_sent_change_nothing_in_the_end() -> None:
    chance, pair, wrong = Random("posts"), Pair(), list[str]()
    given = {"alertmanager_url": ("http://a", "http://b"), "alertmanager": pair.make}

    async def later(stage: Stage, *alerts: dict[str, Any]) -> None:
        """A post of the schedule: never, once, twice, or minutes late and so after those that come after it."""
        for _ in range(chance.choice((0, 1, 2))):
            await asyncio.sleep(chance.choice((0, 5, 240)))
            await stage.post(*alerts)

    def look(seen: list[SeenIssue]) -> None:
        """No issue is closed while its alert fires."""
        shut = {issue.subject.split(" ")[0] for issue in seen if not issue.open}
        firing = {fires["labels"]["node"] for fires in pair.firing.values()}
        wrong.extend(f"{node} at {now():.0f}" for node in shut & firing)

    async def story(stage: Stage) -> None:
        stage.looks.append(look)
        posts = []
        for node in stage.nodes:
            fires = alert(node)
            pair.firing[node] = fires
            posts.append(asyncio.ensure_future(later(stage, fires)))
            await asyncio.sleep(chance.choice((30, 200)))
        await asyncio.sleep(20 * 60)
        assert stage.open() == [f"{node}: NodeDown-{node}" for node in stage.nodes]
        for node in stage.nodes[:4]:
            over = pair.firing.pop(node)
            posts.append(asyncio.ensure_future(later(stage, ended(over), over)))  # the end, and the begin once more
            await asyncio.sleep(chance.choice((30, 200)))
        await asyncio.gather(*posts)
        await asyncio.sleep(45 * 60)

    stage = played(story, **given)
    assert stage.open() == [f"{node}: NodeDown-{node}" for node in stage.nodes[4:]]
    assert (wrong, stage.twice) == ([], set())
    assert len(stage.hub.there()) == len(stage.nodes)

"""What users of alertmanager-to-github know, row for row as docs/tickets.md has it, on a GitHub that others wrote."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import requests

from remediator.clock import SYSTEM
from remediator.tickets.channels.github import GitHub, GithubTokenFile
from remediator.tickets.channels.github.limits import problem
from remediator.tickets.channels.private import PrivateOnly
from remediator.tickets.channels.routes import Route, Routes
from remediator.tickets.webhook.receiver import Received, Result
from tests.harness.tickets import TicketHarness, delivery, ends, fires
from tests.oracle.emulator import emulated
from tests.remediator.tickets.test_moving import ROWS, labelled
from tests.remediator.tickets.test_url import KEPT, post

REPO = "org/repo"
HERE = ("owner", "org"), ("repo", "repo")


class EmulatedHub:
    """The product on the emulator, and Ann, who looks there. All issues go to org/away, unless something says here."""

    def __init__(self, url: str, folder: Path) -> None:
        self._home = f"{url}/repos/{REPO}/issues"
        (folder / "token").write_text("token-us")
        self.channel = GitHub(url, GithubTokenFile(folder / "token"), SYSTEM, spacing=0.0)
        self.lead(Route(REPO, ("gpu",), ("ann",)))

    def lead(self, default: Route) -> None:
        """Issues go there by default; URLs and labels of alerts may lead here."""
        routes = Routes(default, cluster="prod", url=("org/*",), labelled=(REPO,), problem=problem)
        private: Any = PrivateOnly(self.channel, routes, SYSTEM)
        self.tickets = TicketHarness(private)
        self.tickets.routes = self.tickets.receiver._routes = routes
        self.tickets.restart()

    async def hear(self, *alerts: dict[str, Any], **later: float) -> None:
        """A post; then time goes by and the leader works."""
        await self.tickets.hear(delivery(*alerts))
        await self.tickets.later(**(later or {"minutes": 2}))

    async def posted(self, *parameters: tuple[str, str]) -> Received:
        """A post to a URL with parameters."""
        received = await post(self.tickets, delivery(fires()), *parameters)
        await self.tickets.work()
        return received

    def ask(self, path: str = "", method: str = "GET", **body: Any) -> Any:
        """What GitHub shows Ann of all issues, or does for her."""
        asked = {"json": body} if body else {"params": {"state": "all"}}
        given = {"headers": {"Authorization": "token token-ann"}, "timeout": 10.0, **asked}
        reply = requests.request(method, self._home + path, **given)
        reply.raise_for_status()
        return reply.json()

    @property
    def shown(self) -> list[tuple[str, str]]:
        """Title and state of each issue, the oldest first."""
        return [(issue["title"], issue["state"]) for issue in sorted(self.ask(), key=lambda issue: issue["number"])]

    @property
    def labels(self) -> set[str]:
        """Those of the first issue, but for what each has."""
        return {label["name"] for label in self.ask("/1")["labels"]} - {"remediator", "severity: warning"}


OPEN, SHUT = ("[prod] gpu-17: NodeDown", "open"), ("[prod] gpu-17: NodeDown", "closed")


async def fired(hub: EmulatedHub) -> None:
    await hub.hear(fires())
    assert hub.shown == [OPEN]
    assert "NodeDown on gpu-17" in hub.ask("/1")["body"]


async def posted_again(hub: EmulatedHub) -> None:
    await hub.hear(fires())
    before = hub.ask()
    await hub.hear(fires())
    assert hub.ask() == before


async def by_url(hub: EmulatedHub) -> None:
    hub.lead(Route("org/away"))
    await hub.tickets.prepare()
    await hub.posted(*HERE)
    assert hub.shown == [OPEN]


async def labels_by_url(hub: EmulatedHub) -> None:
    await hub.posted(*HERE, ("labels", "x,y"))
    assert hub.labels == {"x", "y"}


async def label_of_a_person(hub: EmulatedHub) -> None:
    await hub.hear(fires())
    hub.ask("/1/labels", "POST", labels=["wontfix"])
    await hub.hear(fires("GpuHot"))
    assert "GpuHot" in hub.ask("/1")["body"]
    assert hub.labels == {"gpu", "wontfix"}


async def resolved(hub: EmulatedHub) -> None:
    await hub.hear(fires())
    await hub.hear(ends())
    assert hub.shown == [SHUT]
    assert len(hub.ask("/1/comments")) == 1


async def kept_open(hub: EmulatedHub) -> None:
    await hub.hear(fires() | KEPT)
    await hub.hear(ends() | KEPT)
    assert hub.shown == [OPEN]


async def fired_again(hub: EmulatedHub) -> None:
    await resolved(hub)
    await hub.hear(fires(minute=60), hours=1)
    assert hub.shown == [OPEN]


async def fired_again_late(hub: EmulatedHub) -> None:
    await resolved(hub)
    await hub.hear(fires(minute=60 * 25), hours=25)
    assert hub.shown == [SHUT, OPEN]
    assert hub.ask("/1")["html_url"] in hub.ask("/2")["body"]


async def by_labels(hub: EmulatedHub) -> None:
    hub.lead(Route("org/away"))
    await hub.tickets.prepare()
    await hub.hear(labelled("org", "repo"))
    assert hub.shown == [OPEN]


async def unnamed(hub: EmulatedHub) -> None:
    await hub.hear(fires(remediator_route="nobody"))
    assert hub.shown == [OPEN]


async def half(hub: EmulatedHub) -> None:
    assert (await hub.posted(HERE[0])).result is Result.INVALID
    assert hub.shown == []


async def no_json(hub: EmulatedHub) -> None:
    assert (await hub.tickets.hear(json.dumps("text").encode()[:3])).result is Result.BAD
    await hub.tickets.work()
    assert hub.shown == []


PLAYED: Mapping[str, Callable[[EmulatedHub], Awaitable[None]]] = {
    "an alert fires": fired,
    "the same post again": posted_again,
    "`owner` and `repo` in the URL": by_url,
    "`labels` in the URL": labels_by_url,
    "labels that a person has added": label_of_a_person,
    "the alert is resolved": resolved,
    "annotation `atg_skip_auto_close`": kept_open,
    "it fires again": fired_again,
    "it fires again after its option `reopen-window`": fired_again_late,
    "labels `atg_owner`, `atg_repo`": by_labels,
    "neither owner nor repository": unnamed,
    "one of both": half,
    "a post that is no JSON": no_json,
}
# What the emulator cannot show, and why; those of single calls stand in tests/remediator/tickets/test_channel.py.
CANNOT: Mapping[str, str] = {
    "two issues of one alert": "it keeps `completed` where state_reason is `duplicate`, and its search hides no issue",
}


@pytest.fixture
async def hub(tmp_path: Path) -> AsyncIterator[EmulatedHub]:
    """One without issues."""
    async with emulated("github", tmp_path) as url:
        made = EmulatedHub(url, tmp_path)
        await made.tickets.prepare()
        yield made
        await made.channel.aclose()


@pytest.mark.cluster
@pytest.mark.parametrize("row", PLAYED)
async def test_a_row_of_the_page_is_kept_on_a_github_that_others_wrote(hub: EmulatedHub, row: str) -> None:
    await PLAYED[row](hub)


def test_each_row_of_the_page_is_played_here_or_says_why_not() -> None:
    assert [row for row in ROWS if row not in CANNOT] == list(PLAYED)
    assert set(CANNOT) < set(ROWS)

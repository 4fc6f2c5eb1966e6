"""The way of an alert to its issue: which modules act on it, and how often a text is rendered."""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from inspect import CO_COROUTINE
from pathlib import Path
from types import FrameType

import pytest

import remediator.tickets
from remediator.clock import SYSTEM
from remediator.tickets.channels.github import GitHub, GithubTokenFile
from remediator.tickets.reconcile.reconciler import TicketReconciler
from remediator.tickets.render import rendered
from remediator.tickets.render.body import IssueText
from remediator_sim.github import FakeGitHub
from tests.harness.tickets import TicketHarness, delivery, ends, fires

TICKETS = Path(remediator.tickets.__file__).parent
PAGE = TICKETS.parents[1] / "docs" / "tickets.md"
WAY = [
    "webhook/receiver.py",
    "reconcile/store.py",
    "reconcile/reconciler.py",
    "reconcile/create.py",
    "channels/github/channel.py",
]


@contextmanager
def acting() -> Iterator[list[str]]:
    """The modules of tickets whose coroutines run inside the block, in the order of their first step."""
    modules: list[str] = []

    def profile(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_flags & CO_COROUTINE:
            path = Path(frame.f_code.co_filename)
            if path.is_relative_to(TICKETS) and str(path.relative_to(TICKETS)) not in modules:
                modules.append(str(path.relative_to(TICKETS)))

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        yield modules
    finally:
        sys.setprofile(before)


@pytest.mark.slow
async def test_five_modules_act_between_the_post_of_an_alert_and_its_issue(
    harness: TicketHarness, tmp_path: Path
) -> None:
    async with FakeGitHub(["org/default"], ["ann"]) as fake:
        (tmp_path / "token").write_text(fake.token)
        harness.channel = GitHub(fake.url, GithubTokenFile(tmp_path / "token"), SYSTEM, spacing=0.0)  # type: ignore[assignment]
        harness.restart()
        with acting() as modules:
            await harness.hear(delivery(fires()))
            await harness.work()
        await harness.channel.aclose()
        assert len(fake.issues("org/default")) == 1
    # reconcile/actions.py only ends the pass, after the issue was recorded.
    assert modules[-1:] == ["reconcile/actions.py"]
    assert modules[:-1] == WAY


def test_the_page_names_the_five_modules_of_the_way() -> None:
    assert re.findall(r"^\| `([a-z_/]+\.py)` \|", PAGE.read_text(), re.MULTILINE) == WAY


class Count:
    """How often a text was rendered."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._renders, self._text = 0, rendered.text
        monkeypatch.setattr(rendered, "text", self._counted)

    def _counted(self, *args: object) -> IssueText:
        self._renders += 1
        return self._text(*args)  # type: ignore[arg-type]

    def taken(self) -> int:
        """The number since it was asked last."""
        taken, self._renders = self._renders, 0
        return taken


@pytest.fixture
def renders(monkeypatch: pytest.MonkeyPatch) -> Count:
    """Counts renderings."""
    return Count(monkeypatch)


async def test_a_text_is_rendered_once_for_each_change_of_what_it_says(harness: TicketHarness, renders: Count) -> None:
    counts = []
    await harness.hear(delivery(fires()))
    await harness.work()
    counts.append(renders.taken())  # created
    for _ in range(5):
        await harness.later(minutes=10)
    counts.append(renders.taken())  # nothing changed in five passes
    await harness.hear(delivery(fires("GpuHot", severity="critical")))
    await harness.later(minutes=10)
    counts.append(renders.taken())  # read, edited, relabelled
    await harness.hear(delivery(ends(end=70), ends("GpuHot", end=70, severity="critical")))
    await harness.later(minutes=10)
    counts.append(renders.taken())  # read, edited, commented, closed
    assert harness.channel.open == []
    assert counts == [1, 0, 1, 1]


async def test_a_text_that_waits_for_its_minute_is_rendered_once(harness: TicketHarness, renders: Count) -> None:
    await harness.policy()
    await harness.case()
    await harness.work()
    renders.taken()
    await harness.becomes("case-1", "Operating")
    await harness.later(seconds=10)  # too soon after the last edit
    await harness.later(seconds=60)
    assert "Operating" in harness.channel.issue(1).body
    assert renders.taken() == 1


async def test_a_leader_that_takes_over_renders_each_open_text_once(harness: TicketHarness, renders: Count) -> None:
    await harness.hear(delivery(fires(), fires(node="gpu-18")))
    await harness.work()
    renders.taken()
    harness.restart()
    assert isinstance(harness.reconciler, TicketReconciler)
    for _ in range(3):
        await harness.later(minutes=5)
    assert renders.taken() == 2

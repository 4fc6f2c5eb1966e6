"""What people see of tickets, as pictures for the pages: `python -m tests.contract.screenshots CHROMIUM`.

The product's own code makes issue, board and digest in the simulated GitHub; a headless Chromium draws its pages.
"""

import asyncio
import subprocess
import sys
import tempfile
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from remediator.cli.ticket import objects
from remediator.clock import SYSTEM
from remediator.tickets.channels.base import Draft, Issue, Marker
from remediator.tickets.channels.boards import ProjectBoard
from remediator.tickets.channels.github import GitHub, GithubTokenFile
from remediator.tickets.channels.github.limits import problem
from remediator.tickets.channels.routes_file import load
from remediator.tickets.digest.facts import facts
from remediator.tickets.digest.text import text, title
from remediator.tickets.render.preview import preview
from remediator_sim.github import FakeGitHub
from tests.remediator.tickets import test_digest

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "tests/remediator/tickets/preview.yaml"
FIGURES = ROOT / "docs" / "figures"
REPOSITORY, PEOPLE = "org/gpu-hardware", ("alice", "bob")
NOW = datetime(2026, 11, 20, 17, 30, tzinfo=UTC)
BOARD = ProjectBoard("org", 7, person="Blocked")
SIZES = {"issue": (960, 1290), "board": (960, 440), "digest": (960, 1290)}
OTHERS = (
    ("gpu-04: NfsStale", "severity: warning", BOARD.waiting),
    ("gpu-09: GpuXid", "severity: critical", BOARD.repairing),
    ("gpu-21: DiskFault", "severity: warning", BOARD.repairing),
    ("gpu-11: GpuLost", "severity: critical", BOARD.done),
)


async def filed(channel: GitHub, heading: str, body: str, *labels: str, kept_up: bool = True) -> Issue:
    """One issue, as the product files it."""
    marker, milestone = Marker("0123456789abcdef", NOW), "2026-Q4" if kept_up else ""
    names = ("remediator", *labels)
    return await channel.create(REPOSITORY, Draft(heading, body, marker, names, PEOPLE[:1], milestone, kept_up))


async def fill(channel: GitHub, fake: FakeGitHub) -> None:
    """An issue with its case, others beside it on the board, and a digest."""
    routes = load(ROOT / "deploy/tickets/routes.yaml", problem)
    shown = preview(objects(EXAMPLE), routes, None, NOW)[0]
    cards = [(await filed(channel, shown.title, shown.text, "severity: critical"), BOARD.person)]
    cards += [(await filed(channel, f"[prod-a] {name}", "", label), column) for name, label, column in OTHERS]
    for issue, column in cards:
        card = await channel.card(BOARD, issue.ref)
        await channel.move(BOARD, card, column)
    week = facts(test_digest.a_week(), test_digest.WEEK)
    fake.advance((week.week.end - NOW).total_seconds())
    await filed(channel, title(week, "prod-a"), text(week), kept_up=False)


def draw(chromium: str, url: str, name: str) -> None:
    """One page as a picture."""
    width, height = SIZES[name]
    size = f"--window-size={width},{height}"
    target = f"--screenshot={FIGURES / f'tickets-{name}.png'}"
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", size, target]
    subprocess.run([chromium, *flags, url], check=True, capture_output=True, timeout=120)


async def main(chromium: str) -> None:
    """Draw all of them."""
    began = SYSTEM.wall()
    clock = replace(SYSTEM, wall=lambda: NOW + (SYSTEM.wall() - began))
    async with FakeGitHub([REPOSITORY], PEOPLE, clock=clock) as fake:
        fake.person("alice").open_milestone(REPOSITORY, "2026-Q4")
        fake.project("org", 7, "Status", BOARD.waiting, BOARD.repairing, BOARD.person, BOARD.done)
        with tempfile.NamedTemporaryFile("w") as token:
            token.write(fake.token)
            token.flush()
            channel = GitHub(fake.url, GithubTokenFile(Path(token.name)), SYSTEM, spacing=0.0)
            await fill(channel, fake)
            await channel.aclose()
        newest = len(fake.issues(REPOSITORY))
        pages = {"issue": f"{REPOSITORY}/issues/1", "board": "orgs/org/projects/7"}
        for name, path in (pages | {"digest": f"{REPOSITORY}/issues/{newest}"}).items():
            await asyncio.to_thread(draw, chromium, f"{fake.web_url}/{path}", name)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))

"""The demo says where its page is, and opens it only for somebody who sits before a screen."""

import asyncio
import io
import os
import stat
from pathlib import Path

import pytest
from rich.console import Console

from remediator_sim.scenarios import browser
from remediator_sim.scenarios.__main__ import parse
from tests.harness.waiting import until

URL = "https://127.0.0.1:4242/"
SCREEN, WAYLAND = {"DISPLAY": ":0"}, {"WAYLAND_DISPLAY": "wayland-0"}


@pytest.mark.parametrize(
    ("wanted", "terminal", "environment", "platform", "opens"),
    [
        (True, True, SCREEN, "linux", True),
        (True, True, WAYLAND, "linux", True),
        (True, True, {}, "linux", False),
        (True, True, {"DISPLAY": ""}, "linux", False),
        (True, True, {}, "darwin", True),
        (True, True, {}, "win32", True),
        (True, True, {"SSH_CONNECTION": "10.0.0.1 5 10.0.0.2 22"}, "darwin", False),
        (True, True, {"SSH_CONNECTION": "10.0.0.1 5 10.0.0.2 22", **SCREEN}, "linux", True),
        (True, False, SCREEN, "linux", False),
        (True, False, {}, "darwin", False),
        (True, True, {"CI": "true", **SCREEN}, "linux", False),
        (True, True, {"CI": "1"}, "darwin", False),
        (True, True, {"CI": "false", **SCREEN}, "linux", True),
        (False, True, SCREEN, "linux", False),
        (False, True, {}, "darwin", False),
    ],
)
def test_the_page_opens_only_on_a_terminal_with_a_display_and_never_in_ci(
    wanted: bool, terminal: bool, environment: dict[str, str], platform: str, opens: bool
) -> None:
    assert browser.opens(wanted, terminal, environment, platform) is opens


def test_an_option_keeps_the_page_closed_and_a_pipe_is_no_terminal() -> None:
    assert (parse([]).no_browser, parse(["--no-browser"]).no_browser) == (False, True)
    assert not browser.wanted(False, io.StringIO(), SCREEN)


def program(folder: Path, text: str) -> str:
    """A browser for the standard library, by the variable that it reads."""
    file = folder / "opens"
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return str(file)


async def test_the_page_is_opened_by_the_users_browser_and_its_address_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = tmp_path / "given"
    monkeypatch.setenv("BROWSER", program(tmp_path, f'echo "$1" > {given}.part; mv {given}.part {given}'))
    console = Console(file=io.StringIO(), width=120)
    async with browser.shown(console, URL, "reader", open_it=True):
        await until(given.exists)
    assert given.read_text() == f"{URL}\n"
    assert console.file.getvalue() == (  # type: ignore[attr-defined]
        f"page {URL} - sign in with the token reader; its certificate is of an authority of its own\n"
    )


async def test_a_browser_that_cannot_be_started_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("BROWSER", program(tmp_path, "exit 1"))
    monkeypatch.setenv("PATH", str(tmp_path))
    console = Console(file=io.StringIO(), width=120)

    def lines() -> list[str]:
        return console.file.getvalue().splitlines()[1:]  # type: ignore[attr-defined, no-any-return]

    async with browser.shown(console, URL, "reader", open_it=True):
        await until(lines)
    assert lines() == [f"no browser could be started; open {URL} yourself"]


async def test_a_browser_that_blocks_keeps_nobody_waiting_and_nothing_is_opened_unasked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It runs for an hour; that much later the demo would end if it waited."""
    begun = tmp_path / "begun"
    monkeypatch.setenv("BROWSER", program(tmp_path, f"echo $$ > {begun}; exec sleep 3600"))
    console = Console(file=io.StringIO(), width=120)
    async with browser.shown(console, URL, "reader", open_it=False):
        pass
    assert not begun.exists()
    async with asyncio.timeout(60), browser.shown(console, URL, "reader", open_it=True):
        await until(lambda: begun.exists() and begun.read_text().strip())
    os.kill(int(begun.read_text()), 9)

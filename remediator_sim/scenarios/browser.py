"""The page of the demo in the user's browser, where there is somebody who looks at one."""

import asyncio
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import IO

from rich.console import Console

DEVNULL = asyncio.subprocess.DEVNULL
NOT_SET = ("", "0", "false")  # values of CI by which nobody means that it is one
WITH_WINDOWS = ("darwin", "win32")  # where a browser needs no display server
# In a process of its own, without our terminal: a browser may block, and may be one that draws on a terminal.
OPEN = "import sys, webbrowser; sys.exit(not webbrowser.open(sys.argv[1]))"


def opens(wanted: bool, terminal: bool, environment: Mapping[str, str], platform: str) -> bool:
    """Whether somebody sits before a screen on which a browser can open: never in CI, never where output is piped."""
    if not wanted or not terminal or environment.get("CI", "").lower() not in NOT_SET:
        return False
    display = environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY")
    return bool(display) or (platform in WITH_WINDOWS and "SSH_CONNECTION" not in environment)


def wanted(no_browser: bool, stdout: IO[str], environment: Mapping[str, str]) -> bool:
    """The same for this process."""
    return opens(not no_browser, stdout.isatty(), environment, sys.platform)


@asynccontextmanager
async def shown(console: Console, url: str, token: str, *, open_it: bool) -> AsyncIterator[None]:
    """Say where the page is, and open it where that is wanted. The browser goes on when this is left."""
    console.print(
        f"page {url} - sign in with the token {token}; its certificate is of an authority of its own", soft_wrap=True
    )
    opening = asyncio.ensure_future(_open(console, url)) if open_it else None
    try:
        yield
    finally:
        if opening is not None:
            opening.cancel()
            await asyncio.wait({opening})


async def _open(console: Console, url: str) -> None:
    """Say so in one line where no browser can be started."""
    try:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-c", OPEN, url),
            stdin=DEVNULL,
            stdout=DEVNULL,
            stderr=DEVNULL,
            start_new_session=True,
        )
    except OSError as wrong:
        console.print(f"no browser was started: {wrong}", soft_wrap=True)
        return
    try:
        failed = await process.wait()
    except asyncio.CancelledError:
        process.kill()
        await process.wait()
        raise
    if failed:
        console.print(f"no browser could be started; open {url} yourself", soft_wrap=True)

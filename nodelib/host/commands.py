"""Run the node's own programs in its own namespaces, and never hang with them.

A program that asks a dead device or a dead server may sleep in the kernel where no signal reaches it, and whoever waits
for it, or for the end of its pipe, sleeps too. So a command has a session of its own, speaks into memory instead of a
pipe, and is left behind when it does not end.
"""

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

ENTER = ("nsenter", "--target", "1", "--mount", "--uts", "--ipc", "--net", "--pid", "--")
GRACE = 5.0  # seconds between SIGTERM and SIGKILL: a driver call that is cut short may itself wedge a GPU
KILLING = 0.2  # seconds after SIGKILL until a program is left behind
SAID_BYTES = 1 << 20


class CommandOutput(NamedTuple):
    """What a command said on both streams, and its exit code: None when it did not end in time."""

    code: int | None
    text: str

    @property
    def last(self) -> str:
        """Its last line that is not empty."""
        return next((line.strip() for line in reversed(self.text.splitlines()) if line.strip()), "it printed nothing")


class Command:
    """A program that runs since this was made: on the node, or, with nothing to enter it by, beside this one."""

    def __init__(
        self,
        words: Sequence[str],
        enter: Sequence[str] = ENTER,
        variables: Mapping[str, str] | None = None,
        fds: Sequence[int] = (),
    ):
        """`fds`: open files that it is given under their numbers here."""
        self._said = os.memfd_create("said")
        self._child = subprocess.Popen(
            [*enter, *words],
            stdin=subprocess.DEVNULL,
            stdout=self._said,
            stderr=self._said,
            env={**os.environ, "LC_ALL": "C", **(variables or {})},  # what it says is read
            start_new_session=True,
            pass_fds=fds,
            cwd="/",
        )

    def told(self, until: float) -> CommandOutput:
        """Wait for its end until `until` (of the monotonic clock), then end it or leave it behind."""
        in_time = ends_by(self._child, until) or self._abandon()
        text = os.pread(self._said, SAID_BYTES, 0).decode(errors="replace")
        os.close(self._said)
        return CommandOutput(self._child.returncode if in_time else None, text)

    def _abandon(self) -> bool:
        for signum, patience in ((signal.SIGTERM, GRACE), (signal.SIGKILL, KILLING)):
            try:
                os.killpg(self._child.pid, signum)
            except ProcessLookupError:
                break
            if ends_by(self._child, time.monotonic() + patience):
                break
        return False


def run(words: Sequence[str], seconds: float) -> CommandOutput:
    """Run one program on the node for at most `seconds` (and GRACE to end it)."""
    return Command(words).told(time.monotonic() + seconds)


def run_here(words: Sequence[str], seconds: float) -> CommandOutput:
    """Run one program in this container for at most `seconds` (and GRACE to end it)."""
    return Command(words, ()).told(time.monotonic() + seconds)


def shown(words: Sequence[str]) -> str:
    """The whole command line, as a dry run prints it."""
    return " ".join((*ENTER, *words))


def ends_by(child: subprocess.Popen[bytes], until: float) -> bool:
    """Tell whether `child` ends in time; never waits for it in the kernel."""
    pause = 0.005
    while child.poll() is None and time.monotonic() < until:
        time.sleep(min(pause, 0.1))
        pause *= 1.5
    return child.poll() is not None

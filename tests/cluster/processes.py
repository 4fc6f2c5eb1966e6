"""Children of a control plane: started with a log file, ended by their id, never left behind."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from remediator_sim.kubelet.program import die_with_parent
from tests.harness.waiting import PATIENCE

TAIL = 2000


class Running(NamedTuple):
    """One process: its id, and when it started (in ticks since boot), which tells it from a later owner of the id."""

    name: str
    pid: int
    started: str

    def alive(self) -> bool:
        """Whether this very process still runs; a zombie does not."""
        return bool(self.started) and _state(self.pid) == self.started


class Child:
    """A program that runs with its output in `log`, our variables and those of `environment`.

    A `detached` one outlives us, any other is killed with us.
    """

    def __init__(
        self,
        command: Sequence[str | Path],
        log: Path,
        *,
        detached: bool = False,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.name, self.log = Path(command[0]).name, log
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                [str(part) for part in command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **(environment or {})},
                start_new_session=detached,
                preexec_fn=None if detached else die_with_parent,
            )
        self.running = Running(self.name, self._process.pid, _state(self._process.pid))

    def check(self) -> None:
        """Raise RuntimeError, with the end of its log, where it has ended by itself."""
        if self._process.poll() is not None:
            raise RuntimeError(f"{self.name} ended with {self._process.returncode}:\n{self.tail()}")

    def tail(self) -> str:
        """The end of its log."""
        return self.log.read_text(errors="replace")[-TAIL:]

    def wait_until(self, ready: Callable[[], bool], seconds: float) -> None:
        """Poll until `ready()`; raise TimeoutError, with the end of the log, after `seconds`, in CI later."""
        end = time.monotonic() + seconds * PATIENCE
        while not ready():
            self.check()
            if time.monotonic() > end:
                raise TimeoutError(f"{self.name} is not ready after {seconds * PATIENCE:.0f} s:\n{self.tail()}")
            time.sleep(0.05)

    def stop(self, seconds: float = 10.0) -> None:
        """Ask it to end; insist after `seconds`."""
        if self._process.poll() is None:
            self._process.terminate()
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def end(processes: Sequence[Running], seconds: float = 10.0) -> None:
    """End processes that another Python started, in order; ids that have a new owner are left alone."""
    for running in processes:
        for number in (signal.SIGTERM, signal.SIGKILL):
            if running.alive():
                os.kill(running.pid, number)
            deadline = time.monotonic() + seconds
            while running.alive() and time.monotonic() < deadline:
                time.sleep(0.05)


def _state(pid: int) -> str:
    """The start time of a process, empty where none runs under this id."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return ""
    return "" if fields[0] in "ZX" else fields[19]

"""The demo as a process, as `make demo` starts it."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

from remediator_sim.scenarios.scenarios import FEWEST
from tests.harness.sample import turn

ROOT = Path(__file__).parents[3]
DEMO = (sys.executable, "-m", "remediator_sim.scenarios")
# The faults of which `make test` plays one, at each commit the next; CI plays the whole demo, with the file server that
# dies under nine nodes: it takes a fleet of 24.
PARTS = ("lost-gpu", "ecc-fault", "unkillable-process", "stuck-mount", "returning-fault", "blocked-drain")


class Played(NamedTuple):
    """The faults that are played: all, or one, on as few nodes as it needs."""

    whole: bool
    faults: tuple[str, ...]

    @property
    def options(self) -> tuple[str, ...]:
        """How the demo is asked for them."""
        if self.whole:
            return ()
        only = [word for fault in self.faults for word in ("--only", fault)]
        return ("--nodes", str(max(FEWEST[fault] for fault in self.faults)), *only)


def played(number: int) -> Played:
    """What the run of this number plays."""
    return Played(whole=False, faults=(PARTS[number % len(PARTS)],))


PLAYED = Played(whole=True, faults=tuple(FEWEST)) if os.environ.get("CI") else played(turn())


class Ended(NamedTuple):
    """A demo that has ended. `text` is what people read, `left` the processes of it that still run."""

    code: int
    text: str
    output: str
    left: list[str]

    @property
    def summary(self) -> dict[str, Any]:
        """The object on the last line of its output."""
        assert self.output, self.text[-4000:]
        return json.loads(self.output.splitlines()[-1])


def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    """Start it in a session of its own, its files in `folder`; what people read is kept apart from its last line."""
    env = {**os.environ, "COLUMNS": "160", "TMPDIR": str(folder)}
    return subprocess.Popen(
        [*DEMO, *arguments],
        cwd=ROOT,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def end(process: subprocess.Popen[str], seconds: float) -> Ended:
    """Wait for it; one that takes longer is killed with all that it started."""
    try:
        output, text = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    return Ended(process.returncode, text, output, left_over(process.pid))


def left_over(session: int) -> list[str]:
    """The ids of the processes of a session that still run."""
    numbers = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(fields[3]) == session and fields[0] not in "ZX":
            numbers.append(path.parent.name)
    return numbers

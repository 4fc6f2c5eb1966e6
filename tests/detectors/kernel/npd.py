"""node-problem-detector on a node of a real API server, with the shipped files of detectors, run often."""

import asyncio
import json
from contextlib import asynccontextmanager
from pathlib import Path

from tests.contract.npd.playing import Play
from tests.detectors.kernel.stuck import children_of
from tests.harness.waiting import until

ROOT = Path(__file__).resolve().parents[3]
SECONDS = 60.0
DEADLINE = 1.0  # seconds that a detector waits for what may hang
SLACK = 12.0  # seconds for the interval, for publishing, and for a busy machine
OFTEN = {"invoke_interval": "1s", "timeout": "30s"}


@asynccontextmanager
async def played(server, directory):
    """A node of a real API server, and node-problem-detector for it."""
    play = Play("real", server, {}, directory)
    await play.set_up()
    try:
        yield play
    finally:
        await play.tear_down()


def monitor(directory, name, command, env=None):
    """The shipped file of a detector, which runs often and runs this command."""
    script = directory / f"{name}.sh"
    words = [f"export {key}='{value}'" for key, value in (env or {}).items()]
    script.write_text("\n".join(["#!/bin/sh", *words, f"exec {' '.join(map(str, command))}", ""]))
    script.chmod(0o755)
    body = json.loads((ROOT / f"deploy/npd/{name}.json").read_text())
    body["pluginConfig"] |= OFTEN
    body["rules"][0] |= {"path": str(script), "args": [], "timeout": OFTEN["timeout"]}
    path = directory / f"{name}.json"
    path.write_text(json.dumps(body))
    return path


def finished(state, name):
    """When the last run of a detector ended, by the mark that it leaves; 0 before the first."""
    path = state / f"marks/{name}.json"
    return json.loads(path.read_text())["finished_at"] if path.exists() else 0.0


async def runs(state, name, count):
    """Wait until so many more runs of a detector have ended."""
    for _ in range(count):
        last = finished(state, name)
        await until(lambda last=last: finished(state, name) > last, SECONDS)


class Count:
    """The most processes with a word among their arguments that there were at any time while entered."""

    def __init__(self, word):
        self.word, self.most = str(word), 0

    async def __aenter__(self):
        self._task = asyncio.create_task(self._look())
        return self

    async def __aexit__(self, *_):
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _look(self):
        while True:
            self.most = max(self.most, len(children_of(self.word)))
            await asyncio.sleep(0.02)

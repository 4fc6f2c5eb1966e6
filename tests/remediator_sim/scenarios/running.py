"""The demo as a process, as `make demo` starts it."""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
DEMO = (sys.executable, "-m", "remediator_sim.scenarios")


async def start(folder: Path, *arguments: str) -> asyncio.subprocess.Process:
    """Start it in a session of its own, its files in `folder`; what it says is kept apart from its last line."""
    pipe = asyncio.subprocess.PIPE
    env = {**os.environ, "COLUMNS": "160", "TMPDIR": str(folder)}
    return await asyncio.create_subprocess_exec(
        *DEMO, *arguments, cwd=ROOT, env=env, stdout=pipe, stderr=pipe, start_new_session=True
    )


def told(output: bytes) -> dict[str, Any]:
    """The object on the last line."""
    return json.loads(output.splitlines()[-1])


def left_over(session: int) -> list[str]:
    """What still runs of a process's session, or carries its folder in its command line."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(fields[3]) == session and fields[0] not in "ZX":
            found.append(path.parent.name)
    return found

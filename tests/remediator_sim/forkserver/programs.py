"""Programs that tests start, and how they are run to their end."""

import asyncio
import os
import sys
from pathlib import Path

from remediator_sim.npd.runner import head

PYTHON = Path(sys.executable).parent / "python3"
ENV = {"PATH": f"{PYTHON.parent}:{os.environ['PATH']}", "HOME": "/nowhere", "NAME": "ünode"}
FIRST_LINES = [
    "#!/usr/bin/env -S python3 -E -s -S -B",
    "#!/usr/bin/env -S python3 -I -S -B",
    "#!/usr/bin/env -S python3 -ESP",
    f"#!{PYTHON} -IS",
]
HANG = """
import os, subprocess, sys, time
child = subprocess.Popen(["/bin/sleep", "300"])
with open(sys.argv[1] + ".draft", "w") as file:
    file.write(f"{os.getpid()} {child.pid}")
os.rename(sys.argv[1] + ".draft", sys.argv[1])
time.sleep(300)
"""


def program(path, text, first=FIRST_LINES[0]):
    path.write_text(f"{first}\n{text}")
    path.chmod(0o755)
    return path


async def ran(runner, path, *args, env=ENV):
    """(exit code, stdout, stderr) of one run."""
    running = await runner.start([str(path), *args], env)
    with running.stdout as out, running.stderr as err:
        said, complained = await asyncio.gather(head(out, 1 << 20), head(err, 1 << 20))
    return await running.ended(), said, complained

"""A replica without what reads its options: a child reads them, and is gone once they are read."""

import asyncio
import json
import os
import signal
import sys

import pytest

from tests.remediator.test_cli import spawned
from tests.remediator.test_cli_interrupted import INTERRUPTED, read_until

pytestmark = pytest.mark.slow

LOADED = """
import json, sys
from remediator import process

def shown(options):
    import remediator.app, remediator.metrics, remediator.tickets.channels.github
    print(json.dumps([options.settings.drains, str(options.kubeconfig), options.log_level, sorted(sys.modules)]))

process.run = shown
from remediator.__main__ import main
main()
"""


TICKETS = ("--routes=/dev/null", "--github-token-file=/dev/null")


async def test_a_replica_runs_as_its_options_say_and_holds_neither_what_reads_options_nor_what_draws_tables() -> None:
    words = ("run", "--drains=3", "--kubeconfig=/x", "--log-level=debug", *TICKETS)
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", LOADED, *words, stdout=asyncio.subprocess.PIPE)
    shown, _ = await process.communicate()
    drains, kubeconfig, level, modules = json.loads(shown)
    assert (drains, kubeconfig, level) == (3, "/x", "debug")
    assert {"remediator.app", "structlog"} <= set(modules)
    assert not {
        "typer",
        "pydantic",
        "rich",
        "pygments",
        "kubernetes",
        "cryptography",
        "charset_normalizer",
        "remediator.cli",
    } & set(modules)


async def test_a_replica_that_is_an_app_of_github_can_sign() -> None:
    app = ("--github-app-id=1", "--github-app-installation-id=2", "--github-app-key-file=/dev/null")
    shows = LOADED.replace("print(", "import jwt.algorithms; print(jwt.algorithms.has_crypto, ")
    words = ("run", "--routes=/dev/null", *app)
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", shows, *words, stdout=asyncio.subprocess.PIPE)
    shown, _ = await process.communicate()
    assert shown.startswith(b"True ")


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (("--help",), 0, "Run the controller"),
        (("--drains=none",), 2, "--drains"),
        (("--listen=nowhere",), 2, "--listen"),
        (("--kubeconfig=/nowhere",), 2, "no kubeconfig at /nowhere"),
    ],
)
async def test_what_the_child_refuses_ends_it_with_its_code(words: tuple[str, ...], code: int, sentence: str) -> None:
    ended, out, err = await spawned("run", *words)
    assert (ended, sentence in out + err, "Traceback" in err) == (code, True, False)


async def test_ctrl_c_while_the_child_reads_ends_both_in_one_line() -> None:
    """A terminal sends it to both. Python says on stderr what it imports: by then the child reads options."""
    shows = (sys.executable, "-X", "importtime", "-m", "remediator", "run", "--kubeconfig=/nowhere")
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*shows, stderr=pipe, start_new_session=True)
    await read_until(process.stderr, b"remediator.cli.common")
    os.killpg(process.pid, signal.SIGINT)
    _, err = await asyncio.wait_for(process.communicate(), 60)  # until the child, too, has let go of stderr
    lines = [line for line in err.decode().splitlines() if not line.startswith("import time:")]
    assert (process.returncode in (INTERRUPTED, -signal.SIGINT), lines) == (True, ["remediator: nothing was done"])


KILLED = """
import os
from remediator import options_apart

def half(writes):
    os.write(writes, b"\\x80\\x04\\x95")
    os.kill(os.getpid(), 9)

options_apart._hand_over = half
options_apart.read()
"""


async def test_a_child_that_is_killed_in_the_middle_ends_it_without_a_traceback() -> None:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", KILLED, stderr=pipe)
    _, err = await asyncio.wait_for(process.communicate(), 60)
    assert (process.returncode, err) == (256 - signal.SIGKILL, b"")

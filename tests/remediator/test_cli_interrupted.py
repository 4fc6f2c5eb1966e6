"""Ctrl-C in the middle of a command, as a terminal sends it: to a process, which says what it did and what goes on."""

import asyncio
import re
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from remediator_sim.apiserver.faults import Asked
from tests.harness.controller import RUNS, controller_harness, running, until
from tests.harness.kinds import CASES, OPERATIONS
from tests.remediator.test_cli import COMMAND
from tests.remediator.test_cli_operate import made

pytestmark = pytest.mark.slow
PIPE = asyncio.subprocess.PIPE
INTERRUPTED = 130
LEFT = "Operating, Pods left: 3 (team/web-0 (web)): drain on gpu-1"


@asynccontextmanager
async def begun(*command: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """A process, killed at the end where it still runs."""
    process = await asyncio.create_subprocess_exec(*command, stdout=PIPE, stderr=PIPE)
    try:
        async with asyncio.timeout(120):
            yield process
    finally:
        if process.returncode is None:
            process.kill()


async def read_until(stream: asyncio.StreamReader, words: bytes) -> str:
    """What it has written up to the line with these words."""
    written = b""
    while words not in written:
        line = await stream.readline()
        assert line, f"ended without {words!r}: {written.decode()}"
        written += line
    return written.decode()


async def ctrl_c(process: asyncio.subprocess.Process) -> tuple[int, list[str]]:
    """The exit code, and what it says of itself, line by line."""
    process.send_signal(signal.SIGINT)
    _, err = await process.communicate()
    return process.returncode or 0, err.decode().removeprefix("remediator: ").strip().split("\nremediator: ")


async def test_ctrl_c_while_a_command_loads_ends_it_in_one_line():
    """Python says on stderr what it imports: by then the entry point runs, and most is still to come.

    Where it runs the text of a class just then, Python remembers the signal, and ends of it after all that we say; to a
    shell both are 130.
    """
    shows = (sys.executable, "-X", "importtime", "-m", "remediator", "drain", "gpu-1", "--yes")
    async with begun(*shows) as process:
        await read_until(process.stderr, b"remediator.core.names")
        code, said = await ctrl_c(process)
    lines = [line for line in "\n".join(said).splitlines() if not line.startswith("import time:")]
    assert (code in (INTERRUPTED, -signal.SIGINT), lines) == (True, ["nothing was done"])


async def test_ctrl_c_while_a_replica_loads_ends_it_quietly():
    """What reads its options is a child; then the process itself loads what a replica logs and counts with."""
    shows = (sys.executable, "-X", "importtime", "-m", "remediator", "run", "--kubeconfig", "/nowhere")
    async with begun(*shows) as process:
        await read_until(process.stderr, b"structlog")
        code, said = await ctrl_c(process)
    lines = [line for line in "\n".join(said).splitlines() if not line.startswith("import time:")]
    assert code in (INTERRUPTED, -signal.SIGINT)
    assert lines in ([], ["nothing was done"]), "no traceback, wherever it is"


async def test_ctrl_c_while_a_drain_is_followed_says_how_far_it_is_and_the_command_that_stops_it():
    async with controller_harness() as harness, running(harness), harness.server.serve() as endpoint:
        await harness.node("gpu-1")
        harness.answer("drain", RUNS)
        kubeconfig = ("--kubeconfig", str(endpoint.kubeconfig))
        async with begun(*COMMAND, "drain", "gpu-1", "--yes", *kubeconfig) as process:
            await until(lambda: harness.pods("drain", "Running"))
            of_case = next(each for each in harness.all(OPERATIONS) if "caseUID" in each["spec"])["metadata"]["name"]
            status = {"drain": {"left": 3, "blocked": [{"pod": "team/web-0", "pdb": "web"}]}}
            await harness.client.patch(OPERATIONS, of_case, {"status": status}, subresource="status")
            await read_until(process.stdout, LEFT.encode())
            code, said = await ctrl_c(process)
        name, case = made(harness)[0]["metadata"]["name"], harness.cases("gpu-1")[0]["metadata"]["name"]
        assert (code, said) == (
            INTERRUPTED,
            [
                f"NodeOperation {name} is made and goes on (seen last: {LEFT}); nothing more is shown of it",
                f"to look: remediator explain gpu-1; to take it back: remediator cancel gpu-1 --case {case}",
            ],
        )
        assert harness.pods("drain", "Running"), "it goes on"
        await obey(said[1], *kubeconfig)
        await until(lambda: harness.cases("gpu-1")[0]["metadata"].get("deletionTimestamp"))
        async with begun(*COMMAND, "explain", "gpu-1", *kubeconfig) as process:
            shown = (await process.communicate())[0].decode()
        assert "  cancelled: it ends once its operation has ended, and its node takes work again\n" in shown
        assert "to change it" not in shown


async def obey(line: str, *more: str) -> None:
    """Run the last command that a line names."""
    command = line.rsplit("remediator ", 1)[1]
    async with begun(*COMMAND, *command.split(), *more) as process:
        out, err = await process.communicate()
        assert process.returncode == 0, (out, err)


async def test_ctrl_c_while_two_nodes_are_taken_out_names_both_and_what_takes_each_back():
    async with controller_harness() as harness, running(harness), harness.server.serve() as endpoint:
        for node in ("gpu-1", "gpu-2"):
            await harness.node(node)
        harness.answer("drain", RUNS)
        words = ("take-out", "gpu-1", "gpu-2", "--for", "3d", "--yes", "--kubeconfig", str(endpoint.kubeconfig))
        async with begun(*COMMAND, *words) as process:
            shown = await read_until(process.stdout, b"Operating: drain on gpu-")
            code, said = await ctrl_c(process)
        first = re.search(r"Operating: drain on (gpu-\d)", shown)
        assert first
        goes_on = {each["spec"]["nodeName"]: each["metadata"]["name"] for each in made(harness)}
        assert (code, len(said)) == (INTERRUPTED, 4)
        for node, name in goes_on.items():
            number = next(
                number for number, line in enumerate(said) if line.startswith(f"NodeOperation {name} is made")
            )
            here = said[number + 1]
            back = f"to take it back: remediator put-back {node}"
            waits = f"to take it back before it begins: kubectl delete nop {name}"
            assert here in (f"to look: remediator explain {node}; {each}" for each in (back, waits))
            assert here.endswith(back) or node != first[1]


@pytest.mark.parametrize(("command", "verb"), [("cancel", "DELETE"), ("put-back", "DELETE"), ("hold", "PATCH")])
async def test_ctrl_c_before_the_answer_to_an_order_says_that_nobody_knows_and_what_was_not_done(command, verb):
    asked = asyncio.Event()

    def is_order(request: Asked) -> bool:
        """Whether it is the one; the server answers it in an hour."""
        if request.method == verb and CASES.plural in request.path:
            asked.set()
            return True
        return False

    async with controller_harness() as harness, running(harness), harness.server.serve() as endpoint:
        await harness.node("gpu-1")
        harness.answer("drain", RUNS)
        kubeconfig = ("--kubeconfig", str(endpoint.kubeconfig))
        take_out = ("take-out", "gpu-1", "--for", "3d", "--yes", "--no-follow", *kubeconfig)
        async with begun(*COMMAND, *take_out) as process:
            _, err = await process.communicate()
            assert process.returncode == 0, err
        await until(lambda: harness.pods("drain", "Running"))
        harness.server.faults.delay(3600, when=is_order)
        async with begun(*COMMAND, command, "gpu-1", *kubeconfig) as process:
            await asked.wait()
            code, said = await ctrl_c(process)
        case = harness.cases("gpu-1")[0]["metadata"]["name"]
        harness.server.faults.clear()
    told = f"not known whether done: case {case} on gpu-1; what is done stays; to look: remediator explain gpu-1"
    assert (code, said) == (INTERRUPTED, [told])

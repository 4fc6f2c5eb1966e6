"""`make demo`, from the first fault to the summary."""

import asyncio
import signal
from pathlib import Path

import pytest

from tests.remediator_sim.scenarios.running import left_over, start, told

ENDS = {
    "lost-gpu": "Recovered",
    "ecc-fault": "Recovered",
    "unkillable-process": "Recovered",
    "stuck-mount": "Recovered",
    "blocked-drain": "Recovered",
    "returning-fault": "Escalated",
    "dead-nfs-server": "Told",
    "controller-crash": "Resumed",
}
# One for each of: a lost GPU, a lost GPU behind a blocked drain, an unkillable process, a fault that returns.
REBOOTS = 4


@pytest.mark.timeout(300)
async def test_every_fault_ends_as_the_story_tells_and_every_invariant_was_put_to_the_test_and_held(
    tmp_path: Path,
) -> None:
    process = await start(tmp_path, "--summary", "json", "--patience", "200")
    output, said = await process.communicate()
    summary = told(output)
    assert summary["wrong"] == [], said.decode()[-4000:]
    assert process.returncode == 0
    assert {fault["name"]: fault["outcome"] for fault in summary["faults"]} == ENDS
    assert summary["reboots"] == REBOOTS
    assert summary["tickets"] == {"opened": 2, "closed": 1}, "one for the node that stays out, one for the file server"
    assert summary["evictions"] >= 5
    assert [name for name, one in summary["invariants"].items() if not one["checks"]] == []
    assert set(summary["invariants"]) == {f"I{number}" for number in range(1, 11)}
    assert left_over(process.pid) == []


@pytest.mark.timeout(120)
async def test_ctrl_c_ends_it_in_the_middle_with_nothing_left_running(tmp_path: Path) -> None:
    process = await start(tmp_path, "--summary", "json")
    assert process.stderr
    async for line in process.stderr:
        if b"Claimed" in line:
            break
    assert list(tmp_path.iterdir()) != []
    process.send_signal(signal.SIGINT)
    output, said = await asyncio.wait_for(process.communicate(), 30)
    assert process.returncode == 130
    assert b"nothing is left running" in said
    assert b"Traceback" not in said
    assert output == b"", "an interrupted demo has no summary"
    assert left_over(process.pid) == []
    assert list(tmp_path.iterdir()) == []


async def test_too_small_a_fleet_is_refused_with_the_reason(tmp_path: Path) -> None:
    process = await start(tmp_path, "--nodes", "3")
    _, said = await process.communicate()
    assert process.returncode == 2
    assert b"--nodes: the story needs 24 GPU nodes or more, not 3" in said

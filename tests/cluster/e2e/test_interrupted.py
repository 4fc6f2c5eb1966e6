"""A drain that a user follows and leaves with Ctrl-C: it goes on, and they are told how far it is."""

import re
import signal

import pytest

from remediator.core import names
from tests.cluster.e2e.stage import Stage
from tests.harness.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(240)]
NODE = "gpu-17"
NODES = [NODE]


async def done(stage: Stage, *words: str) -> str:
    """What a command says that runs to its end."""
    program = await stage.command(*words)
    assert await program.ended(60) == 0, program.written()
    return program.written()


async def given_back(stage: Stage) -> bool:
    """Whether nothing of ours keeps the node."""
    spec = (await stage.node(NODE))["spec"]
    return not spec.get("unschedulable") and names.CASE_TAINT not in [taint["key"] for taint in spec.get("taints", ())]


async def test_a_drain_that_is_left_with_ctrl_c_goes_on_and_the_command_that_it_names_is_obeyed(stage: Stage) -> None:
    """Budgets keep both Pods, so that it is left in its middle."""
    workload = stage.workloads[NODE]
    await workload.allow(0)
    await stage.start_controller()
    drain = await stage.command("drain", NODE, "--yes")
    blocked = f"{workload.space}/training-0, {workload.space}/training-1 (training)"
    await until(lambda: f"Pods left: 2 ({blocked})" in drain.written(), 60)
    drain.signal(signal.SIGINT)
    assert await drain.ended(15) == 130, drain.written()
    *_, goes_on, look = drain.written().splitlines()
    assert re.match(
        rf"remediator: NodeOperation drain-{NODE}-\w+ is made and goes on \(seen last: Operating, Pods left: 2 \(",
        goes_on,
    ), goes_on
    assert goes_on.endswith("; nothing more is shown of it")
    back, case = look.removeprefix("remediator: ").split(" --case ")
    assert back == f"to look: remediator explain {NODE}; to take it back: remediator cancel {NODE}"

    assert f"2 pods left on {NODE}; in the way: {blocked}\n" in await done(stage, "explain", NODE)
    assert "is cancelled: it ends once its operation has ended" in await done(stage, "cancel", NODE, "--case", case)
    await until(lambda: given_back(stage), 60)
    assert {"training-0", "training-1"} <= set(await workload.pods()), "nobody was evicted"

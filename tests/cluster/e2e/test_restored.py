"""etcd is restored from a backup of the middle of a repair that has ended since: docs/backup.md, step by step.

A kubelet starts a Pod again that its API server has again. That of a reboot looks at the boot id.
"""

import asyncio
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from remediator.core import names
from tests.cluster import REAL
from tests.cluster.control_plane import ControlPlane
from tests.cluster.e2e.case_run import ONCE, made, request_lines, settled
from tests.cluster.e2e.proxy import Cut, Mutation
from tests.cluster.e2e.stage import RESERVED, Replica, Stage
from tests.contract.docs.pages import ROOT
from tests.harness.kinds import CASES
from tests.harness.waiting import until

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.timeout(300),
    pytest.mark.parametrize("stage", [REAL], ids=["real"], indirect=True),
]
NODE = "gpu-17"
NODES = [NODE]


@pytest.fixture(scope="module")
def control_plane() -> Iterator[ControlPlane]:
    """One that may be put back: nobody else's objects are in it."""
    with ControlPlane(kwok=False) as plane:
        yield plane


async def test_a_node_that_was_rebooted_after_the_backup_is_not_rebooted_again_and_its_case_is_brought_to_its_end(
    stage: Stage, control_plane: ControlPlane, tmp_path: Path
) -> None:
    machine, backup = stage.machines[NODE], tmp_path / "backup"

    async def back_up(_: Mutation) -> None:
        control_plane.back_up(backup)

    stage.tape.cuts = [Cut(reboots, back_up)]  # the Pod is there, and has not started
    first = await stage.start_controller()
    machine.lose_gpu()
    before = await until(lambda: stage.over(NODE), 90)
    boot = machine.boot_id
    await asyncio.to_thread(control_plane.restore, backup)
    await stage.restart_kubelets()

    pause, _, look, explain, go_on = commands()
    await stage.kubectl(*pause.split()[1:])
    known = [case["metadata"]["name"] for case in await stage.of_node(CASES, NODE)]
    second = await restart(stage, first)
    assert "paused" in await said(stage, look)
    assert f"controller: {second.name} leads" in await said(stage, explain)
    await stage.kubectl(*go_on.split()[1:])
    after = await until(lambda: stage.over(NODE), 60)

    assert [before["metadata"]["name"]] == known == [after["metadata"]["name"]]
    assert (after["status"]["phase"], len(after["status"]["attempts"])) == ("Recovered", 1)
    assert (machine.boot_id, len(machine.reboots())) == (boot, 1), "rebooted once, before the restore"
    assert made(stage.tape) == ONCE, request_lines(stage.tape.mutations)
    await until(lambda: settled(stage), 30)
    node = await stage.node(NODE)
    assert (node["spec"]["taints"], node["spec"].get("unschedulable")) == ([RESERVED], None)
    ours = {key: word for key, word in node["metadata"]["annotations"].items() if names.GROUP in key}
    assert ours == {names.HANDLED: after["metadata"]["name"]}


def commands() -> list[str]:
    """Those of the page, in the order in which a person types them after a restore."""
    _, _, steps = (ROOT / "docs/backup.md").read_text().partition("## After etcd was restored")
    return re.findall(r"`((?:kubectl|remediator) [^`]+)`", steps)


def reboots(mutation: Mutation) -> bool:
    """The Pod that reboots."""
    labels = mutation.body["metadata"].get("labels", {}) if mutation.is_to("POST", "pods") else {}
    return labels.get(names.OPERATION_LABEL) == "reboot"


async def restart(stage: Stage, first: Replica) -> Replica:
    """As the Deployment does, of which a stage has only the process: another one leads, and the first has ended."""
    first.program.signal(signal.SIGTERM)
    assert await first.program.ended(60) == 0, first.program.log_end()
    second = await stage.start_controller()
    await until(lambda: "caches_caught_up_in" in second.program.written(), 60)
    return second


async def said(stage: Stage, typed: str) -> str:
    """What a command of the page says."""
    program = await stage.command(*typed.replace("NODE", NODE).split()[1:])
    assert await program.ended(60) == 0, program.written()
    return program.written()

"""An older build of the controller beside this one, as in an upgrade and a rollback: one leads, the other takes over.

Definitions, rights, admission policies and policies are those of now, as after the first Job of an upgrade, and as
they stay after a rollback.
"""

import signal
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml

from remediator.kube.manifests.crd import crds
from remediator.kube.manifests.missing_fields import missing_fields
from remediator_sim.controller import COMMAND
from remediator_sim.kubelet.program import output
from tests.cluster.e2e.administrator import REMEDIATOR
from tests.cluster.e2e.case_run import made, request_lines
from tests.cluster.e2e.older import Build, NoHistory, older_build
from tests.cluster.e2e.proxy import Cut, Mutation
from tests.cluster.e2e.stage import Replica, Stage
from tests.cluster.e2e.test_two import reboots
from tests.harness.kinds import EVENTS
from tests.harness.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]
NODES = ["gpu-17", "gpu-18"]
UPGRADE, ROLLBACK = ("older", "newer"), ("newer", "older")
both_ways = pytest.mark.parametrize("builds", [UPGRADE, ROLLBACK], ids=["upgrade", "rollback"])


@pytest.fixture(scope="session")
def older(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """The older build, or the reason why there is none."""
    try:
        return older_build(tmp_path_factory.mktemp("older"))
    except NoHistory as reason:
        pytest.skip(str(reason))


async def start_both(stage: Stage, older: Build, builds: tuple[str, str]) -> tuple[Replica, Replica]:
    """The first leads, the second waits with full caches."""
    commands = {"older": older.command, "newer": COMMAND}
    first = await stage.start_controller(command=commands[builds[0]])
    await until(lambda: leads(first), 60)
    second = await stage.start_controller(command=commands[builds[1]])
    await until(lambda: "synced" in second.program.written(), 60)
    assert await stage.leader() == first.name
    return first, second


def leads(replica: Replica) -> bool:
    """Whether it has worked with caches that have caught up, as its log says."""
    return "caches_caught_up_in" in replica.program.written()


async def each_node_was_repaired_once(stage: Stage, second: Replica) -> None:
    """Both cases, which the first has opened, end well under the second; nothing was done twice, all could be read."""
    for node in NODES:
        ended = await until(lambda node=node: stage.over(node), 120)
        assert ended["status"]["phase"] == "Recovered", ended["status"]
    assert await stage.leader() == second.name
    count = made(stage.tape)
    assert (count["cases"], count["operations"], count["Pods of reboot"]) == (2, 2, 2), request_lines(
        stage.tape.mutations
    )
    assert {node: len(machine.reboots()) for node, machine in stage.machines.items()} == dict.fromkeys(NODES, 1)
    assert second.program.code is None
    for replica in stage.replicas:
        for fault in ("Traceback", "cannot be read", "Unreadable"):
            assert fault not in replica.program.written(), replica.program.log_end(40)


def versions(definitions: Iterable[dict[str, Any]]) -> set[tuple[str, str]]:
    """The kinds that are defined, each with its version."""
    return {(one["metadata"]["name"], each["name"]) for one in definitions for each in one["spec"]["versions"]}


def test_the_older_build_is_another_one_and_speaks_of_the_same_kinds(older: Build) -> None:
    where = [*older.python, "-c", "import remediator; print(remediator.__file__)"]
    file = subprocess.run(where, capture_output=True, text=True, check=True).stdout.strip()
    assert Path(file).parents[1] == older.folder
    assert versions(yaml.safe_load_all(older.prints("crds"))) <= versions(crds())


@both_ways
async def test_a_rollout_in_the_middle_of_a_drain_loses_no_case_and_repairs_nothing_twice(
    stage: Stage, older: Build, builds: tuple[str, str]
) -> None:
    """One case drains and is held by its Pods; the other waits for the budget, which lets one node go at a time."""
    for workload in stage.workloads.values():
        await workload.allow(0)
    first, second = await start_both(stage, older, builds)
    for machine in stage.machines.values():
        machine.lose_gpu()
    await until(lambda: phases(stage, "Draining", "Held"), 60)
    first.program.signal(signal.SIGTERM)
    assert await first.program.ended(20) == 0, first.program.log_end()
    await until(lambda: leads(second), 30)
    for workload in stage.workloads.values():
        await workload.allow(len(workload.apps))
    await each_node_was_repaired_once(stage, second)


@both_ways
async def test_a_leader_that_is_killed_once_its_reboot_runs_is_followed_by_one_that_reboots_no_more(
    stage: Stage, older: Build, builds: tuple[str, str]
) -> None:
    """The Pod that reboots is there, and the leader never hears of it."""
    first, second = await start_both(stage, older, builds)

    async def kill(_: Mutation) -> None:
        first.program.signal(signal.SIGKILL)
        first.proxy.severed = True

    stage.tape.cuts = [Cut(reboots, kill)]
    for machine in stage.machines.values():
        machine.lose_gpu()
    await until(lambda: first.program.code is not None, 120)
    await each_node_was_repaired_once(stage, second)


async def told(stage: Stage) -> str:
    """The Event about definitions that are older than the controller."""
    events = [one["message"] for one in await stage.client.list_all(EVENTS) if one["reason"] == "DefinitionsOutdated"]
    return events[0] if events else ""


async def test_under_the_definitions_of_an_older_build_a_node_is_repaired_once_and_the_command_that_mends_them_is_told(
    stage: Stage, older: Build, tmp_path: Path
) -> None:
    """Two looks of the controller at the definitions are 30 seconds apart."""
    file = tmp_path / "older.yaml"
    file.write_text(older.prints("crds"))
    words = ("--kubeconfig", str(stage.server.kubeconfig))
    try:
        await stage.kubectl("replace", "-f", str(file))
        await until(lambda: missing_fields(stage.client), 60)
        await stage.start_controller()
        stage.machines[NODES[0]].lose_gpu()
        ended = await until(lambda: stage.over(NODES[0]), 120)
        said = await until(lambda: told(stage), 90)
        shown = await output(REMEDIATOR, "status", *words)
    finally:
        mended = await output(REMEDIATOR, "crds", "--apply", *words)
    assert ended["status"]["phase"] == "Recovered", ended["status"]
    assert len(stage.machines[NODES[0]].reboots()) == 1
    assert said.startswith("the API server drops what the definitions lack: "), said
    assert said.endswith("; to mend it: remediator crds --apply")
    assert "definitions: older than this version, fields are dropped: " in shown
    assert "remediationpolicies.remediator.dev: up to date" in mended


async def phases(stage: Stage, *wanted: str) -> bool:
    """Whether the cases of the nodes are in these phases, in any order."""
    cases = [await stage.case(node, *wanted) for node in NODES]
    return sorted(case["status"]["phase"] for case in cases if case) == sorted(wanted)

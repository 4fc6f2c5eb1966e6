"""Yesterday's objects: etcd is restored from a backup, and the machine has gone on since then.

The backup may be of any moment in the life of a case. docs/backup.md says what a person does then, and what becomes of
the case. A kubelet starts a Pod again that its API server has again, so the program of a reboot looks at the boot id:
tests/operations/test_reboot.py has that it refuses.
"""

from typing import NamedTuple

import pytest

from remediator_sim.apiserver.store import Snapshot
from tests.harness.controller import REBOOTED, Answer, ControllerHarness, running, until
from tests.harness.kinds import CASES, PODS

NODE = "gpu-1"
REFUSED = Answer(exit=2, message="booted since this was asked for")


class Backup(NamedTuple):
    """What was stored after a write, and the phase of the case then: "" before there is one."""

    objects: Snapshot
    phase: str
    reboots: bool  # the Pod that reboots the node has not ended


async def story(harness: ControllerHarness) -> list[Backup]:
    """A node is rebooted once and comes back. Backups: before, and after each write to case and Pods."""
    harness.answer("reboot", REBOOTED)
    await harness.policy()
    await harness.node(NODE, "True")
    backups: list[Backup] = []

    def back_up(*_: object) -> None:
        rebooting = bool(harness.pods("reboot", "Running") or harness.pods("reboot", ""))
        backups.append(Backup(harness.server.cluster.store.snapshot(), harness.phase(NODE), rebooting))

    back_up()
    followers = harness.server.cluster.followers
    before = dict(followers)
    followers |= dict.fromkeys((harness.storage(CASES), harness.storage(PODS)), back_up)
    async with running(harness):
        await until(lambda: harness.ended(NODE, "Recovered"))
    followers.clear()
    followers.update(before)
    return backups


async def restore(harness: ControllerHarness, backup: Backup) -> None:
    """The objects are those of the backup. Then kubelet and detector report what the machine has become meanwhile."""
    harness.server.cluster.store.restore(backup.objects)
    harness.forget_pods()
    harness.answer("reboot", REFUSED)
    await harness.report_boot(NODE)
    await harness.condition(NODE, "False")


async def comes_back(harness: ControllerHarness, backups: list[Backup]) -> None:
    boot = harness.look(NODE)["status"]["nodeInfo"]["bootID"]
    for backup in (backups[0], backups[-1]):
        await restore(harness, backup)
        async with running(harness):
            await until(lambda: harness.phase(NODE) in ("", "Recovered", "Cancelled") and harness.clean(NODE))
            await harness.quiet()
        assert harness.look(NODE)["status"]["nodeInfo"]["bootID"] == boot
        assert harness.clean(NODE)


@pytest.mark.parametrize("phase", ["", "Draining", "Operating", "Recovered"])
async def test_a_node_that_was_repaired_after_the_backup_comes_back_without_another_reboot(
    harness: ControllerHarness, phase: str
) -> None:
    await comes_back(harness, [backup for backup in await story(harness) if backup.phase == phase])


@pytest.mark.slow
async def test_a_reboot_that_was_under_way_refuses_once_it_is_started_again_and_the_node_comes_back(
    harness: ControllerHarness,
) -> None:
    backups = [backup for backup in await story(harness) if backup.reboots]
    began = harness.ran.count(f"reboot {NODE}")
    await comes_back(harness, backups)
    assert harness.ran.count(f"reboot {NODE}") > began, "a kubelet starts what its API server has again"

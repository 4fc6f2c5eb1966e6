"""The simulated host: its boot id, its reboot button, its programs, and the journals of who used them."""

import asyncio
import os
import shlex
import signal

import pytest

from remediator_sim.kubelet.container import RealProcess, surroundings
from remediator_sim.kubelet.host import CommandResult, SimulatedHost
from tests.harness.waiting import until

pytestmark = pytest.mark.sampled("host")

REBOOT = "nsenter --target 1 --mount --uts --ipc --net --pid -- systemctl reboot"


async def container(host, command, place):
    env = surroundings(host, place, ("127.0.0.1", 1)) | {"ATTEMPT_ID": "attempt-1"}
    return await RealProcess.start(shlex.split(command), env, place)


def test_a_machine_found_again_is_in_the_same_boot(tmp_path):
    assert SimulatedHost(tmp_path, "gpu-17").boot_id == SimulatedHost(tmp_path, "gpu-17").boot_id


async def test_a_reboot_changes_the_boot_id_and_empties_run(tmp_path):
    host = SimulatedHost(tmp_path, "gpu-17", down_time=0)
    before, seen = host.boot_id, []
    (host.root / "run/remediator").mkdir()
    (host.root / "run/remediator/attempt-1").touch()
    (host.root / "dev/nvidia0").touch()
    host.on_reboot.append(lambda: seen.append(host.boot_id))
    await host.boot_again()
    assert host.boot_id != before
    assert seen == [host.boot_id]
    assert list((host.root / "run").iterdir()) == []
    assert (host.root / "dev/nvidia0").exists()


async def test_systemctl_reboot_presses_the_button_and_is_written_down_once(tmp_path):
    host = SimulatedHost(tmp_path, "gpu-17")
    with host.powered() as reset:
        process = await container(host, REBOOT, tmp_path)
        await asyncio.wait_for(reset.wait(), 10)
        await process.kill()
    (written,) = host.reboots()
    assert written.pop("time")
    assert written == {"node": "gpu-17", "attemptID": "attempt-1", "bootID": host.boot_id}


async def test_the_caller_of_a_reboot_never_goes_on(tmp_path):
    host = SimulatedHost(tmp_path, "gpu-17")
    with host.powered() as reset:
        process = await container(host, f"sh -c {shlex.quote(REBOOT + '; touch survived')}", tmp_path)
        await asyncio.wait_for(reset.wait(), 10)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(process.ended(), 0.3)
        await process.kill()
    assert not (tmp_path / "survived").exists()


async def test_a_button_pressed_in_one_boot_means_nothing_in_the_next(tmp_path):
    host = SimulatedHost(tmp_path, "gpu-17")
    with host.powered() as reset:
        host.press_reset()
        assert reset.is_set()
    with host.powered() as reset:
        assert not reset.is_set()


async def test_nothing_else_can_be_run_on_the_machine(tmp_path):
    host = SimulatedHost(tmp_path, "gpu-17")
    process = await container(host, "nsenter --target 1 --mount -- touch /tmp/of-the-real-machine", tmp_path)
    assert await process.ended() == 127
    assert host.reboots() == []
    assert not os.path.lexists("/tmp/of-the-real-machine")


async def test_a_reboot_of_a_machine_that_nobody_plays_is_still_written_down(tmp_path):
    host = SimulatedHost(tmp_path, "gpu-17")
    process = await container(host, REBOOT, tmp_path)
    await until(host.reboots)
    await process.kill()
    assert len(host.reboots()) == 1


async def test_a_program_of_the_machine_answers_what_it_is_asked_and_is_written_down(tmp_path):
    host = SimulatedHost(tmp_path, "gpu-17")
    host.commands["fail"] = lambda words: CommandResult(3, f"no {' '.join(words)}\n")
    with host.powered():
        process = await container(host, "nsenter --target 1 --mount -- fail a 'b c'", tmp_path)
        assert await process.ended() == 3
    assert (tmp_path / "log").read_text() == "no a b c\n"
    [written] = host.commands_run()
    assert (written["command"], written["attemptID"]) == (["fail", "a", "b c"], "attempt-1")
    assert list(host.answers.iterdir()) == []
    assert host.reboots() == []


async def test_answers_reach_the_one_who_asked(tmp_path):
    host = SimulatedHost(tmp_path, "gpu-17")
    host.commands["echo"] = lambda words: CommandResult(int(words[0]))
    with host.powered():
        asked = [await container(host, f"nsenter -- echo {code}", tmp_path) for code in range(8)]
        assert [await process.ended() for process in asked] == list(range(8))


async def test_a_program_that_hangs_does_so_until_it_is_ended(tmp_path):
    host, called = SimulatedHost(tmp_path, "gpu-17"), asyncio.Event()
    host.commands["hang"] = lambda words: called.set()
    with host.powered():
        process = await container(host, "nsenter -- hang", tmp_path)
        await asyncio.wait_for(called.wait(), 10)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(process.ended(), 0.3)
        assert await process.stop(5) == 128 + signal.SIGTERM


async def test_a_program_that_the_machine_does_not_have_is_127(tmp_path):
    host = SimulatedHost(tmp_path, "gpu-17")
    with host.powered():
        process = await container(host, "nsenter -- touch /tmp/of-the-real-machine", tmp_path)
        assert await process.ended() == 127
    assert "a simulated host cannot run: touch" in (tmp_path / "log").read_text()
    assert not os.path.lexists("/tmp/of-the-real-machine")

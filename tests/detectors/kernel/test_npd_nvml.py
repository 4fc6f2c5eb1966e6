"""An NVML that hangs, under the real node-problem-detector: told in time, and asked by one child at a time."""

import sys
import time

import pytest

from nodelib.host.child_process import GRACE
from tests.detectors.kernel.needs import needs
from tests.detectors.kernel.npd import DEADLINE, SLACK, Count, monitor, played, runs
from tests.detectors.kernel.stuck import children_of, is_unkillable
from tests.detectors.node import Node

pytestmark = [*needs("disk"), pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(240)]
GPU_FILES = (("gpu-lost", "GpuLost"), ("gpu-ecc", "GpuEccFault"))


@pytest.fixture
def gpus(tmp_path, nvml_library):
    folder = tmp_path / "gpus"
    folder.mkdir()
    return Node(folder, nvml_library, gpus=2)


def gpu_monitors(play, gpus):
    files = []
    for name, _ in GPU_FILES:
        gpus.detector = name.replace("-", "_")
        settings = gpus.nvml.environment(gpus.library)
        command = gpus.command("--fresh=0.5", f"--deadline={DEADLINE}")
        files.append(monitor(play.directory, name, [sys.executable, *command[1:]], settings))
    return files


async def healthy(play):
    for _, condition in GPU_FILES:
        await play.shows("False", condition)


async def test_an_nvml_that_hangs_is_told_in_time_and_asked_by_one_child_at_a_time(server, gpus, tmp_path):
    async with played(server, tmp_path / "node") as play, Count(gpus.state / "nvml.answer.json") as children:
        play.says(0)
        await play.start(play.file(), *gpu_monitors(play, gpus))
        await healthy(play)
        gpus.orders("hang init", gpus=2)
        begun = time.monotonic()
        seen = await play.shows("Unknown", "GpuLost")
        assert time.monotonic() - begun < DEADLINE + GRACE + SLACK
        assert seen.reason == "GpusPresent", "node-problem-detector has no other for what cannot be told"
        assert seen.message.startswith("NvmlHung: no answer since ")
        assert seen.message.endswith("Z at init")
        await play.shows("Unknown", "GpuEccFault")
        await runs(gpus.state, "gpu_lost", 3)
        await play.runs(3)
        assert children.most == 1
        gpus.orders(gpus=2)
        await healthy(play)


async def test_an_nvml_whose_caller_cannot_be_killed_keeps_one_child_until_the_driver_lets_it_go(
    server, gpus, disk, tmp_path
):
    """The library's log lies on the frozen disk, so that its calls wait in the kernel as those into a wedged driver."""

    def orders():
        gpus.nvml.write("count 2", f"log {disk.folder}/calls")

    async with played(server, tmp_path / "node") as play, Count(gpus.state / "nvml.answer.json") as children:
        orders()
        play.says(0)
        await play.start(play.file(), *gpu_monitors(play, gpus))
        await healthy(play)
        disk.freeze()
        try:
            begun = time.monotonic()
            seen = await play.shows("Unknown", "GpuLost")
            assert time.monotonic() - begun < DEADLINE + GRACE + SLACK
            assert seen.message.startswith("NvmlHung: no answer since ")
            await play.shows("Unknown", "GpuEccFault")
            [child] = children_of(str(gpus.state / "nvml.answer.json"))
            assert is_unkillable(child), "else this proves nothing"
            await runs(gpus.state, "gpu_lost", 5)
            await runs(gpus.state, "gpu_ecc", 5)
            await play.runs(3)
            assert children_of(str(gpus.state / "nvml.answer.json")) == [child]
            assert children.most == 1
        finally:
            disk.thaw()
        await healthy(play)

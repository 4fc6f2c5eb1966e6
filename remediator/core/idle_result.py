"""What tests of idle nodes have found: of the node, and of each GPU that a program has named. Pure."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

IDLE_TEST_FAILED = "IdleTestFailed"  # the Condition
MOST_TESTED = 32  # GPUs of one node: as many as it has, and some that it had
LONGEST = 1024  # of a message
# As gpu-check writes of a GPU: (serial 1650923000000, GPU-9f3c01ab-...), or without a serial number.
_GPU = re.compile(r"\((?:serial ([0-9A-Za-z-]{1,32}), )?(GPU-[0-9a-f-]{8,64})\)")


@dataclass(frozen=True, slots=True)
class GpuResult:
    """The newest result of one GPU; `serial` is that of its board."""

    serial: str
    uuid: str
    passed: bool
    at: datetime

    @property
    def key(self) -> str:
        """What it is kept by: its UUID tells the two GPUs of one board apart."""
        return f"{self.serial}/{self.uuid}"


@dataclass(frozen=True, slots=True)
class IdleResult:
    """What the newest test of a node said."""

    policy: str
    probe: str
    passed: bool
    at: datetime
    boot_id: str = ""
    message: str = ""


def of_gpus(result: IdleResult, message: str) -> Iterator[GpuResult]:
    """The GPUs that the program names. One that has failed names those at fault, and says nothing of the others."""
    named = dict.fromkeys(_GPU.findall(message))
    yield from (GpuResult(serial, uuid, result.passed, result.at) for serial, uuid in named)


def merged(before: tuple[GpuResult, ...], after: Iterator[GpuResult]) -> tuple[GpuResult, ...]:
    """The newest result of each GPU, those that were tested last first, as many as are kept."""
    newest = {gpu.key: gpu for gpu in (*before, *after)}
    return tuple(sorted(newest.values(), key=lambda gpu: (-gpu.at.timestamp(), gpu.key))[:MOST_TESTED])

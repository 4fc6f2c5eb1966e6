"""What nvidia-smi says of real, healthy machines, driver by driver.

Facts from `nvidia-smi -q -x` of real nodes in NVIDIA/k8s-test-infra (Apache-2.0; identifiers are placeholders there),
tests/e2e/go/assertions/nvidiasmi/testdata/hardware: qx-a100, qx-t4, qx-gb200 (three of its four GPUs), qx-vrnvl72.
"""

from collections.abc import Mapping
from typing import NamedTuple

DEPRECATED = "Requested functionality has been deprecated"
A100, T4, GB200, RUBIN = "A100-SXM4-40GB", "Tesla T4", "GB200", "Rubin, before its release"


class Seen(NamedTuple):
    """One GPU: PCI address, serial number of its board, which is that of a module with two GPUs, and its UUID."""

    address: str
    serial: str
    uuid: str


class Capture(NamedTuple):
    """One node. `words`: what it answers to the questions of SIGNS; `counts`: whether it counts slow time."""

    driver: str
    gpus: tuple[Seen, ...]
    words: Mapping[str, str]
    counts: bool


def words(uncorrected: str = "0", pending: str = "No", required: str = "", action: str = "None") -> Mapping[str, str]:
    """The answers by the end of the name of what is asked; "" where the question is not in the capture."""
    return {"total": uncorrected, "pending": pending, "reset_required": required, "gpu_recovery_action": action}


def gpu(number: int, address: str, board: int) -> Seen:
    return Seen(address, f"165000000000{board}", f"GPU-0000000{number}-0000-0000-0000-00000000000{number}")


CAPTURES = {
    A100: Capture("570.148.08", (gpu(0, "00000000:06:00.0", 1),), words(required=DEPRECATED), counts=False),
    T4: Capture("595.91.07", (gpu(0, "00000000:00:1E.0", 1),), words(pending="N/A"), counts=True),
    GB200: Capture(
        "580.173.02",
        (gpu(0, "00000000:29:00.0", 1), gpu(1, "00000000:3F:00.0", 1), gpu(2, "00000000:9C:00.0", 2)),
        words(),
        counts=True,
    ),
    RUBIN: Capture("615.23", (gpu(0, "00000002:81:00.0", 1),), words(), counts=True),
}

"""What GPUs are set to, and the version of their InfoROM: questions for the child that asks NVML.

To which clocks a user has locked a GPU (`nvidia-smi --lock-gpu-clocks`) NVML sets and does not tell.
"""

from typing import Any

from nodelib.nvml.queries import Question


def _persistence(nvml: Any, gpu: Any) -> dict[str, int]:
    return {"on": int(nvml.nvmlDeviceGetPersistenceMode(gpu))}


def _power(nvml: Any, gpu: Any) -> dict[str, int]:
    return {"milliwatts": int(nvml.nvmlDeviceGetPowerManagementLimit(gpu))}


def _highest(nvml: Any, gpu: Any) -> dict[str, int]:
    kinds = {"sm": nvml.NVML_CLOCK_SM, "memory": nvml.NVML_CLOCK_MEM}
    return {name: int(nvml.nvmlDeviceGetMaxClockInfo(gpu, kind)) for name, kind in kinds.items()}


def _of_applications(nvml: Any, gpu: Any) -> dict[str, int]:
    kinds = {"sm": nvml.NVML_CLOCK_SM, "memory": nvml.NVML_CLOCK_MEM}
    return {name: int(nvml.nvmlDeviceGetApplicationsClock(gpu, kind)) for name, kind in kinds.items()}


def _inforom(nvml: Any, gpu: Any) -> dict[str, list[str]]:
    version = nvml.nvmlDeviceGetInforomImageVersion(gpu)
    return {"versions": [version.decode("ascii", "replace") if isinstance(version, bytes) else str(version)]}


QUESTIONS: dict[str, Question] = {
    "persistence mode": _persistence,
    "power limit": _power,
    "highest clocks": _highest,
    "application clocks": _of_applications,
    "InfoROM": _inforom,
}

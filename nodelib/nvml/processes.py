"""What NVML knows of who uses a GPU: questions for the child. Pids are those of the child's own pid namespace.

Memory that the driver keeps for itself is told apart since driver 510; before that it was not counted as used.
"""

from typing import Any

from nodelib.nvml.fields import NOT_THERE
from nodelib.nvml.queries import Question

PROCESSES = {
    "compute": "nvmlDeviceGetComputeRunningProcesses_v3",
    "graphics": "nvmlDeviceGetGraphicsRunningProcesses_v3",
    "MPS": "nvmlDeviceGetMPSComputeRunningProcesses_v3",
}


def _processes(nvml: Any, gpu: Any) -> dict[str, Any]:
    """Parallel lists: pid, kind, and bytes of memory (0 for not told) of each process on the GPU or its MIG devices."""
    columns: dict[str, list[Any]] = {"pid": [], "kind": [], "memory": []}
    for kind in PROCESSES:
        for process in _running(nvml, gpu, kind):
            for key, value in (("pid", process.pid), ("kind", kind), ("memory", process.usedGpuMemory or 0)):
                columns[key].append(value)
    return columns


def _running(nvml: Any, gpu: Any, kind: str) -> list[Any]:
    try:
        return list(getattr(nvml, PROCESSES[kind])(gpu))
    except nvml.NVMLError as error:
        if error.value not in NOT_THERE or kind == "compute":
            raise
        return []  # a card that draws nothing, a driver without MPS


def _memory(nvml: Any, gpu: Any) -> dict[str, Any]:
    try:
        return {"used": nvml.nvmlDeviceGetMemoryInfo(gpu, nvml.nvmlMemory_v2).used}
    except nvml.NVMLError as error:
        if error.value not in NOT_THERE:
            raise
        return {"used": nvml.nvmlDeviceGetMemoryInfo(gpu).used}


def _mig(nvml: Any, gpu: Any) -> dict[str, Any]:
    return {"current": nvml.nvmlDeviceGetMigMode(gpu)[0]}


QUESTIONS: dict[str, Question] = {"processes": _processes, "memory in use": _memory, "MIG": _mig}

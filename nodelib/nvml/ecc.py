"""What NVML knows of the memory of GPUs: the questions, put by the child, and how often an error was corrected of late.

Counters "since the driver loaded" are also cleared by a reset of the GPU. Old cards know no row remapping, new ones no
retired pages, GeForce and MIG hardly any of it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from nodelib.nvml.queries import Question

WINDOW = 600.0  # seconds that are looked back on, and half of it must be known
APART = 30.0  # seconds between two samples; runs by hand add none
A_MINUTE = 10.0  # corrected errors that are many: DCGM's limit, which it calls provisional; NVIDIA names none

Sample = tuple[float, int]  # seconds since boot, errors corrected since the driver loaded
Samples = Mapping[str, Sequence[Sample]]  # by UUID


def _mode(nvml: Any, gpu: Any) -> dict[str, int]:
    current, pending = nvml.nvmlDeviceGetEccMode(gpu)
    return {"current": current, "pending": pending}


def _uncorrected(nvml: Any, gpu: Any) -> dict[str, int]:
    return {
        "volatile": nvml.nvmlDeviceGetTotalEccErrors(
            gpu, nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, nvml.NVML_VOLATILE_ECC
        )
    }


def _corrected(nvml: Any, gpu: Any) -> dict[str, int]:
    kind = nvml.NVML_MEMORY_ERROR_TYPE_CORRECTED
    return {"volatile": nvml.nvmlDeviceGetTotalEccErrors(gpu, kind, nvml.NVML_VOLATILE_ECC)}


def _history(nvml: Any, gpu: Any) -> dict[str, int]:
    kinds = {"uncorrected": nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, "corrected": nvml.NVML_MEMORY_ERROR_TYPE_CORRECTED}
    return {name: nvml.nvmlDeviceGetTotalEccErrors(gpu, kind, nvml.NVML_AGGREGATE_ECC) for name, kind in kinds.items()}


def _remapped(nvml: Any, gpu: Any) -> dict[str, int]:
    names = ("corrected", "uncorrected", "pending", "failed")
    return dict(zip(names, nvml.nvmlDeviceGetRemappedRows(gpu), strict=True))


def _spare(nvml: Any, gpu: Any) -> dict[str, int]:
    banks = nvml.nvmlDeviceGetRowRemapperHistogram(gpu)
    return {name: getattr(banks, name) for name in ("max", "high", "partial", "low", "none")}


def _sram(nvml: Any, gpu: Any) -> dict[str, int]:
    import ctypes  # the child puts the question; the detectors that read its answer need none of it

    status = nvml.c_nvmlEccSramErrorStatus_v1_t()
    nvml.nvmlDeviceGetSramEccErrorStatus(gpu, ctypes.byref(status))
    names = {"exceeded": "bThresholdExceeded", "parity": "aggregateUncParity", "secded": "aggregateUncSecDed"}
    return {name: getattr(status, field) for name, field in names.items()}


def _unrepairable(nvml: Any, gpu: Any) -> dict[str, int]:
    return {"flag": int(nvml.nvmlDeviceGetUnrepairableMemoryFlag_v1(gpu))}  # newer drivers: 580.159 and 590 know it


def _retired(nvml: Any, gpu: Any) -> dict[str, int]:
    causes = {
        "single": nvml.NVML_PAGE_RETIREMENT_CAUSE_MULTIPLE_SINGLE_BIT_ECC_ERRORS,
        "double": nvml.NVML_PAGE_RETIREMENT_CAUSE_DOUBLE_BIT_ECC_ERROR,
    }
    pages = {name: len(nvml.nvmlDeviceGetRetiredPages(gpu, cause)) for name, cause in causes.items()}
    return {**pages, "pending": nvml.nvmlDeviceGetRetiredPagesPendingStatus(gpu)}


QUESTIONS: dict[str, Question] = {
    "ECC mode": _mode,
    "uncorrected errors": _uncorrected,
    "corrected errors": _corrected,
    "ECC history": _history,
    "row remap": _remapped,
    "spare rows": _spare,
    "SRAM": _sram,
    "unrepairable memory": _unrepairable,
    "retired pages": _retired,
}


def sampled(samples: Sequence[Sample], now: float, count: int) -> list[Sample]:
    """Return the samples of the last WINDOW and this one; a counter that was cleared starts anew.

    >>> sampled([(0.0, 1), (590.0, 2)], 650.0, 7), sampled([(590.0, 2)], 650.0, 1)
    ([(590.0, 2), (650.0, 7)], [(650.0, 1)])
    """
    if samples and (count < samples[-1][1] or now < samples[-1][0]):
        return [(now, count)]
    recent = [sample for sample in samples if now - sample[0] <= WINDOW]
    return recent if recent and now - recent[-1][0] < APART else [*recent, (now, count)]


def often(samples: Sequence[Sample]) -> bool:
    """Tell whether errors were corrected A_MINUTE times a minute, over what is known of the window.

    >>> often([(0.0, 0), (300.0, 50)]), often([(0.0, 0), (300.0, 49)]), often([(0.0, 0), (299.0, 900)])
    (True, False, False)
    """
    if not samples:
        return False
    (began, before), (ended, after) = samples[0], samples[-1]
    return ended - began >= WINDOW / 2 and (after - before) * 60.0 >= A_MINUTE * (ended - began)

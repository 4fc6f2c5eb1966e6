"""What NVML knows of the memory of GPUs: the questions, put by the child, and their answers, read back. Judges nothing.

Counters "since the driver loaded" are also cleared by a reset of the GPU. A GPU answers a question with facts or with a
refusal: old cards know no row remapping, new ones no retired pages, GeForce and MIG hardly any of it.
"""

import ctypes
from collections.abc import Mapping
from typing import Any, NamedTuple

from _nvml import Question

RECOVERY_ACTION = 230  # field of NVML: what the driver itself advises; 0 nothing, 1 reset, 2 reboot, 4 drain and reset

Facts = Mapping[str, int]


class Gpu(NamedTuple):
    """One GPU as NVML told of it. `error`: code, 0 for fine; `facts` by question; `refused`: code by question."""

    index: int
    error: int
    address: str = ""
    uuid: str = ""
    serial: str = ""
    facts: Mapping[str, Facts] = {}
    refused: Mapping[str, int] = {}

    @property
    def name(self) -> str:
        """PCI address and the start of the UUID, as far as they are known.

        >>> Gpu(3, 0, "0000:3b:00.0", "GPU-9f3c01ab-77aa-1234-5678-0123456789ab").name
        '0000:3b:00.0 (GPU-9f3c01ab)'
        """
        uuid = "-".join(self.uuid.split("-")[:2])
        known = " ".join((self.address, *([f"({uuid})"] if uuid else ())))
        return known if self.address else f"GPU index {self.index}"

    def fact(self, question: str, name: str) -> int:
        """Return one number, 0 where the GPU does not tell it."""
        return self.facts.get(question, {}).get(name, 0)


def _mode(nvml: Any, gpu: Any) -> dict[str, int]:
    current, pending = nvml.nvmlDeviceGetEccMode(gpu)
    return {"current": current, "pending": pending}


def _uncorrected(nvml: Any, gpu: Any) -> dict[str, int]:
    return {
        "volatile": nvml.nvmlDeviceGetTotalEccErrors(
            gpu, nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, nvml.NVML_VOLATILE_ECC
        )
    }


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
    status = nvml.c_nvmlEccSramErrorStatus_v1_t()
    nvml.nvmlDeviceGetSramEccErrorStatus(gpu, ctypes.byref(status))
    names = {"exceeded": "bThresholdExceeded", "parity": "aggregateUncParity", "secded": "aggregateUncSecDed"}
    return {name: getattr(status, field) for name, field in names.items()}


def _retired(nvml: Any, gpu: Any) -> dict[str, int]:
    causes = {
        "single": nvml.NVML_PAGE_RETIREMENT_CAUSE_MULTIPLE_SINGLE_BIT_ECC_ERRORS,
        "double": nvml.NVML_PAGE_RETIREMENT_CAUSE_DOUBLE_BIT_ECC_ERROR,
    }
    pages = {name: len(nvml.nvmlDeviceGetRetiredPages(gpu, cause)) for name, cause in causes.items()}
    return {**pages, "pending": nvml.nvmlDeviceGetRetiredPagesPendingStatus(gpu)}


def _advice(nvml: Any, gpu: Any) -> dict[str, int]:
    [field] = nvml.nvmlDeviceGetFieldValues(gpu, [RECOVERY_ACTION])
    if field.nvmlReturn:
        raise nvml.NVMLError(field.nvmlReturn)
    return {"action": field.value.uiVal}


QUESTIONS: dict[str, Question] = {
    "ECC mode": _mode,
    "uncorrected errors": _uncorrected,
    "ECC history": _history,
    "row remap": _remapped,
    "spare rows": _spare,
    "SRAM": _sram,
    "retired pages": _retired,
    "recovery action": _advice,
}


def read_gpus(said: Mapping[str, Any]) -> tuple[Gpu, ...]:
    """Return the GPUs of the child's answer, by name. Raises ValueError when it is not complete or makes no sense."""
    listed = said.get("gpus")
    if (
        said.get("init") != 0
        or not said.get("done")
        or not isinstance(listed, list)
        or len(listed) != said.get("count")
    ):
        raise ValueError("not every GPU was asked")
    return tuple(sorted((_read(one) for one in listed), key=lambda gpu: (gpu.name, gpu.index)))


def _read(one: Any) -> Gpu:
    try:
        gpu = Gpu(**one)
        numbers = [
            gpu.index,
            gpu.error,
            *gpu.refused.values(),
            *(n for facts in gpu.facts.values() for n in facts.values()),
        ]
        texts = (gpu.address, gpu.uuid, gpu.serial)
    except (TypeError, AttributeError) as error:
        raise ValueError("a GPU is not described as it should be") from error
    if not all(type(number) is int and number >= 0 for number in numbers) or not all(isinstance(t, str) for t in texts):
        raise ValueError("a GPU is not described as it should be")
    return gpu

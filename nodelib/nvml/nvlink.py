"""What NVML knows of NVLink: questions for the child. States link by link, errors of all links, the fabric. No judging.

A card without NVLink refuses the first link ("not supported"). Counters are cleared by a reset of the GPU.
"""

import ctypes
from collections.abc import Iterable, Mapping
from typing import Any

from nodelib.nvml.fields import NOT_THERE, ask_fields
from nodelib.nvml.queries import Question

# Fields that count the errors of all links (until Ampere), those of one link (since Hopper), and those of one link that
# error correction could not mend (since Blackwell).
TOTALS = {"replays": (52,), "recoveries": (59,), "CRC errors": (38, 45)}
PER_LINK = {"replays": 161, "recoveries": 162, "CRC errors": 163, "failed recoveries": 214}
SINCE_NVLINK5 = {"effective errors": 219, "symbol errors": 221}


def _links(nvml: Any, gpu: Any) -> dict[str, Any]:
    """Parallel lists, of each link: its number; its state (0 down, 1 up, 2 asleep, 3 up without traffic); what is at
    the other end (0 GPU, 2 switch, 255 not told).
    """
    columns: dict[str, list[int]] = {"link": [], "up": [], "remote": []}
    for link in range(nvml.NVML_NVLINK_MAX_LINKS):
        try:
            up = nvml.nvmlDeviceGetNvLinkState(gpu, link)
        except nvml.NVMLError as error:
            if error.value not in NOT_THERE or not link:
                raise
            continue
        for name, value in (("link", link), ("up", up), ("remote", _remote(nvml, gpu, link))):
            columns[name].append(value)
    return columns


def _remote(nvml: Any, gpu: Any, link: int) -> int:
    try:
        return int(nvml.nvmlDeviceGetNvLinkRemoteDeviceType(gpu, link))
    except nvml.NVMLError as error:
        if error.value not in {*NOT_THERE, nvml.NVML_ERROR_INVALID_STATE, nvml.NVML_ERROR_UNKNOWN}:
            raise
        return int(nvml.NVML_NVLINK_DEVICE_TYPE_UNKNOWN)  # a link that is down may know of no other end


def _errors(nvml: Any, gpu: Any) -> dict[str, Any]:
    """Errors of all links by kind, for the kinds that this GPU counts."""
    links = _links(nvml, gpu)["link"]
    totals = {f"{name} {field}": field for name, fields in TOTALS.items() for field in fields}
    scoped = _scoped(PER_LINK, links)
    answers = ask_fields(nvml, gpu, {**totals, **scoped, **_scoped(SINCE_NVLINK5, links[:1])})
    if any(name in answers for name in _scoped(SINCE_NVLINK5, links[:1])):  # older links are spared 35 more questions
        scoped |= _scoped(SINCE_NVLINK5, links)
        answers |= ask_fields(nvml, gpu, _scoped(SINCE_NVLINK5, links[1:]))
    errors = {}
    for name in (*PER_LINK, *SINCE_NVLINK5):
        counts = [answers[key] for key in totals if key.startswith(f"{name} ") and key in answers]
        each = [answers[key] for key in scoped if key.startswith(f"{name} of ") and key in answers]
        if counts or each:
            errors[name] = max(sum(counts), sum(each))
    return errors


def _scoped(fields: Mapping[str, int], links: Iterable[int]) -> dict[str, tuple[int, int]]:
    return {f"{name} of {link}": (field, link) for name, field in fields.items() for link in links}


def _fabric(nvml: Any, gpu: Any) -> dict[str, Any]:
    """How far the GPU is registered with the fabric of its switches, and the mask of its health, 0 for not told."""
    info = nvml.c_nvmlGpuFabricInfo_v2_t()
    try:
        nvml.nvmlDeviceGetGpuFabricInfoV(gpu, ctypes.byref(info))
    except nvml.NVMLError as error:
        if error.value not in NOT_THERE - {nvml.NVML_ERROR_NOT_SUPPORTED}:
            raise
        info = nvml.c_nvmlGpuFabricInfo_t()  # drivers before 550
        nvml.nvmlDeviceGetGpuFabricInfo(gpu, ctypes.byref(info))
    return {"state": info.state, "status": info.status, "health": getattr(info, "healthMask", 0)}


QUESTIONS: dict[str, Question] = {"NVLink": _links, "NVLink errors": _errors, "fabric": _fabric}

"""What NVML says of each GPU before it is put to work: who it is, who uses it, and how it is linked. For a child.

One dict a GPU: address, uuid, serial, busy, mig (UUIDs of its MIG devices; None where MIG is off), pcie (generation and
lanes that card and slot could have, lanes now), nvlinks (links that are up: to switches, and by the address of the GPU
at the other end), uncorrected (memory errors since the driver was loaded). None or "" for what NVML does not say.
"""

from collections.abc import Callable
from typing import Any

from nodelib.host.gpus import address_of

GPU_REMOTE, SWITCH_REMOTE = 0, 2
NEVER = frozenset({15, 16})  # the GPU is lost, or requires a reset: that is no "not supported"


def ask_nvml(nvml: Any, say: Callable[..., None]) -> None:
    """Ask for every GPU. Tells {"missing"} where there is no driver, {"broken"} where NVML or a GPU says no."""
    try:
        say(at="init")
        nvml.nvmlInit()
        for index in range(nvml.nvmlDeviceGetCount()):
            say(at=f"GPU index {index}")
            _ask_gpu(nvml, index, say)
    except nvml.NVMLError as error:
        absent = error.value in (nvml.NVML_ERROR_LIBRARY_NOT_FOUND, nvml.NVML_ERROR_DRIVER_NOT_LOADED)
        say(**{"missing" if absent else "broken": f"NVML answers {error.value} ({error})"})


def _ask_gpu(nvml: Any, index: int, say: Callable[..., None]) -> None:
    try:
        gpu = nvml.nvmlDeviceGetHandleByIndex(index)
        say(
            address=address_of(_text(nvml.nvmlDeviceGetPciInfo(gpu).busId)),
            uuid=_text(nvml.nvmlDeviceGetUUID(gpu)),
            serial=_known(nvml, lambda: _text(nvml.nvmlDeviceGetSerial(gpu)), ""),
            busy=bool(nvml.nvmlDeviceGetComputeRunningProcesses(gpu)),
            mig=_mig(nvml, gpu),
            pcie=_known(nvml, lambda: _pcie(nvml, gpu), None),
            nvlinks=_nvlinks(nvml, gpu),
            uncorrected=_known(nvml, lambda: nvml.nvmlDeviceGetTotalEccErrors(gpu, 1, 0), None),
        )
    except nvml.NVMLError as error:
        say(broken=f"GPU index {index}: NVML answers {error.value} ({error})")


def _known(nvml: Any, ask: Callable[[], Any], otherwise: Any) -> Any:
    """The answer, `otherwise` where this GPU or this driver does not know the question. Raises NVMLError."""
    try:
        return ask()
    except nvml.NVMLError as error:
        if error.value in NEVER:
            raise
        return otherwise


def _mig(nvml: Any, gpu: Any) -> list[str] | None:
    if not _known(nvml, lambda: nvml.nvmlDeviceGetMigMode(gpu)[0], 0):
        return None
    most = _known(nvml, lambda: nvml.nvmlDeviceGetMaxMigDeviceCount(gpu), 0)

    def uuid(index: int) -> str:
        return _text(nvml.nvmlDeviceGetUUID(nvml.nvmlDeviceGetMigDeviceHandleByIndex(gpu, index)))

    uuids = [_known(nvml, lambda index=index: uuid(index), "") for index in range(most)]
    return [uuid for uuid in uuids if uuid]


def _pcie(nvml: Any, gpu: Any) -> list[int]:
    """Generation and lanes at most, lanes now. The generation now says nothing: an idle link is slow on purpose."""
    most = nvml.nvmlDeviceGetMaxPcieLinkGeneration(gpu), nvml.nvmlDeviceGetMaxPcieLinkWidth(gpu)
    return [*most, nvml.nvmlDeviceGetCurrPcieLinkWidth(gpu)]


def _nvlinks(nvml: Any, gpu: Any) -> dict[str, int]:
    links: dict[str, int] = {}
    for link in range(nvml.NVML_NVLINK_MAX_LINKS):
        if not _known(nvml, lambda link=link: nvml.nvmlDeviceGetNvLinkState(gpu, link), 0):
            continue
        end = _known(nvml, lambda link=link: _far_end(nvml, gpu, link), "")
        links[end] = links.get(end, 0) + 1
    return links


def _far_end(nvml: Any, gpu: Any, link: int) -> str:
    kind = nvml.nvmlDeviceGetNvLinkRemoteDeviceType(gpu, link)
    if kind == SWITCH_REMOTE:
        return "switch"
    return address_of(_text(nvml.nvmlDeviceGetNvLinkRemotePciInfo(gpu, link).busId)) if kind == GPU_REMOTE else ""


def _text(value: Any) -> str:
    return value.decode("ascii", "replace") if isinstance(value, bytes) else str(value)

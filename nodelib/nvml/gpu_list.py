"""Which GPUs a node has and who they are: by PCI, by the kernel module, and by NVML, which is asked in a child."""

import json
import sys
from pathlib import Path
from typing import Any

from nodelib.host.commands import run_here
from nodelib.host.gpus import address_of, in_driver, on_pci

NVML_SECONDS = 100.0  # two calls to a GPU's own processor, each given up by the driver after 45 s
# What is asked besides who a GPU is: for the bundle, where nothing is too much.
MORE = (
    "Name BoardPartNumber VbiosVersion InforomImageVersion InforomConfigurationChecksum PersistenceMode EccMode "
    "RemappedRows RetiredPagesPendingStatus CurrentClocksEventReasons PerformanceState PowerUsage EnforcedPowerLimit "
    "CurrPcieLinkWidth CurrPcieLinkGeneration MaxPcieLinkWidth MaxPcieLinkGeneration PcieReplayCounter MemoryInfo "
    "ComputeRunningProcesses GraphicsRunningProcesses MigMode"
)
# What a vendor asks for with a board, beside its serial number; many a GPU does not tell it.
BOARD = {"part": "BoardPartNumber", "inforom": "InforomImageVersion"}
NVML_QUESTION = f"""
import json, pynvml as n
BOARD = {{word: key for key, word in {BOARD}.items()}}
n.nvmlInit()
print(json.dumps({{"driver": str(n.nvmlSystemGetDriverVersion())}}), flush=True)
for i in range(n.nvmlDeviceGetCount()):
    gpu = {{"index": i, "more": {{}}}}
    try:
        h = n.nvmlDeviceGetHandleByIndex(i)
        gpu["address"] = n.nvmlDeviceGetPciInfo(h).busId
        gpu["uuid"] = n.nvmlDeviceGetUUID(h)
        gpu["serial"] = n.nvmlDeviceGetSerial(h)
    except n.NVMLError as error:
        gpu["error"] = error.value
    gpu = {{k: v.decode() if isinstance(v, bytes) else v for k, v in gpu.items()}}
    print(json.dumps(gpu), flush=True)
    for name in "{MORE}".split() if "address" in gpu else ():
        try:
            gpu["more"][name] = str(getattr(n, "nvmlDeviceGet" + name)(h))
        except (n.NVMLError, AttributeError) as error:
            gpu["more"][name] = f"{{type(error).__name__}}: {{error}}"
            continue
        if name in BOARD:
            gpu[BOARD[name]] = gpu["more"][name][:32]
    print(json.dumps(gpu), flush=True)
"""


def read_pci(root: Path) -> list[dict[str, Any]]:
    """Return the GPUs on PCI: "fallen" or "unreadable" where one is not there any more, or does not say what it is."""
    return [
        {"address": card.address, **({} if card.state == "present" else {card.state: True})}
        for card in on_pci(root / "sys")
    ]


def read_driver(root: Path) -> list[dict[str, Any]]:
    """Return the GPUs that the kernel module lists, with their UUIDs."""
    return [
        {"address": address, **({"uuid": gpu.uuid} if gpu.uuid else {})}
        for address, gpu in in_driver(root / "proc").items()
    ]


def ask_nvml() -> tuple[list[dict[str, Any]], bool]:
    """Return what NVML says of each GPU, "more" with it, and whether it answered all: else the child is left behind.

    Raises OSError when it ends and has listed none.
    """
    output = run_here([sys.executable, "-I", "-c", NVML_QUESTION], NVML_SECONDS)
    lines = [json.loads(line) for line in output.text.splitlines() if line.startswith("{") and line.endswith("}")]
    gpus = {gpu["index"]: gpu for gpu in lines if "index" in gpu}  # the later line knows more
    if not gpus and output.code is not None:
        raise OSError(f"NVML listed no GPU: {output.last}"[:100])
    known = [{**gpu, **({"address": address_of(gpu["address"])} if "address" in gpu else {})} for gpu in gpus.values()]
    return known, output.code is not None


def in_use(gpus: list[dict[str, Any]]) -> bool | None:
    """Whether somebody computes on one of these, as NVML tells with "more"; None where nobody can tell.

    A GPU that answers nothing is broken already.
    """
    users = [str(gpu.get("more", {}).get("ComputeRunningProcesses")) for gpu in gpus if "address" in gpu]
    if any(text.startswith("[") and text != "[]" for text in users):
        return True
    return False if gpus and all(text == "[]" for text in users) else None


def merge(known: list[dict[str, Any]], more: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return `known` with what `more` says of the same address; what has no address, or a new one, is added."""
    gpus = {gpu["address"]: dict(gpu) for gpu in known if "address" in gpu}
    others = [gpu for gpu in (*known, *more) if "address" not in gpu]
    for gpu in more:
        if "address" in gpu:
            gpus.setdefault(gpu["address"], {}).update(gpu)
    return [*gpus.values(), *others]

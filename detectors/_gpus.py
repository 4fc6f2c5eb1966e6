"""What a node shows of its NVIDIA GPUs: PCI, the driver, device nodes, and NVML. Reads only, judges nothing.

A view that is not there is None: nothing follows from it. Addresses are those of sysfs (0000:3b:00.0).
"""

import re
from pathlib import Path
from typing import Any, NamedTuple

from _verdict import write_json

NVIDIA = "0x10de"
DISPLAY_CLASSES = ("0x0300", "0x0302")  # VGA and 3D controllers; NVIDIA's audio, USB and NVSwitch functions are others
ALL_ONES = b"\xff\xff\xff\xff"  # what a read of a device answers that is no longer on the bus
ADDRESS = re.compile(r"^([0-9a-f]+):([0-9a-f]{2}):([0-9a-f]{2}\.[0-7])$")


class Card(NamedTuple):
    """One GPU on PCI. `state`: present, fallen, or unreadable (it may not even be a GPU); `driver`: "" for none."""

    address: str
    state: str
    driver: str


class Driven(NamedTuple):
    """One GPU as the loaded driver lists it. `minor`: N of /dev/nvidiaN, None when not told."""

    uuid: str
    minor: int | None
    excluded: bool


def address_of(text: str) -> str:
    """Return NVML's or sysfs' spelling of a PCI address as sysfs has it.

    >>> address_of("00000000:3B:00.0")
    '0000:3b:00.0'
    """
    found = ADDRESS.match(text.lower())
    return f"{int(found[1], 16):04x}:{found[2]}:{found[3]}" if found else text.lower()


def read_pci(sys_root: Path) -> tuple[Card, ...] | None:
    """Return the GPUs of the PCI bus in address order, virtual functions left out."""
    try:
        folders = sorted((sys_root / "bus/pci/devices").iterdir())
    except OSError:
        return None
    return tuple(card for card in map(_read_card, folders) if card)


def _read_card(folder: Path) -> Card | None:
    vendor, kind = _text(folder / "vendor"), _text(folder / "class")
    if not re.fullmatch(r"0x[0-9a-f]{4}", vendor):
        return Card(folder.name, "unreadable", "")
    if vendor != NVIDIA:
        return None
    if not re.fullmatch(r"0x[0-9a-f]{6}", kind):
        return Card(folder.name, "unreadable", "")
    if not kind.startswith(DISPLAY_CLASSES) or (folder / "physfn").exists():
        return None
    return Card(folder.name, _state(folder / "config"), _driver(folder / "driver"))


def _state(config: Path) -> str:
    """Vendor and class are cached by the kernel and outlive the device; only its configuration space is asked live."""
    try:
        with config.open("rb") as file:
            head = file.read(64)[:4]
    except OSError:
        return "unreadable"
    if head == ALL_ONES:
        return "fallen"
    return "present" if head[:2] == int(NVIDIA, 16).to_bytes(2, "little") and len(head) == 4 else "unreadable"


def _driver(link: Path) -> str:
    return link.resolve().name if link.exists() else ""


def read_driver(proc: Path) -> dict[str, Driven] | None:
    """Return the GPUs that the NVIDIA kernel module lists, by address; None when it is not loaded."""
    try:
        folders = sorted((proc / "driver/nvidia/gpus").iterdir())
    except OSError:
        return {} if (proc / "driver/nvidia/version").exists() else None
    return {address_of(folder.name): _read_information(folder / "information") for folder in folders}


def _read_information(path: Path) -> Driven:
    fields = {
        name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in _lines(path)) if name
    }
    minor = fields.get("device minor", "")
    return Driven(
        uuid=fields.get("gpu uuid", ""),
        minor=int(minor) if re.fullmatch(r"[0-9]{1,4}", minor) else None,
        excluded=fields.get("gpu excluded", "").lower() == "yes",
    )


def read_nodes(dev: Path) -> frozenset[int] | None:
    """Return the N of every /dev/nvidiaN; None when there is none at all (they may be kept elsewhere)."""
    try:
        names = [path.name for path in dev.iterdir()]
    except OSError:
        return None
    return frozenset(int(name[6:]) for name in names if re.fullmatch(r"nvidia[0-9]{1,4}", name)) or None


def _text(path: Path) -> str:
    return "".join(_lines(path)[:1]).strip().lower()


def _lines(path: Path) -> list[str]:
    try:
        return path.read_bytes()[:4096].decode("ascii", "replace").splitlines()
    except OSError:
        return []


def ask_nvml(answer: Path) -> None:
    """Ask NVML for every GPU and keep in `answer` what is known so far. May hang: run it in a child.

    Writes {"init": code, "count": N, "gpus": [{"index", "error", "address", "uuid", "serial"}], "at": what is asked,
    "done": true at the end}; codes are NVML's, 0 for fine. What went wrong outside NVML is {"failed": cause}.
    """
    said: dict[str, Any] = {"gpus": []}

    def tell(**more: Any) -> None:
        said.update(more)
        write_json(answer, said)

    try:
        import pynvml

        def start() -> None:
            tell(at="init")
            pynvml.nvmlInit()
            tell(at="count")
            tell(count=pynvml.nvmlDeviceGetCount())

        said["init"] = _code(pynvml, start)
        for index in range(said.get("count", 0)):
            tell(at=f"GPU index {index}")
            said["gpus"].append(_ask_gpu(pynvml, index))
    except Exception as error:
        said["failed"] = f"{type(error).__name__}: {error}"
    tell(done=True)


def _ask_gpu(pynvml: Any, index: int) -> dict[str, Any]:
    """Ask one GPU; its error stays its own, so that no other is hidden."""
    gpu: dict[str, Any] = {"index": index}

    def fill() -> None:
        handle = pynvml.nvmlDeviceGetHandleByIndex(index)
        gpu["address"] = address_of(_string(pynvml.nvmlDeviceGetPciInfo(handle).busId))
        gpu["uuid"] = _string(pynvml.nvmlDeviceGetUUID(handle))

    def fill_serial() -> None:
        gpu["serial"] = _string(pynvml.nvmlDeviceGetSerial(pynvml.nvmlDeviceGetHandleByIndex(index)))

    gpu["error"] = _code(pynvml, fill)
    if gpu["error"] == 0 and _code(pynvml, fill_serial) == pynvml.NVML_ERROR_GPU_IS_LOST:
        gpu["error"] = pynvml.NVML_ERROR_GPU_IS_LOST  # any other error is a card without a serial number
    return gpu


def _code(pynvml: Any, call: Any) -> int:
    try:
        call()
    except pynvml.NVMLError as error:
        return int(error.value)
    return 0


def _string(value: Any) -> str:
    return value.decode("ascii", "replace") if isinstance(value, bytes) else str(value)

"""What a machine is, as its firmware tells it: maker, model and serial numbers. A vendor asks for them."""

from pathlib import Path

LONGEST = 48  # characters of one
DMI = {
    "vendor": "sys_vendor",
    "model": "product_name",
    "serial": "product_serial",
    "chassis": "chassis_serial",
    "board": "board_name",
    "boardSerial": "board_serial",
    "bios": "bios_version",
}
# What makers leave in who never set it: it tells one machine from no other.
_UNSET = frozenset(
    {"", "0", "0123456789", "none", "n/a", "not specified", "not available", "default string", "unknown"}
)


def read_machine(root: Path) -> dict[str, str]:
    """Return what is told, by the keys of DMI; {} where nothing is: a virtual machine may have no DMI."""
    folder = root / "sys/class/dmi/id"
    return {key: text for key, name in DMI.items() if (text := _text(folder / name))}


def _text(path: Path) -> str:
    try:
        text = " ".join(path.read_text(errors="replace").split())[:LONGEST]
    except OSError:
        return ""
    return "" if text.lower() in _UNSET or "to be filled" in text.lower() else text

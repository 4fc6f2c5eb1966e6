"""What NVMe controllers say of their own health (SMART / Health Information, log page 02h of NVM Express).

The question goes to the device, so it may never be answered: this file is also the program of the child that asks.
Its arguments are the controllers' device files and its answer file; it says {name: {warning, used, media_errors} or
{errno} or {status}} after each.
"""

import struct
import sys
from pathlib import Path
from typing import Any

PROGRAM = Path(__file__).resolve()
# struct nvme_admin_cmd of <linux/nvme_ioctl.h>, and _IOWR('N', 0x41, struct nvme_admin_cmd)
COMMAND = struct.Struct("<BBH IIIQQII 6I II")
ADMIN = 3 << 30 | COMMAND.size << 16 | ord("N") << 8 | 0x41
GET_LOG_PAGE, HEALTH, WHOLE = 0x02, 0x02, 0xFFFFFFFF
PAGE_BYTES = 512
TIMEOUT_MS = 5000

# Bits of the critical warning that no one outlives; bit 1, temperature, passes.
WARNINGS = {
    1 << 0: "spare blocks have run low",
    1 << 2: "its reliability is degraded",
    1 << 3: "it has become read-only",
    1 << 4: "the backup of its cache has failed",
    1 << 5: "its persistent memory is unreliable",
}


def page_command(address: int) -> bytes:
    """Return the command that reads the health page into PAGE_BYTES at `address`."""
    dwords = (PAGE_BYTES // 4 - 1) << 16 | HEALTH
    return COMMAND.pack(
        GET_LOG_PAGE, 0, 0, WHOLE, 0, 0, 0, address, 0, PAGE_BYTES, dwords, 0, 0, 0, 0, 0, TIMEOUT_MS, 0
    )


def parse_page(page: bytes) -> dict[str, int]:
    """Read a health page: the critical warning's bits, percent of its life used, and media errors in all its life.

    >>> parse_page(bytes([4]) + bytes(511))
    {'warning': 4, 'used': 0, 'media_errors': 0}
    """
    return {"warning": page[0], "used": page[5], "media_errors": int.from_bytes(page[160:176], "little")}


def ask_controller(device: Path) -> dict[str, int]:
    """Ask one controller; errno where it could not be asked, status where it refuses the question."""
    import ctypes
    import fcntl
    import os

    page = ctypes.create_string_buffer(PAGE_BYTES)
    try:
        fd = os.open(device, os.O_RDONLY | os.O_CLOEXEC)
        try:
            status = fcntl.ioctl(fd, ADMIN, bytearray(page_command(ctypes.addressof(page))))
        finally:
            os.close(fd)
    except OSError as error:
        return {"errno": error.errno or 0}
    return {"status": status} if status else parse_page(page.raw)


def judge_page(page: Any) -> list[str]:
    """Return what is wrong with a controller that said this; [] for nothing, or where it does not report."""
    warning = page.get("warning") if isinstance(page, dict) else None
    return [words for bit, words in WARNINGS.items() if warning & bit] if type(warning) is int else []


def is_told(page: Any) -> bool:
    """Tell whether a controller said anything: its health, or why not."""
    return isinstance(page, dict) and any(type(page.get(key)) is int for key in ("warning", "errno", "status"))


def main(devices: list[str], answer: Path) -> None:
    """Ask each controller and write what it said."""
    import json

    pages: dict[str, Any] = {}
    draft = answer.with_name(f"{answer.name}.draft")
    for device in map(Path, devices):
        pages[device.name] = ask_controller(device)
        draft.write_text(json.dumps(pages))
        draft.replace(answer)
    draft.write_text(json.dumps({**pages, "done": True}))
    draft.replace(answer)


if __name__ == "__main__":
    main(sys.argv[1:-1], Path(sys.argv[-1]))

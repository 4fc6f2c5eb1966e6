"""The BMC of this machine, asked through the kernel's own IPMI device: without password, network or tool.

Only a child (chassis_child.py) opens it: to close it may take as long as the BMC hangs.
"""

import fcntl
import os
import select
import struct
import time
from array import array
from pathlib import Path

# <linux/ipmi.h>: struct ipmi_system_interface_addr, ipmi_req and ipmi_recv, each with its struct ipmi_msg inside.
ADDRESS, REQUEST, RECEIPT = struct.Struct("@ihBx"), struct.Struct("@PIlBBHP"), struct.Struct("@iPIlBBHP")
SEND = 2 << 30 | REQUEST.size << 16 | ord("i") << 8 | 13  # IPMICTL_SEND_COMMAND
RECEIVE = 3 << 30 | RECEIPT.size << 16 | ord("i") << 8 | 11  # IPMICTL_RECEIVE_MSG_TRUNC
SYSTEM_INTERFACE, BMC_CHANNEL, RESPONSE = 0x0C, 0xF, 1
ADDRESS_BYTES, ANSWER_BYTES = 40, 272
PATIENCE = 6.0  # seconds: the kernel gives up after about five, and says so with a completion code
SILENT = {0xC0: "it is busy", 0xC3: "it does not answer", 0xFF: "it does not answer"}  # no word on the question itself
CUT = 0xC8  # of an answer without a completion code: "request data length invalid" comes nearest


class Refusal(Exception):
    """The BMC does not do what it was asked. `code`: the completion code (IPMI 2.0, table 5-2)."""

    def __init__(self, code: int) -> None:
        words = f"completion code {code:#04x}"
        super().__init__(f"{SILENT[code]} ({words})" if code in SILENT else words)
        self.code = code


class IpmiDevice:
    """An open device. Raises OSError where it cannot be opened."""

    def __init__(self, path: Path) -> None:
        self._file, self._number = os.open(path, os.O_RDWR | os.O_CLOEXEC), 0

    def ask(self, function: int, command: int, data: bytes = b"", lun: int = 0) -> bytes:
        """Return what the BMC answers, without its completion code. Raises Refusal, TimeoutError, OSError."""
        self._number += 1
        to, words = array("B", ADDRESS.pack(SYSTEM_INTERFACE, BMC_CHANNEL, lun)), array("B", data or b"\0")
        place, size = to.buffer_info()
        message = (function, command, len(data), words.buffer_info()[0])
        fcntl.ioctl(self._file, SEND, REQUEST.pack(place, size, self._number, *message))
        until = time.monotonic() + PATIENCE
        while (answer := self._receive(until)) is None:
            pass
        code = answer[0] if answer else CUT
        if code:
            raise Refusal(code)
        return answer[1:]

    def _receive(self, until: float) -> bytes | None:
        """Return the answer to the last question, None for an event or an answer to an earlier one."""
        waiting = select.poll()
        waiting.register(self._file, select.POLLIN)
        if not waiting.poll(max(0.0, until - time.monotonic()) * 1000):
            raise TimeoutError
        sender, answer = array("B", bytes(ADDRESS_BYTES)), array("B", bytes(ANSWER_BYTES))
        receipt = bytearray(
            RECEIPT.pack(0, *sender.buffer_info(), 0, 0, 0, ANSWER_BYTES, answer.buffer_info()[0]),
        )
        fcntl.ioctl(self._file, RECEIVE, receipt)
        kind, _, _, number, _, _, size, _ = RECEIPT.unpack(receipt)
        return answer[:size].tobytes() if (kind, number) == (RESPONSE, self._number) else None

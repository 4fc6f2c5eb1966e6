"""The machine under a simulated kubelet: a directory tree, a boot id, and a reboot button."""

import asyncio
import json
import os
import shlex
import shutil
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from remediator.sim import nsenter

BOOT_ID = Path("proc/sys/kernel/random/boot_id")
TREE = ("proc/sys/kernel/random", "run", "sys", "dev")


class SimulatedHost:
    """One machine. Made again over the same directory it is the same machine, in the same boot.

    `directory` holds `root/` (what containers see as HOST_ROOT), `bin/` (first in their PATH), `pods/` (what the
    kubelet keeps on its disk) and `reboots.jsonl` (every reboot that a program asked for, one JSON object a line).
    `down_time` is how many seconds a reboot takes. Each of `on_reboot` is called without arguments while the machine
    is down, after the boot id has changed: the place to mend or break its hardware. While `trouble` is not empty the
    kubelet reports the node as not Ready, with this text.
    """

    def __init__(self, directory: Path, name: str, *, down_time: float = 1.0) -> None:
        self.directory, self.name, self.down_time = directory.absolute(), name, down_time
        self.root, self.bin, self.pods = (self.directory / part for part in ("root", "bin", "pods"))
        self.journal = self.directory / "reboots.jsonl"
        self.on_reboot: list[Callable[[], None]] = []
        self.trouble = ""
        self._asked = asyncio.Event()
        self._install()

    @property
    def boot_id(self) -> str:
        """The uuid of this boot, as the kernel of the simulated machine tells it."""
        return (self.root / BOOT_ID).read_text().strip()

    def reboots(self) -> list[dict[str, Any]]:
        """What the journal holds: {node, attemptID, bootID, time} for each reboot asked for, oldest first."""
        lines = self.journal.read_text().splitlines() if self.journal.exists() else []
        return [json.loads(line) for line in lines]

    def press_reset(self) -> None:
        """Reboot without anyone having asked inside: a power cut, or a person at the machine. Not in the journal."""
        self._asked.set()

    @contextmanager
    def powered(self) -> Iterator[asyncio.Event]:
        """While open, the machine runs and hears its reboot button; the event is set once a reboot is wanted."""
        self._asked.clear()
        button = self.directory / "reboot-asked"
        button.unlink(missing_ok=True)
        os.mkfifo(button)
        # Read and write: a FIFO that only readers hold reports an end of file for ever.
        descriptor = os.open(button, os.O_RDWR | os.O_NONBLOCK)
        loop = asyncio.get_running_loop()
        loop.add_reader(descriptor, self._pressed, descriptor)
        try:
            yield self._asked
        finally:
            loop.remove_reader(descriptor)
            os.close(descriptor)
            button.unlink(missing_ok=True)

    async def boot_again(self) -> None:
        """Be down for `down_time` and come back as a new boot: new boot id, empty /run (a tmpfs), hooks called."""
        await asyncio.sleep(self.down_time)
        shutil.rmtree(self.root / "run", ignore_errors=True)  # a process may write to its last moment
        (self.root / "run").mkdir(exist_ok=True)
        self._new_boot_id()
        for hook in self.on_reboot:
            hook()

    def _pressed(self, descriptor: int) -> None:
        os.read(descriptor, 65536)
        self._asked.set()

    def _new_boot_id(self) -> None:
        (self.root / BOOT_ID).write_text(f"{uuid.uuid4()}\n")

    def _install(self) -> None:
        for part in (*(self.root / branch for branch in TREE), self.bin, self.pods):
            part.mkdir(parents=True, exist_ok=True)
        if not (self.root / BOOT_ID).exists():
            self._new_boot_id()
        call = shlex.join([sys.executable, "-I", "-S", nsenter.__file__, str(self.directory), self.name])
        program = self.bin / "nsenter"
        program.write_text(f'#!/bin/sh\nexec {call} "$@"\n')
        program.chmod(0o755)

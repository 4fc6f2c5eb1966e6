"""The machine under a simulated kubelet: a directory tree, a boot id, and a reboot button."""

import asyncio
import json
import os
import shlex
import shutil
import sys
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from remediator_sim.kubelet import nsenter

BOOT_ID = Path("proc/sys/kernel/random/boot_id")
TREE = ("proc/sys/kernel/random", "run", "sys", "dev")


class CommandResult(NamedTuple):
    """What came of a command on a simulated host: its exit code, and what it printed."""

    code: int
    text: str = ""


Command = Callable[[Sequence[str]], CommandResult | None]  # of its arguments; None: it never ends


class SimulatedHost:
    """One machine. Made again over the same directory it is the same machine, in the same boot.

    `directory` holds `root/` (what containers see as HOST_ROOT), `bin/` (first in their PATH), `pods/` (what the
    kubelet keeps on its disk), `commands.jsonl` (every command that a program ran through nsenter, one JSON object a
    line) and `reboots.jsonl` (those that were reboots). `commands` holds the programs of this machine by name; without
    any it can only be rebooted. `down_time` is how many seconds a reboot takes. Each of `on_reboot` is called without
    arguments while the machine is down, after the boot id has changed: the place to mend or break its hardware. While
    `trouble` is not empty the kubelet reports the node as not Ready, with this text.
    """

    def __init__(self, directory: Path, name: str, *, down_time: float = 1.0) -> None:
        self.directory, self.name, self.down_time = directory.absolute(), name, down_time
        parts = ("root", "bin", "pods", "answers")
        self.root, self.bin, self.pods, self.answers = (self.directory / part for part in parts)
        self.commands: dict[str, Command] = {}
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
        return self._journal("reboots.jsonl")

    def commands_run(self) -> list[dict[str, Any]]:
        """What the journal holds: {node, attemptID, bootID, time, command} for each command, oldest first."""
        return self._journal("commands.jsonl")

    def press_reset(self) -> None:
        """Reboot without anyone having asked inside: a power cut, or a person at the machine. Not in the journal."""
        self._asked.set()

    @contextmanager
    def powered(self) -> Iterator[asyncio.Event]:
        """While open, the machine runs and does what it is asked; the event is set once a reboot is wanted."""
        self._asked.clear()
        for late in self.answers.iterdir():
            late.unlink()
        console = self.directory / "console"
        console.unlink(missing_ok=True)
        os.mkfifo(console)
        # Read and write: a FIFO that only readers hold reports an end of file for ever.
        descriptor = os.open(console, os.O_RDWR | os.O_NONBLOCK)
        loop = asyncio.get_running_loop()
        loop.add_reader(descriptor, self._hear, descriptor)
        try:
            yield self._asked
        finally:
            loop.remove_reader(descriptor)
            os.close(descriptor)
            console.unlink(missing_ok=True)

    async def boot_again(self) -> None:
        """Be down for `down_time` and come back as a new boot: new boot id, empty /run (a tmpfs), hooks called."""
        await asyncio.sleep(self.down_time)
        shutil.rmtree(self.root / "run", ignore_errors=True)  # a process may write to its last moment
        (self.root / "run").mkdir(exist_ok=True)
        self._new_boot_id()
        for hook in self.on_reboot:
            hook()

    def _hear(self, descriptor: int) -> None:
        for line in os.read(descriptor, 65536).splitlines():  # each was one write of less than a page
            request = json.loads(line)
            if request["command"] == nsenter.REBOOT:
                self._asked.set()
            else:
                self._answer(request["id"], self._do(request["command"]))

    def _do(self, words: list[str]) -> CommandResult | None:
        command = self.commands.get(words[0]) if words else None
        if command is None:
            return CommandResult(127, f"nsenter: a simulated host cannot run: {' '.join(words)}\n")
        return command(words[1:])

    def _answer(self, request: str, answer: CommandResult | None) -> None:
        if answer:
            draft = self.answers / f".{request}"
            draft.write_text(json.dumps(answer._asdict()))
            draft.replace(self.answers / f"{request}.json")

    def _journal(self, name: str) -> list[dict[str, Any]]:
        path = self.directory / name
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def _new_boot_id(self) -> None:
        (self.root / BOOT_ID).write_text(f"{uuid.uuid4()}\n")

    def _install(self) -> None:
        for part in (*(self.root / branch for branch in TREE), self.bin, self.pods, self.answers):
            part.mkdir(parents=True, exist_ok=True)
        if not (self.root / BOOT_ID).exists():
            self._new_boot_id()
        call = shlex.join([sys.executable, "-I", "-S", nsenter.__file__, str(self.directory), self.name])
        program = self.bin / "nsenter"
        program.write_text(f'#!/bin/sh\nexec {call} "$@"\n')
        program.chmod(0o755)

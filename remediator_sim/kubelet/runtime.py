"""The container runtime's memory on a simulated host's disk: what was started, and how it ended."""

import shutil
from datetime import datetime
from pathlib import Path

import msgspec


class Terminated(msgspec.Struct, frozen=True, rename="camel"):
    """How a container ended, in the words of a Pod's status."""

    exit_code: int
    reason: str
    message: str
    started_at: datetime
    finished_at: datetime


class Record(msgspec.Struct, frozen=True, rename="camel"):
    """What the runtime keeps of a container: the boot it was started in, how often, and its end once it has one."""

    boot_id: str
    started_at: datetime
    restarts: int = 0
    terminated: Terminated | None = None


class Runtime:
    """The records and working directories of one host's containers, by Pod uid. They outlive kubelets and reboots."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def place(self, uid: str) -> Path:
        """The working directory of one Pod, made if need be."""
        path = self.directory / uid
        path.mkdir(parents=True, exist_ok=True)
        return path

    def load(self, uid: str) -> Record | None:
        """What is known of the Pod's container; None if none was ever started here."""
        path = self.directory / uid / "record.json"
        return msgspec.json.decode(path.read_bytes(), type=Record) if path.exists() else None

    def save(self, uid: str, record: Record) -> None:
        """Remember `record`, whole or not at all."""
        path = self.place(uid) / "record.json"
        fresh = path.with_suffix(".new")
        fresh.write_bytes(msgspec.json.encode(record))
        fresh.replace(path)

    def known(self) -> set[str]:
        """The uids of all Pods with something on this host's disk."""
        return {path.name for path in self.directory.iterdir()}

    def forget(self, uid: str) -> None:
        """Remove all that is left of a Pod."""
        shutil.rmtree(self.directory / uid, ignore_errors=True)

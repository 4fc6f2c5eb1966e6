"""What `up` started, kept in the user's cache so that `down` ends exactly that."""

import json
from pathlib import Path
from typing import NamedTuple

from deploy.images.programs import cache
from tests.cluster.processes import Running


class Record(NamedTuple):
    """A control plane that outlives the command that started it."""

    kubeconfig: str
    processes: list[Running]

    def alive(self) -> bool:
        """Whether anything of it still runs."""
        return any(process.alive() for process in self.processes)


def folder() -> Path:
    """Where the running control plane keeps keys, data and logs."""
    return cache() / "run"


def load() -> Record | None:
    """What is written down; None where nothing is."""
    try:
        kubeconfig, processes = json.loads(_path().read_text())
    except FileNotFoundError:
        return None
    return Record(kubeconfig, [Running(*process) for process in processes])


def save(record: Record) -> None:
    """Write it down."""
    _path().write_text(json.dumps(record))


def _path() -> Path:
    return folder() / "processes.json"

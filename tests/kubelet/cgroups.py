"""A cgroup of our own in every hierarchy, for all Pods of one node, and its end."""

import time
from contextlib import suppress
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
INHERITED = ("cpuset.cpus", "cpuset.mems")  # empty in a new cgroup of the first version, which then takes no process


class Cgroup:
    """`name` in every hierarchy. Made by `make`; `remove` waits until its processes are gone."""

    def __init__(self, name: str) -> None:
        self.name = name
        single = (ROOT / "cgroup.controllers").exists()
        self._folders = [root / name for root in ([ROOT] if single else _hierarchies())]

    def make(self) -> None:
        """Make it."""
        for folder in self._folders:
            folder.mkdir(exist_ok=True)
            for file in INHERITED:
                if (folder / file).exists() and not (folder / file).read_text().strip():
                    (folder / file).write_text((folder.parent / file).read_text())

    def remove(self, seconds: float = 10.0) -> None:
        """Take it away with all below it. Raises OSError where something is left in it after `seconds`."""
        end = time.monotonic() + seconds
        while True:
            for folder in self._folders:
                for below in sorted(folder.rglob("*/"), reverse=True):
                    with suppress(OSError):
                        below.rmdir()
                with suppress(OSError):
                    folder.rmdir()
            left = [folder for folder in self._folders if folder.exists()]
            if not left:
                return
            if time.monotonic() > end:
                raise OSError(f"cgroups are still in use: {', '.join(map(str, left))}")
            time.sleep(0.05)


def _hierarchies() -> list[Path]:
    return [
        path for path in ROOT.iterdir() if path.is_dir() and not path.is_symlink() and (path / "cgroup.procs").exists()
    ]

"""What this node runs on: its system by name, and which programs of its own it has to offer.

A host is judged by its files, seen through the root folder of process 1. Where they cannot be seen nothing is known,
and nothing is refused because of it.
"""

from pathlib import Path
from typing import NamedTuple

from nodelib.contract.operation import Refused
from nodelib.host.root import within

RELEASES = ("etc/os-release", "usr/lib/os-release")
SYSTEMD = "run/systemd/system"  # there where systemd is process 1 (sd_booted)
FOLDERS = (
    *("usr/bin", "bin", "usr/sbin", "sbin", "usr/local/bin", "usr/local/sbin", "opt/bin"),
    "run/current-system/sw/bin",  # NixOS
)
LONGEST = 80


class NodeSystem(NamedTuple):
    """The system of a node. `kind`: ID of its os-release; `name`: what it calls itself."""

    root: Path
    kind: str
    name: str

    @property
    def lacks_systemd(self) -> bool:
        """Whether it is known that systemd is not its first process."""
        return self.lacks(SYSTEMD)

    def lacks(self, path: str) -> bool:
        """Whether it is known that nothing is there; of what cannot be seen nothing is known."""
        try:
            return not within(self.root, path).exists()
        except OSError:
            return False

    def lacks_program(self, name: str) -> bool:
        """Whether it is known that no program of this name is where programs are looked for."""
        return all(self.lacks(f"{folder}/{name}") for folder in FOLDERS)


def node_system(proc: Path) -> NodeSystem | None:
    """Return what the node runs on; None where its files cannot be seen, or no file says what it is."""
    root = proc / "1/root"
    for release in RELEASES:
        try:
            words = dict(_words(within(root, release).read_text(errors="replace")[:8192]))
        except OSError:
            continue
        if words.get("ID"):
            return NodeSystem(root, words["ID"], (words.get("PRETTY_NAME") or words["ID"])[:LONGEST])
    return None


def _words(text: str) -> list[tuple[str, str]]:
    pairs = (line.partition("=")[::2] for line in text.splitlines() if not line.startswith("#"))
    return [(name.strip(), value.strip().strip("\"'")) for name, value in pairs]


def require_systemd(proc: Path, remedy: str) -> None:
    """Raise Refused on a node that is known to run without systemd."""
    here = node_system(proc)
    if here and here.lacks_systemd:
        raise Refused(f"this node runs {here.name}, which has no systemd: {remedy}")


def require_programs(proc: Path, names: tuple[str, ...], remedy: str) -> None:
    """Raise Refused on a node that is known not to have one of these programs."""
    here = node_system(proc)
    missing = [name for name in names if here and here.lacks_program(name)]
    if here and missing:
        raise Refused(f"this node runs {here.name}, which has no {missing[0]}: {remedy}")


def require_other(proc: Path, kinds: tuple[str, ...], why: str) -> None:
    """Raise Refused on a node whose system is one of `kinds`."""
    here = node_system(proc)
    if here and here.kind in kinds:
        raise Refused(f"this node runs {here.name}, {why}")

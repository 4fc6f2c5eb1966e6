"""An image of the table, made of what this machine has: its layers, and the tar that they go into."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from deploy.images import machine
from deploy.images.bytecode import compiled
from deploy.images.oci import File, Run, layer, write
from deploy.images.programs import binary
from deploy.images.requirements import pins
from deploy.images.table import REQUIREMENTS, ROOT, Base, Image

FOLDERS = {"/tmp": 0o1777, "/run": 0o755, "/etc": 0o755}  # a read-only file system must have what is mounted into it
ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "LANG": "C.UTF-8",
    "PYTHONPATH": machine.PACKAGES,
}


def run(image: Image) -> Run:
    """How a container of this image starts by itself."""
    return Run(image.command, image.user, ENVIRONMENT)


def layers(base: Base, image: Image) -> list[bytes]:
    """The base, the packages, and what is ours. Raises machine.Unbuildable, or NotBuilt for a program in Go."""
    pinned = pins(REQUIREMENTS.read_text(), image.packages)
    return [_base(base), _packages(tuple(pinned.items())), layer(compiled(ours(image)))]


def ours(image: Image) -> list[File]:
    """Programs in Go, and what is copied from the checkout."""
    programs = [File(f"/usr/local/bin/{name}", binary(name).read_bytes(), 0o755) for name in image.programs]
    copied = [file for source, target in image.copy.items() for file in machine.tree(ROOT / source, target)]
    return [*programs, *copied]


def tar(base: Base, image: Image, path: Path, names: Mapping[str, Run]) -> str:
    """Write the image into one tar, under these names; its digest."""
    return write(path, names, layers(base, image))


@cache
def _base(base: Base) -> bytes:
    files = [*machine.python(), *machine.tools(base.tools)]
    return layer(compiled([*files, *machine.libraries(files)]), FOLDERS)


@cache
def _packages(pinned: tuple[tuple[str, str], ...]) -> bytes:
    files = machine.packages(dict(pinned))
    return layer(compiled([*files, *machine.libraries(files)]))

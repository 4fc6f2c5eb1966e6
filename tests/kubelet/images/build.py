"""The tar of an image, made of what this machine has."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from deploy.images.programs import binary
from tests.kubelet.images import machine
from tests.kubelet.images.bytecode import compiled
from tests.kubelet.images.dockerfile import ROOT, Image
from tests.kubelet.images.oci import File, Run, layer, write

TOOLS = ("cat", "env", "nsenter", "sh")  # of those that the base of the Dockerfiles has, what operations start
FOLDERS = {"/tmp": 0o1777, "/run": 0o755, "/etc": 0o755}  # a read-only file system must have what is mounted into it
ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "LANG": "C.UTF-8",
    "PYTHONPATH": machine.PACKAGES,
}


def run(image: Image) -> Run:
    """How a container of this image starts by itself."""
    return Run(image.command, image.user, ENVIRONMENT)


def tar(image: Image, path: Path, names: Mapping[str, Run]) -> str:
    """Write the image into one tar, under these names; its digest. Raises Unbuildable, or NotBuilt for a program."""
    return write(path, names, [_base(), _packages(tuple(image.packages.items())), layer(compiled(ours(image)))])


def ours(image: Image) -> list[File]:
    """Programs in Go, and what is copied from the checkout."""
    programs = [File(f"/usr/local/bin/{name}", binary(name).read_bytes(), 0o755) for name in image.programs]
    copied = [file for source, target in image.copy.items() for file in machine.tree(ROOT / source, target)]
    return [*programs, *copied]


@cache
def _base() -> bytes:
    files = [*machine.python(), *machine.tools(TOOLS)]
    return layer(compiled([*files, *machine.libraries(files)]), FOLDERS)


@cache
def _packages(pinned: tuple[tuple[str, str], ...]) -> bytes:
    files = machine.packages(dict(pinned))
    return layer(compiled([*files, *machine.libraries(files)]))

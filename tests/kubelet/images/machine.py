"""What this machine has that an image needs: Python, its packages, a few tools, and their libraries."""

import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from tests.kubelet.images.oci import File

PREFIX = "/usr/local"
VERSION = f"python{sys.version_info[0]}.{sys.version_info[1]}"
PACKAGES = f"{PREFIX}/lib/{VERSION}/site-packages"
UNWANTED = re.compile(
    r"(^|/)(__pycache__|tests?|idlelib|tkinter|turtledemo|lib2to3|ensurepip|site-packages|dist-packages|config-[^/]*)(/|$)"
    r"|\.a$|(^|/)(_tkinter|_test|xxlimited)[^/]*\.so$"
)
STANDARD = re.compile(r"/(usr/)?lib(32|64)?/")  # where a loader looks without being told
ELF = b"\x7fELF"
LOADED = re.compile(r"(?:=> |^\s+)(/\S+) \(0x", re.MULTILINE)


class Unbuildable(Exception):
    """An image cannot be made on this machine; the message says what is missing and what to do."""


def python() -> list[File]:
    """The interpreter under /usr/local, as `python3` and `python3.N`, with its standard library."""
    binary = Path(sys.executable).resolve()
    programs = [_file(binary, f"{PREFIX}/bin/{name}") for name in ("python3", VERSION)]
    library = Path(sysconfig.get_path("stdlib", vars={"installed_base": sys.base_prefix}))
    return [*programs, *tree(library, f"{PREFIX}/{sys.platlibdir}/{VERSION}", UNWANTED)]


def packages(pinned: Mapping[str, str]) -> list[File]:
    """The installed packages of these versions. Raises Unbuildable where this environment has others."""
    return [file for name, version in pinned.items() for file in _package(name, version)]


def _package(name: str, version: str) -> Iterable[File]:
    try:
        found = distribution(name)
    except PackageNotFoundError as error:
        raise Unbuildable(f"{name} {version} is not installed here: run `make setup`") from error
    if found.version != version:
        raise Unbuildable(f"{name} is {found.version} here and {version} in requirements.txt: run `make setup`")
    for path in found.files or ():
        if not path.parts[0].startswith("..") and "__pycache__" not in path.parts and path.name != "RECORD":
            yield _file(Path(str(path.locate())), f"{PACKAGES}/{path}")


def tools(names: Sequence[str]) -> list[File]:
    """Programs of this machine, by name. Raises Unbuildable for one that is not on PATH."""
    return [_file(_tool(name), f"/usr/bin/{name}") for name in names] + [_file(_tool("sh"), "/bin/sh")]


def _tool(name: str) -> Path:
    found = shutil.which(name)
    if not found:
        raise Unbuildable(f"{name} is not on PATH: install the package that has it (nsenter: util-linux)")
    return Path(found)


def tree(folder: Path, target: str, unwanted: re.Pattern[str] = re.compile(r"(^|/)__pycache__(/|$)")) -> list[File]:
    """All files below a folder, links followed, at their places below `target`; a file by itself."""
    if folder.is_file():
        return [_file(folder, target)]
    if not folder.is_dir():
        raise Unbuildable(f"{folder} is not there")
    found = (path for path in sorted(folder.rglob("*")) if path.is_file())
    named = [(path, path.relative_to(folder).as_posix()) for path in found]
    return [_file(path, f"{target}/{name}") for path, name in named if not unwanted.search(name)]


def libraries(files: Iterable[File]) -> list[File]:
    """The shared libraries that programs and modules among `files` load, the loader too, where any loader looks.

    Those that this machine keeps elsewhere, where a path in the program leads to, go beside the C library.
    """
    had = {file.source for file in files}
    binaries = [file.source for file in files if file.source and file.data.startswith(ELF)]
    said = subprocess.run(["ldd", *binaries], capture_output=True, text=True, check=False).stdout
    found = sorted(set(LOADED.findall(said)) - had)
    homes = [Path(path).parent for path in found if re.search(r"/libc\.(so|musl)", path)]
    if binaries and not homes:
        raise Unbuildable("ldd names no C library for the Python that runs this: build the image with docker")
    return [_file(Path(path), path if STANDARD.match(path) else f"{homes[0]}/{Path(path).name}") for path in found]


def _file(path: Path, target: str) -> File:
    executable = path.stat().st_mode & 0o111
    return File(target, path.read_bytes(), 0o755 if executable else 0o644, str(path))

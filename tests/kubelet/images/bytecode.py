"""Compiled Python beside its source, so that a container with a read-only file system starts fast. Pure."""

import importlib.util
import marshal
import sys
from pathlib import PurePosixPath

from tests.kubelet.images.oci import File

UNCHECKED = (1).to_bytes(4, "little")  # a pyc that names its source by hash, and is believed without a look at it


def compiled(files: list[File]) -> list[File]:
    """The files, and what Python keeps in __pycache__ of each source among them that compiles."""
    return [*files, *(made for file in files if file.path.endswith(".py") for made in _compiled(file))]


def _compiled(file: File) -> list[File]:
    try:
        code = compile(file.data, file.path, "exec", dont_inherit=True, optimize=0)
    except (SyntaxError, ValueError):  # a template, or written for another Python
        return []
    head = importlib.util.MAGIC_NUMBER + UNCHECKED + importlib.util.source_hash(file.data)
    path = PurePosixPath(file.path)
    name = f"{path.stem}.{sys.implementation.cache_tag}.pyc"
    return [File(str(path.parent / "__pycache__" / name), head + marshal.dumps(code))]

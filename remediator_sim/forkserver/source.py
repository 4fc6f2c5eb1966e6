"""What one file of Python is made of: its code, what it imports, and the programs that it names."""

import ast
import re
import sys
import types
from pathlib import Path
from typing import NamedTuple

SOURCES = 256  # files whose code is kept: programs share most of their neighbours
Key = tuple[int, int, int]


def key(path: str) -> Key | None:
    """What a file is known again by; None where there is none."""
    try:
        seen = Path(path).stat()
    except OSError:
        return None
    return seen.st_ino, seen.st_size, seen.st_mtime_ns


class Source(NamedTuple):
    """What is compiled of one file: the names that it imports, and the files that it names without a folder."""

    key: Key | None
    code: types.CodeType
    imports: list[str]
    programs: list[str]


_known: dict[str, Source] = {}


def source_of(path: str) -> Source:
    """The file, compiled once for all programs that import it. Raises what reading and compiling raise."""
    known = _known.pop(path, None)
    if known is None or known.key != key(path):
        was = key(path)
        tree = ast.parse(Path(path).read_bytes(), path)
        code = compile(tree, path, "exec", dont_inherit=True)
        known = Source(was, code, sorted(_imports(tree)), sorted(_programs(tree)))
    while len(_known) >= SOURCES:
        del _known[next(iter(_known))]
    _known[path] = known
    return known


def _imports(tree: ast.AST) -> set[str]:
    imported: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            imported.add(node.module)
            if node.module.partition(".")[0] not in sys.stdlib_module_names:
                imported |= {f"{node.module}.{alias.name}" for alias in node.names}  # some are modules
    return imported


def _programs(tree: ast.AST) -> set[str]:
    """The files that a program names without a folder: it may start one that lies beside it."""
    texts = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    return {text for text in texts if re.fullmatch(r"\w+\.py", text)}

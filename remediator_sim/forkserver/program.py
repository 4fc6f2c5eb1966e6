"""A program that can be forked: what its first line asks for, and what it is made of, ready to run."""

import importlib
import os
import re
import stat
import sys
import types
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from remediator_sim.forkserver.source import Key, key, source_of

# "#!/usr/bin/env -S python3 -E -s -S" or "#!/usr/bin/python3 -IS"; what asks for more of Python is left to the kernel.
FIRST_LINE = re.compile(
    rb"""\#! [ \t]* (?: \S*/env [ \t]+ -S [ \t]+ \S* PYTHON ( (?: [ \t]+ -[EsSIBP]+ )+ )
                   | /\S* PYTHON [ \t]+ ( -[EsSIBP]+ ) ) [ \t]* \n""".replace(b"PYTHON", rb"python3 (?: \.\d+ )?"),
    re.VERBOSE,
)
Modules = dict[str, types.ModuleType]


class LoadedProgram(NamedTuple):
    """One program and its neighbours, ready to run: `codes` and `keys` (what the files were) by path.

    `wanted`: modules of packages by the folder that holds the package; `modules`: those of them that are imported.
    `strangers`: what it imports besides these and the standard library.
    """

    flags: frozenset[str]
    codes: dict[str, types.CodeType]
    keys: dict[str, Key | None]
    wanted: dict[str, set[str]]
    modules: Modules
    strangers: set[str]


def executable(path: str) -> None:
    """Raise the OSError that exec would raise."""
    if not stat.S_ISREG(Path(path).stat().st_mode) or not os.access(path, os.X_OK):
        raise PermissionError(13, os.strerror(13), path)


def load(path: str) -> LoadedProgram | None:
    """Compile a program and the neighbours that it imports, and import what they need of the standard library."""
    with Path(path).open("rb") as file:
        first = FIRST_LINE.match(file.readline())
    if not first:
        return None
    flags = frozenset(char for char in (first[1] or first[2]).decode() if char.isalpha())
    if not is_bare(flags):
        return None
    program = LoadedProgram(flags, {}, {}, {}, {}, set())
    _compile(path, program)
    return program


def is_bare(flags: frozenset[str]) -> bool:
    """Whether a program that is started with these takes nothing from its surroundings."""
    return "S" in flags and bool(flags & {"E", "I"})


def _compile(path: str, program: LoadedProgram) -> None:
    program.keys[path] = key(path)
    try:
        source = source_of(path)
    except (OSError, SyntaxError, ValueError):
        return  # the program itself will say what is wrong
    program.codes[path] = source.code
    own, nears = Path(path).resolve(), list[Path]()
    for name in source.imports:
        if name.partition(".")[0] in sys.stdlib_module_names:
            with suppress(ImportError):  # what cannot be imported here may never be reached there
                importlib.import_module(name)
        else:
            beside = [own.with_name(f"{name}.py"), *_of_packages(own, name, program)]
            nears += beside
            if "." not in name and not any(map(key, map(str, beside))):
                program.strangers.add(name)
    for near in (*nears, *map(own.with_name, source.programs)):
        if str(near) not in program.keys and key(str(near)):
            _compile(str(near), program)


def _of_packages(path: Path, name: str, program: LoadedProgram) -> Iterator[Path]:
    """The files of a module that `path` imports from a package beside one of the folders above it."""
    parts = name.split(".")
    for above in path.parents[1:4]:
        if (above / parts[0] / "__init__.py").exists():
            inits = [above.joinpath(*parts[:at], "__init__.py") for at in range(1, len(parts) + 1)]
            module = above.joinpath(*parts[:-1], f"{parts[-1]}.py")
            if module.exists():
                program.wanted.setdefault(str(above), set()).add(name)
            yield from (*inits, module)

"""The detectors as the shared process has them: compiled once, and all that they import imported."""

import encodings.idna  # noqa: F401 - this and locale: what a parser and a socket import when they are used
import gc
import locale  # noqa: F401
import os
import sys
from contextlib import suppress
from types import CodeType

from nodelib.contract import detector
from nodelib.forks import wire
from nodelib.host import child_start, gpus  # noqa: F401 - what some runs need besides

DETECTORS = f"{wire.ROOT}/detectors"
Key = tuple[int, int, int]


class Library:
    """Detectors by their file. Raises OSError for what cannot be read, ValueError for what is none."""

    def __init__(self) -> None:
        self._codes: dict[str, CodeType] = {}
        self._keys: dict[str, Key] = {}
        gc.disable()
        detector.parser("").parse_args([])  # compiles the patterns that every parser has

    def __contains__(self, program: str) -> bool:
        return program in self._codes

    def code(self, program: str) -> CodeType:
        """Return the code of a detector, and import what it imports."""
        if program not in self._codes:
            if os.path.dirname(program) != DETECTORS:  # noqa: PTH120
                raise ValueError(f"{program} is no detector of {DETECTORS}")
            self._keys[program] = key(program)
            with open(program, "rb") as file:  # noqa: PTH123
                self._codes[program] = compile(file.read(), program, "exec", dont_inherit=True)
            self._import(program)
        return self._codes[program]

    def _import(self, program: str) -> None:
        """Do what an import of the detector does; what fails there fails in its fork, which tells of it."""
        path = list(sys.path)
        with suppress(Exception, SystemExit):
            exec(self._codes[program], {"__name__": "imported", "__file__": program})
        sys.path[:] = path
        gc.freeze()  # a fork that looks for garbage would copy all pages that it shares with this process
        for module in list(sys.modules.values()):
            file = getattr(module, "__file__", None) or ""
            if file.startswith(f"{wire.ROOT}/") and file not in self._keys:
                self._keys[file] = key(file)

    def has_changed(self) -> bool:
        """Whether a file of ours is another one than was imported: the code is no longer what is installed."""
        try:
            return any(key(file) != was for file, was in self._keys.items())
        except OSError:
            return True


def key(file: str) -> Key:
    """Return what a file is known again by. Raises OSError."""
    seen = os.stat(file)  # noqa: PTH116
    return seen.st_ino, seen.st_size, seen.st_mtime_ns

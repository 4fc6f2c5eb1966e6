"""Run a program in this process as an interpreter of its own would."""

import atexit
import builtins
import ctypes
import gc
import os
import re
import sys
import threading
import types
from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import takewhile
from pathlib import Path
from typing import Any, TextIO

OPTIONS = re.compile("-([EsSIBP]+)")
LIBRARIES = "LD_LIBRARY_PATH"  # of the dynamic linker's variables the one that can be obeyed after its start


def run_as(flags: frozenset[str], words: list[str], path: str | None, code: types.CodeType | None) -> int:
    """Run a program, the file `path` or where that is None the text after -c, as `python3 *words` would."""
    sys.orig_argv = [sys.executable, *words]
    start = words.index(path or "-c", len(list(takewhile(OPTIONS.fullmatch, words))))
    sys.argv = words[start:] if path else ["-c", *words[start + 2 :]]
    if not flags & {"I", "P"}:
        sys.path.insert(0, str(Path(path).resolve().parent) if path else "")  # the rest is ours: we have -I and -S
    sys.dont_write_bytecode = "B" in flags
    if path is None:
        return _run(None, lambda: compile(words[start + 1], "<string>", "exec", dont_inherit=True))
    return _run(path, lambda: code or compile(Path(path).read_bytes(), path, "exec", dont_inherit=True))


def _run(path: str | None, compiled: Callable[[], types.CodeType]) -> int:
    """The exit code of the program, which runs as __main__, after all that an interpreter does at its end."""
    main = types.ModuleType("__main__")
    main.__dict__["__builtins__"] = builtins
    if path:
        main.__dict__.update(__file__=str(Path(path).absolute()), __cached__=None)
    sys.modules["__main__"] = main
    try:
        exec(compiled(), main.__dict__)
        status = 0
    except SystemExit as end:
        status = _exit_code(end.code)
    except BaseException as error:
        sys.excepthook(type(error), error.with_traceback(_own(error.__traceback__)), None)
        status = 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    main.__dict__.clear()  # files that were left open are written by this
    gc.collect()
    return status if _flushed(sys.stdout) and _flushed(sys.stderr) else 120


def _own(trace: types.TracebackType | None) -> types.TracebackType | None:
    """The part of a traceback that is the program's."""
    while trace and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    return trace


def _exit_code(value: Any) -> int:
    if value is None or isinstance(value, int):
        return (value or 0) & 0xFF
    print(value, file=sys.stderr)
    return 1


def _flushed(stream: TextIO | None) -> bool:
    try:
        if stream is not None and not stream.closed:
            stream.flush()
    except OSError:
        return False
    return True


def find_libraries(folders: str) -> None:
    """Look for shared libraries where the variable says: the dynamic linker has read its own before the fork."""
    load = ctypes.CDLL.__init__

    def found(self: ctypes.CDLL, name: str | None, *rest: Any, **options: Any) -> None:
        paths = [f"{folder}/{name}" for folder in folders.split(os.pathsep) if folder and "/" not in (name or "/")]
        load(self, next((path for path in paths if Path(path).exists()), name), *rest, **options)

    if folders:
        ctypes.CDLL.__init__ = found  # type: ignore[method-assign]


def close_all_but(kept: Iterable[int]) -> None:
    for opened in {int(name) for name in os.listdir("/proc/self/fd")}.difference(kept):  # noqa: PTH208
        with suppress(OSError):  # the listing's own is closed by now
            os.close(opened)

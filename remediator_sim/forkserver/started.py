"""Python programs that a forked program starts by subprocess.Popen: they are forked from it, too."""

import atexit
import gc
import io
import os
import signal
import subprocess
import sys
import types
from collections.abc import Mapping
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple

from remediator_sim.forkserver.program import is_bare
from remediator_sim.forkserver.run import LIBRARIES, OPTIONS, close_all_but, find_libraries, run_as

OWN_WAYS = {"shell", "executable", "preexec_fn", "close_fds"}  # of Popen, to start something else than we would


class Words(NamedTuple):
    """A command that starts Python with a program: the words behind the interpreter; `path`: None for -c and a text."""

    flags: frozenset[str]
    words: list[str]
    path: str | None

    @classmethod
    def read(cls, command: Any, env: Mapping[str, str] | None) -> "Words | None":
        """The command as one that can be forked; None where it is to be left to the kernel."""
        if not isinstance(command, list | tuple) or command[:1] not in ([sys.executable], (sys.executable,)):
            return None
        words = [os.fspath(word) for word in command[1:]]
        options = list(takewhile(OPTIONS.fullmatch, words))
        flags, rest = frozenset("".join(options)) - {"-"}, words[len(options) :]
        if not is_bare(flags) or not rest or not links_alike(os.environ if env is None else env):
            return None
        if rest[0] == "-c":
            return cls(flags, words, None) if len(rest) > 1 else None
        return None if rest[0].startswith("-") or not Path(rest[0]).is_file() else cls(flags, words, rest[0])


def links_alike(env: Mapping[str, str]) -> bool:
    """Whether the dynamic linker is told nothing that it heeds only when a program starts."""
    return all(name == LIBRARIES or not name.startswith("LD_") for name in env)


def fork_programs(codes: dict[str, types.CodeType]) -> None:
    """Let the Python programs that this one starts be forked, too. What Popen does before exec is done all the same."""
    base = subprocess.Popen
    fresh = frozenset(sys.modules), list(sys.path)

    class Popen(base):  # type: ignore[valid-type, misc]
        def __init__(self, args: Any, *rest: Any, **options: Any) -> None:
            words = None if rest or OWN_WAYS & set(options) else Words.read(args, options.get("env"))
            if words is not None:
                options["preexec_fn"] = lambda: _be_child(words, codes, options, *fresh)
            super().__init__(args, *rest, **options)

    subprocess.Popen = Popen  # type: ignore[misc]


def _be_child(
    words: Words, codes: dict[str, types.CodeType], options: dict[str, Any], modules: frozenset[str], path: list[str]
) -> None:
    """Become a program that the program started, between fork and exec; never returns. Its folder and streams stand."""
    code = 1
    try:
        close_all_but((0, 1, 2, *options.get("pass_fds", ())))  # whoever started us waits for this
        gc.freeze()  # nothing of the other program may come to its end here
        kept = sys.stdin, sys.stdout, sys.stderr, dict(sys.modules)
        _forget(modules)
        sys.path[:] = path
        if options.get("env") is not None:
            os.environ.clear()
            os.environ.update(options["env"])
        find_libraries(os.environ.get(LIBRARIES, ""))
        code = run_as(words.flags, words.words, words.path, codes.get(words.path or ""))
        del kept
    finally:
        os._exit(code)


def _forget(modules: frozenset[str]) -> None:
    """Drop what another program has made of this interpreter: its modules, ends, handlers of signals and streams."""
    for name in set(sys.modules) - modules:
        if name.partition(".")[0] not in sys.stdlib_module_names:
            del sys.modules[name]
    atexit._clear()
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.SIG_DFL)
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:  # what is ignored stays so in a program that is started
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_IGN)
    for descriptor, name in enumerate(("stdin", "stdout", "stderr")):
        setattr(sys, name, _stream(descriptor, getattr(sys, f"__{name}__")))


def _stream(descriptor: int, like: io.TextIOWrapper) -> io.TextIOWrapper:
    """A standard stream with nothing in its buffer."""
    binary = open(descriptor, "rb" if descriptor == 0 else "wb", closefd=False)  # noqa: SIM115
    return io.TextIOWrapper(binary, like.encoding, like.errors, line_buffering=like.line_buffering)

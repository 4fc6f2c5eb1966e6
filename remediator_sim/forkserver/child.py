"""The forked child: it takes the place of the program that is asked for."""

import ctypes
import os
import signal
import sys
import types
from importlib.machinery import ModuleSpec, SourceFileLoader
from typing import Any

from remediator_sim.forkserver.library import KEY, has_changed
from remediator_sim.forkserver.program import LoadedProgram, Modules
from remediator_sim.forkserver.run import LIBRARIES, close_all_but, find_libraries, run_as
from remediator_sim.forkserver.started import fork_programs

PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)


def be(program: LoadedProgram, installed: Modules, asked: dict[str, Any], streams: list[int], parent: int) -> None:
    """Become the program, in the child; never returns."""
    code = 2  # whatever goes wrong before the program runs is no fault that it has found
    try:
        _take_place(asked, streams, parent)
        path, flags = asked["path"], sorted(f"-{flag}" for flag in program.flags)
        _serve_neighbours(program.codes)
        _serve_installed(dict(installed))
        sys.modules.update(program.modules)
        fork_programs(program.codes)
        find_libraries(os.environ.get(LIBRARIES, ""))
        code = run_as(program.flags, [*flags, path, *asked["args"]], path, program.codes.get(path))
    finally:
        os._exit(code)


def _take_place(asked: dict[str, Any], streams: list[int], parent: int) -> None:
    """Group, death with the parent, signals, streams, folder and environment, as after fork and exec."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setpgid(0, 0)
    die_with(parent)
    for target, stream in enumerate(streams, start=1):
        os.dup2(stream, target)
    close_all_but((0, 1, 2))
    os.chdir(asked["cwd"])
    os.environ.clear()
    os.environ.update(asked["env"])


def _serve_neighbours(codes: dict[str, types.CodeType]) -> None:
    """Let imports find what was compiled before the fork."""
    compiled = SourceFileLoader.get_code

    def get_code(self: SourceFileLoader, fullname: str) -> types.CodeType | None:
        return codes.get(self.path) or compiled(self, fullname)

    SourceFileLoader.get_code = get_code  # type: ignore[method-assign, assignment]


def _serve_installed(modules: Modules) -> None:
    """Let imports find what was executed before the fork, once: a program that imports it does not share it."""
    execute = SourceFileLoader.exec_module

    def create_module(self: SourceFileLoader, spec: ModuleSpec) -> types.ModuleType | None:
        module = modules.pop(self.path, None)
        return None if module is None or has_changed(module) else module

    def exec_module(self: SourceFileLoader, module: types.ModuleType) -> None:
        if module.__dict__.pop(KEY, None) is None:
            execute(self, module)

    SourceFileLoader.create_module = create_module  # type: ignore[method-assign, assignment]
    SourceFileLoader.exec_module = exec_module  # type: ignore[method-assign, assignment]


def die_with(parent: int) -> None:
    """Be killed when the parent ends, however it ends; at once where it has."""
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)

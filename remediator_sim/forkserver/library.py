"""Programs that have run before, and the modules that they share."""

import importlib
import importlib.util
import sys
import sysconfig
import types
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from remediator_sim.forkserver.program import LoadedProgram, Modules, executable, load
from remediator_sim.forkserver.source import key

KEY = "__key__"  # of a module: what its file was
KEPT = 64  # programs whose code is kept


class Library:
    """Programs that have run before."""

    def __init__(self) -> None:
        self._programs: dict[str, LoadedProgram | None] = {}
        self._packages: dict[str, Package] = {}
        self.installed: Modules = {}  # by file

    def program(self, path: str) -> LoadedProgram | None:
        """The program in that file; None where it is not for us. Raises OSError where no kernel would start it."""
        executable(path)
        known = self._programs.get(path)
        if known is None or any(key(file) != was for file, was in known.keys.items()):
            known = load(path)
            if known:
                self._import(known)
            while len(self._programs) >= KEPT:
                del self._programs[next(iter(self._programs))]
            self._programs[path] = known
        return known

    def _import(self, program: LoadedProgram) -> None:
        for folder, names in program.wanted.items():
            package = self._packages.get(folder)
            if package is None or package.has_changed():
                package = self._packages[folder] = Package({})
            package.load(folder, names)
            program.modules.update(package.modules)
        for path in filter(None, map(_installed, sorted(program.strangers))):
            if path not in self.installed or has_changed(self.installed[path]):
                self.installed.update(_execute(path))


def _installed(name: str) -> str | None:
    """The file of a module that lies where this interpreter's packages do."""
    prefix = str(Path(sys.executable).parent.parent)  # of a virtual environment, too: sys.prefix needs site for that
    path = f"{sysconfig.get_path('purelib', 'posix_prefix', {'base': prefix})}/{name}.py"
    return path if key(path) else None


def _execute(path: str) -> Modules:
    """The module in that file, by its path; nothing where it cannot be executed: it cannot by the program either."""
    spec = importlib.util.spec_from_file_location(Path(path).stem, path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    module.__dict__[KEY] = key(path)
    sys.modules[spec.name] = module  # while it is executed
    try:
        spec.loader.exec_module(module)
    except Exception:
        return {}
    finally:
        del sys.modules[spec.name]
    return {path: module}


def has_changed(module: types.ModuleType) -> bool:
    return bool(module.__dict__[KEY] != key(str(module.__file__)))


class Package(NamedTuple):
    """Modules of the packages in one folder, imported once for all programs: what a run makes of them ends with it."""

    modules: Modules

    def has_changed(self) -> bool:
        """Whether a file is another one than was imported."""
        return any(map(has_changed, self.modules.values()))

    def load(self, folder: str, names: set[str]) -> None:
        """Import modules as a program will that appends the folder to its path; what fails there fails there, too."""
        before = set(sys.modules)
        sys.modules.update(self.modules)
        sys.path.append(folder)
        try:
            for name in sorted(names):
                with suppress(Exception):
                    importlib.import_module(name)
        finally:
            sys.path.remove(folder)
            tops = {name.partition(".")[0] for name in names}
            for name in set(sys.modules) - before:
                if name.partition(".")[0] in tops:
                    module = self.modules[name] = sys.modules.pop(name)
                    module.__dict__.setdefault(KEY, key(str(module.__file__)))

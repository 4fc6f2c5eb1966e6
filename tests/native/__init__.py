"""A scripted NVML library for tests: the real pynvml loads it in place of the driver's.

library = build_stub(folder)                # libnvidia-ml.so.1, compiled now
script = Script(folder / "nvml.txt").write("count 8")
environment |= script.environment(library)
script.write("count 8", "gpu 3 error 15")   # GPU 3 is lost from the next call on
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

SOURCE = Path(__file__).with_name("nvml_stub.c")


def build_stub(folder: Path) -> Path:
    """Compile the stub into `folder` and return the library's path. Skips the test where there is no C compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no C compiler (cc, gcc, clang) on PATH to build the NVML stub")
    library = folder / "libnvidia-ml.so.1"
    named = f"-Wl,-soname,{library.name}"  # as the driver's own: whoever asks for that name is given what is loaded
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", named, "-o", str(library), str(SOURCE)], check=True)
    return library


class Script:
    """What the stub does, as the text file that it reads at each call (orders: nvml_stub.c)."""

    def __init__(self, path: Path):
        self.path = path

    def write(self, *orders: str) -> "Script":
        """Replace all orders, in one step for a reader."""
        draft = self.path.with_suffix(".draft")
        draft.write_text("".join(f"{order}\n" for order in orders))
        draft.replace(self.path)
        return self

    def environment(self, library: Path) -> dict[str, str]:
        """Return the variables that make a process load `library` and obey this script."""
        rest = os.environ.get("LD_LIBRARY_PATH")
        return {
            "NVML_STUB": str(self.path),
            "LD_LIBRARY_PATH": os.pathsep.join([str(library.parent), *([rest] if rest else [])]),
        }

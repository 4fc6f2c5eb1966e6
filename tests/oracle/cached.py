"""What others wrote and tests ask, pinned by hashes in this folder: installed once into the user's cache.

Where that does not work the tests that need it are skipped with the reason, in CI they fail.
"""

import contextlib
import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from deploy.images.programs import cache

HERE = Path(__file__).parent
Fill = Callable[[Path], None]


def installed(name: str, pins: Iterable[str], fill: Fill) -> Path:
    """The folder that `fill` fills, made unless it is there; other pins give another one.

    Raises OSError and CalledProcessError.
    """
    digest = hashlib.sha256(b"\0".join((HERE / pin).read_bytes() for pin in pins)).hexdigest()
    kept = cache() / f"{name}-{digest[:12]}"
    if not kept.is_dir():
        cache().mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache()) as made:
            (Path(made) / "all").mkdir()
            fill(Path(made) / "all")
            with contextlib.suppress(OSError):  # another worker was faster
                (Path(made) / "all").rename(kept)
    return kept


def installed_or_skip(name: str, pins: Iterable[str], fill: Fill) -> Path:
    """The same. Skips the test where it cannot be had, but never in CI."""
    try:
        return installed(name, pins, fill)
    except (OSError, subprocess.CalledProcessError) as error:
        if os.environ.get("CI"):
            raise
        why = str(getattr(error, "stderr", "") or error).strip().splitlines()[-1:]
        pytest.skip(f"{name} cannot be installed: {' '.join(why)}")


def pip(requirements: str, target: Path) -> None:
    """Install what a file of this folder pins."""
    options = ("--quiet", "--no-deps", "--only-binary=:all:", "--require-hashes")
    run(sys.executable, "-m", "pip", "install", *options, "--target", str(target), "-r", str(HERE / requirements))


def run(*command: str, at: Path | None = None) -> None:
    """Run a command that must go well."""
    subprocess.run(command, cwd=at, check=True, capture_output=True, text=True)

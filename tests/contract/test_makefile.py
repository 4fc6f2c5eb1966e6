"""The Makefile refuses what it cannot work with, before it makes or removes anything."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# A Python that says it runs on a Mac: make gives it `-c CODE`.
ELSEWHERE = """#!{python}
import sys
sys.platform = "darwin"
exec(sys.argv[2])
"""


def make(*args: str) -> tuple[int, str]:
    done = subprocess.run(["make", *args], cwd=ROOT, capture_output=True, text=True, timeout=60)
    return done.returncode, done.stderr


@pytest.mark.parametrize("folder", ["a b", "", " "])
def test_a_virtual_environment_is_one_folder_without_spaces(folder: str) -> None:
    code, said = make("-n", "clean", f"VENV={folder}")
    assert code == 2
    assert f'VENV is "{folder.strip()}": name one folder, without spaces' in said


def test_setup_on_another_system_than_linux_says_so(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text(ELSEWHERE.format(python=sys.executable))
    python.chmod(0o755)
    code, said = make("setup", f"PYTHON={python}", f"VENV={tmp_path / 'venv'}")
    assert code == 2
    assert "remediator needs Linux, and this is darwin; use a Linux machine or container" in said
    assert not (tmp_path / "venv").exists()

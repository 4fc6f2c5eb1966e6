"""An older build of the controller, taken from the history of this repository."""

import io
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[3]
PACKAGE = "remediator"
BACK = 300  # commits on the main line, where nothing has been released yet: an older build under the same API version


class Build(NamedTuple):
    """The sources of one commit in a folder. `command` runs them, whatever is installed."""

    commit: str
    folder: Path

    @property
    def python(self) -> tuple[str, ...]:
        """Python, which looks for modules first where it is started, and so finds this build and no other."""
        return ("env", f"--chdir={self.folder}", sys.executable)

    @property
    def command(self) -> tuple[str, ...]:
        """What comes before the words of a command line."""
        return (*self.python, "-m", PACKAGE)

    def prints(self, *words: str) -> str:
        """What a command of this build prints."""
        return subprocess.run([*self.command, *words], capture_output=True, text=True, check=True).stdout


class NoHistory(Exception):
    """Why there is no older build here."""


def older_build(folder: Path) -> Build:
    """The last release, else the main line BACK commits ago. Raises NoHistory with the reason."""
    commit = _git("describe", "--tags", "--abbrev=0", "HEAD^") or _git(
        "rev-list", "--first-parent", f"--skip={BACK}", "--max-count=1", "HEAD"
    )
    if not commit:
        raise NoHistory(f"no release and not {BACK} commits of history: this is a source tree, or a shallow clone")
    archive = subprocess.run(["git", "archive", commit, PACKAGE], cwd=ROOT, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        files.extractall(folder, filter="data")
    return Build(commit, folder)


def _git(*words: str) -> str:
    """What git prints; empty where it fails or is not there."""
    try:
        answer = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return ""
    return answer.stdout.strip() if answer.returncode == 0 else ""

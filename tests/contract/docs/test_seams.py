"""What the pages on seams show is so: the skeleton of a tracker fits the seam, and a thread says what the page says."""

import subprocess
import sys
from pathlib import Path

from tests.contract.docs.pages import ROOT, blocks
from tests.harness.chat import chat_harness

PAGE = ROOT / "docs" / "trackers.md"


def checked(text: str, folder: Path) -> str:
    """What mypy says of it."""
    (folder / "skeleton.py").write_text(text)
    options = ["--no-error-summary", "--follow-imports=silent", "--cache-dir", str(ROOT / ".mypy_cache")]
    command = [sys.executable, "-m", "mypy", "--strict", *options, str(folder / "skeleton.py")]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False).stdout


def test_the_skeleton_of_a_tracker_fits_the_seam_and_one_without_a_verb_does_not(tmp_path: Path) -> None:
    (block,) = [block for block in blocks(PAGE.name, PAGE.read_text()) if block.language == "python"]
    assert checked(block.text, tmp_path) == ""
    assert "visibility" in checked(block.text.replace("async def visibility", "async def seen"), tmp_path)


async def test_a_thread_says_what_the_page_shows(tmp_path: Path) -> None:
    shown = next(block for block in blocks("chat.md", (ROOT / "docs/chat.md").read_text()) if block.language == "text")
    async with chat_harness(tmp_path) as harness:
        await harness.policy()
        await harness.case()
        await harness.escalates()
        await harness.told()
        (thread,) = harness.threads
    assert "\n".join(thread.lines) == shown.text.strip()

"""What the pages on seams show is so: the skeleton of a tracker fits the seam, and a thread says what the page says."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.contract.docs.pages import ROOT, blocks
from tests.harness.chat import chat_harness

PAGE = ROOT / "docs" / "trackers.md"


def checked(folder: Path, **texts: str) -> str:
    """What mypy says of these modules."""
    for name, text in texts.items():
        (folder / f"{name}.py").write_text(text)
    options = ["--no-error-summary", "--follow-imports=silent", "--cache-dir", str(ROOT / ".mypy_cache")]
    command = [sys.executable, "-m", "mypy", "--strict", *options, *(str(folder / f"{name}.py") for name in texts)]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False).stdout


@pytest.mark.sampled
def test_the_skeleton_of_a_tracker_fits_the_seam_and_one_without_a_verb_does_not(tmp_path: Path) -> None:
    (block,) = [block for block in blocks(PAGE.name, PAGE.read_text()) if block.language == "python"]
    errors = checked(tmp_path, whole=block.text, lacking=block.text.replace("async def visibility", "async def seen"))
    assert "lacking.py" in errors
    assert "visibility" in errors
    assert "whole.py" not in errors


async def test_a_thread_says_what_the_page_shows(tmp_path: Path) -> None:
    shown = next(block for block in blocks("chat.md", (ROOT / "docs/chat.md").read_text()) if block.language == "text")
    async with chat_harness(tmp_path) as harness:
        await harness.policy()
        await harness.case()
        await harness.escalates()
        await harness.told()
        (thread,) = harness.threads
    assert "\n".join(thread.lines) == shown.text.strip()

"""A secret in a file, as users write it: with a newline at its end, rotated while we run."""

import re
from collections.abc import Callable
from pathlib import Path

Wrong = Callable[[str], str]


def read(path: Path, wrong: Wrong) -> str:
    """What the file holds now, "" for nothing. `wrong` says what is wrong with a secret, "" where nothing is.

    Raises:
        OSError: it cannot be read.
        ValueError: what is in it cannot be one. The error names the file and quotes nothing of it.
    """
    text = path.read_text(errors="replace").strip()
    if text and (why := wrong(text)):
        raise ValueError(f"the file {path} {why}")
    return text


def not_one_word(text: str) -> str:
    """A token is one word that a header can hold."""
    return "" if re.fullmatch("[!-~]+", text) else "holds more than one word of ASCII; write the token alone into it"

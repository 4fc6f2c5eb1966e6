"""Write the files that a generator has made from its tables."""

from collections.abc import Mapping
from pathlib import Path


def write(files: Mapping[Path, str]) -> None:
    """Each file by its path; its folder is made where there is none.

    A file that holds its text is left alone: somebody may be reading it, and would find it empty for a moment.
    """
    for path, text in files.items():
        path.parent.mkdir(exist_ok=True)
        if not path.exists() or path.read_text() != text:
            path.write_text(text)

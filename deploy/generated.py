"""Write the files that a generator has made from its tables."""

from collections.abc import Mapping
from pathlib import Path


def write(files: Mapping[Path, str]) -> None:
    """Each file by its path; its folder is made where there is none."""
    for path, text in files.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)

"""How much code there is, and how long its functions are: prints the table of docs/figures.md."""

import ast
import statistics
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
# Part → the folders whose Python files belong to it.
PARTS: Mapping[str, tuple[str, ...]] = {
    "product": ("remediator",),
    "simulator": ("remediator_sim",),
    "programs on nodes": ("detectors", "operations", "watchdog", "nodelib"),
    "tests": ("tests",),
}
HEAD = """\
| | files | lines | functions, median | 90th percentile | over 35 lines | largest file |
|---|---|---|---|---|---|---|"""


class PartSize(NamedTuple):
    """One part of the code. Blank lines and comments count, also in functions."""

    files: int
    lines: int
    median: float
    p90: int
    long: int
    largest: str


def part_size(texts: Mapping[str, str]) -> PartSize:
    """The size of a part from the text of each of its files."""
    lengths = sorted(length for text in texts.values() for length in functions(text))
    lines = {name: len(text.splitlines()) for name, text in texts.items()}
    largest = max(lines, key=lambda name: (lines[name], name))
    return PartSize(
        len(texts),
        sum(lines.values()),
        statistics.median(lengths),
        lengths[len(lengths) * 9 // 10],
        sum(length > 35 for length in lengths),
        f"`{largest}`, {lines[largest]}",
    )


def functions(text: str) -> Iterable[int]:
    """How many lines each function has."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield (node.end_lineno or node.lineno) - node.lineno + 1


def row(name: str, size: PartSize) -> str:
    """One row of the table."""
    lengths = f"{size.median:g} | {size.p90} | {size.long}"
    return f"| {name} | {size.files} | {size.lines:,} | {lengths} | {size.largest} lines |"


def main() -> None:
    """Print the table."""
    names = subprocess.run(["git", "ls-files", "*.py"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    print(HEAD)
    for part, folders in PARTS.items():
        files = [name for name in names.splitlines() if name.partition("/")[0] in folders]
        print(row(part, part_size({name: (ROOT / name).read_text() for name in files})))


if __name__ == "__main__":
    main()

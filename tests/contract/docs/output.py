"""What a page shows of a command's output against what it printed: as far as it is the same for everybody."""

import re

# What differs from one run to the next: times, ages, uids, hashes in names, ports of this machine.
CHANGES = (
    r"\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-][\d:]+)",
    r"\b\d\d:\d\d:\d\d\b",
    r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b",
    r"(?<=-)[0-9a-f]{10}\b",
    r"\b(?:\d+[dhms])+\b",
    r"(?<=\(for )\d[\w ]*(?=, since \d{4}-\d\d-\d\d )",
    r"\b(?:reboot|drain|take-out)-gpu-\d+-[a-z0-9]{5}\b",
    r"(?<=, since )\d{4}-\d\d-\d\d \d\d:\d\d(?= UTC\))",
    r"(?<= until )\d{4}-\d\d-\d\d(?= )",
    r"(?<= after )\d{4}-\d\d-\d\d(?= )",
    r"(?<=, since )\d{4}-\d\d-\d\d(?= )",
    r"\b(?:for|after|waited) \d+ (?:d|h|min|s)\b(?: \d+ (?:h|min|s)\b)?",
    r"^\d{4}-\d\d-\d\d(?= )",
    r"(?<=127\.0\.0\.1:)\d+",
)
HEADINGS = re.compile(r"[A-Z][A-Z -]*(?:  +[A-Z][A-Z -]*)+")
ANYTHING = "…"


def missing(shown: str, printed: str) -> list[str]:
    """The lines of a page that the output has not, in its order; of a table only the headings count.

    A line … stands for any lines, and … inside of a line for any words.
    """
    lines = [masked(line) for line in printed.splitlines()]
    absent, at = [], 0
    for line in _told(shown):
        found = next((n for n in range(at, len(lines)) if _pattern(line).fullmatch(lines[n])), None)
        absent += [line] if found is None else []
        at = at if found is None else found + 1
    return absent


def masked(line: str) -> str:
    """A line without what changes, blanks made one."""
    for change in CHANGES:
        line = re.sub(change, "*", line)
    return " ".join(line.split())


def _told(shown: str) -> list[str]:
    """The lines that must be there; below headings none."""
    lines, rows = [], False
    for line in shown.splitlines():
        heading = HEADINGS.fullmatch(line.strip())
        rows = bool(heading) or (rows and bool(line.strip()))
        if line.strip() and line.strip() != ANYTHING and (heading or not rows):
            lines.append(line)
    return lines


def _pattern(line: str) -> re.Pattern[str]:
    return re.compile(".*".join(re.escape(part) for part in masked(line).split(ANYTHING)))

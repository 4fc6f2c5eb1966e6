"""Markdown that is safe with text from others: inside a code span there is no mention, link, tag or table edge.

GitHub's filters for @ and # do not change code. Characters that could end a span, a cell or a comment are replaced.
"""

import json
import re
from collections.abc import Iterable, Sequence
from datetime import datetime

from remediator.core.text import printable

_REPLACED = str.maketrans({"`": "'", "|": "¦"})


def code(text: str, most: int = 200) -> str:
    """Foreign text as one code span, cut to `most` characters; a dash where there is none.

    >>> code("a | `b` --> @octocat")
    "`a ¦ 'b' -\\u200b-> @octocat`"
    """
    line = " ".join(printable(text).split())
    cut = line if len(line) <= most else line[: most - 1] + "…"
    return f"`{apart(cut.translate(_REPLACED))}`" if cut else "-"


def apart(text: str) -> str:
    """The text with no HTML comment in it, neither begun nor ended: our marks stand in comments."""
    opened = text.replace("<!--", "<!-\N{ZERO WIDTH SPACE}-")
    return re.sub("--(?=!?>)", "-\N{ZERO WIDTH SPACE}-", opened)


def block(text: str, language: str = "") -> str:
    """Foreign text as a code block, under a fence longer than any in it."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def document(content: object, most: int) -> str:
    """A JSON document as a code block, exact where it fits: `<` and `>` are spelled as JSON spells characters."""
    text = json.dumps(content, indent=2, sort_keys=True, ensure_ascii=False, default=str)
    text = "".join(char if char.isprintable() or char == "\n" else " " for char in text)
    text = text.replace("<", "\\u003c").replace(">", "\\u003e")
    return block(text if len(text) <= most else text[:most] + "\n… (cut)", "json")


def table(head: Sequence[str], rows: Iterable[Sequence[str]], most: int) -> str:
    """A table of at most `most` rows; a last line says how many were left out."""
    every = list(rows)
    lines = [_row(head), _row(["---"] * len(head)), *(_row(row) for row in every[:most])]
    more = f"\n\n… and {len(every) - most} more" if len(every) > most else ""
    return "\n".join(lines) + more


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def moment(at: datetime | None) -> str:
    """A time for people in many zones; a dash where there is none."""
    return at.strftime("%Y-%m-%d %H:%M:%S UTC") if at else "-"


def span(start: datetime, end: datetime | None) -> str:
    """How long something took: "1h 5m", "40s"; a dash where it has not ended."""
    if end is None:
        return "-"
    seconds = max(0, int((end - start).total_seconds()))
    units = (("d", 86400), ("h", 3600), ("m", 60), ("s", 1))
    parts = [(seconds // size % limit, unit) for (unit, size), limit in zip(units, (10**6, 24, 60, 60), strict=True)]
    shown = [f"{count}{unit}" for count, unit in parts if count]
    return " ".join(shown[:2]) or "0s"


def link(url: str, name: str = "runbook") -> str:
    """A link, if its address is a plain one; else as code. A link to an issue would be noted there each time."""
    plain = re.fullmatch(r"https?://[A-Za-z0-9.:-]+(/[A-Za-z0-9._~/%=?&#+-]*)?", url)
    if not plain or re.search(r"/(issues|pull|discussions|commit)/", url):
        return code(url) if url else ""
    return f"[{name}]({url})"

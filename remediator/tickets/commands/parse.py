"""The commands in the text of a comment. Pure.

A command is a line of its own that begins with a slash and a word. Quoted text, code, lists and HTML hold none.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise

from markdown_it import MarkdownIt
from markdown_it.token import Token

MOST = 5  # commands of one comment that are carried out
LONGEST = 2_000  # characters: a longer comment is no command, and takes too long to read
_FORM = re.compile(r"/([a-z][a-z-]{0,30})(?:[ \t]+(\S.{0,253}?))?[ \t]*")
_BEGINS = re.compile(r"^ {0,3}/[a-z]", re.MULTILINE)
_BREAKS = ("softbreak", "hardbreak")


@dataclass(frozen=True, slots=True)
class WrittenCommand:
    """One command as it was written: the word after the slash, and the rest of the line."""

    word: str
    argument: str = ""


@lru_cache(maxsize=256)  # a comment is looked at again and again for an hour
def parse(text: str) -> tuple[WrittenCommand, ...]:
    """The commands of a comment in their order, at most `MOST`.

    >>> parse("see above\\n/hold 2h\\n\\n> /approve\\n\\n    /release")
    (Command(word='hold', argument='2h'),)
    """
    if len(text) > LONGEST or not _BEGINS.search(text):
        return ()
    matches = (_FORM.fullmatch(line) for line in _lines(text))
    return tuple([WrittenCommand(match[1], match[2] or "") for match in matches if match][:MOST])


def _lines(text: str) -> Iterator[str]:
    """The lines of paragraphs that stand in nothing else, where they are plain text from end to end."""
    tokens = _markdown().parse(text)
    for opening, content in pairwise(tokens):
        if opening.type == "paragraph_open" and opening.level == 0:
            yield from _plain(content.children or [])


def _plain(parts: list[Token]) -> Iterator[str]:
    line: list[str] | None = []
    for part in parts:
        if part.type in _BREAKS:
            if line:
                yield "".join(line)
            line = []
        elif part.type == "text" and line is not None:
            line.append(part.content)
        elif part.type != "text":
            line = None
    if line:
        yield "".join(line)


@cache
def _markdown() -> MarkdownIt:
    return MarkdownIt("commonmark")

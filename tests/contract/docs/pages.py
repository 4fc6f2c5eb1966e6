"""The pages, their fenced blocks, and the commands in them."""

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[3]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]

# The language of a fence, and what it holds. `console` holds commands after `$ ` with their output below them; so does
# one without a word that begins like that. `markdown` shows a page, whose blocks count as ours.
COMMANDS, MANIFESTS, SHOWN = ("sh", "console"), ("yaml",), ("text", "")
LANGUAGES = (*COMMANDS, *MANIFESTS, *SHOWN, "mermaid", "json", "markdown", "python")

FENCE = re.compile(r"^(`{3,})(\w*)\n(.*?)^\1$", flags=re.DOTALL | re.MULTILINE)
INLINE = re.compile(r"`([^`\n]+)`")
SUBSTITUTION = re.compile(r"\$\(([^()]*)\)")
OPERATORS = re.compile(r"[|&;()<>]+")
ASSIGNMENT = re.compile(r"\w+=")
WRITTEN_INLINE = ("kubectl", "remediator", "make", "python", "python3", "curl", "amtool", "kube-scheduler")


class Block(NamedTuple):
    """One fenced block. `line`: of its fence, from 1; `follows`: index of the block right before it, -1 for none."""

    page: str
    line: int
    language: str
    text: str
    follows: int = -1


class Command(NamedTuple):
    """One command as a page writes it, without its comment; `output` is what the page shows below it."""

    text: str
    output: str = ""


class Recipe(NamedTuple):
    """Commands that belong together: those of one block, or one that stands in a sentence or a table."""

    title: str
    commands: tuple[Command, ...]
    output: str = ""  # of all of them together, shown in a block right below


def blocks(page: str, text: str) -> list[Block]:
    """The fenced blocks of a page, in order; those inside of a block that shows a page come after it."""
    found: list[Block] = []
    end = -1
    for fence in FENCE.finditer(text):
        touching = bool(found) and not text[end : fence.start()].strip()
        line = text.count("\n", 0, fence.start()) + 1
        language = fence[2] or ("console" if fence[3].startswith("$ ") else "")
        found.append(Block(page, line, language, fence[3], len(found) - 1 if touching else -1))
        if language == "markdown":
            found += [inner._replace(line=line + inner.line, follows=-1) for inner in blocks(page, fence[3])]
        end = fence.end()
    return found


def recipes(page: str, text: str) -> list[Recipe]:
    """Everything in a page that a reader may type."""
    found = blocks(page, text)
    return [*_fenced(found), *_inline(page, text)]


def _fenced(found: list[Block]) -> Iterator[Recipe]:
    for index, block in enumerate(found):
        if block.language in COMMANDS:
            shown = [one.text for one in found if one.follows == index and one.language in SHOWN]
            read = prompted if block.language == "console" else commands
            yield Recipe(f"{block.page}:{block.line}", tuple(read(block.text)), "".join(shown))


def _inline(page: str, text: str) -> Iterator[Recipe]:
    """Commands between backticks, outside of fences."""
    bare = FENCE.sub(lambda fence: "\n" * fence[0].count("\n"), text)
    for span in INLINE.finditer(bare):
        program, _, rest = span[1].partition(" ")
        if program in WRITTEN_INLINE and rest:
            yield Recipe(f"{page}:{bare.count(chr(10), 0, span.start()) + 1}", (Command(span[1]),))


def commands(text: str) -> Iterator[Command]:
    """The commands of a `sh` block: continued lines, open quotes and here documents belong together."""
    lines = iter(text.splitlines())
    for line in lines:
        whole = line
        while not _complete(whole):
            try:
                whole += "\n" + next(lines)
            except StopIteration:
                raise ValueError(f"a command that does not end: {whole}") from None
        bare = uncommented(whole)
        if bare:
            yield Command(bare)


def prompted(text: str) -> Iterator[Command]:
    """The commands of a `console` block, each with the lines up to the next prompt."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        yield Command(uncommented(command), output)


def _complete(text: str) -> bool:
    here = re.search(r"<<-?\s*['\"]?(\w+)", text)
    if here:
        return any(line.strip() == here[1] for line in text.splitlines()[1:])
    try:
        shlex.split(text, comments=True)
    except ValueError:
        return False
    return not text.endswith("\\")


def uncommented(text: str) -> str:
    """A command without the comment at its end."""
    if "<<" in text or "#" not in text:
        return text.strip()
    return re.sub(r"(^|\s)#[^'\"]*$", "", text).strip()


def programs(command: str) -> list[str]:
    """The programs that a command line starts, those in $(…) too."""
    inner = [name for part in SUBSTITUTION.findall(command) for name in programs(part)]
    first = command.splitlines()[0] if "<<" in command else command
    lexer = shlex.shlex(SUBSTITUTION.sub("x", first), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    return [*_heads(lexer), *inner]


def _heads(words: Iterable[str]) -> Iterator[str]:
    """The first word of each simple command, assignments apart; a word after < or > is a file."""
    awaited = True
    for word in words:
        if OPERATORS.fullmatch(word):
            awaited = not set(word) & set("<>")
        elif awaited and not ASSIGNMENT.match(word):
            yield word
            awaited = False


def filled(text: str, words: Mapping[str, str]) -> str:
    """A command with what a page leaves to its reader filled in; longer words first."""
    for word in sorted(words, key=len, reverse=True):
        text = re.sub(rf"(?<!\w){re.escape(word)}(?!\w)", lambda _, word=word: words[word], text)
    return text


ALL = [recipe for page in PAGES for recipe in recipes(page.relative_to(ROOT).as_posix(), page.read_text())]

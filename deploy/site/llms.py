"""docs/llms.txt, for programs that read the pages: every page of the site's nav, with its first sentence.

`python -m deploy.site.llms` writes it; `make docs` does so first.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from deploy.generated import write

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PROSE = re.compile(r"\n\n(?!```|\d+\. )(?=[\w`*])(.+?)(?=\n\n|\Z)", flags=re.DOTALL)
SENTENCE = re.compile(r".*?[.?](?=\s|\Z)")
LINK = re.compile(r"\[([^\]]+)\]\([^)]+\)")


def site() -> Mapping[str, Any]:
    """What mkdocs.yml says."""
    settings: Mapping[str, Any] = yaml.safe_load((ROOT / "mkdocs.yml").read_text())
    return settings


def pages(nav: Sequence[Any]) -> Iterator[str]:
    """The pages of a nav, in their order."""
    for entry in nav:
        yield from [entry] if isinstance(entry, str) else (page for part in entry.values() for page in pages(part))


def rendered() -> str:
    """The text of the file."""
    settings = site()
    parts = [f"# {settings['site_name']}", f"> {settings['site_description']}"]
    for entry in settings["nav"]:
        if isinstance(entry, str):
            parts.append(line(entry))
            continue
        for section, names in entry.items():
            parts += [f"## {section}", "\n".join(map(line, names))]
    return "\n\n".join(parts) + "\n"


def line(page: str) -> str:
    """A page with its title and its first sentence."""
    text = (DOCS / page).read_text()
    title = text.partition("\n")[0].removeprefix("# ")
    return f"- [{title}]({page}): {opening(text)}"


def opening(text: str) -> str:
    """The first sentence of a page, on one line, without links."""
    prose = PROSE.search(text)
    words = " ".join(LINK.sub(r"\1", prose[1]).split()) if prose else ""
    sentence = SENTENCE.match(words)
    return sentence[0] if sentence else words


if __name__ == "__main__":
    write({DOCS / "llms.txt": rendered()})

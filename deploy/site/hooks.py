"""Pages that are written for GitHub, as mkdocs reads them: anchors, lists in lists, and links that leave docs/."""

import re
import shutil
from pathlib import Path, PurePosixPath
from typing import Any

from pymdownx.slugs import slugify

COMMENT = re.compile(r"^<!-- .*? -->$", flags=re.MULTILINE)
FENCE = re.compile(r"^(`{3,}).*?^\1$", flags=re.DOTALL | re.MULTILINE)
NESTED = re.compile(r"^ +(?=(?:[*-]|\d+\.) )", flags=re.MULTILINE)
LEAVES = re.compile(r"\[([^\]]+)\]\(((?:\.\./)+[^)#]+)(?:#[^)]*)?\)")


def on_config(config: Any) -> Any:
    """Headings get the anchors that links in the repository have."""
    config.mdx_configs["toc"]["slugify"] = slugify(case="lower")
    return config


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """The page for mkdocs; what stands in fences stays as it is."""
    place = PurePosixPath("docs") / page.file.src_uri
    parts, end = [], 0
    for fence in FENCE.finditer(markdown):
        parts += [prose(markdown[end : fence.start()], place), fence[0]]
        end = fence.end()
    return "".join([*parts, prose(markdown[end:], place)])


def prose(text: str, page: PurePosixPath) -> str:
    """Without marks of what is drawn, which would end lists; with four blanks before a list in a list.

    A link to a file outside of docs/ becomes its path in the repository: the site has no such file.
    """
    text = NESTED.sub(lambda indent: " " * 4 * (len(indent[0]) // 2), COMMENT.sub("", text))
    return LEAVES.sub(lambda link: outside(link, page), text)


def outside(link: re.Match[str], page: PurePosixPath) -> str:
    """The link as it is, or its words with the path of the file that it leads to."""
    parts = list(page.parent.parts)
    target = PurePosixPath(link[2])
    while target.parts[:1] == ("..",):
        parts.pop()
        target = PurePosixPath(*target.parts[1:])
    if parts:
        return link[0]
    path = f"`{target}` in the repository"
    return path if link[1] in (str(target), target.name) else f"{link[1]} ({path})"


def on_post_build(config: Any) -> None:
    """llms.txt names the pages as Markdown: they stand beside the site's own."""
    docs, site = Path(config.docs_dir), Path(config.site_dir)
    for page in docs.rglob("*.md"):
        target = site / page.relative_to(docs)
        target.parent.mkdir(exist_ok=True)
        shutil.copyfile(page, target)

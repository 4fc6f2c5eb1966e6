"""The site of the pages: its nav has each page once, llms.txt is made from it, and nothing is loaded from elsewhere."""

import re
import subprocess
from pathlib import Path

import pytest

from deploy.site import llms
from tests.contract.docs.pages import ROOT

SITE = ROOT / "build/site"
# What a browser loads by itself; a link that a reader may follow is none of it.
LOADED = re.compile(
    r"<(?:script|link|img|iframe|source|video|audio|embed|object)\b[^>]*?\b(?:src|href|srcset|data)=[\"']?((?:https?:)?//[^\"'\s>]+)"
)


def test_every_page_stands_in_the_nav_once() -> None:
    pages = [page.relative_to(llms.DOCS).as_posix() for page in llms.DOCS.rglob("*.md")]
    assert sorted(llms.pages(llms.site()["nav"])) == sorted(pages)


def test_llms_txt_is_made_from_the_nav() -> None:
    assert (llms.DOCS / "llms.txt").read_text() == llms.rendered(), "python -m deploy.site.llms"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("# A\n\nFirst, `a.b`: [c](d.md). Second.\n", "First, `a.b`: c."),
        ("# A\n\n```sh\nls\n```\n\nWhat\nit is. More.", "What it is."),
        ("# A\n\n| a |\n|---|\n\nAs shipped:\n\n* b", "As shipped:"),
        ("# A\n\n1. Before.\n2. After.\n\nWithout Helm. More.", "Without Helm."),
    ],
)
def test_a_page_is_told_by_its_first_sentence(text: str, sentence: str) -> None:
    assert llms.opening(text) == sentence


def test_what_a_browser_would_load_from_elsewhere_is_found() -> None:
    script, picture = '<script defer src="https://a/x.js"></script>', "<img alt=b src=//b/y.png>"
    page = f'{script}{picture}<a href="https://c">c</a><link rel=icon href=/d>'
    assert LOADED.findall(page) == ["https://a/x.js", "//b/y.png"]


@pytest.mark.cluster
def test_the_site_is_built_with_every_link_in_order_and_loads_nothing_from_elsewhere() -> None:
    """Beside the control plane's tests, since it takes a minute and an environment of its own."""
    built = subprocess.run(["make", "docs"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    pages = sorted(SITE.rglob("*.html"))
    assert len(pages) > len(list(llms.pages(llms.site()["nav"])))  # and 404.html
    assert {str(page.relative_to(SITE)): loaded for page in pages if (loaded := LOADED.findall(page.read_text()))} == {}
    assert [page for page in llms.pages(llms.site()["nav"]) if not Path(SITE / page).exists()] == []

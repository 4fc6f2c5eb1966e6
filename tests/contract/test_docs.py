"""What the pages say is what the code does."""

import re
from pathlib import Path

import pytest

from remediator.core.reasons import REMEDY, Reason
from remediator.kube import lint
from tests.contract import drawing

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def test_the_drawings_in_the_page_about_cases_are_those_of_the_tables() -> None:
    page = drawing.PAGE.read_text()
    assert page == drawing.drawn(page), "python -m tests.contract.drawing"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_in_a_page_leads_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text())
    assert [target for target in targets if not (page.parent / target).exists()] == []


def test_every_reason_that_holds_a_case_is_in_the_page_about_policies_with_its_remedy() -> None:
    page = (ROOT / "docs" / "policies.md").read_text()
    assert [reason for reason in REMEDY if f"`{reason.value}`" not in page] == []


def test_every_word_that_the_pages_use_as_a_reason_exists() -> None:
    known = {reason.value for reason in Reason}
    page = (ROOT / "docs" / "policies.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \|", page, flags=re.MULTILINE)
    assert rows
    assert [word for word in rows if word not in known] == []


MANIFESTS = [
    (page.name, block)
    for page in PAGES
    for block in re.findall(r"```yaml\n(.*?)```", page.read_text(), flags=re.DOTALL)
]


@pytest.mark.parametrize(("page", "manifest"), MANIFESTS, ids=lambda value: value[:40].replace("\n", " "))
def test_every_manifest_in_a_page_passes_lint(page: str, manifest: str) -> None:
    documents, unreadable = lint.read(page, manifest)
    assert documents
    assert [str(finding) for finding in [*unreadable, *lint.lint(documents, {"reboot"})]] == []

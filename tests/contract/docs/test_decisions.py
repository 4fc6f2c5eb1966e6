"""Each decision says what stood to choose from, what was measured, and what would change it."""

import re
from pathlib import Path

import pytest

from tests.contract.docs.pages import ROOT

FOLDER = ROOT / "docs" / "decisions"
INDEX = FOLDER / "README.md"
DECISIONS = sorted(path for path in FOLDER.glob("*.md") if path != INDEX)
HEADINGS = ["Context", "Decision", "Figures", "When to look again"]


@pytest.mark.parametrize("page", DECISIONS, ids=lambda page: page.stem)
def test_a_decision_has_the_fixed_headings_each_with_text_and_names_what_was_considered(page: Path) -> None:
    title, *sections = re.split(r"^## ", page.read_text(), flags=re.MULTILINE)
    assert title.startswith("# ")
    assert [section.splitlines()[0] for section in sections] == HEADINGS
    texts = {section.splitlines()[0]: section.partition("\n")[2].strip() for section in sections}
    assert all(texts.values())
    assert "Considered: " in texts["Context"].replace("\n", " ")
    assert re.search(r"\d", texts["Figures"])


def test_the_index_names_each_decision_by_its_title() -> None:
    rows = re.findall(r"^\| \[(.+)\]\((.+)\) \|", INDEX.read_text(), flags=re.MULTILINE)
    assert {(FOLDER / file, title) for title, file in rows} == {
        (page, page.read_text().splitlines()[0].removeprefix("# ")) for page in DECISIONS
    }
    assert len(rows) == 8

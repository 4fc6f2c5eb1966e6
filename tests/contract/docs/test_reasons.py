"""The page of reasons has every reason of cases and operations, each with what it means."""

import re

from remediator.core.reasons import REMEDY, Reason
from tests.contract.drawing import DOCS
from tests.contract.reasons import HOLDS, MEANING, SECTIONS


def test_every_reason_that_holds_nothing_is_in_the_page_with_one_sentence_on_what_it_means() -> None:
    listed = re.findall(r"^\| `(\w+)` \|", (DOCS / "reasons.md").read_text(), re.MULTILINE)
    assert listed == [reason.value for reason in Reason if reason not in HOLDS]
    assert listed == [reason.value for section in SECTIONS.values() for reason in section]
    assert {reason.value for reason in MEANING} == set(listed)
    assert [sentence for sentence in MEANING.values() if not re.fullmatch(r"[A-Z][^|]*\.", sentence)] == []


def test_every_word_of_the_enum_is_explained_in_one_of_two_pages() -> None:
    texts = "".join((DOCS / page).read_text() for page in ("reasons.md", "policies.md"))
    assert [reason.value for reason in Reason if f"| `{reason.value}` |" not in texts] == []
    assert set(HOLDS) <= set(REMEDY)

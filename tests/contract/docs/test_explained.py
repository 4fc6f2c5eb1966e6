"""docs/explain.md and docs/commands.md show whole outputs, and these are what the commands print."""

import pytest

from tests.contract.docs import explained

TEXT = "<!-- printed: held -->\n```text\n12:00:01 Held\n```\n"


@pytest.mark.slow
async def test_the_outputs_in_the_pages_are_what_the_commands_print() -> None:
    pages = [explained.PAGE.read_text(), explained.COMMANDS.read_text()]
    texts = await explained.outputs(pages[0])
    shown = [explained.of_page(page, texts) for page in pages]
    assert sorted(name for names in shown for name in names) == sorted(texts)
    for page, its in zip(pages, shown, strict=True):
        assert explained.changed(page, its) == {}, "python -m tests.contract.docs.explained"


@pytest.mark.parametrize(
    ("printed", "changed"),
    [("12:59:59 Held", []), ("12:00:01 Draining", ["held"]), ("12:00:01 Held\nand more", ["held"]), ("", ["held"])],
)
def test_an_output_that_has_changed_is_found_and_written_anew(printed: str, changed: list[str]) -> None:
    assert list(explained.changed(TEXT, {"held": printed})) == changed
    expected = TEXT if not changed else TEXT.replace("12:00:01 Held", printed)
    assert explained.anew(TEXT, {"held": printed}) == expected


def test_a_page_without_the_place_of_an_output_is_refused() -> None:
    with pytest.raises(ValueError, match="printed: escalated"):
        explained.changed(TEXT, {"escalated": "x"})


def test_how_long_ago_and_on_which_day_a_case_was_held_is_no_change() -> None:
    page = "<!-- printed: held -->\n```text\nheld (for 2 s, since 2026-11-24 04:28:44 UTC)\n```\n"
    later = "held (for 1 min 3 s, since 2026-11-25 23:59:59 UTC)"
    assert explained.changed(page, {"held": later}) == {}
    assert explained.changed(page, {"held": later.replace("held", "freed")}) != {}

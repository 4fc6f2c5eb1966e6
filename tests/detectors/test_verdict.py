"""The line that every detector prints."""

import pytest
from _verdict import one_line
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("GPU 3\n is  lost ", "GPU 3 is lost"),
        ("100% full", "100 percent full"),
        ("", "no words"),
        (" \n", "no words"),
        ("caf\u00e9", "caf?"),
        ("x" * 600, "x" * 512),
    ],
)
def test_a_line_is_short_plain_and_never_empty(text: str, line: str) -> None:
    assert one_line(text) == line


@given(st.text())
def test_whatever_is_said_no_line_is_a_format_or_more_than_one(text: str) -> None:
    line = one_line(text)
    assert line
    assert line.isascii()
    assert line.isprintable()
    assert "%" not in line
    assert len(line) <= 512

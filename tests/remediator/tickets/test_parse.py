"""What is a command in a comment, and what only looks like one."""

import pytest
from hypothesis import given
from hypothesis import strategies as some

from remediator.tickets.commands.parse import MOST, WrittenCommand, parse

HOLD, APPROVE = WrittenCommand("hold", "2h"), WrittenCommand("approve")


@pytest.mark.parametrize(
    ("text", "commands"),
    [
        pytest.param("/hold 2h", (HOLD,), id="alone"),
        pytest.param("  /hold   2h  ", (HOLD,), id="with spaces"),
        pytest.param("/hold 2h\r\n/approve\r\n", (HOLD, APPROVE), id="two, as browsers send lines"),
        pytest.param("We wait for the vendor.\n/hold 2h", (HOLD,), id="below a sentence"),
        pytest.param("/assign @ann", (WrittenCommand("assign", "@ann"),), id="with a name"),
        pytest.param("/lgtm", (WrittenCommand("lgtm"),), id="one that is not ours"),
        pytest.param("please /approve", (), id="in a sentence"),
        pytest.param("/dev/nvidia0 is gone", (), id="a path"),
        pytest.param("/Approve", (), id="a name"),
        pytest.param("/", (), id="a slash"),
        pytest.param("> /approve", (), id="quoted"),
        pytest.param("> we said\n/approve", (), id="the lazy end of a quotation"),
        pytest.param("On Monday ann wrote:\n> /approve\n\nno!", (), id="a reply by mail"),
        pytest.param("```\n/approve\n```", (), id="in a fence"),
        pytest.param("~~~sh\n/approve", (), id="in a fence without end"),
        pytest.param("    /approve", (), id="indented code"),
        pytest.param("`/approve`", (), id="a code span"),
        pytest.param("`a\n/approve\nb`", (), id="in a code span of three lines"),
        pytest.param("/hold `2h`", (), id="half code"),
        pytest.param("- /approve", (), id="in a list"),
        pytest.param("# /approve", (), id="a heading"),
        pytest.param("<!-- x\n/approve\n-->", (), id="in an HTML comment"),
        pytest.param("<pre>\n/approve\n</pre>", (), id="in HTML"),
        pytest.param("[x](\n/approve\n)", (), id="in a link"),
        pytest.param("", (), id="nothing"),
        pytest.param("/approve\n" * 9, (APPROVE,) * MOST, id="nine"),
        pytest.param("/approve\n\n" + "x" * 2000, (), id="in a comment that takes long to read"),
        pytest.param("/hold " + "x" * 300, (), id="longer than any argument"),
    ],
)
def test_a_command_is_a_line_of_its_own_in_plain_text(text: str, commands: tuple[WrittenCommand, ...]) -> None:
    assert parse(text) == commands


@given(some.text(alphabet="/ahold 2\n\r\t`>-#<!*~[]()\\&;\0é", max_size=60))
def test_no_text_is_too_odd_and_what_stands_in_a_quotation_or_a_fence_is_no_command(text: str) -> None:
    assert len(parse(text)) <= MOST
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    assert parse("\n".join(f"> {line}" for line in lines)) == ()
    assert parse("\n".join(["``````````", *(line.replace("`", "") for line in lines), "``````````"])) == ()

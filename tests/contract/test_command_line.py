"""docs/cli.md names what a command takes by the words that its --help has."""

import pytest
from typer.testing import CliRunner

from remediator.cli.every import app
from tests.contract import command_line

TAKING = {  # arguments that are called otherwise in the code than in --help
    "keep": ("POD|KIND/NAME", "LENGTH"),
    "rma": ("NODE|CASE",),
    "close-breaker": ("POLICY|TEMPLATE|BUDGET",),
    "explain": ("[NODE]",),
}


@pytest.mark.parametrize(("name", "words"), TAKING.items())
def test_an_argument_is_named_in_the_page_as_in_the_help(name: str, words: tuple[str, ...]) -> None:
    helped = CliRunner().invoke(app, [name, "--help"]).output
    drawn = command_line.drawings()["command line"].partition(f"## {name}\n")[2].partition("\n## ")[0]
    for word in words:
        assert word in helped
        assert f"\n| `{word.replace('|', command_line.BAR)}` | " in drawn

"""The bearer of a token that a file holds."""

from functools import partial
from pathlib import Path
from unittest.mock import Mock

import pytest
from aiohttp.test_utils import make_mocked_request
from structlog.testing import capture_logs

from remediator import secret_file
from remediator.web.caller import Callers


def may(callers: Callers, token: str) -> bool:
    plain = Mock(get_extra_info=lambda *_: None)
    return callers.may(make_mocked_request("POST", "/", {"Authorization": f"Bearer {token}"}, transport=plain))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "token"


@pytest.fixture
def callers(file: Path) -> Callers:
    return Callers("", partial(secret_file.read, file, secret_file.not_one_word))


def test_a_file_holds_the_token_with_or_without_a_newline_at_its_end(file: Path, callers: Callers) -> None:
    for text in ("one", "one\n"):
        file.write_text(text)
        assert may(callers, "one")
        assert not may(callers, "two")


@pytest.mark.parametrize("text", ["one\ntwo\n", "one two", "\N{SNOWMAN}"])
def test_a_file_that_holds_no_single_word_lets_nobody_in_and_says_once_what_to_write(
    file: Path, callers: Callers, text: str
) -> None:
    file.write_text(text)
    with capture_logs() as logs:
        assert not any(may(callers, token) for token in ("one", "two", text.strip(), "one"))
    [entry] = logs
    assert entry["error"] == f"the file {file} holds more than one word of ASCII; write the token alone into it"
    file.write_text("one")
    assert may(callers, "one")


def test_a_file_that_is_not_there_lets_nobody_in_and_is_named(file: Path, callers: Callers) -> None:
    with capture_logs() as logs:
        assert not may(callers, "")
    assert str(file) in logs[0]["error"]


def test_an_empty_file_lets_nobody_in(file: Path, callers: Callers) -> None:
    file.write_text("\n")
    assert not may(callers, "")

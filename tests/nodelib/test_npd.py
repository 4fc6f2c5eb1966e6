"""The line that every detector prints, and the files that it keeps."""

import errno
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodelib.contract.npd import one_line, write_json


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


def refuse(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("call", ["write_text", "replace"])
def test_what_cannot_be_written_leaves_the_old_file_no_draft_and_an_error_that_is_the_same_in_each_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    path = tmp_path / "state" / "dns.json"
    write_json(path, {"runs": 1})
    monkeypatch.setattr(Path, call, refuse)
    with pytest.raises(OSError, match="No space left on device") as raised:
        write_json(path, {"runs": 2})
    assert str(raised.value) == f"[Errno {errno.ENOSPC}] No space left on device: '{path}'"
    assert [(one.name, one.read_bytes()) for one in path.parent.iterdir()] == [("dns.json", b'{"runs": 1}')]

"""What a detector prints with --explain is for whoever is on call: values in words, without names of Python's types."""

from pathlib import Path
from typing import Any, NamedTuple

import pytest

from nodelib.contract.detector import explain, plain
from nodelib.contract.npd import Verdict


class Port(NamedTuple):
    up: bool
    lack: str = ""
    times: tuple[float, ...] = ()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("", "none"),
        (None, "none"),
        (frozenset(), "none"),
        (0, "0"),
        (False, "False"),
        (Path("/dev/nvidia0"), "/dev/nvidia0"),
        ({"b", "a"}, "a, b"),
        ((1, 2), "1, 2"),
        ({"eth0": "up"}, "eth0 up"),
        (Port(True, times=(1.5, 2.5)), "up True, lack none, times (1.5, 2.5)"),
        ({"eth0": Port(False, "no carrier, no peer")}, "eth0 (up False, lack no carrier, no peer, times none)"),
    ],
)
def test_a_value_is_said_in_words(value: Any, text: str) -> None:
    assert plain(value) == text


def test_each_view_and_each_check_has_a_line_and_no_name_of_a_type(capsys: pytest.CaptureFixture[str]) -> None:
    explain({"eth0": Port(True), "driver": None}, {"wrong since": {}, "no carrier": "for 60 s"}, Verdict.OK)
    assert capsys.readouterr().out.splitlines() == [
        "eth0: up True, lack none, times none",
        "driver: not available",
        "wrong since: none",
        "no carrier: for 60 s",
        "verdict: OK",
    ]

"""What need not be tried once something else was done."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remediator.core.covers import covered, covering, cycle

COVERS = {"power-cycle": ("reboot",), "reboot": ("reset-gpu", "remount-nfs"), "reset-gpu": ("restart-device-plugin",)}
ROUND = {"a": ("b",), "b": ("c", "a"), "d": ("d", "nobody")}


@pytest.mark.parametrize(
    ("covers", "done", "expected"),
    [
        (COVERS, ["reset-gpu"], {"restart-device-plugin"}),
        (COVERS, ["power-cycle"], {"reboot", "reset-gpu", "remount-nfs", "restart-device-plugin"}),
        (COVERS, ["remount-nfs", "unknown"], set()),
        (COVERS, [], set()),
        (ROUND, ["a"], {"b", "c"}),
        (ROUND, ["d"], {"nobody"}),
    ],
)
def test_an_operation_covers_what_its_template_names_and_what_that_covers(covers, done, expected):
    assert covered(covers, done) == expected


def test_a_cycle_is_found_and_makes_none_the_stronger():
    assert [name for name in "abcd" if cycle(ROUND, name)] == ["a", "b", "d"]
    assert [covering(ROUND, name) for name in ("a", "b", "c", "d")] == [set(), set(), {"a", "b"}, set()]
    assert covering(COVERS, "reset-gpu") == {"reboot", "power-cycle"}
    assert covering(COVERS, "power-cycle") == set()


NAMES = st.sampled_from("abcdef")


@given(st.dictionaries(NAMES, st.lists(NAMES, max_size=3)), NAMES, st.lists(NAMES, max_size=4))
def test_what_covers_an_operation_is_what_reaches_it_and_is_not_reached_by_it(covers, operation, done):
    def reached(name: str) -> set[str]:
        found = set(covers.get(name, ()))
        for _ in "abcdef":
            found |= {below for each in found for below in covers.get(each, ())}
        return found

    assert covering(covers, operation) == {
        name for name in "abcdef" if operation in reached(name) and name not in reached(operation)
    }
    assert covered(covers, done) == {name for one in done for name in reached(one) - {one}}

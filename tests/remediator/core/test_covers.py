"""What need not be tried once something else was done."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remediator.core.covers import covered, cycle, weaker

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
    assert weaker(ROUND, {"a", "b", "c"}, ["a"]) == {"c"}
    assert weaker(COVERS, {"reset-gpu", "power-cycle"}, ["power-cycle"]) == {"reset-gpu"}
    assert weaker(COVERS, {"reset-gpu", "power-cycle"}, ["reset-gpu"]) == set()


NAMES = st.sampled_from("abcdef")


@given(st.dictionaries(NAMES, st.lists(NAMES, max_size=3)), st.sets(NAMES), st.lists(NAMES, max_size=4))
def test_what_is_weaker_is_what_one_that_is_done_reaches_and_that_does_not_reach_it_back(covers, operations, done):
    def reached(name: str) -> set[str]:
        found = set(covers.get(name, ()))
        for _ in "abcdef":
            found |= {below for each in found for below in covers.get(each, ())}
        return found

    stronger = {(one, other) for one in done for other in reached(one) & operations if one not in reached(other)}
    assert weaker(covers, operations, done) == {other for _, other in stronger}
    assert covered(covers, done) == {name for one in done for name in reached(one) - {one}}

"""What need not be tried once something else was done."""

import pytest

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

"""The kinds that the controller knows are those that nodelib counts."""

from nodelib.host.inventory import READERS
from remediator.core.device_count import KINDS, MOST_KINDS


def test_each_of_the_13_kinds_that_nodelib_counts_is_known_to_the_controller_and_no_other() -> None:
    assert sorted(KINDS) == sorted(READERS)
    assert len(KINDS) == len(set(KINDS)) == 13 <= MOST_KINDS

"""The Conditions of a node in little memory are as the mapping of Conditions that they stand for."""

from dataclasses import replace

import pytest

from remediator.core.node import NodeCondition, Status
from remediator.core.packed_conditions import ConditionWords, PackedConditions
from tests.builders import at

READY = NodeCondition("Ready", Status.TRUE, "KubeletReady", at(0), at(9), "it is")
FAULT = NodeCondition("DiskFault", Status.UNKNOWN, "NoReport", at(5), at(8), "nothing was said")


def packed(*conditions: NodeCondition) -> PackedConditions:
    words = tuple(ConditionWords(each.type, each.status, each.reason, each.message) for each in conditions)
    return PackedConditions(words, [each.since for each in conditions], [each.heartbeat for each in conditions])


def test_each_condition_is_what_it_was_made_of_to_its_heartbeat_and_its_message() -> None:
    kept = packed(READY, FAULT)
    for condition in (READY, FAULT):
        made = kept[condition.type]
        assert repr(made) == repr(condition)
        assert (made, hash(made), type(made)) == (condition, hash(condition), NodeCondition)
        assert repr(kept.get(condition.type)) == repr(condition)
    assert (list(kept), len(kept), list(kept.values())) == (["Ready", "DiskFault"], 2, [READY, FAULT])
    assert repr(kept) == repr({"Ready": READY, "DiskFault": FAULT})


def test_what_a_node_has_not_is_none_or_the_default_and_no_member() -> None:
    kept = packed(READY)
    assert (kept.get("DiskFault"), kept.get("DiskFault", FAULT), "DiskFault" in kept) == (None, FAULT, False)
    with pytest.raises(KeyError, match="DiskFault"):
        kept["DiskFault"]


OTHERS = {
    "the order alone": ((FAULT, READY), True),
    "a heartbeat": ((READY, replace(FAULT, heartbeat=at(99))), True),
    "a message": ((READY, replace(FAULT, message="something was said")), True),
    "a status": ((READY, replace(FAULT, status=Status.TRUE)), False),
    "a reason": ((READY, replace(FAULT, reason="Other")), False),
    "its beginning": ((READY, replace(FAULT, since=at(6))), False),
    "a type": ((READY, replace(FAULT, type="NetworkFault")), False),
    "one more": ((READY, FAULT, replace(FAULT, type="NetworkFault")), False),
    "one less": ((READY,), False),
}


@pytest.mark.parametrize(("others", "same"), OTHERS.values(), ids=OTHERS)
def test_two_are_equal_as_the_conditions_in_them_are(others: tuple[NodeCondition, ...], same: bool) -> None:
    kept, plain = packed(READY, FAULT), {each.type: each for each in others}
    assert (kept == packed(*others), kept == plain, plain == kept) == (same, same, same)
    assert (kept != packed(*others)) is not same

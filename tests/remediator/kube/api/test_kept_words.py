"""What is kept of all that one node has ever said is bounded: a worker may write ever new words, each long."""

import tracemalloc

import msgspec
import pytest

from remediator.core.device_count import DEVICE_INVENTORY, counted
from remediator.core.node_versions import LINE_BYTES, MOST_KINDS, NODE_VERSIONS, merged, versions
from remediator.kube.api import builtin, decode

WRITES, LETTERS = 100, 200_000  # ever new, each so long: 20 MB in all
KEPT = 12_000_000  # bytes; of short words some thousands are kept, whosever they are


def read(*conditions: dict[str, str], allocatable: dict[str, str] | None = None):
    status = {"conditions": list(conditions), "allocatable": allocatable or {}}
    body = msgspec.json.encode({"metadata": {"name": "gpu-1"}, "status": status})
    return decode.node(msgspec.json.decode(body, type=builtin.Node))


def one(kind: str, field: str, number: int) -> list[dict[str, str]]:
    said = {"type": kind, "status": "True", "reason": "R", "message": "m"}
    return [said | {field: f"{number} " + "a" * LETTERS}]


def many(number: int) -> list[dict[str, str]]:
    return [{"type": f"T{number}-{each}", "status": "True", "reason": "R", "message": "m" * 80} for each in range(500)]


@pytest.mark.parametrize(
    "said",
    [
        pytest.param(lambda n: one(NODE_VERSIONS, "message", n), id="the message of NodeVersions"),
        pytest.param(lambda n: one(DEVICE_INVENTORY, "message", n), id="the message of DeviceInventory"),
        pytest.param(lambda n: one("Other", "message", n), id="the message of another Condition"),
        pytest.param(lambda n: one("Other", "reason", n), id="a reason"),
        pytest.param(lambda n: one("Other", "type", n), id="a type"),
        pytest.param(lambda n: one("Other", "status", n), id="a status"),
        pytest.param(many, id="five hundred short Conditions"),
    ],
)
def test_of_long_words_that_a_node_no_longer_says_nothing_is_kept(said):
    read(*said(0))
    tracemalloc.start()
    try:
        for number in range(1, WRITES):
            read(*said(number))
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < KEPT


def test_a_line_longer_than_the_detector_writes_says_nothing():
    room = "a=1 " + "b" * 30 + "=" + "c" * 64
    assert versions(room + " " * (LINE_BYTES - len(room)))
    assert versions(room + " " * (LINE_BYTES - len(room) + 1)) == ()
    full = " ".join(f"{'k' * 30}{number:02}=10000000/10000000" for number in range(32))
    assert counted(f"{full} digest={'0' * 64}"), "as much as may be counted is read"
    assert counted("gpus=8" + " " * 2048) is None


def test_of_ever_new_kinds_of_a_node_the_newest_are_kept_and_no_more_than_a_line_may_have():
    kept = versions("gpu=H100 driver=580")
    for look in range(100):
        now = tuple((f"k{look}-{number:02}", "v") for number in range(MOST_KINDS - 1))
        kept = merged(kept, now)
        assert set(now) <= set(kept)
        assert len(kept) == MOST_KINDS
    assert list(kept) == sorted(kept)

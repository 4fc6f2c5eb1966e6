"""What NVML said, read back: which answers make sense, and what leaves a detector in doubt."""

import pytest

from nodelib.host.child_process import ChildAnswer
from nodelib.host.gpus import Card
from nodelib.nvml.results import absent, doubts, read_gpus, see
from tests.detectors.said import SECOND, gpu, seen, silent

SHAPES = {"heat": {"now": "number", "most": "number?"}, "links": {"link": "numbers", "name": "texts"}}
FINE = {"heat": {"now": 40, "most": 90}, "links": {"link": [0, 1], "name": ["a", "b"]}}


def told(facts):
    return {"init": 0, "done": True, "count": 1, "gpus": [gpu(0, facts)]}


SENSE = {
    "all of it": FINE,
    "without what not every GPU tells": {**FINE, "heat": {"now": -4}},
    "a question without an answer": {"heat": {"now": 40}},
    "more than was asked for": {**FINE, "other": {"x": ["y", 3]}},
    "empty lists": {"links": {"link": [], "name": []}},
}


@pytest.mark.parametrize("facts", SENSE.values(), ids=SENSE.keys())
def test_an_answer_of_the_right_shape_is_read(facts):
    [found] = read_gpus(told(facts), SHAPES)
    assert found.facts == facts


NONSENSE = {
    "a text for a number": {"heat": {"now": "40"}},
    "true for a number": {"heat": {"now": True}},
    "nothing for a number": {"heat": {}},
    "a list for a number that may be missing": {"heat": {"now": 1, "most": [2]}},
    "a number for a list": {"links": {"link": 3, "name": ["a"]}},
    "a text among numbers": {"links": {"link": ["0"], "name": ["a"]}},
    "lists that do not belong together": {"links": {"link": [0, 1], "name": ["a"]}},
    "no object": {"heat": 40},
}


@pytest.mark.parametrize("facts", NONSENSE.values(), ids=NONSENSE.keys())
def test_an_answer_of_another_shape_is_none(facts):
    with pytest.raises(ValueError, match=r"is not told as it should be|not described"):
        read_gpus(told(facts), SHAPES)


def test_a_count_that_is_not_that_of_the_gpus_is_none():
    with pytest.raises(ValueError, match="not every GPU was asked"):
        read_gpus({**told(FINE), "count": 2}, SHAPES)


DOUBTS = {
    "all is told": (seen(SHAPES, gpu(0, FINE), gpu(1, FINE)), ""),
    "a GPU that has no such thing": (seen(SHAPES, gpu(0, FINE), gpu(1, refused={"heat": 3, "links": 13})), ""),
    "a refusal": (
        seen(SHAPES, gpu(0, FINE), gpu(1, {"links": FINE["links"]}, {"heat": 999})),
        f"{SECOND} does not report its heat (code 999)",
    ),
    "no permission": (seen(SHAPES, gpu(0, FINE), gpu(1, refused={"heat": 4, "links": 3})), "run as root"),
    "no answer": (
        seen(SHAPES, gpu(0, FINE), gpu(1, {"links": FINE["links"]})),
        f"{SECOND} does not report its heat (no answer)",
    ),
    "a lost GPU": (
        seen(SHAPES, gpu(0, FINE), silent(1, 15)),
        "GPU index 1 does not answer (code 15, lost; see GpuLost)",
    ),
    "one GPU too few": (seen(SHAPES, gpu(0, FINE), cards=2), "NVML lists fewer GPUs than PCI (see GpuLost)"),
    "no GPU where there are some": (seen(SHAPES, cards=2), "NVML lists no GPU (see GpuLost)"),
    "an init that fails": (seen(SHAPES, cards=1, init=9), "NVML does not start (code 9; see GpuLost)"),
    "an answer that is not done": (seen(SHAPES, gpu(0, FINE), done=False), "not every GPU was asked"),
    "a hang": (
        see(
            (Card("0000:10:00.0", "present", "nvidia"),),
            {},
            ChildAnswer({"at": "init"}, silent_since="2026-01-01T00:00Z"),
            SHAPES,
        ),
        "NVML has not answered since 2026-01-01T00:00Z at init (see GpuLost)",
    ),
    "a fallen card": (
        see((Card("0000:10:00.0", "fallen", "nvidia"),), {}, ChildAnswer(told(FINE)), SHAPES),
        "PCI function 0000:10:00.0 is fallen (see GpuLost)",
    ),
    "no PCI": (see(None, None, ChildAnswer({"init": 9, "done": True}), SHAPES), "NVML does not start (code 9"),
}


@pytest.mark.parametrize(("found", "words"), DOUBTS.values(), ids=DOUBTS.keys())
def test_what_cannot_be_read_is_a_doubt(found, words):
    texts = "; ".join(doubts(found, ["heat", "links"]))
    assert (words in texts) if words else not texts


@pytest.mark.parametrize("said", [{"init": 12, "done": True}, {"init": 9, "done": True}, {}])
def test_where_there_is_no_gpu_there_is_no_doubt(said):
    none = see((), None, ChildAnswer(said, why="no library"), SHAPES)
    assert absent(none) == "there is no NVIDIA GPU on this node"
    assert doubts(none, ["heat"]) == []


def test_gpus_of_virtual_machines_are_not_ours():
    lent = see((Card("0000:10:00.0", "present", "vfio-pci"),), None, ChildAnswer({"init": 9, "done": True}), SHAPES)
    assert absent(lent) == "no GPU of this node belongs to the NVIDIA driver"
    assert doubts(lent, ["heat"]) == []

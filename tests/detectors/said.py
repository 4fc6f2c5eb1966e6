"""What NVML said, for tests of what detectors make of it: GPUs with facts, whole answers, and garbage."""

import json

from hypothesis import strategies as st

from nodelib.host.child_process import ChildAnswer
from nodelib.host.gpus import Card
from nodelib.nvml.results import see
from tests.detectors.node import address

SECOND = "0000:11:00.0 (GPU-1a2b3c4d)"  # the name of gpu(1)


def uuid(index):
    return f"GPU-{index}a2b3c4d-0000-0000-0000-000000000000"


def gpu(index, facts=None, refused=None):
    """A GPU that answers, with facts and refusals by question."""
    return {
        "index": index,
        "error": 0,
        "address": address(index),
        "uuid": uuid(index),
        "serial": f"15635210204{index:02d}",
        "facts": facts or {},
        "refused": refused or {},
    }


def silent(index, code):
    """A GPU that does not."""
    return {"index": index, "error": code}


def seen(shapes, *gpus, cards=None, **more):
    """What was read where NVML tells of `gpus`, and PCI shows as many or `cards`."""
    found = tuple(Card(address(index), "present", "nvidia") for index in range(len(gpus) if cards is None else cards))
    said = {"init": 0, "count": len(gpus), "gpus": list(gpus), "done": True, **more}
    return see(found, {}, ChildAnswer(said), shapes)


values = (
    st.none() | st.integers() | st.text(max_size=4) | st.lists(st.integers(-2, 3) | st.text(max_size=2), max_size=3)
)


def garbage(shapes):
    """Answers of two GPUs in which each fact may be anything, or not there."""
    facts = st.fixed_dictionaries(
        {},
        optional={question: st.dictionaries(st.sampled_from([*shape]), values) for question, shape in shapes.items()},
    )
    return st.lists(facts, min_size=2, max_size=2)


leaves = st.none() | st.integers() | st.floats() | st.text(max_size=3)
trees = st.recursive(
    leaves, lambda one: st.lists(one, max_size=3) | st.dictionaries(st.text(max_size=3), one, max_size=3)
)


def memories(*names):
    """Files in a state folder: bytes, and what json can write below these names, of the boot whose id is ""."""
    told = st.dictionaries(st.sampled_from(names), trees | st.lists(trees) | st.dictionaries(st.just(uuid(0)), trees))
    return st.binary(max_size=30) | told.map(lambda found: json.dumps({"boot_id": "", **found}).encode())

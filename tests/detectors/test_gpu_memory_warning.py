"""gpu_memory_warning: what grows is told of, what stands is not; garbage."""

import json

import pytest
from gpu_memory_warning import Past
from hypothesis import given, settings

from nodelib.contract.memory import Stamp, recall
from tests.detectors.node import Node, address
from tests.detectors.said import memories
from tests.harness.examples import examples

OK, FAULT = 0, 1
THIRD = f"{address(3)} (GPU-00000000, serial 1563521020403)"  # whoever is only told finds the board by its number
VOLTA = ("gpu 3 remapped error:3", "gpu 3 spare-rows error:3", "gpu 3 retirement-pending 0")
FINE = "the memory of no GPU shows wear"


@pytest.fixture
def node(tmp_path, nvml_library):
    return Node(tmp_path, nvml_library, gpus=8, detector="gpu_memory_warning")


def test_many_corrected_errors_are_told_of_after_five_minutes(node):
    said = []
    for minute in range(0, 8, 2):
        node.orders(f"gpu 3 corrected {100 + 30 * minute}")
        said.append(node.run(f"--now={60 * minute}")[:2])
    assert said == [(OK, FINE)] * 3 + [(FAULT, f"many corrected memory errors: {THIRD}")]
    assert (node.state / "evidence/gpu_memory_warning.json").exists()


def test_retired_pages_are_told_of_when_they_grow_and_not_when_they_are_many(node):
    node.orders(*VOLTA, "gpu 3 retired 40,3")
    assert [node.run()[:2] for _ in range(2)] == [(OK, FINE)] * 2
    node.orders(*VOLTA, "gpu 3 retired 41,3")
    assert [node.run()[:2] for _ in range(2)] == [(FAULT, f"retired pages grow: {THIRD}")] * 2


@settings(max_examples=examples(60))
@given(memories("corrected", "pages"))
def test_garbage_in_the_state_folder_is_overcome(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("state") / "gpu_memory_warning.json"
    path.write_bytes(content)
    past = recall(path, Past, Stamp("", 1000.0))
    assert isinstance(past, Past)
    json.dumps(past)

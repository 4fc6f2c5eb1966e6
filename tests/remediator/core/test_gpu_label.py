"""When a node gets the label of nodes with GPUs, keeps it, and loses it."""

from datetime import timedelta

import pytest

from remediator.core.gpu_label import DISCOVERED, gpu_label
from remediator.core.names import GPU_PRESENT
from remediator.core.node_inventory import Inventory
from tests.builders import a_node, at, pool

NOW = at(60)
ON, OFF, KEPT = {GPU_PRESENT: "true"}, {GPU_PRESENT: None}, {}
OURS, FOUND, LOST = {GPU_PRESENT: "true"}, {DISCOVERED: "true"}, {DISCOVERED: "false"}
BY_USER = {GPU_PRESENT: "false"}
RESET = {"forget_before": at(50), "since": at(55)}


def own(**facts):
    """The inventory of the node."""
    return Inventory("gpu-1", "gpu-1", **facts)


@pytest.mark.parametrize(
    ("labels", "inventory", "change"),
    [
        ({}, own(learnt={"gpus": 8}), ON),
        ({}, own(learnt={"gpus": 0}), KEPT),
        ({}, own(learnt={"nics": 2}), KEPT),
        ({}, None, KEPT),
        (FOUND, None, ON),
        (FOUND, own(learnt={"gpus": 0}), ON),
        (LOST, None, KEPT),
        (LOST | OURS, None, KEPT),
        (LOST | OURS, own(learnt={"gpus": 0}), KEPT),
        (LOST | OURS, own(learnt={"gpus": 8}), KEPT),
        ({}, own(expected={"gpus": 8}), ON),
        (OURS | FOUND, own(expected={"gpus": 0}, learnt={"gpus": 8}), OFF),
        (FOUND, own(expected={"gpus": 0}), KEPT),
        (OURS, own(learnt={"gpus": 0}, **RESET), OFF),
        (OURS | FOUND, own(learnt={"gpus": 0}, **RESET), OFF),
        (OURS, own(learnt={"gpus": 8}, **RESET), KEPT),
        (OURS, own(learnt={"nics": 2}, **RESET), KEPT),
        (OURS, own(learnt={"gpus": 8}, forget_before=at(50), since=at(10)), KEPT),
        (OURS, own(learnt={"gpus": 0}, forget_before=at(50), since=at(10)), KEPT),
        (BY_USER | FOUND, own(learnt={"gpus": 8}), KEPT),
        (BY_USER, own(expected={"gpus": 0}), KEPT),
    ],
    ids=[
        "it has counted 8",
        "it has only ever counted 0",
        "GPUs are not counted",
        "nothing is known",
        "GPU feature discovery says so before anything is counted",
        "GPU feature discovery says so though none was ever counted",
        "GPU feature discovery says that there is none",
        "GPU feature discovery says that there is none any more",
        "neither GPU feature discovery nor the count know of one any more",
        "it has counted 8 and lost all",
        "a user says that there must be 8",
        "a user says that there are none",
        "a user says that there are none where the label is not",
        "a user had 8 forgotten, and 0 are counted since",
        "the same while GPU feature discovery still says so",
        "a user had 8 forgotten, and 8 are counted again",
        "a user had 8 forgotten, and GPUs are not counted since",
        "a user has 8 forgotten, and nothing is counted since",
        "a user has 0 forgotten, and nothing is counted since",
        "a user has given the label another value",
        "a user has given the label another value, and says that there are none",
    ],
)
def test_the_label_comes_with_gpus_and_goes_only_by_the_word_of_a_user(labels, inventory, change):
    assert gpu_label(a_node(labels=labels), inventory, (), NOW) == change


@pytest.mark.parametrize(
    ("expected", "inventory", "labels", "change"),
    [
        ({"gpus": 8}, None, {}, ON),
        ({"gpus": 0}, own(learnt={"gpus": 8}), OURS, OFF),
        ({"gpus": 0}, own(expected={"gpus": 8}), {}, ON),
        ({"nics": 2}, None, OURS, KEPT),
    ],
    ids=["has GPUs", "has none", "has none but for this node", "speaks of other things"],
)
def test_what_is_said_of_a_group_holds_for_its_nodes(expected, inventory, labels, change):
    group = Inventory("h100-nodes", selector=pool("h100"), expected=expected)
    assert gpu_label(a_node(labels={"pool": "h100"} | labels), inventory, [group], NOW) == change
    others = gpu_label(a_node(labels={"pool": "a100"} | labels), None, [group], NOW)
    assert others == KEPT


def test_a_time_that_has_not_come_forgets_nothing():
    later = own(learnt={"gpus": 8}, forget_before=NOW + timedelta(hours=1), since=at(10))
    assert gpu_label(a_node(labels={}), later, (), NOW) == ON

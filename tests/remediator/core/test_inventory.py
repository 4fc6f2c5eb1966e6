"""Fewer devices than before the case is no recovery: what is known of a node's GPUs, and what it lacks."""

from dataclasses import replace

import pytest

from remediator.core.inventory import missing
from remediator.core.policy import InventoryMode
from remediator.core.reasons import Reason
from remediator.core.sharing import layout
from remediator.kube.api import builtin, gpu_pods
from remediator.kube.api.common import ObjectMeta
from tests.builders import a_case, a_node, a_policy, at

POLICY = a_policy()
GPUS, LABEL = "nvidia.com/gpu", "nvidia.com/gpu.count"


def opened(name="case-1", minute=60.0, **devices):
    """A case that was opened when the node had these: gpu, count."""
    plain = a_case(name, created=minute)
    words = {"gpu": GPUS, "count": LABEL, "mig": "nvidia.com/mig-1g.10gb"}
    assert plain.trigger
    return replace(plain, trigger=replace(plain.trigger, devices=tuple((words[key], n) for key, n in devices.items())))


BEFORE = opened("before", 0, gpu=32, count=8)


@pytest.mark.parametrize(
    ("case", "now", "others", "expected"),
    [
        pytest.param(opened(gpu=8), {GPUS: 8}, [], "", id="as many as before"),
        pytest.param(opened(gpu=7), {GPUS: 8}, [], "", id="more than before"),
        pytest.param(opened(gpu=8), {GPUS: 7}, [], "nvidia.com/gpu 7 of 8", id="one is gone"),
        pytest.param(opened(gpu=8), {}, [], "nvidia.com/gpu 0 of 8", id="the device plugin has not come back"),
        pytest.param(opened(gpu=8, count=8), {GPUS: 8}, [], "", id="a label that is gone says nothing"),
        pytest.param(
            opened(mig=56), {}, [], "nvidia.com/mig-1g.10gb 0 of 56", id="a reset has destroyed MIG instances"
        ),
        pytest.param(opened(), {GPUS: 1}, [], "", id="nothing is known: nothing is asked for"),
        pytest.param(opened(count=7), {LABEL: 7}, [BEFORE], f"{LABEL} 7 of 8", id="gone before the case was opened"),
        pytest.param(opened(gpu=8), {GPUS: 8}, [BEFORE], "", id="time slicing has changed since an earlier case"),
        pytest.param(
            opened(count=7),
            {LABEL: 7},
            [replace(BEFORE, reason=Reason.RELEASED_BY_USER, ended=at(30))],
            "",
            id="a user has released the node as it was",
        ),
        pytest.param(
            opened(count=7), {LABEL: 7}, [replace(BEFORE, node_uid="other")], "", id="another machine of this name"
        ),
    ],
)
def test_which_devices_a_node_lacks(case, now, others, expected):
    node = replace(a_node(), devices=tuple(sorted(now.items())))
    assert missing(case, POLICY, node, [*others, case]) == expected


def test_nobody_counts_where_the_policy_says_ignore():
    policy = replace(POLICY, verify=replace(POLICY.verify, inventory=InventoryMode.IGNORE))
    assert missing(opened(gpu=8), policy, a_node(), []) == ""


def test_a_case_that_somebody_opened_by_hand_knows_of_no_devices():
    assert missing(replace(a_case(), trigger=None), POLICY, a_node(), []) == ""


STRATEGY, SHARING, REPLICAS = "nvidia.com/mig.strategy", "nvidia.com/gpu.sharing-strategy", "nvidia.com/gpu.replicas"
CONFIG, PRODUCT, SHARED = "nvidia.com/mig.config", "nvidia.com/gpu.product", "nvidia.com/gpu.shared"
H100 = {PRODUCT: "NVIDIA-H100"}
SLICED = {SHARING: "time-slicing", REPLICAS: "4", PRODUCT: "NVIDIA-H100-SHARED"}
SEVENTHS = {STRATEGY: "single", CONFIG: "all-1g.10gb", PRODUCT: "NVIDIA-H100-MIG-1g.10gb"}


def _node(labels, devices):
    return replace(a_node(labels=labels), devices=tuple(sorted(devices.items())))


def lacks(before, had, after, has, physical=0):
    """What a node lacks that had these labels and devices when its case was opened, and has those now."""
    count = {LABEL: physical} if physical else {}
    plain = a_case("case-1", created=60.0)
    node = _node(before, {**had, **count})
    case = replace(plain, trigger=replace(plain.trigger, devices=node.devices, layout=layout(node)))
    return missing(case, POLICY, _node(after, has), [case])


@pytest.mark.parametrize(
    ("before", "had", "after", "has"),
    [
        pytest.param(H100, {GPUS: 8}, SLICED | {REPLICAS: "2"}, {SHARED: 16, GPUS: 0}, id="shared under another name"),
        pytest.param(SLICED, {GPUS: 32}, H100, {GPUS: 8}, id="shared no longer"),
        pytest.param(SLICED, {GPUS: 32}, SLICED | {REPLICAS: "2"}, {GPUS: 16}, id="fewer replicas"),
        pytest.param(SEVENTHS, {GPUS: 56}, H100, {GPUS: 8}, id="divided no longer"),
        pytest.param(SEVENTHS, {GPUS: 56}, SEVENTHS | {CONFIG: "all-3g.40gb"}, {GPUS: 16}, id="divided otherwise"),
        pytest.param(
            SEVENTHS, {GPUS: 56}, SEVENTHS | {PRODUCT: "NVIDIA-H100-MIG-3g.40gb"}, {GPUS: 16}, id="divided by hand"
        ),
        pytest.param({}, {"nvidia.com/mig-1g.10gb": 56}, {}, {"nvidia.com/mig-3g.40gb": 16}, id="mixed, by hand"),
    ],
)
def test_gpus_that_somebody_has_divided_or_shared_otherwise_are_not_lost(before, had, after, has):
    assert lacks(before, had, after, has) == ""


@pytest.mark.parametrize(
    ("before", "had", "after", "has"),
    [
        pytest.param(SLICED, {GPUS: 32}, SLICED, {GPUS: 28}, id="one of eight that are shared"),
        pytest.param(SLICED, {GPUS: 32}, {}, {GPUS: 28}, id="nobody discovers GPUs now"),
        pytest.param(
            SEVENTHS,
            {GPUS: 56},
            SEVENTHS | {PRODUCT: "NVIDIA-H100-MIG-INVALID", REPLICAS: "0"},
            {GPUS: 49},
            id="a reset has destroyed the MIG devices of one",
        ),
    ],
)
def test_what_is_gone_without_a_change_of_the_layout_is_lost(before, had, after, has):
    assert lacks(before, had, after, has) == f"{GPUS} {has[GPUS]} of {had[GPUS]}"


def test_a_node_that_is_divided_otherwise_is_compared_by_the_label_that_counts_its_gpus():
    assert lacks(H100, {GPUS: 8}, SLICED, {GPUS: 28, LABEL: 7}, physical=8) == f"{LABEL} 7 of 8"


MIXED = {STRATEGY: "mixed", CONFIG: "all-1g.10gb", **H100}
STATE, MIG, WIDER_MIG = f"{CONFIG}.state", "nvidia.com/mig-1g.10gb", "nvidia.com/mig-3g.40gb"


@pytest.mark.parametrize("state", [{}, {STATE: "pending"}, {STATE: "rebooting"}, {STATE: "failed"}, {STATE: "success"}])
def test_whole_gpus_that_the_mig_manager_has_yet_to_divide_again_do_not_say_that_a_person_wants_them_whole(state):
    had, has = {GPUS: 0, MIG: 56}, {GPUS: 8, MIG: 0}
    assert lacks(MIXED, had, MIXED | state, has, physical=8) == f"{MIG} 0 of 56"


def test_mig_devices_of_another_profile_say_nothing_while_the_mig_manager_is_at_work():
    had, has = {MIG: 56}, {MIG: 0, WIDER_MIG: 16}
    assert lacks(MIXED, had, MIXED | {STATE: "pending"}, has) == f"{MIG} 0 of 56"
    assert lacks(MIXED, had, MIXED | {STATE: "success"}, has) == ""


SLICED_MIG = MIXED | {f"{MIG}.replicas": "4", f"{MIG}.sharing-strategy": "time-slicing"}


def test_mig_devices_that_are_shared_otherwise_are_not_lost():
    unshared = MIXED | {f"{MIG}.replicas": "1", f"{MIG}.sharing-strategy": "none"}
    assert lacks(SLICED_MIG, {MIG: 64}, SLICED_MIG | {f"{MIG}.replicas": "2"}, {MIG: 32}) == ""
    assert lacks(SLICED_MIG, {MIG: 64}, unshared, {MIG: 16}) == ""


def test_mig_devices_that_were_shared_are_lost_where_their_labels_are_gone_with_them():
    assert lacks(SLICED_MIG, {MIG: 64}, SLICED_MIG, {MIG: 60}) == f"{MIG} 60 of 64"
    assert lacks(SLICED_MIG, {MIG: 64}, MIXED, {MIG: 0}) == f"{MIG} 0 of 64"


def test_a_layout_has_no_more_labels_than_a_case_has_room_for():
    profiles = {f"nvidia.com/mig-{number}g.10gb.replicas": "2" for number in range(30)}
    assert len(layout(a_node(labels=SLICED | SEVENTHS | profiles))) == 15


@pytest.mark.parametrize("wish", ["", "all-disabled"])
def test_whole_gpus_where_no_label_wishes_for_mig_devices_are_divided_no_longer(wish):
    labels = MIXED | {CONFIG: wish, STATE: "success"}
    assert lacks(labels, {GPUS: 0, MIG: 56}, labels, {GPUS: 8, MIG: 0}) == ""


@pytest.mark.parametrize(
    ("labels", "counted"),
    [
        ({LABEL: "8"}, 8),
        ({LABEL: "8", STRATEGY: "single", **H100}, 8),
        ({LABEL: "56", **SEVENTHS}, None),
        ({LABEL: "0", **SEVENTHS, PRODUCT: "NVIDIA-H100-MIG-INVALID"}, None),
        ({LABEL: "8", **SEVENTHS, STRATEGY: "mixed"}, 8),
    ],
)
def test_under_the_mig_strategy_single_the_label_counts_mig_devices_and_says_nothing_of_gpus(labels, counted):
    wire = builtin.Node(metadata=ObjectMeta(name="gpu-1", labels=labels))
    assert dict(gpu_pods.devices(wire)).get(LABEL) == counted

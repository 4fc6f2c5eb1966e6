"""What drivers of DRA say of the GPUs of a node, as one Condition."""

from dataclasses import replace

import pytest

from remediator.core.devices import CONDITION, Device, DeviceTaint, Slice, own_condition
from remediator.core.node import Status

XID = DeviceTaint("gpu.nvidia.com/xid", "79", "NoSchedule")
LOST = DeviceTaint("gpu.nvidia.com/gpu-lost", "", "NoExecute")


def device(*taints, name="gpu-3", uuid="GPU-9f3c01ab"):
    return Device(name, uuid, taints)


def part(*devices, driver="gpu.nvidia.com", generation=1, slices=1, name="s"):
    return Slice(name, "gpu-1", driver, "gpu-1", generation, slices, devices)


def test_a_taint_that_keeps_pods_off_is_a_fault_and_names_its_gpu():
    assert own_condition([part(device(XID))]) == (
        CONDITION,
        Status.TRUE,
        "gpu.nvidia.com/xid",
        "gpu-3 (GPU-9f3c01ab) gpu.nvidia.com/xid=79:NoSchedule",
    )


def test_without_a_taint_its_gpus_are_well():
    assert own_condition([part()])[:3] == (CONDITION, Status.FALSE, "NoDeviceTaint")


@pytest.mark.parametrize(
    "taint",
    [
        pytest.param(replace(XID, effect="None"), id="it keeps nothing off"),
        pytest.param(replace(XID, effect="PreferNothing"), id="an effect of a later version counts as None"),
        pytest.param(replace(XID, key="remediator.dev/isolated"), id="ours"),
    ],
)
def test_what_keeps_nothing_off_and_what_is_ours_is_no_fault(taint):
    assert own_condition([part(device(taint))]).status is Status.FALSE


def test_the_strongest_effect_gives_the_reason_and_every_device_is_named():
    several = [part(device(XID, name="gpu-1", uuid=""), device(LOST, XID))]
    assert own_condition(several)[2:] == (
        "gpu.nvidia.com/gpu-lost",
        "gpu-3 (GPU-9f3c01ab) gpu.nvidia.com/gpu-lost:NoExecute; gpu-1 gpu.nvidia.com/xid=79:NoSchedule; "
        "gpu-3 (GPU-9f3c01ab) gpu.nvidia.com/xid=79:NoSchedule",
    )


def test_of_many_devices_sixteen_are_named():
    many = [part(*[device(XID, name=f"gpu-{number:02}", uuid="") for number in range(20)])]
    assert own_condition(many).message.count("xid=79") == 16
    assert own_condition(many).message.endswith("and 4 more")


def test_of_many_pools_sixteen_are_named():
    many = [replace(part(slices=2), name=f"s{number}", pool=f"pool-{number:04}") for number in range(5000)]
    assert own_condition(many).message.count("pool-") == 16
    assert own_condition(many).message.endswith("pool-0015 and 4984 more")


def test_only_the_newest_generation_of_a_pool_counts():
    old, new = part(device(XID), generation=1), part(generation=2, name="t")
    assert own_condition([old, new]).status is Status.FALSE
    assert own_condition([new, replace(old, generation=3)]).status is Status.TRUE


def test_without_all_parts_of_a_pool_nobody_can_tell_unless_a_taint_is_there():
    assert own_condition([part(slices=2)])[1:3] == (Status.UNKNOWN, "PoolIncomplete")
    assert own_condition([part(slices=2), part(slices=2, name="t")]).status is Status.FALSE
    assert own_condition([part(device(XID), slices=2)]).status is Status.TRUE


def test_a_node_whose_driver_publishes_nothing_any_more_proves_nothing():
    assert own_condition([])[1:3] == (Status.UNKNOWN, "NoResourceSlice")


def test_drivers_of_other_devices_are_not_asked():
    assert own_condition([part(device(XID), driver="compute-domain.nvidia.com")]).reason == "NoResourceSlice"

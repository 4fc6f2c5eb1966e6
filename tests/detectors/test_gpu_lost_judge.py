"""What gpu_lost makes of what it read."""

import json

import pytest
from gpu_lost import Memory, remember
from gpu_lost import __doc__ as HELP
from hypothesis import given, settings
from hypothesis import strategies as st

from nodelib.contract.npd import Verdict
from nodelib.host.child_process import ChildAnswer
from nodelib.host.gpus import Card, Driven, Offered, read_offered
from nodelib.nvml.gpu_inventory import DRIVER_PATIENCE, ROLLOUT_PATIENCE, GpuViews, judge
from tests.detectors.node import address
from tests.harness.examples import examples

OK, FAULT, UNKNOWN = Verdict


def card(index, state="present", driver="nvidia"):
    return Card(address(index), state, driver)


def driven(*indices, excluded=()):
    return {address(index): Driven(f"GPU-{index}", index, index in excluded) for index in indices}


def nvml(*errors, **more):
    gpus = [
        {"index": index, "error": error, **({} if error else {"address": address(index), "uuid": f"GPU-{index}"})}
        for index, error in enumerate(errors)
    ]
    return ChildAnswer({"init": 0, "count": len(errors), "gpus": gpus, "done": True, **more})


def no_nvml(code):
    return ChildAnswer({"init": code, "gpus": [], "done": True})


def seen(**changes):
    """Two healthy GPUs, but for `changes`."""
    two = {
        "cards": (card(0), card(1)),
        "driven": driven(0, 1),
        "nodes": frozenset({0, 1}),
        "nvml": nvml(0, 0),
        "expected": 2,
    }
    return GpuViews(**{**two, **changes})


def taken(driver, seconds):
    """Two GPUs that another driver has had for so long."""
    cards = (card(0, driver=driver), card(1, driver=driver))
    return seen(cards=cards, driven=None, nodes=None, nvml=no_nvml(9), without_driver=seconds)


CASES = {
    "every view agrees": (seen(), OK, "every GPU answers"),
    "NVML says GPU is lost": (seen(nvml=nvml(0, 15)), FAULT, "NVML at GPU index 1: GPU is lost (code 15)"),
    "NVML says reset required": (seen(nvml=nvml(16, 0)), FAULT, "GPU requires reset"),
    "NVML says unknown error of a GPU": (seen(nvml=nvml(0, 999)), FAULT, "unknown error (code 999)"),
    "a code that blames no GPU is a doubt": (seen(nvml=nvml(0, 4)), UNKNOWN, "NVML at GPU index 1: code 4"),
    "a fault outranks a doubt": (seen(nvml=nvml(4, 15)), FAULT, "index 1"),
    "NVML lists fewer than PCI": (seen(nvml=nvml(0)), FAULT, f"{address(1)} is missing in NVML"),
    "a device reads all ones": (
        seen(cards=(card(0), card(1, "fallen"))),
        FAULT,
        f"{address(1)} has fallen off the bus",
    ),
    "a device cannot be read": (seen(cards=(card(0), card(1, "unreadable"))), UNKNOWN, "cannot be read"),
    "a device has left PCI": (seen(cards=(card(0),), expected=None), FAULT, f"{address(1)} has left PCI"),
    "fewer than declared, all else well": (
        seen(cards=(card(0),), driven=driven(0), nvml=nvml(0), nodes=frozenset({0})),
        FAULT,
        "2 GPUs expected, 1 present",
    ),
    "the driver's probe failed": (
        seen(cards=(card(0), card(1, driver="")), driven=driven(0), nvml=nvml(0)),
        FAULT,
        f"{address(1)} has no driver",
    ),
    "a GPU given to vfio is not lost": (
        seen(cards=(card(0), card(1, driver="vfio-pci")), driven=driven(0), nodes=frozenset({0}), nvml=nvml(0)),
        OK,
        "",
    ),
    "all GPUs given to vfio need no NVML": (
        seen(cards=(card(0, driver="vfio-pci"),), driven=None, nodes=None, nvml=no_nvml(9), expected=1),
        OK,
        "",
    ),
    "an excluded GPU is not lost": (
        seen(driven=driven(0, 1, excluded=(1,)), nodes=frozenset({0}), nvml=nvml(0)),
        OK,
        "",
    ),
    "a device node is missing": (seen(nodes=frozenset({0})), FAULT, "/dev/nvidia1 is missing"),
    "no device node at all says nothing": (seen(nodes=None), OK, ""),
    "a mismatch is of an upgrade, or of a library of our own that is old": (
        seen(nvml=no_nvml(18)),
        UNKNOWN,
        "driver and library version mismatch (code 18; see DriverMismatch)",
    ),
    "NVML does not start with unknown error": (seen(nvml=no_nvml(999)), FAULT, "(code 999)"),
    "NVML says no driver though it is loaded": (seen(nvml=no_nvml(9)), FAULT, "(code 9)"),
    "no driver yet": (
        seen(driven=None, nodes=None, nvml=no_nvml(9), without_driver=DRIVER_PATIENCE - 1),
        UNKNOWN,
        "the driver is not loaded (yet)",
    ),
    "no driver for too long": (
        seen(driven=None, nodes=None, nvml=no_nvml(9), without_driver=DRIVER_PATIENCE),
        FAULT,
        "the driver is not loaded",
    ),
    "a driver in a container is built for a new kernel": (
        seen(driven=None, nodes=None, nvml=no_nvml(9), without_driver=ROLLOUT_PATIENCE - 1, installing=True),
        UNKNOWN,
        "the driver is not loaded (yet): its Pod is at work",
    ),
    "a driver in a container is never done": (
        seen(driven=None, nodes=None, nvml=no_nvml(9), without_driver=ROLLOUT_PATIENCE, installing=True),
        FAULT,
        "the driver is not loaded",
    ),
    "no driver yet, nor a library of it": (
        seen(driven=None, nodes=None, nvml=no_nvml(12), without_driver=DRIVER_PATIENCE - 1),
        UNKNOWN,
        "the driver is not loaded (yet)",
    ),
    "GPUs that nouveau has taken, at first": (taken("nouveau", DRIVER_PATIENCE - 1), UNKNOWN, "not loaded (yet)"),
    "GPUs that nouveau has taken": (taken("nouveau", DRIVER_PATIENCE), FAULT, "the driver is not loaded"),
    "GPUs that nova_core has taken": (taken("nova_core", DRIVER_PATIENCE), FAULT, "the driver is not loaded"),
    "a card left to nouveau beside the driver is not lost": (
        seen(cards=(card(0), card(1, driver="nouveau")), driven=driven(0), nodes=frozenset({0}), nvml=nvml(0)),
        OK,
        "",
    ),
    "no NVML library is our own setup": (seen(nvml=no_nvml(12)), UNKNOWN, "NVML cannot be asked (code 12)"),
    "the probe died": (seen(nvml=ChildAnswer({}, why="the probe ended early (-11)")), UNKNOWN, "ended early"),
    "NVML hangs": (
        seen(nvml=ChildAnswer({"init": 0, "count": 2, "at": "GPU index 1"}, silent_since="2026-11-20T10:00Z")),
        UNKNOWN,
        "NvmlHung: no answer since 2026-11-20T10:00Z at GPU index 1",
    ),
    "only NVML can be read and agrees": (seen(cards=None, driven=None, nodes=None), OK, ""),
    "only NVML can be read and lists too few": (
        seen(cards=None, driven=None, nodes=None, nvml=nvml(0)),
        FAULT,
        "2 GPUs expected, 1 present",
    ),
    "nothing can be read": (
        seen(cards=None, driven=None, nodes=None, nvml=no_nvml(12), expected=None),
        UNKNOWN,
        "neither PCI nor NVML can be read",
    ),
    "no GPU seen and none declared": (
        seen(cards=(), driven=None, nodes=None, nvml=no_nvml(12), expected=None),
        UNKNOWN,
        "none declared",
    ),
    "no GPU seen where none is declared": (
        seen(cards=(), driven=None, nodes=None, nvml=no_nvml(12), expected=0),
        OK,
        "",
    ),
    "no GPU seen where eight are declared": (
        seen(cards=(), driven=None, nodes=None, nvml=no_nvml(9), expected=8),
        FAULT,
        "8 GPUs expected, 0 present",
    ),
}


OFFERS = {
    "all of them": (Offered(frozenset({"GPU-0", "GPU-1"})), "every GPU answers"),
    "one less": (
        Offered(frozenset({"GPU-0"})),
        f"every GPU answers; kubelet offers fewer GPUs than NVML lists: restart the device plugin: {address(1)}",
    ),
    "none": (Offered(frozenset()), f"restart the device plugin: {address(0)}, {address(1)}"),
    "one more": (Offered(frozenset({"GPU-0", "GPU-1", "GPU-2"})), "every GPU answers"),
    "nothing that is known": (Offered(why="its checkpoint cannot be read"), "every GPU answers"),
    "no view": (None, "every GPU answers"),
}


@pytest.mark.parametrize(("offered", "line"), OFFERS.values(), ids=OFFERS.keys())
def test_what_the_kubelet_offers_is_told_and_is_never_a_fault(offered, line):
    verdict, found = judge(seen(offered=offered))
    assert verdict is OK
    assert found == line if line.startswith("every") else found.endswith(line)


def test_what_the_kubelet_offers_hides_no_fault_and_adds_none():
    lost = seen(nvml=nvml(0, 15))
    assert judge(lost._replace(offered=Offered(frozenset({"GPU-0"})))) == judge(lost)


CHECKPOINTS = {
    "whole GPUs": ({"nvidia.com/gpu": ["GPU-1", "GPU-0"]}, Offered(frozenset({"GPU-0", "GPU-1"}))),
    "shared GPUs": ({"nvidia.com/gpu.shared": ["GPU-0::0", "GPU-0::1"]}, Offered(frozenset({"GPU-0"}))),
    "some shared and some whole": (
        {"nvidia.com/gpu.shared": ["GPU-0::0"], "nvidia.com/gpu": ["GPU-1"]},
        Offered(frozenset({"GPU-0", "GPU-1"})),
    ),
    "all unhealthy": ({"nvidia.com/gpu": []}, Offered()),
    "all unhealthy, as a nil list": ({"nvidia.com/gpu": None}, Offered()),
    "other devices only": ({"rdma/hca": ["mlx5_0"]}, Offered(why="no device plugin offers NVIDIA's devices")),
    "no devices": (None, Offered(why="no device plugin offers NVIDIA's devices")),
}


def checkpoint(root, content):
    folder = root / "device-plugins"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "kubelet_internal_checkpoint").write_bytes(content)
    return read_offered(root)


@pytest.mark.parametrize(("devices", "offered"), CHECKPOINTS.values(), ids=CHECKPOINTS.keys())
def test_the_kubelets_checkpoint_is_read(tmp_path, devices, offered):
    body = {"Data": {"PodDeviceEntries": None, "RegisteredDevices": devices}, "Checksum": 3862154374}
    assert checkpoint(tmp_path, json.dumps(body).encode()) == offered


@pytest.mark.parametrize("devices", [["MIG-0"], ["GPU-0", "MIG-1"], ["0"], ["tegra"]])
def test_parts_of_gpus_and_other_names_are_not_compared(tmp_path, devices):
    body = {"Data": {"RegisteredDevices": {"nvidia.com/gpu": devices}}}
    assert checkpoint(tmp_path, json.dumps(body).encode()).why


def test_without_a_checkpoint_there_is_no_such_view(tmp_path):
    assert read_offered(tmp_path) is None


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 3) | st.text(max_size=3) | st.just("GPU-0") | st.floats(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["nvidia.com/gpu", "x"]), inner),
    max_leaves=6,
)


@settings(max_examples=examples(200), deadline=None)
@given(
    st.binary(max_size=60)
    | json_values.map(lambda found: json.dumps({"Data": {"RegisteredDevices": found}}).encode())
    | json_values.map(lambda found: json.dumps({"Data": found}).encode())
)
def test_garbage_in_the_checkpoint_is_never_an_error(tmp_path_factory, content):
    offered = checkpoint(tmp_path_factory.getbasetemp() / "kubelet", content)
    assert judge(seen(offered=offered))[0] is OK
    assert all(uuid.startswith("GPU-") for uuid in offered.uuids)


REMEDIES = ("fallen off the bus", "left PCI", "GPU is lost", "not found", "unknown error", "requires reset")
REMEDIES += ("has no driver", "the driver is not loaded", "mismatch", "is missing in NVML", "fewer GPUs than PCI")
REMEDIES += (
    "/dev/nvidiaN is missing",
    "GPUs expected",
    "NvmlHung",
    "restart the device plugin",
    "code 12",
    "none declared",
)


@pytest.mark.parametrize("words", REMEDIES)
def test_help_has_a_remedy_for_what_the_line_can_say(words):
    assert words in HELP


@pytest.mark.parametrize(("what", "verdict", "words"), CASES.values(), ids=CASES.keys())
def test_what_was_read_becomes_a_verdict(what, verdict, words):
    found, line = judge(what)
    assert found is verdict, line
    assert words in line


def test_problems_are_told_in_an_order_that_does_not_depend_on_the_order_of_reading():
    one = seen(cards=(card(0, "fallen"), card(1, "fallen")))
    other = seen(cards=(card(1, "fallen"), card(0, "fallen")))
    assert judge(one) == judge(other)


def test_the_learned_number_rises_and_never_falls_by_itself():
    memory = remember(Memory(), seen(), now=1.0)
    assert memory.learned == 2
    assert remember(memory, seen(cards=(card(0),)), now=2.0).learned == 2


def test_the_serial_number_of_a_gpu_outlives_its_loss():
    healthy = nvml(0, 0)
    healthy.answers["gpus"][1]["serial"] = "1563521020401"
    memory = remember(Memory(), seen(nvml=healthy), now=1.0)
    assert remember(memory, seen(nvml=nvml(0, 15)), now=2.0).gpus[address(1)]["serial"] == "1563521020401"

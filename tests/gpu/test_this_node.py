"""A healthy GPU node, this one: every detector says so, having looked, and so do the operations."""

import json

import pytest

from tests.gpu.here import VIEWS, lacks, list_gpus, run
from tests.native import Script, build_stub

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(bool(lacks()), reason=lacks())]
OK, FAULT = 0, 1
# Detector, the views that it needs besides NVML, whether it asks NVML, and what it says of a healthy node.
HEALTHY = [
    ("gpu_lost", ("every GPU",), True, ("every GPU answers",)),
    ("gpu_ecc", ("root",), True, ("no GPU has a memory fault",)),
    ("gpu_recovery", ("root",), True, ("the driver asks for no recovery",)),
    ("gpu_throttled", (), True, ("no GPU is held down by its hardware",)),
    ("gpu_nvlink", (), True, ("no NVLink has a fault", "no GPU uses NVLink")),
    ("gpu_busy", ("pids",), True, ("no GPU is held without a pod",)),
    ("gpu_xid", ("kernel log",), False, ("no Xid calls for a repair",)),
    ("driver_mismatch", ("driver",), True, ("driver and libraries are of one version",)),
    ("device_nodes", ("driver", "PCI", "files"), False, ("every device has its node",)),
    ("pcie_link", ("PCI",), False, ("every PCIe link has its lanes",)),
]


@pytest.fixture(scope="module")
def gpus():
    found = list_gpus()
    assert found, "NVML lists no GPU"
    return found


def asked(state):
    """What NVML told the detectors."""
    return json.loads((state / "nvml.answer.json").read_text())


@pytest.mark.parametrize(("detector", "views", "asks", "words"), HEALTHY, ids=[row[0] for row in HEALTHY])
def test_a_detector_says_that_this_node_is_healthy_and_has_looked(detector, views, asks, words, gpus, tmp_path):
    first = run(f"detectors/{detector}", f"--state={tmp_path}")
    missing = [why for view in views if (why := VIEWS[view](gpus))]
    if missing:
        assert first.code != FAULT or "every GPU" in views, f"what cannot be seen is no fault: {first.line}"
        pytest.skip(
            f"{detector} is not put to the test here: {'; '.join(missing)}. It says ({first.code}): {first.line}"
        )
    second = run(f"detectors/{detector}", f"--state={tmp_path}", *(["--fresh=0"] if asks else []))
    for ran in (first, second):
        assert (ran.code, ran.err) == (OK, ""), ran.line
        assert ran.line.startswith(words), ran.line
    if asks:
        said = asked(tmp_path)
        assert (said["done"], said["init"]) == (True, 0)
        assert [(one["error"], one["uuid"]) for one in said["gpus"]] == [(0, gpu.uuid) for gpu in gpus]
        assert "odd" not in said, "a question of ours went wrong"
    elif detector != "gpu_xid":
        told = run(f"detectors/{detector}", f"--state={tmp_path}", "--explain").line
        assert all(gpu.address in told for gpu in gpus), told


def test_nvml_answers_every_question_or_says_that_this_gpu_does_not_know_it(gpus, tmp_path):
    run("detectors/gpu_lost", f"--state={tmp_path}")
    for one in asked(tmp_path)["gpus"]:
        known = {0, 3, 13}  # not supported; no such function in this driver
        refused = {name: code for name, code in one["refused"].items() if code not in known}
        assert refused == {} or VIEWS["root"](gpus), refused
        assert one["facts"], "nothing was answered at all"


def test_every_gpu_computes(gpus, tmp_path):
    variables = {
        "PARAMETERS": '{"megabytes": "256", "loadSeconds": 2}',
        "HOST_ROOT": "/",
        "TERMINATION_LOG": str(tmp_path / "log"),
    }
    ran = run("operations/gpu_check", **variables)
    if ran.code == 2:
        pytest.skip(ran.line)
    assert (ran.code, (tmp_path / "log").read_text()) == (OK, ran.line), ran
    assert ran.line.startswith(f"all {len(gpus)} GPUs work: memory kept what was written")
    assert all(f"{gpu.uuid}) " in ran.line for gpu in gpus), ran.line


def test_the_driver_knows_for_seconds_that_a_gpu_has_computed(gpus, tmp_path):
    variables = {"PARAMETERS": '{"megabytes": "256", "loadSeconds": 2}', "HOST_ROOT": "/"}
    ran = run("operations/gpu_check", TERMINATION_LOG=str(tmp_path / "log"), **variables)
    if ran.code == 2:
        pytest.skip(ran.line)
    used = run("detectors/gpu_use", f"--state={tmp_path}")
    facts = [one["facts"].get("use") for one in asked(tmp_path)["gpus"]]
    if None in facts:
        pytest.skip(f"a GPU does not tell of its use: {used.line}")
    assert all(each["highest"] > 0 and each["samples"] > 0 for each in facts), facts
    assert used.line.startswith(f"gpus={len(gpus)} ") or VIEWS["pids"](gpus), used


def test_diagnostics_name_every_gpu(gpus, tmp_path):
    ran = run("operations/collect_diagnostics", HOST_ROOT="/", TERMINATION_LOG=str(tmp_path / "log"))
    assert ran.code == OK, ran
    found = json.loads((tmp_path / "log").read_text())
    assert "nvml" not in found["unreadable"], found["unreadable"]
    listed = {(one["address"], one["uuid"]) for one in found["gpus"] if "uuid" in one}
    assert {(gpu.address, gpu.uuid) for gpu in gpus} <= listed or found["truncated"], found["gpus"]
    assert listed


# A fault that is only told to the detectors: they load a scripted library in place of the driver's.

FAULTS = {
    "a row remap waits for a reset": ("gpu_ecc", "remapped 0,1,1,0", "row remap pending"),
    "the driver asks for a reset": ("gpu_recovery", "field-230 1", "reset"),
    "a GPU is lost": ("gpu_lost", "error 15", "GPU is lost (code 15)"),
}


@pytest.mark.parametrize(("detector", "order", "words"), FAULTS.values(), ids=FAULTS.keys())
def test_an_injected_fault_of_this_very_gpu_is_found_and_the_real_one_is_healthy_again(
    detector, order, words, gpus, tmp_path
):
    library = build_stub(tmp_path)
    same = [f"gpu {index} pci {gpu.bus_id}" for index, gpu in enumerate(gpus)]
    same += [f"gpu {index} uuid {gpu.uuid}" for index, gpu in enumerate(gpus)]
    script = Script(tmp_path / "nvml.txt").write(f"count {len(gpus)}", *same, f"gpu 0 {order}")
    options = (f"--state={tmp_path / 'state'}", "--fresh=0")
    for _ in range(2):  # some want to see it twice
        ill = run(f"detectors/{detector}", *options, **script.environment(library))
    assert ill.code == FAULT, ill
    assert words in ill.line
    if detector != "gpu_lost":  # which tells the index of a GPU that no longer answers
        assert gpus[0].address in ill.line
    kept = json.loads((tmp_path / f"state/evidence/{detector}.json").read_text())
    assert kept["line"], kept
    missing = VIEWS["root"](gpus) if detector != "gpu_lost" else VIEWS["every GPU"](gpus)
    well = run(f"detectors/{detector}", *options)
    assert (well.code, well.err) == (OK, "") or missing, well

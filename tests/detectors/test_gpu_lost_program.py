"""gpu_lost as node-problem-detector runs it: the real program, the real pynvml, a library that obeys a script."""

import json
import time

import gpu_lost
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodelib.contract.npd import Verdict
from nodelib.host.child_process import ChildAnswer, start_time
from nodelib.host.gpus import read_driver, read_pci
from nodelib.nvml.gpu_inventory import GpuViews, judge
from tests.detectors.node import ALIVE, FALLEN, Node, address
from tests.harness.examples import examples

pytestmark = pytest.mark.sampled("gpu lost program")

OK, FAULT, UNKNOWN = 0, 1, 2


@pytest.fixture
def node(tmp_path, nvml_library):
    """A healthy node of eight GPUs."""
    return Node(tmp_path, nvml_library, gpus=8)


def test_a_healthy_node_exits_0_and_leaves_its_mark(node):
    ran = node.run("--expected=8", "--now=1234.5")
    assert (ran.code, ran.line) == (OK, "every GPU answers"), ran.err
    mark = json.loads((node.state / "marks/gpu_lost.json").read_text())
    assert (mark["detector"], mark["finished_at"]) == ("gpu_lost", 1234.5)


NVML_FAULTS = {
    "a lost GPU": (["gpu 3 error 15"], 8, "NVML at GPU index 3: GPU is lost (code 15)"),
    "an unknown error": (["gpu 3 error 999"], 8, "NVML at GPU index 3: unknown error (code 999)"),
    "one too few": ([], 7, f"{address(7)} is missing in NVML"),
    "no driver behind a loaded module": (["init 9"], 8, "NVML does not start: the driver is not loaded (code 9)"),
}


@pytest.mark.parametrize(("orders", "gpus", "line"), NVML_FAULTS.values(), ids=NVML_FAULTS.keys())
def test_what_nvml_tells_of_is_a_fault(node, orders, gpus, line):
    node.orders(*orders, gpus=gpus)
    assert node.run()[:2] == (FAULT, line)


def test_a_version_mismatch_loses_no_gpu(node):
    node.orders("init 18")
    line = "NVML cannot be asked: driver and library version mismatch (code 18; see DriverMismatch)"
    assert node.run()[:2] == (UNKNOWN, line)


def test_a_node_may_be_where_a_driver_in_a_container_keeps_them(node):
    (node.dev / "nvidia3").unlink()
    assert node.run()[:2] == (FAULT, "/dev/nvidia3 is missing")
    for option, folder in (((), "proc/1/root/run/nvidia/driver"), ((f"--driver-root={node.root / 'own'}",), "own")):
        own = node.root / folder / "dev"
        own.mkdir(parents=True)
        (own / "nvidia3").touch()
        assert node.run(*option)[:2] == (OK, "every GPU answers"), folder
        (own / "nvidia3").unlink()


def test_a_node_that_may_be_in_a_folder_that_is_closed_is_not_missed(node, monkeypatch):
    (node.dev / "nvidia3").unlink()
    monkeypatch.setattr(gpu_lost, "nvml", lambda options: ChildAnswer({}))
    options = gpu_lost.parse(node.command()[5:])
    assert 3 not in gpu_lost.look(options, gpu_lost.Memory(), 1.0).nodes
    monkeypatch.setattr(gpu_lost, "is_closed", lambda folder: folder == node.proc / "1/root/run/nvidia/driver/dev")
    assert gpu_lost.look(options, gpu_lost.Memory(), 1.0).nodes is None


def test_one_lost_gpu_hides_no_other(node):
    node.orders("gpu 1 error 15", "gpu 6 error 15")
    line = node.run().line
    assert "index 1:" in line
    assert "index 6:" in line


def test_a_device_that_reads_all_ones_is_a_fault_though_nvml_is_content(node):
    (node.sys / "bus/pci/devices" / address(2) / "config").write_bytes(FALLEN)
    assert node.run()[:2] == (FAULT, f"{address(2)} has fallen off the bus")


def test_audio_functions_and_other_vendors_are_no_gpus(node):
    node.add_function("0000:50:00.1", kind="0x040300", config=FALLEN)
    node.add_function("0000:51:00.0", vendor="0x15b3", config=FALLEN)
    assert node.run("--expected=8").code == OK


def test_a_gpu_that_vanished_after_it_was_seen_is_missed_without_being_declared(node):
    assert node.run().code == OK
    folder = node.sys / "bus/pci/devices" / address(7)
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()
    (node.proc / "driver/nvidia/gpus" / address(7) / "information").unlink()
    (node.proc / "driver/nvidia/gpus" / address(7)).rmdir()
    node.orders(gpus=7)
    assert node.run()[:2] == (FAULT, "8 GPUs expected, 7 present")


def test_evidence_names_the_lost_gpu_by_serial_until_all_is_well_again(node):
    node.run()
    node.orders("gpu 3 error 15")
    node.run()
    path = node.state / "evidence/gpu_lost.json"
    kept = json.loads(path.read_text())
    assert [(gpu["address"], gpu["serial"]) for gpu in kept["lost"]] == [(address(3), "1563521020403")]
    node.orders("gpu 3 error 15", "gpu 4 error 15")
    node.run()
    assert json.loads(path.read_text()) == kept, "evidence is of the first sight"
    node.orders()
    assert node.run().code == OK
    assert not path.exists()


def test_without_a_library_it_cannot_tell(node):
    node.library = None
    ran = node.run()
    assert ran[:2] == (UNKNOWN, "NVML cannot be asked (code 12)")


def test_a_driver_that_is_missing_is_a_doubt_first_and_a_fault_after_its_patience(node):
    for folder in (node.proc / "driver/nvidia/gpus").iterdir():
        (folder / "information").unlink()
        folder.rmdir()
    (node.proc / "driver/nvidia/gpus").rmdir()
    (node.proc / "driver/nvidia/version").unlink()
    node.orders("init 9")
    assert node.run("--now=100")[:2] == (UNKNOWN, "the driver is not loaded (yet)")
    assert node.run("--now=999").code == UNKNOWN
    assert node.run("--now=1000")[:2] == (FAULT, "the driver is not loaded")


def test_a_driver_whose_pod_is_at_work_has_two_hours(node):
    for folder in (node.proc / "driver/nvidia/gpus").iterdir():
        (folder / "information").unlink()
        folder.rmdir()
    (node.proc / "driver/nvidia/gpus").rmdir()
    (node.proc / "driver/nvidia/version").unlink()
    (node.proc / "1/root/run/nvidia").mkdir(parents=True)
    (node.proc / "1/root/run/nvidia/nvidia-driver.pid").write_text("4711\n")
    (node.proc / "4711").mkdir()
    node.orders("init 9")
    assert node.run("--now=100")[:2] == (UNKNOWN, "the driver is not loaded (yet): its Pod is at work")
    assert node.run("--now=7299").code == UNKNOWN
    assert node.run("--now=7300")[:2] == (FAULT, "the driver is not loaded")
    (node.proc / "4711").rmdir()
    assert node.run("--now=7290")[:2] == (FAULT, "the driver is not loaded"), "it has ended"


def test_it_answers_by_its_deadline_while_nvml_hangs_and_says_where(node):
    node.orders("hang handle 3")
    started = time.monotonic()
    ran = node.run("--deadline=3")
    assert time.monotonic() - started < 11
    assert ran.code == UNKNOWN
    assert ran.line.startswith("NvmlHung: no answer since ")
    assert ran.line.endswith(" at GPU index 3")
    record = json.loads((node.state / "nvml.probe.json").read_text())
    assert start_time(record["pid"]) != record["start"], "the hanging child was not ended"
    assert (node.state / "marks/gpu_lost.json").exists()


def test_a_lasting_hang_keeps_one_line_and_an_answer_ends_it(node):
    node.orders("hang init")
    first = node.run("--deadline=2").line
    record = node.state / "nvml.probe.json"
    record.write_text(json.dumps({**json.loads(record.read_text()), "since": "2026-01-01T00:00Z"}))
    assert node.run("--deadline=2").line == "NvmlHung: no answer since 2026-01-01T00:00Z at init" != first
    node.orders()
    assert node.run().code == OK
    assert not record.exists()


@pytest.mark.parametrize(
    "text", ['{"gpus": [1]}', '{"gpus": {"x": 1}}', '{"gpus": {}, "learned": "x"}', '{"pid": "y", "hung": 3}', "[", ""]
)
def test_a_state_folder_that_makes_no_sense_is_overcome(node, text):
    node.state.mkdir()
    for name in ("gpu_lost.json", "nvml.probe.json", "nvml.answer.json"):
        (node.state / name).write_text(text)
    assert node.run().code == OK


def test_a_state_folder_that_cannot_be_written_is_cannot_tell_with_the_cause(node):
    node.state.write_text("a file where a folder should be")
    ran = node.run()
    assert ran.code == UNKNOWN
    assert "Error" in ran.line
    assert "Traceback" not in ran.err


def test_explain_shows_every_view_and_leaves_no_mark(node):
    node.orders("gpu 3 error 15")
    ran = node.run("--explain")
    assert ran.code == FAULT
    for words in ("cards: ", "driven: ", "fault nvml gpus: NVML at GPU index 3", "verdict: FAULT"):
        assert words in ran.line
    assert not (node.state / "marks").exists()


@settings(max_examples=examples(80), deadline=None)
@given(
    vendor=st.binary(max_size=12) | st.just(b"0x10de\n"),
    kind=st.binary(max_size=12) | st.just(b"0x030200\n"),
    config=st.binary(max_size=70) | st.just(FALLEN),
)
def test_garbage_in_sysfs_is_never_a_traceback_and_never_health(tmp_path_factory, vendor, kind, config):
    node = Node(tmp_path_factory.mktemp("garbage"), gpus=1)
    folder = node.sys / "bus/pci/devices" / address(0)
    for name, content in (("vendor", vendor), ("class", kind), ("config", config)):
        (folder / name).write_bytes(content)
    fine = ChildAnswer({"init": 0, "count": 1, "gpus": [{"index": 0, "error": 0, "address": address(0)}], "done": True})
    verdict, line = judge(GpuViews(read_pci(node.sys), None, None, fine, expected=1))
    is_gpu = vendor.strip() == b"0x10de" and kind.startswith((b"0x0302", b"0x0300"))
    no_gpu = verdict is Verdict.OK and read_pci(node.sys) == ()  # a sound description of some other device
    assert line.isascii()
    assert verdict is not Verdict.OK or no_gpu or (is_gpu and config[:2] == ALIVE[:2])


@settings(max_examples=examples(60))
@given(st.binary(max_size=80), st.sampled_from([b"", b"Device Minor: ", b"GPU Excluded: ", b"GPU UUID: "]))
def test_garbage_of_the_driver_hides_no_gpu(tmp_path_factory, content, field):
    folder = tmp_path_factory.mktemp("proc") / "driver/nvidia/gpus"
    (folder / address(0)).mkdir(parents=True)
    (folder / address(0) / "information").write_bytes(field + content)
    [(name, gpu)] = read_driver(folder.parents[2]).items()
    assert name == address(0)
    assert gpu.minor is None or 0 <= gpu.minor <= 9999
    assert not gpu.excluded or b"yes" in content.lower()

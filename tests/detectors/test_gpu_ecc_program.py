"""gpu_ecc as node-problem-detector runs it: the real program, the real pynvml, a library that obeys a script."""

import json
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.detectors.node import FALLEN, Node, address
from tests.harness.examples import examples

pytestmark = pytest.mark.sampled("gpu ecc program")

OK, FAULT, UNKNOWN = 0, 1, 2
HEALTHY = "no GPU has a memory fault"
STANDIN = Path(__file__).resolve().parents[2] / "remediator_sim/nvml"
VOLTA = ("gpu 3 remapped error:3", "gpu 3 spare-rows error:3", "gpu 3 sram error:13", "gpu 3 retirement-pending 0")
THIRD = f"{address(3)} (GPU-00000000)"


@pytest.fixture
def node(tmp_path, nvml_library):
    """A healthy node of eight GPUs."""
    return Node(tmp_path, nvml_library, gpus=8, detector="gpu_ecc")


def test_a_healthy_node_exits_0_and_leaves_its_mark(node):
    ran = node.run("--now=1234.5")
    assert (ran.code, ran.line) == (OK, HEALTHY), ran.err
    mark = json.loads((node.state / "marks/gpu_ecc.json").read_text())
    assert (mark["detector"], mark["finished_at"]) == ("gpu_ecc", 1234.5)


# What a GPU shows, the line of it, and the same GPU just short of it.
FAULTS = {
    "errors since the driver loaded": (
        ["gpu 3 uncorrected 2"],
        f"uncorrected memory errors since the driver loaded (reset): {THIRD}",
        ["gpu 3 uncorrected 0", "gpu 3 uncorrected-ever 2", "gpu 3 corrected 900"],
    ),
    "a pending remap": (
        ["gpu 3 remapped 0,1,1,0"],
        f"row remap pending (reset): {THIRD}",
        ["gpu 3 remapped 0,1,0,0"],
    ),
    "a failed remap": (
        ["gpu 3 remapped 0,8,0,1"],
        f"row remap failed (replace): {THIRD}",
        ["gpu 3 remapped 0,8,0,0", "gpu 3 spare-rows 639,0,0,0,1"],
    ),
    "SRAM over its threshold": (
        ["gpu 3 sram 1,5,0"],
        f"SRAM error threshold exceeded (replace): {THIRD}",
        ["gpu 3 sram 0,4,0"],
    ),
    "too many retired pages": (
        [*VOLTA, "gpu 3 retired 40,20"],
        f"too many retired pages (replace): {THIRD}",
        [*VOLTA, "gpu 3 retired 40,19"],
    ),
    "a page to be retired": (
        [*VOLTA, "gpu 3 retired 0,1", "gpu 3 retirement-pending 1"],
        f"page retirement pending (reset): {THIRD}",
        [*VOLTA, "gpu 3 retired 0,1"],
    ),
}


@pytest.mark.parametrize(("orders", "line", "twin"), FAULTS.values(), ids=FAULTS.keys())
def test_a_fault_is_told_and_its_healthy_twin_is_not(node, orders, line, twin):
    node.detector = "gpu_worn" if "(replace)" in line else "gpu_ecc"
    node.orders(*orders)
    assert node.run()[:2] == (FAULT, line)
    node.orders(*twin)
    assert node.run().code == OK


DOUBTS = {
    "a lost GPU": (["gpu 3 error 15"], "GPU index 3 does not answer (code 15, lost; see GpuLost)"),
    "a GPU that requires a reset": (["gpu 3 error 16"], "GPU index 3 does not answer (code 16, requires reset; see"),
    "a GPU that is lost in the middle": (["gpu 3 sram error:15"], f"{THIRD} does not report its SRAM (code 15, lost)"),
    "an unknown error": (["gpu 3 remapped error:999"], f"{THIRD} does not report its row remap (code 999)"),
    "no permission": (["gpu 3 sram error:4"], "does not report its SRAM (code 4, no permission, run as root)"),
    "a version mismatch": (["init 18"], "NVML does not start (code 18; see GpuLost)"),
    "one too few": (["count 7"], "NVML lists fewer GPUs than PCI (see GpuLost)"),
}


@pytest.mark.parametrize(("orders", "words"), DOUBTS.values(), ids=DOUBTS.keys())
def test_what_cannot_be_read_is_never_health(node, orders, words):
    node.orders(*orders)
    ran = node.run()
    assert ran.code == UNKNOWN
    assert words in ran.line


QUESTIONS = (
    "ecc-mode",
    "uncorrected",
    "uncorrected-ever",
    "corrected-ever",
    "remapped",
    "spare-rows",
    "sram",
    "fields",
)


@pytest.mark.parametrize("code", [3, 13])
def test_a_card_without_such_counters_has_no_fault_here(node, code):
    node.orders(*(f"gpu 3 {question} error:{code}" for question in QUESTIONS))
    assert node.run()[:2] == (OK, HEALTHY)


def test_a_card_without_a_serial_number_is_checked_like_any_other(node):
    node.orders("gpu 3 serial error:3", "gpu 3 remapped 0,1,1,0")
    assert node.run()[:2] == (FAULT, f"row remap pending (reset): {THIRD}")


def test_a_fallen_device_is_not_healthy_though_nvml_is_content(node):
    (node.sys / "bus/pci/devices" / address(2) / "config").write_bytes(FALLEN)
    assert node.run()[:2] == (UNKNOWN, f"PCI function {address(2)} is fallen (see GpuLost)")


def test_it_answers_by_its_deadline_while_nvml_hangs_and_says_where(node):
    node.orders("gpu 0 remapped 0,1,1,0", "hang remapped 3")
    started = time.monotonic()
    ran = node.run("--deadline=3")
    assert time.monotonic() - started < 11
    assert ran.code == UNKNOWN
    assert ran.line.startswith("NVML has not answered since ")
    assert ran.line.endswith(" at GPU index 3, row remap (see GpuLost)")
    assert (node.state / "marks/gpu_ecc.json").exists()


def test_evidence_is_of_the_first_sight_until_all_is_well_again(node):
    node.orders("gpu 3 remapped 0,1,1,0")
    node.run()
    path = node.state / "evidence/gpu_ecc.json"
    kept = json.loads(path.read_text())
    assert (kept["detector"], kept["condition"]) == ("gpu_ecc", "GpuEccFault")
    [found] = kept["gpus"]
    assert (found["address"], found["serial"]) == (address(3), "1563521020403")
    assert found["counters"]["row remap: uncorrected"] == 1
    node.orders("gpu 3 remapped 0,2,1,0", "gpu 4 uncorrected 1")
    node.run()
    node.orders("init 9")
    assert node.run().code == UNKNOWN
    assert json.loads(path.read_text()) == kept
    node.orders()
    assert node.run().code == OK
    assert not path.exists()


def test_corrected_errors_are_counted_from_run_to_run_and_garbage_starts_anew(node):
    lines = []
    for minute in range(0, 8, 2):
        node.orders(f"gpu 3 corrected {100 + 30 * minute}")
        lines.append(node.run(f"--now={60 * minute}")[:2])
    assert lines == [*[(OK, HEALTHY)] * 3, (OK, f"{HEALTHY}; many corrected memory errors: {THIRD}")]
    for garbage in ('{"corrected": 3}', '{"boot_id": "", "corrected": {"x": [[1]], "y": [["a", null]]}}', "["):
        (node.state / "gpu_ecc.json").write_text(garbage)
        assert node.run("--now=480")[:2] == (OK, HEALTHY)


def test_explain_shows_every_view_and_leaves_no_mark(node):
    node.orders("gpu 3 remapped 0,1,1,0", "gpu 4 spare-rows 600,0,0,40,0")
    ran = node.run("--explain")
    assert ran.code == FAULT
    for words in (
        "cards: ",
        f"{THIRD}: code 0, facts ",
        f"row remap pending: {THIRD}",
        f"few spare rows left: {address(4)} ",
        "doubts: none",
        "verdict: FAULT",
    ):
        assert words in ran.line
    assert not (node.state / "marks").exists()


def test_a_state_folder_that_cannot_be_written_is_cannot_tell_with_the_cause(node):
    node.state.write_text("a file where a folder should be")
    ran = node.run()
    assert ran.code == UNKNOWN
    assert "Error" in ran.line
    assert "Traceback" not in ran.err


@pytest.mark.parametrize("detector", ["gpu_lost", "gpu_ecc"])
def test_a_folder_named_by_pynvml_is_where_the_module_comes_from(node, detector):
    node.detector, node.library = detector, None
    assert "(code 12" in node.run().line, "the pynvml that is installed has no library"
    assert node.run(f"--pynvml={STANDIN}").code == OK
    assert "handle 7" in node.calls()


def test_a_folder_without_pynvml_is_told_of(node, tmp_path):
    ran = node.run(f"--pynvml={tmp_path}")
    assert ran.code == UNKNOWN
    assert ran.line == f"NVML cannot be asked: FileNotFoundError: --pynvml {tmp_path}: there is no module pynvml"


@settings(max_examples=examples(12), deadline=None)
@given(
    st.sampled_from(["answer", "probe"]), st.binary(max_size=40) | st.sampled_from([b'{"gpus": 3}', b'{"pid": "x"}'])
)
def test_garbage_in_the_state_folder_is_overcome(tmp_path_factory, nvml_library, name, content):
    node = Node(tmp_path_factory.mktemp("garbage"), nvml_library, gpus=1, detector="gpu_ecc")
    node.state.mkdir()
    (node.state / f"nvml.{name}.json").write_bytes(content)
    ran = node.run()
    assert (ran.code, ran.line, ran.err) == (OK, HEALTHY, "")

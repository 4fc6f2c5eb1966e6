"""memory_ecc: an uncorrected error of this boot is a fault, a corrected one and one from before are none."""

import json

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from memory_ecc import FINE, Memory, Rate, has_many, judge, rate

from nodelib.contract.memory import Stamp, recall
from nodelib.kernel.edac import Part, read_log, read_parts
from nodelib.kernel.kmsg import Line
from tests.detectors.fixtures.memory_ecc import IN_USE, LABEL, LOST_PAGE, ON_DIMM, UNCORRECTED, apei
from tests.detectors.kernel_tree import KernelTree
from tests.detectors.test_filesystem_error import ANYTHING
from tests.harness.examples import examples

OK, FAULT, UNKNOWN = 0, 1, 2


@pytest.fixture
def tree(tmp_path):
    tree = KernelTree(tmp_path)
    tree.memory(dimm0=(0, 0, LABEL))
    return tree


def test_a_fault_stands_until_the_next_boot_even_when_the_counters_are_reset(tree):
    tree.memory(uncorrected=1, dimm0=(0, 1, LABEL))
    assert tree.run("memory_ecc")[:2] == (FAULT, ON_DIMM)
    tree.memory(dimm0=(0, 0, LABEL))
    assert tree.run("memory_ecc", 1060)[:2] == (FAULT, ON_DIMM)
    tree.write("proc/sys/kernel/random/boot_id", "two\n")
    assert tree.run("memory_ecc", 60)[:2] == (OK, FINE)


def test_counter_and_log_tell_of_the_same_error_in_the_same_words(tree):
    tree.memory(uncorrected=1, dimm0=(0, 1, LABEL))
    tree.log(UNCORRECTED)
    assert tree.run("memory_ecc")[:2] == (FAULT, ON_DIMM)


def test_a_line_of_the_log_is_remembered_when_the_log_has_gone_on(tree):
    tree.log(LOST_PAGE)
    tree.run("memory_ecc")
    tree.log("something else")
    assert tree.run("memory_ecc", 1060)[:2] == (FAULT, "a page of memory was lost")


def test_more_than_100_corrected_errors_an_hour_are_named_and_no_fault(tree):
    tree.run("memory_ecc", 1000)
    tree.memory(corrected=100, dimm0=(100, 0, LABEL))
    assert tree.run("memory_ecc", 1060)[:2] == (OK, FINE)
    tree.memory(corrected=101, dimm0=(101, 0, LABEL))
    assert tree.run("memory_ecc", 1120)[:2] == (OK, f"{FINE}; many corrected ones: {LABEL} (mc0)")


HOURS = [
    (None, 1000, 500, Rate(1000, 500, False)),  # whatever came before the first look
    (Rate(1000, 0, False), 4599, 500, Rate(1000, 0, False)),
    (Rate(1000, 0, False), 4600, 101, Rate(4600, 101, True)),
    (Rate(1000, 0, False), 4600, 100, Rate(4600, 100, False)),
    (Rate(1000, 0, True), 8200, 150, Rate(8200, 150, False)),  # 75 an hour: nobody looked for two
    (Rate(1000, 300, True), 1060, 5, Rate(1060, 5, False)),  # the counters were reset
    (Rate(5000, 3, False), 100, 5, Rate(100, 5, False)),
]


@pytest.mark.parametrize(("last", "now", "count", "known"), HOURS)
def test_an_hour_of_corrected_errors_is_compared_with_the_count_at_its_start(last, now, count, known):
    assert rate(Part("x", count, 0), last, now) == known


def test_many_in_the_last_hour_are_told_of_for_the_next_one():
    assert has_many(Part("x", 101, 0), Rate(4600, 101, True))
    assert not has_many(Part("x", 101, 0), Rate(4600, 101, False))


def test_the_older_layout_of_rows_and_channels_is_read(tree, tmp_path):
    folder = "sys/devices/system/edac/mc/mc1"
    tree.memory("mc1", corrected=7, uncorrected=2)
    for name, value in (("ue_count", 2), ("ch0_ce_count", 3), ("ch1_ce_count", 4), ("ch0_dimm_label", "DIMM_A1")):
        tree.write(f"{folder}/csrow0/{name}", f"{value}\n")
    parts = [part for part in read_parts(tree.sys) if part.corrected or part.uncorrected]
    assert parts == [Part("DIMM_A1 (mc1)", 3, 0), Part("mc1/csrow0/ch1", 4, 0), Part("mc1/csrow0", 0, 2)]
    assert tree.run("memory_ecc")[:2] == (FAULT, "uncorrected memory error on mc1/csrow0")


def test_a_doubt_hides_no_fault_and_two_faults_are_told_in_order():
    told = [ON_DIMM, "a page of memory was lost"]
    assert judge((), told, {}, ["EDAC cannot be read"]) == (FAULT, f"a page of memory was lost; {ON_DIMM}")


LINES = {
    "EDAC MC0: 0 UE memory read error on DIMM_A1 (channel:0)": False,
    "EDAC MC0: Giving out device to module skx_edac controller Skylake: DEV 0000:64:0a.0 (INTERRUPT)": False,
    "EDAC MC2: 1 UE memory scrubbing error on any memory (page:0x0 offset:0x0 grain:0)": True,
    "mce: [Hardware Error]: Machine check events logged": False,
    "[Hardware Error]: Corrected error, no action required.": False,
    "Memory failure: 0x12345: recovery action for dirty LRU page: Recovered": True,
    "Memory failure: 0x12345: already hardware poisoned": False,
    IN_USE: True,
}  # fmt: skip


@pytest.mark.parametrize(("text", "fault"), LINES.items())
def test_lines_of_the_kernel_tell_who_has_lost_data(text, fault):
    assert bool(read_log([Line(1, 1.0, text)])) == fault


def test_a_section_counts_only_with_the_severity_of_its_own_event():
    grave, corrected = apei("recoverable", "PCIe error"), apei("corrected", "memory error", "{2}")
    assert read_log([Line(index, 1.0, text) for index, text in enumerate(grave + corrected)]) == []


def test_evidence_holds_counts_and_lines(tree):
    tree.memory(corrected=4, uncorrected=1, dimm0=(4, 1, LABEL))
    tree.log(UNCORRECTED, "other")
    tree.run("memory_ecc")
    path = tree.state / "evidence/memory_ecc.json"
    kept = json.loads(path.read_text())
    assert kept["parts"] == [{"name": f"{LABEL} (mc0)", "corrected": 4, "uncorrected": 1}]
    assert kept["kernel"] == [UNCORRECTED[:110]]
    assert len(path.read_bytes()) < 1200


@pytest.mark.slow
@given(st.lists(st.text(max_size=120)), ANYTHING)
def test_no_line_and_no_memory_raises(tmp_path_factory, texts, memory):
    read_log([Line(index, 1.0, text) for index, text in enumerate(texts)])
    path = tmp_path_factory.getbasetemp() / "memory_ecc_memory.json"
    path.write_text(json.dumps({"boot_id": "one", "told": memory, "rates": memory}))
    known = recall(path, Memory, Stamp("one", 1000.0))
    judge((), known.told, known.rates, [])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(50))
@given(st.binary(max_size=24).filter(lambda content: not content.strip().isdigit()))
@example(b"\x1c0")  # a blank to str.strip, and none to the kernel
@pytest.mark.parametrize("name", ["ce_count", "ue_count", "dimm0/dimm_ce_count", "dimm0/dimm_ue_count"])
def test_a_count_of_any_other_bytes_is_refused_by_name(tree, name, content):
    (tree.sys / "devices/system/edac/mc/mc0" / name).write_bytes(content)
    with pytest.raises(ValueError, match=name.rpartition("/")[2]):
        read_parts(tree.sys)

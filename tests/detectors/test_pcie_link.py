"""pcie_link: lost lanes and errors are told of by address; idle speeds, narrow slots and virtual links are not."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pcie_link import FINE, RUNS, Declared, Known, due, judge, parse, remember

from nodelib.contract.memory import Stamp, recall
from nodelib.host.pcie import End, Link, _lanes, _rate, _total, read_links
from tests.detectors.fixtures.pcie_link import GPU, GPU_KIND, NARROW, NVME, UPPER, node
from tests.detectors.kernel_tree import KernelTree
from tests.detectors.test_filesystem_error import ANYTHING

OK, FAULT, UNKNOWN = 0, 1, 2
NOTHING, NONE = Known({}, {}, frozenset()), Declared({}, {})
AT = "0000:19:00.0"


@pytest.fixture
def tree(tmp_path):
    """A node with a GPU behind a switch and an NVMe disk."""
    node()(tmp_path)
    (tmp_path / "dev/kmsg").unlink()
    return KernelTree(tmp_path)


def link(width=16, most=16, port=16, speed=2.5, **errors):
    upper = End(width, port, 32.0, 32.0) if port else None
    return Link(AT, "gpu", End(width, most, speed, 32.0), upper, {f"{AT} {grade}": n for grade, n in errors.items()})


DUE = [
    (link(8, 16, 16), 0, {}, 16),
    (link(8, 16, 8), 0, {}, 8),
    (link(8, 16, None), 0, {}, 0),
    (link(8, 16, None), 16, {}, 16),
    (link(8, 16, None), 0, {"gpu": 16}, 16),
    (link(8, None, None), 0, {}, 0),
    (link(8, None, None), 16, {}, 16),
    (link(8, 16, 8), 16, {}, 16),
    (link(8, -1, 16), 0, {}, 0),
    (link(8, 16, 16), 16, {"gpu": 8}, 8),
    (link(8, 16, 16), 16, {"gpu": 8, AT: 4}, 4),
    (link(2, 16, 16, speed=64.0), 16, {}, 0),
    (link(2, 16, 16, speed=32.0), 16, {}, 16),
    (link(2, 16, 16, speed=64.0), 0, {"gpu": 16}, 16),
]


@pytest.mark.parametrize(("one", "widest", "declared", "lanes"), DUE)
def test_due_are_the_lanes_that_both_ends_say_they_can_have_or_that_it_had_or_that_are_declared(
    one, widest, declared, lanes
):
    assert due(one, widest, declared) == lanes


def test_lost_lanes_are_a_fault_in_the_second_run_and_forgiven_when_they_are_back(tree):
    assert tree.run("pcie_link", 1000)[:2] == (OK, FINE)
    tree.function(GPU, **GPU_KIND, width="8")
    assert tree.run("pcie_link", 1060)[:2] == (UNKNOWN, f"{NARROW} (seen once)")
    for now in (1120, 1180):
        assert tree.run("pcie_link", now)[:2] == (FAULT, NARROW)
    tree.function(GPU, **GPU_KIND)
    assert tree.run("pcie_link", 1240)[:2] == (OK, FINE)


def test_lanes_that_only_this_boot_has_seen_are_missed_too(tree):
    tree.function(GPU, **GPU_KIND, most="")
    tree.function(f"{UPPER}/0000:18:00.0", most="")
    tree.run("pcie_link", 1000)
    tree.function(GPU, **GPU_KIND, width="4", most="")
    tree.run("pcie_link", 1060)
    assert tree.run("pcie_link", 1120)[:2] == (FAULT, "PCIe link of gpu 0000:19:00.0 has 4 of 16 lanes")


def test_a_link_that_told_its_lanes_and_is_silent_now_is_a_doubt(tree):
    tree.run("pcie_link", 1000)
    tree.function(GPU, **GPU_KIND, width="0", most="0", speed="Unknown")
    assert tree.run("pcie_link", 1060)[:2] == (UNKNOWN, "PCIe link of gpu 0000:19:00.0 does not report its lanes")


GRADES = pytest.mark.parametrize(("grade", "words"), [("fatal", "fatal"), ("nonfatal", "non-fatal")])


@GRADES
def test_errors_that_grow_in_one_run_only_are_doubted_once_and_forgiven_in_the_next(tree, grade, words):
    tree.function(GPU, **GPU_KIND, **{grade: 3})
    assert tree.run("pcie_link", 1000).code == OK
    tree.function(GPU, **GPU_KIND, **{grade: 4})
    once = "seen once" if grade == "fatal" else "not for long yet"
    line = f"PCIe link of gpu 0000:19:00.0 met {words} errors (at 0000:19:00.0) ({once})"
    assert tree.run("pcie_link", 1120)[:2] == (UNKNOWN, line)
    assert tree.run("pcie_link", 1240)[:2] == (OK, FINE)
    tree.function(GPU, **GPU_KIND, **{grade: 5})
    assert tree.run("pcie_link", 400_000).code == UNKNOWN, "days later it begins anew"


@GRADES
def test_errors_that_grow_in_runs_in_a_row_are_a_fault_until_an_hour_has_passed_without_any(tree, grade, words):
    runs = [(1000, 3, OK), (1120, 4, UNKNOWN)]
    if grade == "nonfatal":  # these take five
        runs = [(640, 0, OK), (760, 1, UNKNOWN), (880, 2, UNKNOWN), (1000, 3, UNKNOWN), (1120, 4, UNKNOWN)]
    for now, count, code in (*runs, (1240, 9, FAULT), (4839, 9, FAULT), (4840, 9, OK)):
        tree.function(GPU, **GPU_KIND, **{grade: count})
        ran = tree.run("pcie_link", now)
        assert ran.code == code, (now, ran)
        assert code != FAULT or ran.line == f"PCIe link of gpu 0000:19:00.0 met {words} errors (at 0000:19:00.0)"
    tree.function(GPU, **GPU_KIND, **{grade: 10})
    assert tree.run("pcie_link", 4960).code == UNKNOWN, "what was forgiven counts no more"


@GRADES
def test_a_device_that_is_new_in_its_place_and_a_new_boot_count_from_nothing(tree, grade, words):
    for now, count in ((1000, 3), (1120, 4), (1240, 5), (1360, 0)):
        tree.function(GPU, **GPU_KIND, **{grade: count})
        ran = tree.run("pcie_link", now)
    assert ran.code == OK
    for run in range(RUNS[grade]):
        tree.function(GPU, **GPU_KIND, **{grade: run + 1})
        ran = tree.run("pcie_link", 1480 + 120 * run)
    assert ran.code == FAULT
    tree.write("proc/sys/kernel/random/boot_id", "two\n")
    assert tree.run("pcie_link", 60).code == OK


def test_fatal_errors_of_a_link_that_lacks_something_are_a_fault_at_once_and_until_it_is_whole_again(tree):
    tree.run("pcie_link", 1000)
    tree.function(GPU, **GPU_KIND, width="63", speed="Unknown", fatal=1)
    for now in (1120, 1240, 9000):
        line = "PCIe link of gpu 0000:19:00.0 met fatal errors (at 0000:19:00.0)"
        assert tree.run("pcie_link", now)[:2] == (FAULT, line)
    tree.function(GPU, **GPU_KIND, fatal=1)
    assert tree.run("pcie_link", 9120)[:2] == (OK, FINE)


def test_a_reset_during_which_the_port_counts_errors_is_over_in_the_next_run(tree):
    tree.run("pcie_link", 1000)
    tree.function(f"{UPPER}/0000:18:00.0", fatal=2, nonfatal=5)
    assert tree.run("pcie_link", 1120).code == UNKNOWN
    assert tree.run("pcie_link", 1240)[:2] == (OK, FINE)


def test_a_run_by_hand_is_none_of_the_two(tree):
    tree.run("pcie_link", 1000)
    tree.function(GPU, **GPU_KIND, nonfatal=1)
    for now in (1120, 1121):
        assert tree.run("pcie_link", now, "--explain").code == UNKNOWN
    assert tree.run("pcie_link", 1122).code == UNKNOWN


def test_errors_that_the_port_above_has_counted_are_told_with_the_device_below(tree):
    for now, count in ((1000, 0), (1060, 1), (1120, 2)):
        tree.function("0000:00:03.0", fatal=count)
        ran = tree.run("pcie_link", now)
    assert ran[:2] == (FAULT, "PCIe link of nvme 0000:3b:00.0 met fatal errors (at 0000:00:03.0)")


def test_a_virtual_function_is_left_out(tree):
    (tree.root / f"sys/devices/pci0000:00/{NVME}/physfn").mkdir()
    assert [one.kind for one in read_links(tree.sys)] == ["switch", "gpu"]


def test_an_rdma_card_is_known_by_what_its_driver_shows(tree):
    tree.function("0000:00:03.0/0000:41:00.0", kind="0x020000", vendor="0x15b3")
    assert "rdma" not in [one.kind for one in read_links(tree.sys)]
    (tree.root / "sys/devices/pci0000:00/0000:00:03.0/0000:41:00.0/infiniband/mlx5_0").mkdir(parents=True)
    assert "rdma" in [one.kind for one in read_links(tree.sys)]


def test_the_links_of_a_chain_are_those_between_a_switch_and_what_is_above_and_below(tree):
    found = {one.address: (one.kind, one.upper is not None) for one in read_links(tree.sys)}
    assert found == {"0000:17:00.0": ("switch", True), AT: ("gpu", True), "0000:3b:00.0": ("nvme", True)}


def test_evidence_holds_address_slot_and_what_the_kernel_said(tree):
    tree.write("sys/bus/pci/slots/7-1/address", "0000:19:00\n")
    tree.function(GPU, **GPU_KIND, width="8")
    tree.log("pcieport 0000:18:00.0: AER: Corrected error received: 0000:19:00.0", "pcieport 0000:00:03.0: pciehp: x")
    tree.run("pcie_link", 1000)
    tree.run("pcie_link", 1060)
    path = tree.state / "evidence/pcie_link.json"
    kept = json.loads(path.read_text())
    [one] = kept["links"]
    assert (one["address"], one["slot"], one["lower"][:2]) == (AT, "7-1", [8, 16])
    assert kept["kernel"] == ["pcieport 0000:18:00.0: AER: Corrected error received: 0000:19:00.0"]
    assert len(path.read_bytes()) < 1200


def test_explain_tells_that_the_port_above_is_not_to_be_seen(tree):
    tree.function("0000:00:1e.0", **GPU_KIND, width="8")
    told = tree.run("pcie_link", 1000, "--explain").line
    assert "gpu 0000:00:1e.0: 8 of unknown lanes at 32.0 GT/s, the port above it is not to be seen" in told
    assert told.count("is not to be seen") == 1


def test_explain_tells_the_speed_of_which_the_line_is_silent(tree):
    tree.function(GPU, **GPU_KIND, speed="2.5 GT/s PCIe")
    assert (
        "gpu 0000:19:00.0: 16 of 16 lanes at 2.5 GT/s (idle, or degraded: up to 32)"
        in tree.run("pcie_link", 1000, "--explain").line
    )


@pytest.mark.parametrize("value", ["gpu", "gpu=", "gpu=x", "gpus=8", "3b:00.0=8", "gpu=-8"])
def test_a_declaration_that_makes_no_sense_is_refused_with_the_remedy(value, capsys):
    with pytest.raises(SystemExit):
        parse([f"--width={value}"])
    assert "is not WHO=NUMBER: WHO is one of gpu, nvswitch, rdma, nvme, switch or an address" in capsys.readouterr().err


TOLD = {
    "16": 16, "4": 4, "63": 63, "0": None, "255": None, None: None, "": -1, "-1": -1, "x8": -1, "1000": -1,
}  # fmt: skip


@pytest.mark.parametrize(("told", "lanes"), TOLD.items())
def test_a_width_is_a_number_of_lanes_or_nothing_or_nonsense(told, lanes):
    assert _lanes(told) == lanes


@given(st.text(alphabet="0123456789. GTs/PCIeUnkow\n", max_size=30))
def test_no_text_raises_and_none_becomes_more_than_it_says(told):
    assert _lanes(told) in (None, -1) or int(told) == _lanes(told)
    assert _rate(told) in (None, -1) or told.startswith(f"{_rate(told):g}")
    assert _total(told) == -1


@given(ANYTHING, st.integers(-1, 64), st.integers(-1, 5))
def test_no_memory_raises(tmp_path_factory, memory, width, count):
    path = tmp_path_factory.getbasetemp() / "pcie_link_memory.json"
    path.write_text(json.dumps({"boot_id": "one", "widest": memory, "errors": memory, "slow": memory}))
    known = recall(path, Known, Stamp("one", 1000.0))
    one = link(width or None, fatal=count)
    after = remember([one], known, NONE)
    verdict, _ = judge([one], after, NONE)
    assert verdict != OK or (count >= 0 and width not in (-1, 63))


def test_nothing_is_said_of_links_where_no_device_tells_one():
    assert judge([link(None, None, None)], NOTHING, NONE) == (OK, "no PCIe link is reported")

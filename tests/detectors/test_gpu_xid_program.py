"""The detector as a process, over kernel logs made of files, and once over the log of this machine."""

import json
import os
from pathlib import Path

import pytest
from gpu_xid import Memory, is_sound
from hypothesis import given, settings
from hypothesis import strategies as st

from nodelib.contract.memory import Scope, Stamp, recall
from tests.detectors.fixtures.gpu_xid import BOOT, DOUBLE, FALLEN, PENDING, KernelLog, advice
from tests.detectors.node import run_detector
from tests.harness.examples import examples

OK, FAULT, UNKNOWN = 0, 1, 2
LINE = "reboot needed: 0000:1c:00 Xid 79 (GPU has fallen off the bus)"
FINE = "no Xid calls for a repair"
UUID = "GPU-5fc0bcec-8f0b-4f3c-b5cd-000000000000"
LOST = "lines of the kernel log were overwritten before they were read"


@pytest.fixture
def log(tmp_path):
    return KernelLog(tmp_path, gpus=("0000:1c:00", "0000:3b:00"))


def run(root: Path, *options: str) -> tuple[int, str]:
    folders = [f"--{name}={root / name}" for name in ("proc", "sys", "dev", "state")]
    ran = run_detector("gpu_xid", *folders, "--now=1000", *options)
    assert ran.err == ""
    return ran.code, ran.line


def state(root: Path) -> dict:
    return json.loads((root / "state/gpu_xid.json").read_text())


def test_a_fault_stands_after_its_line_was_overwritten(tmp_path, log):
    log.say(FALLEN)
    assert run(tmp_path) == (FAULT, LINE)
    log.say("one", "two").forget(2)
    assert run(tmp_path) == (FAULT, LINE)
    assert run(tmp_path) == (FAULT, LINE)


def test_another_boot_ends_every_fault_and_reads_its_log_from_the_beginning(tmp_path, log):
    log.say("one", "two", FALLEN)
    assert run(tmp_path) == (FAULT, LINE)
    after = KernelLog(tmp_path, boot="another")
    assert run(tmp_path) == (OK, FINE)
    after.say(DOUBLE)
    assert run(tmp_path) == (FAULT, "reset needed: 0000:3b:00 Xid 48 (GPU ECC DBE)")


def test_an_old_fault_that_was_repaired_in_this_boot_is_none_for_a_detector_that_is_new(tmp_path, log):
    log.say(FALLEN, advice(2), advice(0, 2))
    assert run(tmp_path) == (OK, FINE)


OLD = f"from before this detector ran (see --help): {LINE}"


def test_an_old_fault_is_cannot_tell_for_a_detector_that_is_new_until_a_person_says_that_it_is_over(tmp_path, log):
    log.say(FALLEN)
    for _ in range(2):
        assert run(tmp_path, "--now=17280000") == (UNKNOWN, OLD)
    assert "from before this detector ran: no UUID told" in run(tmp_path, "--now=17280000", "--explain")[1]
    log.say("remediator: GPU 0000:1c:00 was reset", facility=1)
    assert run(tmp_path, "--now=17280030") == (OK, FINE)


def test_a_new_line_of_an_old_fault_is_a_fault(tmp_path, log):
    log.say(FALLEN)
    assert run(tmp_path, "--now=17280000") == (UNKNOWN, OLD)
    log.say(FALLEN, after=17_280_010)
    assert run(tmp_path, "--now=17280030") == (FAULT, LINE)
    assert run(tmp_path, "--now=17290000") == (FAULT, LINE)


def test_a_state_folder_that_is_lost_within_a_boot_makes_no_standing_fault_healthy(tmp_path, log):
    log.say(FALLEN)
    assert run(tmp_path) == (FAULT, LINE)
    (tmp_path / "state/gpu_xid.json").unlink()
    assert run(tmp_path, "--now=3600") == (FAULT, LINE), "it is 3599 seconds old"
    (tmp_path / "state/gpu_xid.json").unlink()
    assert run(tmp_path, "--now=3602") == (UNKNOWN, OLD)
    log.path.unlink()
    assert run(tmp_path, "--now=3700")[1].startswith(OLD)


def test_a_repair_is_seen_in_a_later_run(tmp_path, log):
    log.say(DOUBLE)
    assert run(tmp_path)[0] == FAULT
    log.say("remediator: GPU 0000:3b:00.0 was reset", facility=1)
    assert run(tmp_path) == (OK, FINE)


def test_lines_that_were_overwritten_unread_are_told_once(tmp_path, log):
    assert run(tmp_path) == (OK, FINE)
    log.say("one", "two", "three").forget(3)
    assert run(tmp_path) == (UNKNOWN, LOST)
    assert run(tmp_path) == (OK, FINE)


def test_a_fault_outranks_lines_that_were_overwritten_unread(tmp_path, log):
    run(tmp_path)
    log.say("one", "two", FALLEN).forget(3)
    assert run(tmp_path) == (FAULT, LINE)


def test_a_gpu_that_only_its_node_shows_leaves_doubts(tmp_path):
    KernelLog(tmp_path).path.unlink()
    assert run(tmp_path)[0] == OK
    (tmp_path / "dev/nvidia0").touch()
    assert run(tmp_path)[0] == UNKNOWN


def test_a_node_without_gpus_has_no_doubts(tmp_path):
    log = KernelLog(tmp_path)
    assert run(tmp_path) == (OK, FINE)
    log.say("one", "two", "three").forget(3)
    assert run(tmp_path) == (OK, FINE)


def test_a_standing_fault_is_told_while_the_log_cannot_be_read_and_nothing_is_forgotten(tmp_path, log):
    log.say(FALLEN)
    run(tmp_path)
    log.path.unlink()
    assert run(tmp_path) == (FAULT, LINE)
    log.say("one")
    assert run(tmp_path) == (FAULT, LINE)
    assert state(tmp_path)["cursor"] == 2


def test_a_log_that_cannot_be_read_is_cannot_tell_and_what_it_said_meanwhile_is_read_later(tmp_path, log):
    run(tmp_path)
    log.path.unlink()
    assert run(tmp_path) == (UNKNOWN, f"the kernel log cannot be opened: {log.path}: No such file or directory")
    log.say(FALLEN)
    assert run(tmp_path) == (FAULT, LINE)


def test_an_empty_device_in_place_of_the_log_is_cannot_tell(tmp_path, log):
    log.path.unlink()
    log.path.symlink_to(os.devnull)
    assert run(tmp_path) == (UNKNOWN, f"{log.path} is no kernel log: it has no record")


def test_an_unknown_boot_is_cannot_tell_because_no_fault_can_be_kept(tmp_path, log):
    log.boot.unlink()
    assert run(tmp_path) == (UNKNOWN, "the boot id cannot be read")
    log.say(FALLEN)
    assert run(tmp_path) == (FAULT, LINE)


def test_a_line_about_an_xid_that_cannot_be_read_is_told_for_the_whole_boot(tmp_path, log):
    log.say("NVRM: Xid (in a form of tomorrow) 79")
    told = (UNKNOWN, "a line about an Xid cannot be read (--explain shows it)")
    assert run(tmp_path) == told
    assert run(tmp_path) == told
    assert "NVRM: Xid (in a form of tomorrow) 79" in run(tmp_path, "--explain")[1]
    KernelLog(tmp_path, boot="another")
    assert run(tmp_path) == (OK, FINE)


def test_three_lines_that_two_runs_share_are_one_message(tmp_path, log):
    log.say("NVRM: The NVIDIA GPU 0000:3b:00.0", "NVRM: (PCI ID: 10de:26b5) installed in this system has")
    assert run(tmp_path) == (OK, FINE)
    log.say("NVRM: fallen off the bus and is not responding to commands.", after=-0.5)
    assert run(tmp_path) == (FAULT, "reboot needed: 0000:3b:00 (GPU has fallen off the bus, without an Xid)")


def test_another_process_is_remembered_between_runs(tmp_path, log):
    log.say(FALLEN.replace("79, pid='<unknown>'", "31, pid=7"))
    assert run(tmp_path) == (OK, FINE)
    log.say(FALLEN.replace("79, pid='<unknown>'", "31, pid=8"))
    assert run(tmp_path) == (OK, f"{FINE}; watch: 0000:1c:00 Xid 31 (FIFO error MMU err flt)")


def test_the_evidence_names_the_gpu_and_its_lines_as_they_were_at_first_sight(tmp_path, log):
    log.say(f"NVRM: GPU at PCI:0000:1c:00: {UUID}", "NVRM: GPU Board Serial Number: 1563521020414")
    run(tmp_path)
    log.say(FALLEN, advice(2), DOUBLE, PENDING).forget(3)
    run(tmp_path)
    path = tmp_path / "state/evidence/gpu_xid.json"
    found = json.loads(path.read_text())
    assert (found["condition"], found["detector"]) == ("GpuXid", "gpu_xid")
    assert found["line"] == f"{LINE}; reset needed: 0000:3b:00 Xid 48 (GPU ECC DBE)"
    first, second = found["gpus"]
    assert (first["address"], first["uuid"], first["serial"]) == ("0000:1c:00", UUID, "1563521020414")
    assert first["lines"][0] == f"[3.000] {FALLEN}"
    assert first["lines"][-1] == advice(2)[:120]
    assert (second["uuid"], second["serial"]) == ("GPU-of-0000:3b:00", ""), "the driver's list has the UUID, too"
    log.say("remediator: GPU 0000:1c:00 was reset")
    run(tmp_path)
    assert json.loads(path.read_text()) == found
    log.say("remediator: GPU 0000:3b:00 was reset")
    run(tmp_path)
    assert not path.exists()


def test_the_evidence_of_16_gpus_is_short_enough_to_be_taken_along(tmp_path, log):
    log.say(*(FALLEN.replace("1c", f"{bus:02x}") + "x" * 300 for bus in range(16)))
    code, line = run(tmp_path)
    assert (code, len(line)) == (FAULT, 512)
    evidence = json.loads((tmp_path / "state/evidence/gpu_xid.json").read_text())
    assert 200 < len(json.dumps(evidence["gpus"])) < 1200


def test_explain_shows_what_stands_and_leaves_no_mark(tmp_path, log):
    log.say(FALLEN, advice(2), PENDING)
    code, text = run(tmp_path, "--explain")
    assert code == FAULT
    for words in (
        "4 new lines",
        f"reboot: [1.000] {FALLEN}",
        f"the driver wants: {advice(2)}",
        f"watch: [3.000] {PENDING}",
    ):
        assert words in text
    assert not (tmp_path / "state/marks").exists()
    assert run(tmp_path)[0] == FAULT
    assert (tmp_path / "state/marks/gpu_xid.json").exists()


def test_a_state_folder_that_cannot_be_written_is_cannot_tell_with_the_cause(tmp_path, log):
    (tmp_path / "state").write_text("a file where a folder should be")
    code, line = run(tmp_path)
    assert (code, "Error" in line) == (UNKNOWN, True)


def test_what_is_written_is_what_is_read_back(tmp_path, log):
    log.say(FALLEN, advice(2), PENDING, DOUBLE, f"NVRM: GPU at PCI:0000:1c:00: {UUID}")
    log.say(FALLEN.replace("79, pid='<unknown>'", "31, pid=7"), "remediator: GPU 0000:3b:00 was reset")
    run(tmp_path)
    memory = recall(tmp_path / "state/gpu_xid.json", Memory, Stamp(BOOT, 1000.0))
    assert memory.cursor == 7
    assert memory.devices["0000:1c:00"].faults[0].code == 79
    assert memory.devices["0000:1c:00"].advice == "reboot"
    assert memory.devices["0000:3b:00"].repaired == (48,)
    run(tmp_path)
    assert recall(tmp_path / "state/gpu_xid.json", Memory, Stamp(BOOT, 1000.0)) == memory


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 300) | st.text(max_size=4) | st.floats(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=8,
)


@pytest.mark.slow
@settings(max_examples=examples(300))
@given(st.lists(JSON, max_size=7), JSON)
def test_a_memory_that_makes_no_sense_is_as_none_so_that_the_whole_log_is_read_again(tmp_path_factory, device, garbled):
    path = tmp_path_factory.getbasetemp() / "gpu_xid_memory.json"
    known = {"devices": {"0000:1c:00": device}, "shelved": {"0000:1c:00": device}}
    path.write_text(json.dumps({"boot_id": "b", "cursor": 5, **known, "garbled": garbled}))
    memory = recall(path, Memory, Stamp("b", 1000.0), Scope.KNOWN_BOOT)
    assert memory.cursor in (None, 5)
    memory = memory if is_sound(memory) else Memory()
    for known in (*memory.devices.values(), *memory.shelved.values()):
        assert known.cause is None or known.cause.action


@settings(max_examples=examples(12), deadline=None)
@given(
    st.binary(max_size=60) | st.sampled_from([b'{"boot_id": "%s", "cursor": 9}' % BOOT.encode(), b"[]", b"[" * 5000])
)
def test_a_fault_is_found_whatever_is_in_the_state_file(tmp_path_factory, content):
    root = tmp_path_factory.mktemp("garbage")
    KernelLog(root, gpus=("0000:1c:00",)).say(FALLEN)
    (root / "state").mkdir()
    (root / "state/gpu_xid.json").write_bytes(content)
    assert run(root) == (FAULT, LINE)


@settings(max_examples=examples(25), deadline=None)
@given(
    st.binary(max_size=200)
    | st.binary(max_size=80).map(lambda tail: b"3,7,1000000,-;NVRM: Xid " + tail.replace(b"\n", b""))
)
def test_no_bytes_in_place_of_the_log_are_ever_healthy(tmp_path_factory, content):
    root = tmp_path_factory.mktemp("bytes")
    KernelLog(root, gpus=("0000:1c:00",)).path.write_bytes(content)
    code, line = run(root)
    assert code == UNKNOWN
    assert line.isascii()


@pytest.mark.cluster
@pytest.mark.skipif(not os.access("/dev/kmsg", os.R_OK | os.W_OK), reason="needs root, and /dev/kmsg of the machine")
def test_a_line_written_to_the_log_of_this_machine_is_found_by_the_next_run(tmp_path):
    log = KernelLog(tmp_path, gpus=("0000:1c:00",))
    log.path.unlink()
    log.path.symlink_to("/dev/kmsg")
    gpu = f"{os.getpid() % 0xFFFF:04x}:1c:00"  # what earlier tests have written is of other GPUs
    before = run(tmp_path)[1]
    assert gpu not in before
    cursor = state(tmp_path)["cursor"]
    Path("/dev/kmsg").write_text(f"<3>{FALLEN.replace('0000:1c:00', gpu)}\n")
    try:
        code, line = run(tmp_path)
        assert (code, f"{gpu} Xid 79 (GPU has fallen off the bus)" in line) == (FAULT, True)
        assert state(tmp_path)["cursor"] > cursor
    finally:
        Path("/dev/kmsg").write_text(f"<6>remediator: GPU {gpu} was reset\n")
    assert gpu not in run(tmp_path)[1]

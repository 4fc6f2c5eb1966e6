"""What lines of one boot add up to: causes and consequences, repeats, repairs, and the driver's own word."""

import pytest
from gpu_xid import RECENT, UNEXPECTED, Memory, judge, learn, needs

from nodelib.contract.npd import Verdict
from nodelib.kernel.kmsg import Line, Log
from nodelib.kernel.xid import read_events
from nodelib.kernel.xid_faults import follow
from tests.detectors.fixtures.gpu_xid import advice

GPU, OTHER = "0000:1c:00", "0000:3b:00"


def xid(code: int, gpu: str = GPU, pid: int = 0, text: str = "words") -> str:
    return f"NVRM: Xid (PCI:{gpu}): {code}, {f'pid={pid}, name=python3, ' if pid else ''}{text}"


def sxid(code: int, word: str = "Fatal") -> str:
    return f"nvidia-nvswitch0: SXid (PCI:0000:c3:00.0): {code}, {word}, Link 28"


WAS_RESET = f"remediator: GPU {GPU}.0 was reset"
LOADED = "NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  595.45.04"
LATER = 200  # seconds, more than a burst has

FALLEN = f"reboot needed: {GPU} Xid 79 (GPU has fallen off the bus)"
FINE = "no Xid calls for a repair"


def told(*said: str | int) -> tuple[Verdict, str]:
    """Judge texts, a second apart; a number is that many seconds of silence."""
    lines, now = [], 100.0
    for item in said:
        now += item if isinstance(item, int) else 1
        if isinstance(item, str):
            lines.append(Line(len(lines), now, item))
    return judge(follow({}, read_events(lines)), [])


@pytest.mark.parametrize(
    ("said", "verdict", "line"),
    [
        ([], Verdict.OK, FINE),
        ([xid(79)], Verdict.FAULT, FALLEN),
        ([xid(54)], Verdict.FAULT, f"inspection needed: {GPU} Xid 54 (silent running pwr reduced clocking)"),
        ([f"NVRM: GPU {GPU}.0: GPU has fallen off the bus."], Verdict.FAULT,
         f"reboot needed: {GPU} (GPU has fallen off the bus, without an Xid)"),
        ([f"NVRM: GPU {GPU}.0: GPU has fallen off the bus.", xid(79)], Verdict.FAULT, FALLEN),
        ([xid(45, pid=1), xid(43, pid=1), xid(13, pid=1), xid(68, pid=2), xid(69)], Verdict.OK, FINE),
        ([xid(63)], Verdict.OK, f"{FINE}; watch: {GPU} Xid 63 (inforom DRAM retirement event)"),
        ([xid(999)], Verdict.UNKNOWN, f"unexpected: {GPU} Xid 999 (not in the table)"),
        ([xid(999), xid(79, OTHER)], Verdict.FAULT, FALLEN.replace(GPU, OTHER)),
        ([sxid(24007)], Verdict.FAULT, "reset needed: NVSwitch 0000:c3:00 SXid 24007 (fatal)"),
        ([sxid(12028, "Non-fatal")], Verdict.OK, FINE),
    ],
)  # fmt: skip
def test_one_line_says_all_that_is_known(said, verdict, line):
    assert told(*said) == (verdict, line)


def test_the_worst_repair_comes_first_and_each_gpu_once():
    said = [xid(119, OTHER), xid(48, OTHER), xid(63, GPU), xid(48), xid(45), xid(79), xid(54, "0000:01:00")]
    assert told(*said)[1] == (
        f"inspection needed: 0000:01:00 Xid 54 (silent running pwr reduced clocking); reboot needed: {GPU} Xid 79 "
        f"(GPU has fallen off the bus); reset needed: {OTHER} Xid 119 (GSP RPC timeout)"
    )


def test_the_line_is_the_same_however_often_a_fault_is_repeated_and_by_whom():
    assert told(xid(119, pid=1)) == told(xid(119, pid=1), 45, xid(119, pid=2), 45, xid(119, pid=1), xid(45, pid=3))


@pytest.mark.parametrize(
    ("said", "watched"),
    [
        ([xid(31, pid=1), xid(31, pid=1)], False),
        ([xid(31, pid=1), xid(31, pid=2)], True),
        ([xid(31, pid=1), xid(31, OTHER, pid=2)], False),
        ([xid(31, pid=1), xid(13, pid=2)], False),
        ([xid(31), xid(31)], False),
        ([xid(8, pid=1), xid(8, pid=2)], False),
    ],
)
def test_a_jobs_own_fault_is_watched_when_another_process_has_it_on_the_same_gpu(said, watched):
    verdict, line = told(*said)
    assert (verdict, "watch" in line) == (Verdict.OK, watched)


@pytest.mark.parametrize(("seconds", "watched"), [(5, False), (20, True)])
def test_errors_of_jobs_within_10_seconds_of_a_fault_follow_from_it(seconds, watched):
    verdict, line = told(xid(48), seconds, xid(31, pid=1), WAS_RESET, xid(31, pid=2))
    assert (verdict, "watch" in line) == (Verdict.OK, watched)


@pytest.mark.parametrize(
    ("said", "start"),
    [
        ([xid(109), xid(109)], f"{FINE}; watch: {GPU} Xid 109"),
        ([xid(109), LATER, xid(109)], f"reset needed: {GPU} Xid 109"),
        ([xid(109), LATER, xid(109, OTHER)], FINE),
        ([xid(122), LATER, xid(122)], f"inspection needed: {GPU} Xid 122"),
        ([xid(63), LATER, xid(63)], f"{FINE}; watch: {GPU} Xid 63"),
        ([xid(94), LATER, xid(94)], f"{FINE}; watch: {GPU} Xid 94"),
        ([xid(119), LATER, xid(119)], f"reset needed: {GPU} Xid 119"),
        ([xid(119), WAS_RESET, xid(119)], f"reboot needed: {GPU} Xid 119"),
        ([xid(64), WAS_RESET, xid(64)], f"inspection needed: {GPU} Xid 64"),
        ([xid(48), WAS_RESET, xid(48)], f"reset needed: {GPU} Xid 48"),
        ([xid(119), advice(1), advice(0, 1), xid(119)], f"reboot needed: {GPU} Xid 119"),
        ([xid(119), WAS_RESET, xid(119, OTHER)], f"reset needed: {OTHER} Xid 119"),
    ],
)
def test_a_code_that_comes_again_may_call_for_more(said, start):
    assert told(*said)[1].startswith(start)


@pytest.mark.parametrize(
    ("said", "line"),
    [
        ([xid(79), advice(1)], f"reset needed: {GPU} Xid 79 (GPU has fallen off the bus)"),
        ([advice(2), xid(48)], f"reboot needed: {GPU} Xid 48 (GPU ECC DBE)"),
        ([xid(48), advice(4), advice(2, 4)], f"reboot needed: {GPU} Xid 48 (GPU ECC DBE)"),
        ([advice(1)], f"reset needed: {GPU} Xid 154 (GPU recovery action changed)"),
        ([xid(51), advice(1)], f"reset needed: {GPU} Xid 51 (not in the table)"),
        ([xid(31, pid=1), advice(7)], f"reboot needed: {GPU} Xid 154 (GPU recovery action changed)"),
        ([advice(6)], f"bus reset needed: {GPU} Xid 154 (GPU recovery action changed)"),
        ([xid(54), advice(1)], f"inspection needed: {GPU} Xid 54 (silent running pwr reduced clocking)"),
        ([xid(48), advice(2, gpu=OTHER)],
         f"reboot needed: {OTHER} Xid 154 (GPU recovery action changed); reset needed: {GPU} Xid 48 (GPU ECC DBE)"),
    ],
)  # fmt: skip
def test_the_drivers_own_word_outranks_the_table_but_for_an_inspection(said, line):
    assert told(*said) == (Verdict.FAULT, line)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ([xid(74), advice(3)], f"traffic with peers is to end (see NvlinkDomainFault): {GPU} Xid 74 (NVLINK error)"),
        ([advice(5)],
         f"another part of the NVLink domain has failed (see NvlinkDomainFault): "
         f"{GPU} Xid 154 (GPU recovery action changed)"),
    ],
)  # fmt: skip
def test_what_another_part_of_the_domain_needs_is_told_and_no_fault(said, words):
    assert told(*said) == (Verdict.OK, f"{FINE}; {words}")


@pytest.mark.parametrize(
    ("said", "code"),
    [([xid(63), advice(4)], "63 (inforom DRAM retirement event)"), ([xid(48), xid(63)], "48 (GPU ECC DBE)")],
)
def test_a_reset_that_can_wait_is_told_and_no_fault(said, code):
    verdict, line = told(*said)
    assert (verdict, line.split("; ")[:2]) == (
        Verdict.OK,
        [FINE, f"drain and reset when idle (see GpuEccFault): {GPU} Xid {code}"],
    )
    assert told(*said, xid(54))[0] is Verdict.FAULT


@pytest.mark.parametrize("said", ["to 0x9 (Something New)", "cannot be read"])
def test_a_word_of_the_driver_that_nobody_knows_is_unexpected(said):
    line = f"NVRM: Xid (PCI:{GPU}): 154, GPU recovery action changed from 0x0 (None) {said}"
    assert told(line) == (Verdict.UNKNOWN, f"unexpected: {GPU} Xid 154 (GPU recovery action changed)")
    assert told(line, xid(79)) == (Verdict.FAULT, FALLEN)


def test_an_unexpected_code_blocks_no_verification_for_ever():
    devices = follow({}, read_events([Line(1, 1000.0, xid(999))]))
    line = f"unexpected: {GPU} Xid 999 (not in the table)"
    assert judge(devices, [], 1000.0 + UNEXPECTED) == (Verdict.UNKNOWN, line)
    assert judge(devices, [], 1001.0 + UNEXPECTED) == (Verdict.OK, f"{FINE}; {line}")


@pytest.mark.parametrize(
    ("said", "verdict"),
    [
        ([xid(79), WAS_RESET], Verdict.OK),
        ([xid(79), f"remediator: GPU {GPU} was reset"], Verdict.OK),
        ([xid(79), WAS_RESET.replace(GPU, OTHER)], Verdict.FAULT),
        ([WAS_RESET, xid(79)], Verdict.FAULT),
        ([xid(999), WAS_RESET], Verdict.OK),
        ([xid(79), advice(2), advice(0, 2)], Verdict.OK),
        ([xid(79), advice(2), advice(0, 2, gpu=OTHER)], Verdict.FAULT),
        ([xid(79), advice(2), advice(0, 2), xid(79)], Verdict.FAULT),
        ([xid(119), LOADED], Verdict.OK),
        ([xid(119), advice(1), LOADED], Verdict.OK),
        ([sxid(24007), LOADED], Verdict.OK),
        ([xid(79), LOADED], Verdict.FAULT),
        ([advice(2), LOADED], Verdict.FAULT),
        ([LOADED, xid(119)], Verdict.FAULT),
    ],
)
def test_a_fault_stands_until_the_log_shows_a_repair_of_that_gpu(said, verdict):
    assert told(*said)[0] is verdict


@pytest.mark.parametrize(
    ("said", "switch"),
    [
        ([xid(79), sxid(20034)], False),
        ([sxid(20034), xid(79)], False),
        ([sxid(20034), f"NVRM: GPU {GPU}.0: GPU has fallen off the bus."], False),
        ([sxid(20034), LATER, xid(79)], True),
        ([sxid(24007), xid(79)], True),
        ([sxid(20034), xid(48)], True),
        ([sxid(20034)], True),
    ],
)
def test_a_link_that_died_with_the_gpu_at_its_end_is_no_fault_of_the_nvswitch(said, switch):
    verdict, line = told(*said)
    assert (verdict, "NVSwitch" in line) == (Verdict.FAULT, switch)


def first_run(*said: tuple[float, str]) -> Memory:
    """What a first run makes of texts that were logged so many seconds before it, at an uptime of 200 days."""
    now = 200 * 86_400.0
    lines = [Line(number, now - ago, text) for number, (ago, text) in enumerate(said)]
    return learn(Memory(), Log(tuple(lines), cursor=len(lines)), now)


DAYS, OLD, NEW = 199 * 86_400.0, RECENT + 1, RECENT - 1


@pytest.mark.parametrize(
    ("said", "shelved", "standing"),
    [
        ([(DAYS, xid(95))], [f"reset needed: {GPU} Xid 95 (uncontained error)"], []),
        ([(OLD, xid(79))], [f"reboot needed: {GPU} Xid 79 (GPU has fallen off the bus)"], []),
        ([(NEW, xid(79))], [], [FALLEN]),
        ([(DAYS, xid(63)), (DAYS, advice(1))], [f"reset needed: {GPU} Xid 63 (inforom DRAM retirement event)"], []),
        ([(DAYS, xid(95)), (NEW, xid(95))], [f"reset needed: {GPU} Xid 95 (uncontained error)"],
         [f"reset needed: {GPU} Xid 95 (uncontained error)"]),
        ([(DAYS, xid(95)), (OLD, WAS_RESET)], [], []),
        ([(DAYS, xid(95)), (NEW, WAS_RESET)], [], []),
        ([(DAYS, xid(95)), (NEW, WAS_RESET.replace(GPU, OTHER))],
         [f"reset needed: {GPU} Xid 95 (uncontained error)"], []),
        ([(DAYS, xid(95)), (NEW, advice(0, 1))], [], []),
        ([(DAYS, xid(95)), (NEW, LOADED)], [], []),
        ([(DAYS, xid(79)), (NEW, LOADED)], [FALLEN], []),
        ([(DAYS, xid(119)), (OLD, WAS_RESET), (NEW, xid(119))], [],
         [f"reboot needed: {GPU} Xid 119 (GSP RPC timeout)"]),
    ],
)  # fmt: skip
def test_what_was_wrong_more_than_an_hour_before_the_first_run_is_no_fault(said, shelved, standing):
    memory = first_run(*said)
    assert (needs(memory.shelved), needs(memory.devices)) == (shelved, standing)


def test_what_is_only_watched_is_known_however_old_it_is():
    memory = first_run((DAYS, xid(109)), (NEW, xid(109)))
    assert needs(memory.devices) == [f"reset needed: {GPU} Xid 109 (ctxsw timeout error)"]
    assert needs(memory.shelved) == []


def test_doubts_outrank_health_and_are_outranked_by_faults():
    devices = follow({}, read_events([Line(1, 1.0, xid(63))]))
    assert judge(devices, ["the log is gone"]) == (Verdict.UNKNOWN, "the log is gone")
    devices = follow(devices, read_events([Line(2, 2.0, xid(79))]))
    assert judge(devices, ["the log is gone"]) == (Verdict.FAULT, FALLEN)

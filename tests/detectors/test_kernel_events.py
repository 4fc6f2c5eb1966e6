"""kernel_fault, task_hung, system_oom: what the kernel says of itself, in its words, and nothing that others write."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernel_fault import BUG as IS_BUG
from kernel_fault import OOPS as IS_OOPS
from kernel_fault import SIGNS

from nodelib.kernel.kernel_events import BootMemory, KindMemory, learn, standing, told
from nodelib.kernel.kmsg import Line
from tests.detectors.fixtures.kernel_fault import BUG, FINE, OF_A_PROCESS, PAGE_FAULT, SOFT
from tests.detectors.kernel_tree import KernelTree

OK, FAULT, UNKNOWN = 0, 1, 2
OOPSES = (  # of x86 before and since 6.x, arm64, s390, POWER, RISC-V
    *PAGE_FAULT,
    "BUG: unable to handle kernel NULL pointer dereference at 0000000000000028",
    "Oops: general protection fault, probably for non-canonical address 0xdead000000000122: 0000 [#1] PREEMPT SMP",
    "general protection fault: 0000 [#3] SMP",
    "divide error: 0000 [#1] SMP",
    "Unable to handle kernel paging request at virtual address ffff0000c8a1d000",
    "Internal error: Oops: 0000000096000004 [#1]  SMP",
    "Internal error: synchronous external abort: 0000000096000410 [#1] SMP",
    "Oops: 0004 ilc:2 [#1] SMP",
    "Oops: Kernel access of bad area, sig: 11 [#1]",
    "Oops [#1]",
)
NOTHING = (
    OF_A_PROCESS,
    "python3[802]: segfault at 7f797fe00000 ip 00007f79 sp 00007ffe error 4 in libnccl.so.2[7f79+1000]",
    "WARNING: CPU: 3 PID: 802 at mm/slub.c:1234 free_large+0x10/0x20",
    "NVRM: Xid (PCI:0000:1c:00): 13, Graphics Exception",
    "nvidia-modeset: Loading NVIDIA Kernel Mode Setting Driver for UNIX platforms  580.82.07",
    "rcu: Hierarchical RCU implementation.",
    "NMI watchdog: Enabled. Permanently consumes one hw-PMU counter.",
)
WORDS = {
    "NMI watchdog: Watchdog detected hard LOCKUP on cpu 3": "a hard lockup",
    "watchdog: CPU0: Watchdog detected hard LOCKUP on cpu 0": "a hard lockup",
    "watchdog: CPU 5 detected hard LOCKUP on other CPUs 3": "a hard lockup",
    "BUG: soft lockup - CPU#1 stuck for 22s! [python3:802]": "soft lockups",
    "NMI watchdog: BUG: soft lockup - CPU#1 stuck for 22s! [python3:802]": "soft lockups",
    "INFO: rcu_sched self-detected stall on CPU { 3}  (t=60000 jiffies)": "RCU stalls",
    "rcu: INFO: rcu_preempt detected expedited stalls on CPUs/tasks: { 3-....": "RCU stalls",
    "BUG: Bad page map in process python3  pte:8000 pmd:67": "the kernel found a bad page",
}


@pytest.fixture
def tree(tmp_path):
    tree = KernelTree(tmp_path)
    tree.write("proc/sys/kernel/tainted", "0\n")
    return tree


@pytest.mark.parametrize(
    ("text", "words"),
    [*((text, IS_OOPS) for text in OOPSES), (BUG[0], IS_BUG), *((text, None) for text in NOTHING), *WORDS.items()],
)
def test_each_kernels_words_are_known_and_what_only_looks_like_them_is_not(text, words):
    found = told(Line(1, 1.0, text), SIGNS)
    assert (found and found.words) == words
    assert told(Line(1, 1.0, text, written=True), SIGNS) is None


def test_an_oops_stands_until_the_next_boot_when_its_lines_have_long_gone(tree):
    tree.log(*PAGE_FAULT)
    tree.write("proc/sys/kernel/tainted", "128\n")
    assert tree.run("kernel_fault")[:2] == (FAULT, IS_OOPS)
    (tree.dev / "kmsg").unlink()
    tree.lines = 5_000
    tree.log("something else")
    assert tree.run("kernel_fault", 90_000)[:2] == (FAULT, IS_OOPS)
    tree.write("proc/sys/kernel/random/boot_id", "two\n")
    tree.write("proc/sys/kernel/tainted", "0\n")
    tree.lines = 0
    (tree.dev / "kmsg").unlink()
    tree.log("Linux version 6.18.44", at=0)
    assert tree.run("kernel_fault", 60)[:2] == (OK, FINE)


def test_lines_that_were_overwritten_unread_cannot_tell_once_and_are_left_to_what_the_kernel_says_of_itself(tree):
    tree.run("kernel_fault")
    (tree.dev / "kmsg").unlink()
    tree.lines = 5_000
    tree.log("something else")
    assert tree.run("kernel_fault", 1240)[0] == UNKNOWN
    assert tree.run("kernel_fault", 1480)[:2] == (OK, FINE)
    tree.write("proc/sys/kernel/tainted", "128\n")
    assert tree.run("kernel_fault", 1720)[:2] == (FAULT, IS_OOPS)


def test_a_lockup_that_goes_on_is_a_fault_for_an_hour_from_its_last_line(tree):
    lines = [Line(number, 100.0 + 25 * number, SOFT.format(22 + 25 * number)) for number in range(200)]
    seen = learn({}, lines, SIGNS)
    assert lines[-1].at == 5075
    assert standing(seen, SIGNS, 5075 + 3599) == ["soft lockups"]
    assert standing(seen, SIGNS, 5075 + 3600) == []
    assert seen["soft lockups"] == KindMemory((78,), 5075, 200, 5075)


def test_no_name_of_a_process_is_an_oops(tree):
    tree.log("Oops [#1][2539]: segfault at 8 ip 7f79 sp 7ffe", priority=6)
    assert tree.run("kernel_fault")[:2] == (OK, FINE)


def test_evidence_has_the_line_and_the_records_behind_it_that_name_the_function(tree):
    tree.log(PAGE_FAULT[1], "CPU: 1 PID: 802 Comm: python3 Tainted: P", "RIP: 0010:mlx5e_poll_ico_cq+0x8b/0x1a0")
    tree.write("proc/sys/kernel/tainted", "128\n")
    tree.run("kernel_fault")
    path = tree.state / "evidence/kernel_fault.json"
    (kept,) = json.loads(path.read_text())["kernel"]
    assert kept.startswith(f"[900.000] {PAGE_FAULT[1]} CPU: 1")
    assert "mlx5e_poll_ico_cq" in kept
    assert len(path.read_bytes()) < 1400


def test_an_endless_log_of_oopses_keeps_a_small_memory_and_evidence(tree):
    tree.log(*(f"Oops: 0002 [#{number}] {'x' * 900}" for number in range(2_000)))
    tree.write("proc/sys/kernel/tainted", "128\n")
    tree.run("kernel_fault")
    assert (tree.state / "kernel_fault.json").stat().st_size < 300
    assert (tree.state / "evidence/kernel_fault.json").stat().st_size < 1400


@given(st.lists(st.tuples(st.text(max_size=200), st.floats(0, 1e9))))
def test_no_line_raises(lines):
    seen = learn({}, [Line(index, at, text) for index, (text, at) in enumerate(lines)], SIGNS)
    assert all(len(one.times) <= 4 for one in BootMemory(0, seen).seen.values())

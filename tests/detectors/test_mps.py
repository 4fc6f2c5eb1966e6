"""What is said of MPS when its daemon ends, comes back, or leaves a server behind."""

from detectors.mps import ABSENT, COMM, Process, judge, processes, wrong
from nodelib.contract.npd import Verdict
from nodelib.host.proc_files import Stat
from nodelib.state.debounce import Streak

CONTROL, SERVER = Process("20:5", server=False, hangs=False), Process("21:6", server=True, hangs=False)


def stat(start: int, parent: int, state: str = "S", comm: str = COMM) -> Stat:
    return Stat(comm, state, 0, start, parent)


def test_a_server_is_known_by_its_parent_and_when_that_has_ended_by_what_was_seen_before() -> None:
    both = {20: stat(5, 1), 21: stat(6, 20), 22: stat(7, 1, comm="bash")}
    assert processes(both, ()) == [CONTROL, SERVER]
    orphan = {21: stat(6, 1)}
    assert processes(orphan, {"21:6"}) == [SERVER]
    assert processes({21: stat(9, 1)}, {"21:6"}) == [Process("21:9", server=False, hangs=False)], "a new daemon"
    assert processes({20: stat(5, 1, "Z")}, ()) == []


def test_a_server_that_is_left_alone_is_no_daemon() -> None:
    assert wrong([CONTROL, SERVER], wanted=True) == []
    assert wrong([SERVER], wanted=True) == [ABSENT]
    assert wrong([], wanted=False) == []


def test_a_daemon_that_is_restarted_within_a_minute_is_no_fault() -> None:
    for runs, seconds, verdict in ((1, 0, Verdict.UNKNOWN), (3, 40, Verdict.UNKNOWN), (3, 60, Verdict.FAULT)):
        standing = {ABSENT: Streak(100.0, runs)}
        assert judge([], True, standing, 100.0 + seconds)[0] is verdict
    assert judge([CONTROL], True, {}, 200.0) == (Verdict.OK, "the MPS control daemon runs")

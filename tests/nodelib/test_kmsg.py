"""Reading the kernel's log: order, cursors, what was overwritten, and what is no log at all."""

import errno
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodelib.kernel.kmsg import Line, Log, read_new, run_on
from tests.detectors.fixtures.gpu_xid import KernelLog
from tests.harness.examples import examples

BEGIN = "Linux version 6.8.0"


@pytest.fixture
def log(tmp_path):
    return KernelLog(tmp_path)


def texts(log: Log) -> list[str]:
    return [line.text for line in log.lines]


def device(monkeypatch, tmp_path, answers):
    """Let the log answer each read as told: with bytes, or with an error."""
    (tmp_path / "kmsg").touch()
    left = iter(answers)

    def read(_fd, _size):
        answer = next(left)
        if isinstance(answer, int):
            raise OSError(answer, os.strerror(answer))
        return answer

    monkeypatch.setattr("nodelib.kernel.kmsg.os.read", read)
    return tmp_path


def test_all_records_are_read_without_a_cursor_and_their_continuation_lines_are_left_out(log):
    log.say("one", "two; with a semicolon")
    found = read_new(log.path.parent, None)
    assert found == Log((Line(0, 0.0, BEGIN), Line(1, 1.0, "one"), Line(2, 2.0, "two; with a semicolon")), cursor=2)


def test_only_what_is_new_is_read_with_the_cursor_of_the_last_time(log):
    first = read_new(log.path.parent, None)
    assert read_new(log.path.parent, first.cursor) == Log((), cursor=0)
    log.say("one")
    second = read_new(log.path.parent, first.cursor)
    assert (texts(second), second.cursor, second.lost) == (["one"], 1, False)


def test_a_log_that_is_longer_than_one_read_is_read_whole(log):
    words = [f"line {number} {'x' * 90}" for number in range(500)]
    assert texts(read_new(log.say(*words).path.parent, 0)) == words


def test_lines_that_a_person_or_a_test_injects_are_read_too(log):
    log.say("NVRM: Xid (PCI:0000:1c:00): 79, injected", facility=1)
    assert texts(read_new(log.path.parent, 0)) == ["NVRM: Xid (PCI:0000:1c:00): 79, injected"]


def test_more_fields_in_the_head_of_a_record_are_allowed(tmp_path):
    (tmp_path / "kmsg").write_text("3,7,5000000,-,caller=T1234;text\n")
    assert read_new(tmp_path, None).lines == (Line(7, 5.0, "text"),)


@pytest.mark.parametrize(("forgotten", "lost"), [(0, False), (2, False), (3, True)])
def test_records_after_the_cursor_that_were_overwritten_are_lost(log, forgotten, lost):
    log.say("one", "two", "three").forget(forgotten)
    found = read_new(log.path.parent, 1)
    assert (found.lost, found.cursor, texts(found)[-1]) == (lost, 3, "three")


def test_without_a_cursor_nothing_is_lost(log):
    assert not read_new(log.say("one", "two").forget(2).path.parent, None).lost


def test_a_cursor_beyond_the_log_is_of_another_log_and_hides_nothing(log):
    found = read_new(log.say("one").path.parent, 10**9)
    assert (texts(found), found.cursor) == ([BEGIN, "one"], 1)


def test_a_record_that_is_overwritten_while_we_read_is_lost_and_reading_goes_on(monkeypatch, tmp_path):
    dev = device(monkeypatch, tmp_path, [b"3,4,0,-;four\n", errno.EPIPE, b"3,9,0,-;nine\n", errno.EAGAIN])
    assert read_new(dev, 3) == Log((Line(4, 0.0, "four"), Line(9, 0.0, "nine")), lost=True, cursor=9)


def test_an_error_in_the_middle_keeps_what_was_read_and_says_why(monkeypatch, tmp_path):
    dev = device(monkeypatch, tmp_path, [b"3,4,0,-;four\n", errno.EIO])
    found = read_new(dev, None)
    assert (texts(found), found.cursor) == (["four"], 4)
    assert found.why == f"the kernel log cannot be read: {dev}/kmsg: Input/output error"


def test_a_log_that_never_ends_is_left_in_the_end(monkeypatch, tmp_path):
    monkeypatch.setattr("nodelib.kernel.kmsg.MOST_READS", 100)
    dev = device(monkeypatch, tmp_path, (b"3,%d,0,-;more\n" % number for number in range(1000)))
    found = read_new(dev, None)
    assert (len(found.lines), found.cursor) == (100, 99)
    assert found.why == "the kernel log grows faster than it can be read"


def test_a_log_that_cannot_be_opened_is_told_with_its_cause_and_keeps_the_cursor(tmp_path):
    why = f"the kernel log cannot be opened: {tmp_path}/kmsg: No such file or directory"
    assert read_new(tmp_path, 7) == Log((), why, cursor=7)


@pytest.mark.parametrize("what", ["file", "fifo", "null", "folder"])
def test_what_has_no_record_is_no_kernel_log(tmp_path, what):
    path = tmp_path / "kmsg"
    make = {"file": path.touch, "fifo": lambda: os.mkfifo(path), "null": lambda: path.symlink_to(os.devnull)}
    make.get(what, path.mkdir)()
    found = read_new(tmp_path, 7)
    assert (found.lines, found.cursor) == ((), 7)
    assert found.why


@pytest.mark.parametrize("record", ["no head", "3,x,0,-;text", "3,5,0;text", "3,-5,0,-;text", f"3,{'9' * 30},0,-;text"])
def test_a_record_that_makes_no_sense_is_told_and_hides_no_other(log, record):
    log.path.write_text(f"{log.path.read_text()}{record}\n3,1,1000000,-;one\n")
    found = read_new(log.path.parent, None)
    assert texts(found) == [BEGIN, "one"]
    assert found.why == "the kernel log has records that make no sense"


def lines(*numbers: int, at: float = 1.0) -> list[Line]:
    return [Line(number, at, str(number)) for number in numbers]


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (lines(7, 8, 9, 10), "7 8 9"),
        (lines(7, 8, 10), "7 8"),
        (lines(7), "7"),
        ([*lines(7), *lines(8, at=2.5)], "7"),
    ],
)
def test_a_message_runs_on_over_the_records_right_behind_it(found, text):
    assert run_on(found, 0, 2) == text


@settings(max_examples=examples(200))
@given(st.lists(st.binary(max_size=80) | st.just(b"3,5,1000,-;text"), max_size=6), st.none() | st.integers(0, 2**70))
def test_garbage_is_told_or_left_out_and_never_raises(tmp_path_factory, records, cursor):
    folder = tmp_path_factory.getbasetemp() / "garbage"
    folder.mkdir(exist_ok=True)
    (folder / "kmsg").write_bytes(b"\n".join(records))
    found = read_new(folder, cursor)
    assert found.lines or found.why or found.cursor == cursor
    plain = [record for piece in records for record in piece.split(b"\n") if record and not record.startswith(b" ")]
    odd = [record for record in plain if not record.lstrip(b"0123456789").startswith(b",")]
    assert found.why or not odd


@pytest.mark.cluster
@pytest.mark.skipif(not os.access("/dev/kmsg", os.R_OK | os.W_OK), reason="needs root, and /dev/kmsg of the machine")
def test_a_line_written_to_the_log_of_this_machine_is_the_only_new_one():
    before = read_new(Path("/dev"), None)
    assert before.lines
    assert before.why == ""
    word = f"remediator: a test of process {os.getpid()} writes this"
    Path("/dev/kmsg").write_text(f"<6>{word}\n")
    after = read_new(Path("/dev"), before.cursor)
    assert word in texts(after)
    assert all(line.sequence > before.cursor for line in after.lines)
    assert not after.lost

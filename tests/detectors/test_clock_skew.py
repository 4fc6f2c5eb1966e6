"""clock_skew: the kernel's account of its clock, in seconds, and how long it may be a bad one."""

import ctypes
import json
import struct
import subprocess

import pytest
from clock_skew import FORGOTTEN, OFF, UNSYNCED, judge, key, sign
from hypothesis import given
from hypothesis import strategies as st

from nodelib.contract.npd import Verdict
from nodelib.kernel.timex import HEAD, Reading, read_file, read_kernel, reading
from nodelib.state.debounce import Streak
from tests.detectors.conftest import DETECTORS
from tests.detectors.fixtures.clock_skew import MOST, UNSYNC, arrange
from tests.detectors.node import run_detector

OK, FAULT, UNKNOWN = Verdict.OK, Verdict.FAULT, Verdict.UNKNOWN

SIGNS = {
    "kept": (Reading(0.0001, 0.001, 0.02, False), ""),
    "kept, though marked": (Reading(0.0, 0.001, 0.02, True), ""),
    "as after boot": (Reading(0.0, 16.0, 16.0, True), UNSYNCED),
    "marked, and not corrected for long": (Reading(0.0, 0.001, 1.001, True), FORGOTTEN),
    "not corrected for long": (Reading(0.0, 0.001, 1.001, False), FORGOTTEN),
    "just so": (Reading(1.0, 1.0, 1.0, False), ""),
    "off to one side": (Reading(-1.001, 0.0, 0.0, False), OFF),
    "off by its own account": (Reading(0.0, 1.001, 0.0, False), OFF),
    "nobody has told an error, as with phc2sys": (Reading(0.0, 16.0, 0.0, False), ""),
}


@pytest.mark.parametrize(("seen", "words"), SIGNS.values(), ids=SIGNS.keys())
def test_a_reading_has_a_sign(seen, words):
    assert sign(seen, 1.0) == words


@pytest.mark.parametrize(
    ("wrong", "standing", "verdict"),
    [
        ("", None, OK),
        (UNSYNCED, Streak(100.0, 2), FAULT),
        (UNSYNCED, Streak(101.0, 30), UNKNOWN),
        (FORGOTTEN, Streak(100.0, 2), FAULT),
        (OFF, Streak(880.0, 2), FAULT),
        (OFF, Streak(881.0, 9), UNKNOWN),
        (OFF, Streak(100.0, 1), UNKNOWN),
        (UNSYNCED, None, UNKNOWN),
    ],
)
def test_a_sign_must_last_15_minutes_and_an_error_two(wrong, standing, verdict):
    assert judge(wrong, {key(wrong): standing} if standing else {}, 900.0, "chronyd runs", 1000.0)[0] is verdict


def test_nanoseconds_and_microseconds_are_told_apart():
    assert reading(1_500_000_000, 0, 0, 0x2000).offset == 1.5
    assert reading(1_500_000, 2_000_000, 3_000_000, UNSYNC) == Reading(1.5, 3.0, 2.0, True)


class Timex(ctypes.Structure):
    """How struct timex begins, as the C headers have it."""

    _fields_ = (
        ("modes", ctypes.c_uint),
        *((name, ctypes.c_long) for name in ("offset", "freq", "maxerror", "esterror")),
        ("status", ctypes.c_int),
    )


def test_the_real_kernel_is_read_as_its_structure_says():
    native = ctypes.create_string_buffer(512)
    assert ctypes.CDLL(None).adjtimex(native) >= 0
    told = Timex.from_buffer(native)
    assert HEAD.size == Timex.status.offset + struct.calcsize("i")
    ours = read_kernel()
    assert ours.unsynced == bool(told.status & UNSYNC)
    assert 0 <= ours.maxerror - told.maxerror / 1e6 < 0.1, "it grows by 500 millionths"
    assert 0 <= ours.maxerror <= 16
    assert 0 <= ours.esterror <= 16


def run(root, now, *options):
    folders = [f"--{name}={root / name}" for name in ("proc", "state")]
    return run_detector("clock_skew", *folders, f"--now={now}", f"--timex={root / 'timex.json'}", *options)


def test_a_stopped_service_stays_a_fault_when_the_kernel_gives_up_and_its_restart_ends_it(tmp_path):
    arrange(tmp_path, maxerror=1_100_000)
    codes = [run(tmp_path, now)[0] for now in (5000, 5890, 5900)]
    assert codes == [UNKNOWN, UNKNOWN, FAULT]
    arrange(tmp_path, maxerror=MOST, status=UNSYNC)
    assert run(tmp_path, 5930)[:2] == (FAULT, "the clock is not synchronised; no time service runs")
    kept = json.loads((tmp_path / "state/evidence/clock_skew.json").read_text())
    assert kept["reading"]["maxerror"] == 1.1
    arrange(tmp_path)
    assert run(tmp_path, 5960)[:2] == (OK, "the clock is kept")
    arrange(tmp_path, maxerror=MOST, status=UNSYNC)
    assert run(tmp_path, 7000)[0] == UNKNOWN, "it begins anew"


def test_a_service_that_asks_seldom_may_have_a_larger_error(tmp_path):
    arrange(tmp_path, maxerror=2_500_000)
    assert [run(tmp_path, now, "--most=3")[0] for now in (5000, 6000)] == [OK, OK]
    assert [run(tmp_path, now, "--most=2")[0] for now in (5000, 6000)] == [UNKNOWN, FAULT]


def test_another_boot_begins_anew(tmp_path):
    arrange(tmp_path, maxerror=MOST, status=UNSYNC)
    run(tmp_path, 100)
    (tmp_path / "proc/sys/kernel/random/boot_id").write_text("two\n")
    assert run(tmp_path, 1000)[0] == UNKNOWN


@pytest.mark.parametrize("option", ["--most=0", "--most=x", "--patience=-1", "--patience=nan"])
def test_an_option_that_makes_no_sense_is_refused_by_name(tmp_path, option):
    code, _, errors = run(tmp_path, 100, option)
    assert code == 2
    assert f"argument {option.partition('=')[0]}: " in errors
    assert "is no number of seconds above 0" in errors


def test_the_real_kernel_is_asked_without_a_doubt_about_what_it_said(tmp_path):
    command = [str(DETECTORS / "clock_skew.py"), f"--state={tmp_path}", "--explain"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode in (OK, UNKNOWN)
    assert "maxerror: " in done.stdout
    assert list(tmp_path.iterdir()) == []


VALUES = st.recursive(st.none() | st.booleans() | st.floats() | st.text(max_size=3), st.lists)


@given(
    st.binary(max_size=40)
    | VALUES.map(lambda one: json.dumps({"offset": one, "maxerror": 1, "esterror": 1, "status": 1}).encode())
)
def test_garbage_is_no_reading(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "timex.json"
    path.write_bytes(content)
    with pytest.raises(ValueError):
        read_file(path)


@pytest.mark.parametrize("about", [{"maxerror": -1}, {"esterror": -5}])
def test_an_error_below_nothing_makes_no_sense(tmp_path, about):
    arrange(tmp_path, **about)
    code, line, _ = run(tmp_path, 100)
    assert code == UNKNOWN
    assert "makes no sense" in line

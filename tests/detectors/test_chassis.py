"""chassis: what a BMC's sensors and its log mean, in little time, and that no answer that is cut or odd is a fault."""

import argparse
import json
import os
import time
from contextlib import suppress

import chassis
import pytest
from chassis import ChassisMemory, ChassisReadings, blindness, faults, judge, logged, shortened
from hypothesis import given
from hypothesis import strategies as st

from nodelib.bmc.answer import BmcAnswer, BmcMemory, EventLog, parse_answer, parse_memory
from nodelib.bmc.chassis_child import in_turn, look
from nodelib.bmc.event_log import advance, read_log
from nodelib.bmc.ipmi_device import RECEIVE, SEND, Refusal
from nodelib.bmc.sensor_records import CutReply, parse_name, parse_record, read_list, read_record
from nodelib.bmc.sensor_states import SensorRecord, fault
from nodelib.contract.detector import Run
from nodelib.contract.memory import Stamp
from nodelib.contract.npd import Verdict
from nodelib.host.firmware_table import names_bmc, types
from nodelib.state.debounce import Streak
from tests.detectors.bmc import (
    COMPACT,
    EVENTS_ONLY,
    FAN,
    LOCATOR,
    NOW,
    REDUNDANCY,
    SPECIFIC,
    SUPPLY,
    TEMPERATURE,
    THRESHOLD,
    UNIT,
    FakeBmc,
    FakeSensor,
    entry,
)
from tests.detectors.fixtures.chassis import (
    FAN3,
    FINE,
    NO_FEED,
    PLATE,
    PSU1,
    PSU2,
    SLOW,
    TRAY,
    TWICE,
    WELL,
    kernel,
    node,
    tell,
)
from tests.detectors.node import run_detector

OK, FAULT, UNKNOWN = 0, 1, 2
FOREVER = float("inf")
REPOSITORY, RECORD, READING, ENTRY = (0x0A, 0x20), (0x0A, 0x23), (0x04, 0x2D), (0x0A, 0x43)
EVENTS = 0x7FFF


def asked(bmc, known=None, until=FOREVER):
    """What the BMC tells, and how often it was asked for a record, a state and an entry."""
    bmc.asked.clear()
    told = look(bmc.ask, known or BmcMemory(), until)
    return told, tuple(bmc.asked.count(question) for question in (RECORD, READING, ENTRY))


def seen(told):
    return ChassisReadings(told, "", {})


# ---- states

SUPPLY_WORDS = {
    0b1: "", 0b11: "failed", 0b101: "will fail soon", 0b1001: "no input power", 0b1011: "no input power",
    0b10001: "no input power, or out of range", 0b100001: "input power out of range",
    0b1000001: "does not fit the others", 0b10000001: "", 0b10: "", 0: "",
}  # fmt: skip


@pytest.mark.parametrize(("shown", "words"), SUPPLY_WORDS.items())
def test_a_supply_tells_its_fault_by_table_42_3_and_an_absent_or_inactive_one_has_none(shown, words):
    told = fault(SensorRecord("PS1", SUPPLY, SPECIFIC, 0x7F, 1), shown)
    assert told == (words and f"power supply PS1: {words}")


def test_a_supply_whose_record_does_not_know_presence_is_judged_without_it():
    assert fault(SensorRecord("PS1", SUPPLY, SPECIFIC, 0x7E, 1), 0b10) == "power supply PS1: failed"


UNIT_WORDS = [
    (REDUNDANCY, {**dict.fromkeys((1, 3, 4), "redundancy lost"), 5: "not redundant, and too little"}),
    (SPECIFIC, {4: "no input power", 6: "failed", 7: "will fail soon"}),
]


@pytest.mark.parametrize(("reading", "words"), UNIT_WORDS)
def test_a_power_unit_that_is_not_redundant_or_has_no_input_power_is_a_fault_by_tables_42_2_and_42_3(reading, words):
    told = {state: fault(SensorRecord("Unit", UNIT, reading, 0xFF, 1), 1 << state) for state in range(8)}
    assert {state: text for state, text in told.items() if text} == {
        state: f"power unit Unit: {text}" for state, text in words.items()
    }


COMPARISONS = [
    (FAN, 0b000001, ""), (FAN, 0b000010, "below its lower critical threshold"),
    (FAN, 0b000110, "below its lower non-recoverable threshold"), (FAN, 0b111000, ""), (TEMPERATURE, 0b001000, ""),
    (TEMPERATURE, 0b010000, "above its upper critical threshold"), (TEMPERATURE, 0b000111, ""),
    (TEMPERATURE, 0b110000, "above its upper non-recoverable threshold"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "shown", "words"), COMPARISONS)
def test_a_fan_is_bad_when_slow_and_a_temperature_when_high_and_a_warning_is_none(kind, shown, words):
    assert fault(SensorRecord("X", kind, THRESHOLD, 0x3F, 1), shown).partition(": ")[2] == words
    assert fault(SensorRecord("X", kind, THRESHOLD, 0, 1), shown) == ""  # it has no threshold


@pytest.mark.parametrize(
    ("reading", "shown", "leaks"),
    [(3, 0b01, False), (3, 0b10, True), (5, 0b10, True), (7, 0b1, False), (7, 0b10, True), (7, 0b100, True),
     (1, 0b001, False), (1, 0b010, True), (1, 0b1000, False), (1, 0b10000, True), (8, 0b10, False),
     (0x6F, 0b10, False)],
)  # fmt: skip
def test_a_sensor_named_for_leaks_leaks_where_its_state_is_asserted_or_critical(reading, shown, leaks):
    for name in ("LeakDetector_0", "TRAY_LEAK", "Leakage1"):
        assert fault(SensorRecord(name, 0xC0, reading, 0x3F, 1), shown) == (
            f"leak sensor {name}: leak" if leaks else ""
        )


# ---- the list of sensors


def test_the_list_is_read_once_and_again_where_a_record_or_the_firmware_has_changed():
    bmc = FakeBmc(*WELL)
    told, counts = asked(bmc)
    assert counts == (16, 7, 0)  # two questions a record
    assert asked(bmc, told.known)[1] == (0, 7, 0)
    bmc.added += 1
    assert asked(bmc, told.known)[1] == (16, 7, 0)
    told, _ = asked(bmc)
    bmc.answers[0x06, 0x01] = bmc.answers[0x06, 0x01].replace(b"\x02\x17", b"\x02\x18")
    assert asked(bmc, told.known)[1] == (16, 7, 0)


def test_only_sensors_of_supplies_fans_cooling_temperatures_and_leaks_are_asked_for_their_state():
    others = [FakeSensor(f"V{number}", 0x02, THRESHOLD, number) for number in range(100, 110)]
    bare = FakeSensor("GPU_Temp", TEMPERATURE, THRESHOLD, 99, states=0)
    bmc = FakeBmc(
        *WELL, *others, bare, extra=[bytes((0x40, 0, 0x51, LOCATOR, 25)) + bytes(25), b"\x41\0\x51\xc0\x06OEM..."]
    )
    told, counts = asked(bmc)
    assert (len(told.known.records.sensors), told.known.records.next, counts[1]) == (8, None, 7)


@pytest.fixture
def ticking(monkeypatch):
    """A monotonic clock on which a second passes whenever it is read."""
    clock = iter(range(10_000))
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))


def test_a_list_that_takes_longer_than_a_run_is_read_on_in_the_next(ticking):
    bmc, known, runs = FakeBmc(*WELL), BmcMemory(), 0
    while known.records.next is not None:
        told = look(bmc.ask, known, time.monotonic() + 4)
        known, runs = told.known, runs + 1
        assert told.why.startswith("it is still telling which sensors it has (") or known.records.next is None
    assert (runs, [one.name for one in known.records.sensors]) == (3, [one.name for one in WELL])


def test_a_reservation_that_somebody_else_cancels_is_taken_again_twenty_times():
    bmc, cancelled = FakeBmc(*WELL), [3, 9]

    def ask(function, command, data=b"", lun=0):
        if (function, command) == RECORD and cancelled and len(bmc.asked) > cancelled[0]:
            del cancelled[0]
            raise Refusal(0xC5)
        return bmc.ask(function, command, data, lun)

    assert len(read_list(ask, BmcMemory().records, FOREVER).sensors) == 8
    bmc.answers[RECORD] = b"\xc5"
    with pytest.raises(Refusal, match="0xc5"):
        read_list(bmc.ask, BmcMemory().records, FOREVER)


def test_a_list_without_an_end_ends():
    bmc = FakeBmc(PSU1)
    bmc._record = lambda those, data: b"\0\x01\0" + PSU1.body(1)[data[4] : data[4] + data[5]]
    assert asked(bmc)[0].why == "its list of sensors has no end"


def test_a_name_in_another_alphabet_is_the_sensors_number():
    assert parse_name(b"\x84abcd") == ""
    assert parse_name(b"\xc5Fan\xe9\x01x") == "Fan??"
    assert [one.name for one in parse_record(FAN3_BODY[:25], b"\x84abcd")] == ["0x41"]


def test_supplies_that_share_one_record_are_read_each():
    bmc = FakeBmc(PSU1._replace(name="PS", shared=3))
    sensors = asked(bmc)[0].known.records.sensors
    assert [(one.name, one.number) for one in sensors] == [("PS1", 0x51), ("PS2", 0x52), ("PS3", 0x53)]


FAN3_BODY = FakeSensor("FAN3", FAN, THRESHOLD, 0x41).body(3)


def test_states_that_are_not_told_in_time_are_unknown_and_leaks_are_asked_for_first(ticking):
    bmc = FakeBmc(SLOW, PSU2, PLATE)
    known = asked(bmc)[0].known
    told = look(bmc.ask, known, time.monotonic() + 3)
    assert (told.why, [*told.states]) == ("it told the state of 2 sensors in time, and no more", ["0:113", "0:65"])


class PartlyDeaf(FakeBmc):
    """A BMC that answers with `code` when it is asked for the state of a sensor of `deaf`."""

    deaf, code = frozenset(), 0xC0

    def _answer(self, function, command, data, lun):
        if (function, command) == READING and data[0] in self.deaf:
            return bytes((self.code,))
        return super()._answer(function, command, data, lun)


def deaf(sensors, numbers, code=0xC0):
    bmc = PartlyDeaf(*sensors)
    bmc.deaf, bmc.code = frozenset(numbers), code
    return bmc


def run_of(bmc, memory, now=1000.0, ignore=(), until=FOREVER):
    """One run of the detector on what this BMC tells."""
    told = look(bmc.ask, memory.bmc, until)
    why = told.why or blindness(told)
    options = argparse.Namespace(ignore=[*ignore])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chassis, "look", lambda options, memory: ChassisReadings(told, why, {}))
        return chassis.check(Run(options, Stamp("boot", now), memory))


SILENCES = [
    (0xC0, "it is busy (completion code 0xc0)"),
    (0xC3, "it does not answer (completion code 0xc3)"),
    (0xFF, "it does not answer (completion code 0xff)"),
]


@pytest.mark.parametrize(("code", "words"), SILENCES)
def test_a_sensor_that_the_bmc_tells_nothing_of_hides_no_other_and_is_named(code, words):
    told, counts = asked(deaf((PSU1, PSU2, SLOW), (PSU1.number,), code))
    assert (told.why, counts[1], told.states, told.silent) == (
        "",
        3,
        {"0:82": 1, "0:65": 2},
        {f"0:{PSU1.number}": code},
    )
    run = run_of(deaf((PSU1, PSU2, FAN3), (PSU1.number,), code), ChassisMemory())
    assert (run.verdict, run.line) == (Verdict.UNKNOWN, f"power supply PSU1_Status cannot be read: {words}")
    run = run_of(deaf((PSU1, PSU2, FAN3), (PSU1.number,), code), ChassisMemory(), ignore=["PSU1_Status"])
    assert run.verdict is Verdict.OK


@pytest.mark.parametrize(("code", "words"), SILENCES)
def test_a_bmc_that_tells_nothing_at_its_first_question_is_called_busy_or_one_that_does_not_answer(code, words):
    bmc = FakeBmc(PSU1)
    bmc.answers[REPOSITORY] = bytes((code,))
    assert asked(bmc)[0].why == words


def test_thirty_two_silent_sensors_in_a_row_end_the_questions_and_31_do_not():
    many = [FakeSensor(f"T{number}", TEMPERATURE, THRESHOLD, number) for number in range(1, 41)]
    assert asked(deaf(many, range(1, 32)))[0].why == ""
    told, counts = asked(deaf(many, range(1, 33)))
    assert (counts[1], told.why) == (
        32,
        "it told nothing of 32 sensors in a row: it is busy (completion code 0xc0)",
    )


def test_a_certain_fault_stands_while_its_sensor_alone_cannot_be_read():
    failed = PSU2._replace(shown=0b11)
    run = run_of(deaf((PSU1, failed), ()), ChassisMemory())
    run = run_of(deaf((PSU1, failed), ()), run.memory, 1240.0)
    assert (run.verdict, run.line) == (Verdict.FAULT, "power supply PSU2_Status: failed")
    for now in (1480.0, 1720.0):
        run = run_of(deaf((PSU1, failed), (failed.number,)), run.memory, now)
        assert (run.verdict, run.line) == (Verdict.FAULT, "power supply PSU2_Status: failed (not read again)")
    assert run_of(deaf((PSU1, PSU2), ()), run.memory, 1960.0).verdict is Verdict.OK
    assert run_of(deaf((PSU1, failed), (failed.number,)), run.memory, ignore=["PSU2_Status"]).verdict is Verdict.OK


def test_a_bmc_too_slow_for_its_list_has_every_sensor_judged_in_turn_supplies_before_temperatures(ticking):
    hot = FakeSensor("T9", TEMPERATURE, THRESHOLD, 9, shown=1 << 4)
    sensors = [FakeSensor(f"T{number}", TEMPERATURE, THRESHOLD, number) for number in range(1, 9)]
    bmc, orders, lines = FakeBmc(*sensors, hot, PSU2), [], []
    memory = ChassisMemory(asked(bmc)[0].known)
    for now in range(1000, 3000, 240):
        run = run_of(bmc, memory, float(now), until=time.monotonic() + 5)
        memory = run.memory
        lines.append(run.line)
        orders.append(memory.bmc.after)
    assert orders[:4] == ["0:3", "0:7", "0:1", "0:5"]
    assert lines[0] == "it told the state of 4 sensors in time, and no more"
    assert lines.index("temperature T9: above its upper critical threshold") == 4


def test_leaks_are_asked_for_in_each_run_of_a_slow_bmc_but_not_for_ever_before_all_else():
    sensors = [parse_record(one.body(1)[:25], one.body(1)[31:])[0] for one in (PLATE, PSU1, PSU2)]
    plate, first, second = (sensor.key for sensor in sensors)
    assert [one.key for one in in_turn(sensors, "")] == [plate, first, second]
    assert [one.key for one in in_turn(sensors, first)] == [plate, second, first]
    assert [one.key for one in in_turn(sensors, plate)] == [first, second, plate]


@pytest.mark.parametrize("shown", [0b1, 0b11])
def test_a_supply_that_was_present_in_this_boot_and_is_not_is_gone_and_never_repaired(shown):
    memory, verdicts = ChassisMemory(), []
    for turn, state in enumerate((shown, shown, 0, 0, 0)):
        run = run_of(FakeBmc(PSU1, PSU2._replace(shown=state)), memory, 1000.0 + 240 * turn)
        memory = run.memory
        verdicts.append(run.verdict)
    assert verdicts[3:] == [Verdict.FAULT] * 2
    assert verdicts[2] is (Verdict.UNKNOWN if shown == 1 else Verdict.FAULT)
    assert (run.verdict, run.line) == (Verdict.FAULT, "power supply PSU2_Status: gone")
    assert run_of(FakeBmc(PSU1, PSU2._replace(shown=0)), memory, ignore=["PSU2_Status"]).verdict is Verdict.OK
    assert run_of(FakeBmc(PSU1, PSU2), memory, 2440.0).verdict is Verdict.OK


# ---- the event log


def log_of(*entries):
    return FakeBmc(*WELL, log=entries)


def test_the_log_is_read_on_from_where_the_last_run_ended_and_anew_where_it_was_cleared():
    bmc = log_of(*(entry(number, TRAY, 1) for number in range(1, 6)))
    told, counts = asked(bmc)
    assert (counts[2], told.known.log.last, len(told.known.log.events)) == (5, 5, 1)
    assert asked(bmc, told.known)[1][2] == 0
    bmc.log.append(entry(6, TRAY, 1, ends=True))
    bmc.added += 1
    told, counts = asked(bmc, told.known)
    assert (counts[2], told.known.log.last, told.known.log.events) == (2, 6, ())
    bmc.log, bmc.erased = [entry(1, TRAY, 1)], bmc.erased + 1
    assert len(asked(bmc, told.known)[0].known.log.events) == 1
    bmc.log = []
    assert asked(bmc, told.known)[0].known.log == EventLog((0, bmc.added, bmc.erased), complete=True)


def test_a_log_that_has_gone_round_is_read_from_its_first_entry():
    bmc = log_of(entry(1, TRAY, 1))
    known = asked(bmc)[0].known
    bmc.added += 1
    assert asked(bmc, known._replace(log=known.log._replace(last=77)))[0].known.log.events == known.log.events


def test_a_log_that_is_not_read_to_its_end_blames_nobody():
    bmc = log_of(*(entry(number, TRAY, 1) for number in range(1, 10)))
    told, _ = asked(bmc)
    assert [*faults(seen(told), ChassisMemory())] == ["leak sensor Tray_Leak: leak (log)"]
    half = read_log(bmc.ask, EventLog(), 0.0)
    assert (half.complete, half.events) == (False, ())
    assert [*logged(told._replace(known=told.known._replace(log=told.known.log._replace(complete=False))))] == []


@pytest.mark.parametrize(
    ("told", "stand"),
    [
        ([entry(1, PSU1, 1)], 1),
        ([entry(1, PSU1, 1), entry(2, PSU1, 1, ends=True)], 0),
        ([entry(1, PSU1, 1), entry(2, PSU1, 3, ends=True)], 1),
        ([entry(1, PSU1, 1), entry(2, PSU2, 1, ends=True)], 1),
        ([entry(1, PSU1, 0)], 0),  # presence detected is no fault
        ([entry(1, TRAY, 1), entry(2, TRAY, 0)], 0),  # the state "deasserted" is asserted
        ([entry(1, PSU1._replace(owner=0x41), 1)], 0),  # the system's own software
        ([entry(1, PSU1, 1)[:2] + b"\xc0" + entry(1, PSU1, 1)[3:]], 0),  # a record of the maker's
    ],
)
def test_an_event_stands_until_it_is_deasserted_or_the_thing_is_well(told, stand):
    events = []
    for one in told:
        events = advance(events, one)
    assert len(events) == stand


def test_a_supply_that_the_bmc_lists_nowhere_is_told_by_the_log_alone():
    unlisted = FakeSensor("", SUPPLY, SPECIFIC, 0xC8, record=COMPACT)
    told, _ = asked(log_of(entry(1, unlisted, 3)))
    assert [*faults(seen(told), ChassisMemory())] == ["power supply 0xc8: no input power (log)"]
    assert [*faults(seen(told._replace(clock=NOW + 90_000)), ChassisMemory())] == []  # a day later
    assert [*faults(seen(told._replace(clock=NOW - 7200)), ChassisMemory())] == []  # the clock was set back
    assert [*faults(seen(told._replace(clock=None)), ChassisMemory())] == []


def test_a_log_that_cannot_be_read_leaves_the_sensors_judged():
    bmc = log_of(entry(1, TRAY, 1))
    bmc.answers[0x0A, 0x40] = b"\xc1"
    told, _ = asked(bmc)
    assert (told.why, told.log_why, [*faults(seen(told), ChassisMemory())]) == ("", "completion code 0xc1", [])


# ---- the judgement


def test_a_leak_is_believed_at_once_and_all_else_when_two_runs_see_it():
    once = {"fan FAN3: below its lower critical threshold": Streak(900.0, 1)}
    assert judge(seen(None), once, 1000.0)[0] is Verdict.UNKNOWN
    assert judge(seen(None), {name: Streak(900.0, 2) for name in once}, 1000.0)[0] is Verdict.FAULT
    assert judge(seen(None), {"leak sensor X: leak": Streak(1000.0, 1)}, 1000.0)[0] is Verdict.FAULT
    assert judge(seen(None), {"leak sensor X: leak (log)": Streak(1000.0, 1)}, 1000.0)[0] is Verdict.FAULT


def test_what_was_seen_before_the_bmc_fell_silent_needs_no_second_sight_after(tmp_path):
    def run(now, *orders):
        node(SLOW, orders=orders)(tmp_path)
        return run_chassis(tmp_path, now)

    assert [run(1000).code, run(1240).code, run(1480, "answer a 20 c3").code] == [UNKNOWN, FAULT, UNKNOWN]
    assert run(1720).code == FAULT


def run_chassis(root, now, *more):
    roots = [f"--{name}={root / name}" for name in ("proc", "sys", "dev", "state")]
    return run_detector(
        "chassis", *roots, f"--now={now}", *more, env={**os.environ, **json.loads((root / "env.json").read_text())}
    )


def test_a_supply_that_has_its_feed_again_is_well_at_once(tmp_path):
    for now, sensor, code in (
        (1000, NO_FEED, UNKNOWN),
        (1240, NO_FEED, FAULT),
        (1480, PSU2, OK),
        (1720, NO_FEED, UNKNOWN),
    ):
        node(sensor)(tmp_path)
        assert run_chassis(tmp_path, now).code == code


def test_a_sensor_that_is_ignored_is_no_fault_also_not_by_the_log(tmp_path):
    node(SLOW, log=(entry(1, TRAY, 1),))(tmp_path)
    assert run_chassis(tmp_path, 1000, "--ignore=FAN3").line == "leak sensor Tray_Leak: leak (log)"
    assert run_chassis(tmp_path, 1240, "--ignore=FAN3", "--ignore=Tray_Leak").code == OK


def test_a_record_that_is_shorter_than_what_is_asked_first_is_read_by_its_length():
    short = FakeSensor("P1", SUPPLY, SPECIFIC, 7, record=EVENTS_ONLY, told=b"")
    bmc = FakeBmc(short, PSU1, extra=[b"\x03\0\x51\xc0\x03abc"])
    assert len(short.body(1)) == 19
    assert [one.name for one in asked(bmc)[0].known.records.sensors] == ["P1", "PSU1_Status"]


def test_a_line_has_at_most_512_bytes_and_says_how_many_more_there_are():
    long = [f"temperature {'X' * 16}: below its lower non-recoverable threshold {number}" for number in range(300)]
    assert len(shortened(long)) <= 400
    assert shortened([*long, "leak sensor X: leak"]).startswith("leak sensor X: leak; ")
    assert shortened(long).endswith("; 296 more")


def test_a_fan_of_the_kernels_drivers_fails_where_it_worked_in_this_boot(tmp_path):
    (tmp_path / "env.json").write_text("{}")
    kernel("class/hwmon/hwmon1/fan1_fault=0", "class/hwmon/hwmon1/fan2_fault=1")(tmp_path)
    assert run_chassis(tmp_path, 1000).code == OK
    (tmp_path / "sys/class/hwmon/hwmon1/fan1_fault").write_text("1\n")
    assert [run_chassis(tmp_path, now)[:2] for now in (1240, 1480)] == [
        (UNKNOWN, "fan hwmon1/fan1: failed (kernel) (seen once)"),
        (FAULT, "fan hwmon1/fan1: failed (kernel)"),
    ]


def test_five_hundred_sensors_are_read_in_one_run_by_the_kernels_interface(tmp_path):
    fans = [FakeSensor(f"FAN{number}", FAN, THRESHOLD, number % 250, lun=number // 250) for number in range(500)]
    tell(tmp_path, FakeBmc(*fans))
    assert run_chassis(tmp_path, 1000)[:2] == (OK, "no fault of the chassis (500 sensors)")


def test_the_numbers_of_the_ioctls_are_those_of_the_kernels_header():
    assert (SEND, RECEIVE) == (0x8028690D, 0xC030690B)  # of 64-bit machines, as strace shows them


# ---- firmware


def test_the_firmware_names_a_bmc_by_acpi_or_by_type_38_of_smbios(tmp_path):
    system = bytes((1, 5, 1, 0, 1)) + b"Maker\0Board\0\0"
    bmc, end = bytes((38, 18, 2, 0)) + bytes(14) + b"\0\0", bytes((127, 4, 3, 0, 0, 0))
    folder = tmp_path / "firmware/dmi/tables"
    folder.mkdir(parents=True)
    with pytest.raises(FileNotFoundError):  # no /sys of any machine
        names_bmc(tmp_path)
    (tmp_path / "class").mkdir()
    for table, named in (
        (system + bmc + end, True),
        (system + end + bmc, False),
        (b"", False),
        (system + bmc[:9], True),
    ):
        (folder / "DMI").write_bytes(table)
        assert names_bmc(tmp_path) is named


@given(st.binary(max_size=200))
def test_no_table_of_smbios_is_too_odd(table):
    assert all(type(one) is int for one in types(table))


# ---- what is cut or odd

BAD = FakeBmc(
    *WELL, SLOW._replace(name="FAN9", number=0x49), NO_FEED._replace(name="PS9", number=0x59), log=[entry(1, TRAY, 1)]
)
TRUE_FAULTS = {*faults(seen(look(BAD.ask, BmcMemory(), FOREVER)), ChassisMemory())}


@given(
    st.integers(0, 60),
    st.integers(0, 20),
    st.sampled_from([RECORD, READING, ENTRY, REPOSITORY, (6, 1), (10, 0x40), (10, 0x48)]),
)
def test_an_answer_that_is_cut_off_is_no_fault_that_the_whole_is_not(which, left, question):
    count = 0

    def ask(function, command, data=b"", lun=0):
        nonlocal count
        told = BAD.ask(function, command, data, lun)
        count += (function, command) == question
        return told[:left] if (function, command) == question and count > which else told

    told = look(ask, BmcMemory(), FOREVER)
    named = {one.partition(": ")[2] for one in faults(seen(told), ChassisMemory())}
    assert named <= {one.partition(": ")[2] for one in TRUE_FAULTS}


@given(st.data())
def test_no_answer_is_too_odd(data):
    questions = 0

    def ask(*_args):
        nonlocal questions
        questions += 1
        if questions > 40:
            raise TimeoutError
        return data.draw(st.binary(max_size=40))

    told = look(ask, BmcMemory(), FOREVER)
    assert all(isinstance(one, str) for one in faults(seen(told), ChassisMemory()))


@given(st.binary(min_size=7, max_size=60), st.binary(max_size=20))
def test_no_record_is_too_odd(head, name):
    with suppress(CutReply):
        read_record(lambda function, command, data: head if data[4] == 0 else name, b"\0\0", 0)


anything = st.recursive(
    st.none() | st.integers() | st.text(max_size=3) | st.booleans(),
    lambda one: st.lists(one, max_size=6) | st.dictionaries(st.sampled_from(BmcAnswer._fields), one, max_size=3),
)


@given(anything)
def test_no_memory_is_too_odd(value):
    assert isinstance(parse_memory(json.dumps(value)), BmcMemory)


def test_what_is_kept_is_read_back_as_it_was():
    told, _ = asked(log_of(entry(1, TRAY, 1)))
    assert parse_memory(json.dumps(told.known)) == told.known
    assert parse_answer(json.loads(json.dumps(told._asdict()))) == told


def test_the_words_of_a_fault_are_ascii_and_begin_with_what_it_is():
    lines = [*TRUE_FAULTS]
    assert all(line.isascii() and line.split()[0] in ("fan", "power", "leak") for line in lines)


def test_a_run_that_explains_tells_each_sensor_and_keeps_nothing(tmp_path):
    node(SLOW)(tmp_path)
    for now in TWICE:
        assert run_chassis(tmp_path, now, "--explain").code == UNKNOWN
    assert "FAN3 0x2" in run_chassis(tmp_path, 1000, "--explain").line
    assert FINE not in run_chassis(tmp_path, 1000, "--explain").line

#!/usr/bin/env -S python3 -I -S -B
"""Condition ChassisFault: a power supply, a fan, the cooling or a temperature of this machine is bad, or it leaks.

The BMC is asked through the kernel's IPMI device (/dev/ipmi0), for sensors of these kinds alone; nothing is written to
it, and its log is not cleared. Faults:

  leak sensor X: leak              by the sensor's name, as IPMI has no type for them; told at once
  power supply X: no input power, failed, will fail soon, ...       what the supply itself reports
  power supply X: redundancy lost  the same of fans and power units
  fan X: below its lower critical threshold                         by the BMC's own comparison, also non-recoverable
  temperature X: above its upper critical threshold                 the same
  ... (log)                        a leak or a supply whose sensor cannot be read now: the log has it, of the last 24
                                   hours by the BMC's clock, and not its end
  power supply X: gone             it was present in this boot, and is not now; --ignore=X where that is meant
  ... (not read again)             what two runs saw before, of a sensor that does not answer now
  fan X: failed (kernel)           a driver of the kernel (hwmon) says so of a fan that worked in this boot

All but leaks are believed when two runs in a row see them. No fault: a bay that had no supply in this boot, a sensor
without a reading, warnings (non-critical), and what the log alone has of a sensor that can be read.

Remedy: ChassisFault: a leak: move the work away and have the machine taken from power and coolant at once. All else: a
person replaces the part; "no input power" on many nodes is the rack's feed. `ipmitool sdr elist` and `ipmitool sel
elist` show the same with the readings.
"Cannot tell": "the kernel has no": modprobe ipmi_si ipmi_devintf (ipmi_ssif on Arm) on the node. "cannot be asked":
run node-problem-detector privileged, with the node's /dev. "does not answer", "has not answered since": `ipmitool mc
info` on the node; where that hangs, too, restart the BMC (`ipmitool mc reset cold`, or its web page). "is still
telling", "is starting": wait. "cannot be read": the BMC
told nothing of that one sensor; where it never does, --ignore=NAME. "(seen once)": wait, and look again with --explain.

Exit codes: 0 no fault, 1 fault, 2 cannot tell.
"""

import os.path
import sys

sys.path.append(os.path.realpath(f"{__file__}/../.."))  # where nodelib/ is; python3 -I leaves it out

from nodelib.state import slots

if __name__ == "__main__":
    slots.take()  # before all that costs memory

import argparse
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from nodelib.bmc.answer import BmcAnswer, BmcMemory, LogEvent, parse_answer
from nodelib.bmc.ipmi_device import Refusal
from nodelib.bmc.sensor_states import (
    LEAK,
    SPECIFIC,
    SUPPLY,
    SensorRecord,
    fault,
    faults_of,
    is_gone,
    is_leak,
    title,
)
from nodelib.contract.detector import Detector, Findings, Run, conclude, explain, main, parser
from nodelib.contract.memory import Nonsense
from nodelib.contract.npd import Verdict
from nodelib.host.attributes import folders, text
from nodelib.host.firmware_table import names_bmc
from nodelib.state.debounce import Streak, lasts, stand

NAME = "chassis"
CHILD = Path(__file__).resolve().parents[1] / "nodelib/bmc/chassis_child.py"
DEVICES = ("ipmi0", "ipmi/0", "ipmidev/0")
FINE = "no fault of the chassis"
DAY = 86400  # seconds
DATED = 0x2000_0000  # an event with a smaller time was counted from the start of the BMC: nobody knows when that was
SHOWN = 4  # faults in a line
SHARE = 0.6  # of --deadline in which the BMC is asked; one question more may take as long as the rest


class ChassisMemory(NamedTuple):
    """What outlasts a run. `fans`: those that a driver of the kernel has told to be well in this boot.

    `supplies`: titles of the sensors of supplies that were present in this boot.
    """

    bmc: BmcMemory = BmcMemory()
    fans: frozenset[str] = frozenset()
    bad: Mapping[str, Streak] = {}
    supplies: frozenset[str] = frozenset()


class ChassisReadings(NamedTuple):
    """What one run saw. `bmc`: None without one; `why`: why it cannot be judged; `fans`: whether each one failed."""

    bmc: BmcAnswer | None
    why: str
    fans: Mapping[str, bool]


def judge(
    seen: ChassisReadings,
    bad: Mapping[str, Streak],
    now: float,
    unread: Mapping[str, Streak] = {},
    ignored: Collection[str] = (),
) -> tuple[Verdict, str]:
    """Turn what was seen, and how long each fault stands by now, into a verdict and its line.

    `unread`: the faults of earlier runs that could not be read again now.
    """
    certain = [text for text in bad if _certain(text, bad[text], now)]
    certain += [f"{text} (not read again)" for text in unread if _certain(text, unread[text], now)]
    if certain:
        return Verdict.FAULT, shortened(certain)
    doubts = {seen.why, silence(seen, ignored), shortened(bad) and f"{shortened(bad)} (seen once)"} - {""}
    return conclude(dict.fromkeys(doubts, Verdict.UNKNOWN), fine(seen))


def _certain(text: str, standing: Streak, now: float) -> bool:
    return f": {LEAK}" in text or lasts(standing, now, 0, 2)


def silence(seen: ChassisReadings, ignored: Collection[str] = ()) -> str:
    """Return which sensors the BMC told nothing of, "" for none, and where the whole cannot be judged."""
    if seen.bmc is None or seen.why:
        return ""
    silent = seen.bmc.silent
    asked = (sensor for sensor in seen.bmc.known.records.sensors if sensor.key in silent and sensor.name not in ignored)
    return shortened(f"{title(sensor)} cannot be read: {Refusal(silent[sensor.key])}" for sensor in asked)


def shortened(texts: Iterable[str]) -> str:
    """Return as many as fit into a line, leaks first."""
    ordered = sorted(texts, key=lambda words: (f": {LEAK}" not in words, words))
    return "; ".join([*ordered[:SHOWN], *([f"{len(ordered) - SHOWN} more"] if len(ordered) > SHOWN else [])])


def fine(seen: ChassisReadings) -> str:
    """Return the line of a machine that is well: what was looked at, and which leak sensors nobody can judge."""
    if seen.bmc is None:
        return "this machine has no BMC, and no fan of the kernel's has failed" if seen.fans else "it has no BMC"
    sensors = seen.bmc.known.records.sensors
    odd = [sensor.name for sensor in sensors if is_leak(sensor.name) and not faults_of(sensor)]
    note = f"; what leak sensor {odd[0]} shows has no known meaning" if odd else ""
    return f"{FINE} ({sum(state is not None for state in seen.bmc.states.values())} sensors){note}"


def faults(seen: ChassisReadings, memory: ChassisMemory, ignored: Collection[str] = ()) -> Iterator[str]:
    """Yield what is wrong now; `ignored`: names of sensors."""
    for fan, failed in seen.fans.items():
        if failed and fan in memory.fans:
            yield f"fan {fan}: failed (kernel)"
    if seen.bmc is None:
        return
    for sensor in seen.bmc.known.records.sensors:
        shown = seen.bmc.states.get(sensor.key)
        if shown is None or sensor.name in ignored:
            continue
        if is_gone(sensor, shown) and title(sensor) in memory.supplies:
            yield gone(sensor)
        elif words := fault(sensor, shown):
            yield words
    yield from logged(seen.bmc, ignored)


def gone(sensor: SensorRecord) -> str:
    """Return the text of a supply that was present in this boot, and is not now."""
    return f"{title(sensor)}: gone"


def present(seen: ChassisReadings) -> frozenset[str]:
    """Return the titles of the supplies that are present now."""
    bmc = seen.bmc or BmcAnswer()
    shown = ((sensor, bmc.states.get(sensor.key)) for sensor in bmc.known.records.sensors)
    supplies = ((sensor, state) for sensor, state in shown if (sensor.kind, sensor.reading) == (SUPPLY, SPECIFIC))
    return frozenset(title(sensor) for sensor, state in supplies if state is not None and not is_gone(sensor, state))


def not_read(seen: ChassisReadings, memory: ChassisMemory, ignored: Collection[str] = ()) -> dict[str, Streak]:
    """Return the faults of earlier runs whose sensors tell nothing of them now, and which so have not ended.

    Nothing where the BMC told of no sensor at all: then there is no sight to add them to.
    """
    if seen.bmc is None or not sighted(seen.bmc):
        return {}
    sensors = (sensor for sensor in seen.bmc.known.records.sensors if sensor.readable and sensor.name not in ignored)
    heads = tuple(f"{title(sensor)}: " for sensor in sensors if _is_unread(sensor, seen.bmc, memory))
    return {text: memory.bad[text] for text in memory.bad if text.startswith(heads) and not text.endswith(" (log)")}


def _is_unread(sensor: SensorRecord, bmc: BmcAnswer, memory: ChassisMemory) -> bool:
    """Whether the BMC told nothing of a sensor, a supply has no reading, or is gone in this run for the first time."""
    if sensor.key not in bmc.states:
        return True
    shown = bmc.states[sensor.key]
    if shown is None:
        return (sensor.kind, sensor.reading) == (SUPPLY, SPECIFIC)
    return is_gone(sensor, shown) and gone(sensor) not in memory.bad


def sighted(bmc: BmcAnswer) -> bool:
    """Whether any sensor has a reading."""
    return any(state is not None for state in bmc.states.values())


def logged(bmc: BmcAnswer, ignored: Collection[str] = ()) -> Iterator[str]:
    """Yield the events that stand, of leaks and supplies whose sensors cannot be read now."""
    sensors = {sensor.key: sensor for sensor in bmc.known.records.sensors}
    if not bmc.known.log.complete or bmc.clock is None or bmc.why or bmc.log_why:
        return
    for event in bmc.known.log.events:
        sensor = sensors.get(f"{event.lun}:{event.number}") or unlisted(event)
        recent = event.at >= DATED and 0 <= bmc.clock - event.at <= DAY
        known = bmc.states.get(sensor.key) is not None or sensor.reading != event.reading
        asked = is_leak(sensor.name) or (event.kind, event.reading) == (SUPPLY, SPECIFIC)
        if recent and asked and not known and sensor.name not in ignored:
            words = fault(sensor._replace(states=0), 1 << event.state)
            yield from [f"{words} (log)"] if words else ()


def unlisted(event: LogEvent) -> SensorRecord:
    """Return a sensor for an event of one that the BMC does not list."""
    return SensorRecord(f"{event.number:#04x}", event.kind, event.reading, 0, event.number, event.lun, readable=False)


def read_fans(sys: Path) -> dict[str, bool]:
    """Return whether each fan of the kernel's drivers has failed (hwmon). Raises OSError."""
    fans = {}
    for chip in folders(sys / "class/hwmon", r"hwmon[0-9]+"):
        for file in folders(chip, r"fan[0-9]+_fault"):
            if (state := text(file)) in ("0", "1"):
                fans[f"{chip.name}/{file.name.removesuffix('_fault')}"] = state == "1"
    return fans


def ask_bmc(options: argparse.Namespace, device: Path, known: BmcMemory) -> tuple[BmcAnswer, str]:
    """Return what the BMC told, and why it cannot be judged, "" where it can."""
    from nodelib.host.child_process import ask  # subprocess costs more than all the rest

    seconds = f"{options.deadline * SHARE:g}"
    command = [sys.executable, "-I", "-S", "-B", str(CHILD), str(device.absolute()), seconds, json.dumps(known)]
    reply = ask(command, options.state, NAME, options.deadline)
    if reply.silent_since:
        return BmcAnswer(known), f"the BMC has not answered since {reply.silent_since}"
    if reply.why:
        return BmcAnswer(known), f"the BMC cannot be asked: {reply.why}"
    try:
        answer = parse_answer(reply.answers)
    except Nonsense:
        return BmcAnswer(known), "the BMC cannot be asked: its answer makes no sense"
    why = answer.why or blindness(answer)
    return answer, f"the BMC cannot be asked: {why}" if why else ""


def blindness(answer: BmcAnswer) -> str:
    """Return why a BMC that tells all that it was asked for tells nothing of the machine, "" where it does."""
    if not answer.states and not answer.silent:
        return "it lists no sensor of supplies, fans, cooling, temperatures or leaks"
    return "" if sighted(answer) else f"none of its {len(answer.states) + len(answer.silent)} sensors has a reading"


def look(options: argparse.Namespace, memory: ChassisMemory) -> ChassisReadings:
    """Read every view."""
    why, bmc, fans = "", None, dict[str, bool]()
    try:
        fans = read_fans(options.sys)
        device = next((options.dev / name for name in DEVICES if (options.dev / name).exists()), None)
        if device:
            bmc, why = ask_bmc(options, device, memory.bmc)
        elif names_bmc(options.sys):
            why = f"the firmware names a BMC, and the kernel has no {options.dev / DEVICES[0]} for it"
    except OSError as error:
        why = f"whether there is a BMC cannot be read: {error.strerror}"
    return ChassisReadings(bmc, why, fans)


def evidence(seen: ChassisReadings) -> dict[str, Any]:
    """Return what the maker of the machine asks for first; bounded, lest it be cut elsewhere."""
    bmc = seen.bmc or BmcAnswer()
    shown = ((sensor, bmc.states.get(sensor.key)) for sensor in bmc.known.records.sensors)
    bad = [
        {"name": sensor.name, "kind": sensor.kind, "reading": sensor.reading, "states": state}
        for sensor, state in shown
        if state is not None and fault(sensor, state)
    ]
    return {"sensors": bad[:8], "log": [event._asdict() for event in bmc.known.log.events[-8:]]}


def untold(seen: ChassisReadings, memory: ChassisMemory) -> dict[str, Streak]:
    """Return the faults of earlier runs that nothing tells of where there is no sight: these have not ended."""
    if not seen.why:
        return {}
    if seen.bmc is None or not sighted(seen.bmc):
        return dict(memory.bad)
    return {text: streak for text, streak in memory.bad.items() if text.endswith(" (log)")}


def check(run: Run[ChassisMemory]) -> Findings:
    """One run: look, remember, judge."""
    seen = look(run.options, run.last)
    last, ignored = run.last, run.options.ignore
    bad = stand(faults(seen, last, ignored), last.bad, run.now)
    unread = {text: streak for text, streak in not_read(seen, last, ignored).items() if text not in bad}
    well = frozenset(name for name, failed in seen.fans.items() if not failed)
    kept = {**untold(seen, last), **unread, **bad}
    known = seen.bmc.known if seen.bmc else last.bmc
    memory = ChassisMemory(known, last.fans | well, kept, last.supplies | present(seen))
    verdict, line = judge(seen, bad, run.now, unread, ignored)
    return Findings(
        verdict,
        line,
        memory,
        evidence=lambda: evidence(seen),
        explain=lambda: explain(views(seen), {"faults": ", ".join(bad)}, verdict),
    )


def views(seen: ChassisReadings) -> dict[str, Any]:
    """Return what --explain prints of what was read."""
    bmc = seen.bmc or BmcAnswer()
    states = {sensor.name: bmc.states.get(sensor.key) for sensor in bmc.known.records.sensors}
    shown = {name: "no reading" if state is None else f"{state:#x}" for name, state in states.items()}
    log = f"{len(bmc.known.log.events)} events stand" + (f"; {bmc.log_why}" if bmc.log_why else "")
    return {"BMC": seen.why or ("asked" if seen.bmc else None), "sensors": shown, "log": log, "failed fans": seen.fans}


def parse(arguments: list[str]) -> argparse.Namespace:
    """Return the options."""
    options = parser(__doc__, 20.0, "the BMC")
    options.add_argument(
        "--ignore",
        action="append",
        default=[],
        metavar="NAME",
        help="a sensor that is not judged, as of a fan that the machine has not; again for each",
    )
    return options.parse_args(arguments)


DETECTOR = Detector(NAME, "ChassisFault", check, ChassisMemory)


if __name__ == "__main__":
    main(parse(sys.argv[1:]), DETECTOR)

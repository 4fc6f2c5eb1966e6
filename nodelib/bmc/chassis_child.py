"""The child that asks the BMC of this machine: `python3 chassis_child.py DEVICE SECONDS KNOWN ANSWER`.

Run by detectors/chassis.py, never by hand: a BMC that hangs may keep it, and it must then be left behind. KNOWN is what
the last run kept, as JSON; ANSWER, the file to write, gets what is known now and the state of each sensor.
"""

import errno
import os
import sys
import time
from collections.abc import Iterable
from pathlib import Path

sys.path.append(os.path.realpath(f"{__file__}/../../.."))  # where nodelib/ is: this file is a program, too

from nodelib.bmc.answer import BmcAnswer, BmcMemory, parse_memory
from nodelib.bmc.event_log import read_clock, read_log
from nodelib.bmc.ipmi_device import IpmiDevice, Refusal
from nodelib.bmc.sensor_records import Ask, CutReply, read_list, read_state
from nodelib.bmc.sensor_states import TEMPERATURE, SensorRecord, is_leak
from nodelib.contract.npd import write_json

MOST_SILENT = 32  # sensors in a row that the BMC tells nothing of; fewer may be those of empty slots for memory


def look(ask: Ask, known: BmcMemory, until: float) -> BmcAnswer:
    """Ask for the list of sensors where it has changed, for the state of each, and for the log, until `until`."""
    answer = BmcAnswer(known)
    try:
        records = read_list(ask, known.records, until)
    except (Refusal, TimeoutError, OSError, CutReply) as error:
        return answer._replace(why=_why(error))
    answer = answer._replace(known=known._replace(records=records))
    if records.next is not None:
        return answer._replace(why=f"it is still telling which sensors it has ({len(records.sensors)} so far)")
    answer = read_states(ask, answer, until)
    return answer if answer.why else _with_log(ask, answer, until)


def read_states(ask: Ask, answer: BmcAnswer, until: float) -> BmcAnswer:
    """Return the answer with the state of each sensor; one that the BMC tells nothing of does not hide the others."""
    states: dict[str, int | None] = {}
    silent: dict[str, int] = {}
    why, after, in_a_row = "", answer.known.after, 0
    for sensor in in_turn(answer.known.records.sensors, answer.known.after):
        if time.monotonic() >= until:
            why = f"it told the state of {len(states)} sensors in time, and no more"
            break
        after = sensor.key
        try:
            states[sensor.key], in_a_row = read_state(ask, sensor), 0
        except Refusal as error:
            silent[sensor.key], in_a_row = error.code, in_a_row + 1
            why = f"it told nothing of {in_a_row} sensors in a row: {error}" if in_a_row >= MOST_SILENT else ""
        except (TimeoutError, OSError) as error:
            why = _why(error)
        if why:
            break
    known = answer.known._replace(after=after if why else "")
    return answer._replace(known=known, states=states, silent=silent, why=why)


def in_turn(sensors: Iterable[SensorRecord], after: str) -> list[SensorRecord]:
    """Return the sensors to ask for: leaks first, temperatures, which are many, last.

    Where the last run ended at `after`, the next sensor follows the leaks: the end of the list has its turn, too. Where
    it ended among the leaks, the next sensor is the first.
    """
    order = sorted((sensor for sensor in sensors if sensor.readable), key=_place)
    leaks = sum(is_leak(sensor.name) for sensor in order)
    at = next((place for place, sensor in enumerate(order, 1) if sensor.key == after), 0)
    first = 0 if at <= leaks else leaks
    return [*order[:first], *order[at:], *order[first:at]]


def _place(sensor: SensorRecord) -> int:
    if is_leak(sensor.name):
        return 0
    return 2 if sensor.kind == TEMPERATURE else 1


def _with_log(ask: Ask, answer: BmcAnswer, until: float) -> BmcAnswer:
    try:
        log = read_log(ask, answer.known.log, until)
        answer = answer._replace(known=answer.known._replace(log=log))
        return answer._replace(clock=read_clock(ask))
    except (Refusal, TimeoutError, OSError, CutReply) as error:
        return answer._replace(log_why=_why(error))


def _why(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "it does not answer"
    if isinstance(error, OSError):
        return f"{errno.errorcode.get(error.errno or 0, 'unknown error')} of its device"
    return str(error)


def main(device: Path, seconds: float, known: BmcMemory, answer: Path) -> None:
    """Ask, and write what was told."""
    try:
        reply = look(IpmiDevice(device).ask, known, time.monotonic() + seconds)
    except OSError as error:
        reply = BmcAnswer(known, why=_why(error))
    write_json(answer, {**reply._asdict(), "done": True})


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]), parse_memory(sys.argv[3]), Path(sys.argv[4]))

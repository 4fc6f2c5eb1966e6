"""The child that asks the BMC of this machine: `python3 chassis_child.py DEVICE SECONDS KNOWN ANSWER`.

Run by detectors/chassis.py, never by hand: a BMC that hangs may keep it, and it must then be left behind. KNOWN is what
the last run kept, as JSON; ANSWER, the file to write, gets what is known now and the state of each sensor.
"""

import errno
import os
import sys
import time
from pathlib import Path

sys.path.append(os.path.realpath(f"{__file__}/../../.."))  # where nodelib/ is: this file is a program, too

from nodelib.contract.npd import write_json
from nodelib.host.bmc_answer import BmcAnswer, BmcMemory, parse_memory
from nodelib.host.event_log import read_clock, read_log
from nodelib.host.ipmi_device import IpmiDevice, Refusal
from nodelib.host.sensor_records import Ask, CutReply, read_list, read_state
from nodelib.host.sensor_states import is_leak


def look(ask: Ask, known: BmcMemory, until: float) -> BmcAnswer:
    """Ask for the list of sensors where it has changed, for the state of each, and for the log, until `until`."""
    answer = BmcAnswer(known)
    try:
        records = read_list(ask, known.records, until)
        answer = answer._replace(known=known._replace(records=records))
        if records.next is not None:
            return answer._replace(why=f"it is still telling which sensors it has ({len(records.sensors)} so far)")
        states: dict[str, int | None] = {}
        answer = answer._replace(states=states)
        first = sorted(records.sensors, key=lambda sensor: not is_leak(sensor.name))
        for sensor in (sensor for sensor in first if sensor.readable):
            if time.monotonic() >= until:
                return answer._replace(why=f"it told the state of {len(states)} sensors in time, and no more")
            states[sensor.key] = read_state(ask, sensor)
    except (Refusal, TimeoutError, OSError, CutReply) as error:
        return answer._replace(why=_why(error))
    try:
        log = read_log(ask, known.log, until)
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

"""What the BMC of this machine told, and what is kept of it from run to run: the words between detector and child."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from nodelib.bmc.sensor_states import SensorRecord
from nodelib.contract.memory import Nonsense, reader


class SensorList(NamedTuple):
    """Sensors read so far. `next`: the record to read next, None for none; `version`: by which a change is seen."""

    version: tuple[int, ...] = ()
    sensors: tuple[SensorRecord, ...] = ()
    next: int | None = 0


class LogEvent(NamedTuple):
    """A state of a sensor that was asserted at `at`, in seconds of the BMC's clock. `reading`: type of the event."""

    kind: int
    reading: int
    state: int
    number: int
    lun: int
    at: int


class EventLog(NamedTuple):
    """What was read. `version`: by which a change is seen; `last`: the newest entry that was read, 0 before the first.

    `complete`: whether there is none behind it; `events`: those that stand.
    """

    version: tuple[int, ...] = ()
    last: int = 0
    complete: bool = False
    events: tuple[LogEvent, ...] = ()


class BmcMemory(NamedTuple):
    """What is known of a BMC from run to run.

    `after`: key of the sensor that was asked last where a run did not come to all of them, "" where it did.
    """

    records: SensorList = SensorList()
    log: EventLog = EventLog()
    after: str = ""


class BmcAnswer(NamedTuple):
    """What the BMC told in one run. `states`: of sensors by their keys, None for one that has none now.

    `silent`: completion codes, by the keys of sensors that the BMC was asked for and told nothing of.
    `clock`: its time in seconds; `why`: why not all was told, "" where it was; `log_why`: the same for the log.
    """

    known: BmcMemory = BmcMemory()
    states: Mapping[str, int | None] = {}
    clock: int | None = None
    why: str = ""
    log_why: str = ""
    silent: Mapping[str, int] = {}


def parse_answer(content: dict[str, Any]) -> BmcAnswer:
    """Read what a child wrote. Raises Nonsense."""
    answer: BmcAnswer = reader(BmcAnswer)({name: content[name] for name in BmcAnswer._fields if name in content})
    return answer


def parse_memory(text: str) -> BmcMemory:
    """Read what the last run kept; nonsense is no memory."""
    try:
        known: BmcMemory = reader(BmcMemory)(json.loads(text))
    except (ValueError, Nonsense):
        return BmcMemory()
    return known

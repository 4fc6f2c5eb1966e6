"""Which states of which sensors of a BMC are faults: tables of IPMI 2.0, 42-2 (types of readings) and 42-3 (sensors).

Pure. The BMC itself compares a reading with the thresholds of its sensor, and tells a bit for each. IPMI has no type of
sensor for leaks: these are known by their names.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

TEMPERATURE, FAN, SUPPLY, UNIT, COOLING = 0x01, 0x04, 0x08, 0x09, 0x0A
NOUNS = {
    TEMPERATURE: "temperature",
    FAN: "fan",
    SUPPLY: "power supply",
    UNIT: "power unit",
    COOLING: "cooling device",
}
THRESHOLD, ASSERTED, PREDICTED, LIMIT, SEVERITY, REDUNDANCY, SPECIFIC = 0x01, 0x03, 0x04, 0x05, 0x07, 0x0B, 0x6F
GENERIC = range(0x02, 0x0D)  # types of readings whose state 0 is that of a thing that is well
LEAKS = re.compile("leak", re.IGNORECASE)
PRESENT = 1 << 0  # of a power supply

Words = Mapping[int, str]  # by the number of the state; the first that a sensor shows is told
LOW = {2: "below its lower non-recoverable threshold", 1: "below its lower critical threshold"}
HIGH = {5: "above its upper non-recoverable threshold", 4: "above its upper critical threshold"}
SEVERE = {3: "non-recoverable", 6: "non-recoverable", 2: "critical", 5: "critical"}
SOON = {1: "will fail soon"}
ALONE = {5: "not redundant, and too little", **dict.fromkeys((1, 3, 4), "redundancy lost")}
OF_SUPPLY = {
    3: "no input power",
    4: "no input power, or out of range",
    5: "input power out of range",
    6: "does not fit the others",
    1: "failed",
    2: "will fail soon",
}
FAULTS: Mapping[tuple[int, int], Words] = {
    (SUPPLY, SPECIFIC): OF_SUPPLY,
    (UNIT, SPECIFIC): {4: "no input power", 6: "failed", 7: "will fail soon"},
    (FAN, THRESHOLD): LOW,
    (COOLING, THRESHOLD): LOW,
    (TEMPERATURE, THRESHOLD): HIGH,
    (TEMPERATURE, LIMIT): {1: "above its limit"},
    **{(kind, SEVERITY): SEVERE for kind in NOUNS},
    **{(kind, PREDICTED): SOON for kind in (SUPPLY, UNIT, FAN, COOLING)},
    **{(kind, REDUNDANCY): ALONE for kind in (SUPPLY, UNIT, FAN, COOLING)},
}
LEAK = "leak"
FAULTS_OF_LEAKS: Mapping[int, Words] = {
    THRESHOLD: dict.fromkeys((5, 4, 2, 1), LEAK),
    **{reading: {1: LEAK} for reading in (ASSERTED, PREDICTED, LIMIT)},
    SEVERITY: dict.fromkeys((1, *SEVERE, 4), LEAK),
}


class SensorRecord(NamedTuple):
    """A sensor. `kind` and `reading`: numbers of the tables above; `states`: a bit for each threshold that it
    has, or for each state that its record says it can show (which not all records say).

    `readable`: whether it can be read, or only puts events into the log; `lun` and `number` are its address.
    """

    name: str
    kind: int
    reading: int
    states: int
    number: int
    lun: int = 0
    readable: bool = True

    @property
    def key(self) -> str:
        """The sensor's address as a word."""
        return f"{self.lun}:{self.number}"


def is_leak(name: str) -> bool:
    """Whether a sensor of this name is for leaks."""
    return LEAKS.search(name) is not None


def is_watched(sensor: SensorRecord) -> bool:
    """Whether a fault may show on it: a threshold that it has not is never passed. Each one for leaks counts."""
    if is_leak(sensor.name) or sensor.reading != THRESHOLD:
        return is_leak(sensor.name) or bool(faults_of(sensor))
    return any(sensor.states >> state & 1 for state in faults_of(sensor))


def faults_of(sensor: SensorRecord) -> Words:
    """Return the states of a sensor that are faults, with their words."""
    if is_leak(sensor.name):
        return FAULTS_OF_LEAKS.get(sensor.reading, {})
    return FAULTS.get((sensor.kind, sensor.reading), {})


def noun(sensor: SensorRecord) -> str:
    """Return what the sensor is of."""
    return "leak sensor" if is_leak(sensor.name) else NOUNS.get(sensor.kind, "sensor")


def is_gone(sensor: SensorRecord, shown: int) -> bool:
    """Whether a sensor of a power supply that can tell its presence shows that there is none."""
    tells = (sensor.kind, sensor.reading) == (SUPPLY, SPECIFIC) and sensor.states & PRESENT
    return bool(tells) and not shown & PRESENT


def title(sensor: SensorRecord) -> str:
    """Return what the text of a fault begins with: what the sensor is of, and its name."""
    return f"{noun(sensor)} {sensor.name}"


def fault(sensor: SensorRecord, shown: int) -> str:
    """Return what is wrong where a sensor shows these states, "" for nothing.

    A bay for a power supply may be empty by design: what is not present has no fault.
    """
    if is_gone(sensor, shown):
        return ""
    if sensor.reading == THRESHOLD:
        shown &= sensor.states
    words = next((words for state, words in faults_of(sensor).items() if shown >> state & 1), "")
    return words and f"{title(sensor)}: {words}"

"""What NVML knows of clocks that hardware holds down: questions for the child, and how long it lasts, from run to run.

Each GPU counts, in nanoseconds, how long it was slowed down for heat and by the power brake, in fields whose ids moved
from driver to driver; an id of another driver answers with something else. What has no counter is known at the moment
of a run only and taken for the whole time since the last one. Times are seconds since boot.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from nodelib.host.driver import release
from nodelib.nvml.fields import NOT_THERE, ask_fields
from nodelib.nvml.queries import Question

WINDOW = 600.0  # seconds that are looked back on
GAP = 180.0  # seconds between two runs beyond which nothing is known of the time between

HW_SLOWDOWN, HW_THERMAL, POWER_BRAKE = 0x08, 0x40, 0x80  # of NVML's clocks event reasons
# NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_{THERM_SLOWDOWN,POWER_BRAKE_SLOWDOWN}, by the first driver that has them so.
# Between 580.65 and 580.82 nobody has said which they are.
COUNTERS: tuple[tuple[tuple[int, ...], dict[str, int]], ...] = (
    ((0,), {}),
    ((575,), {"heat": 252, "brake": 253}),
    ((580, 66), {}),
    ((580, 82), {"heat": 270, "brake": 271}),
)
SLOWDOWN_LIMIT = 194  # NVML_FI_DEV_TEMPERATURE_SLOWDOWN_TLIMIT: the margin, in degrees, at which the GPU slows down


def _clocks(nvml: Any, gpu: Any) -> dict[str, Any]:
    try:
        return {"reasons": nvml.nvmlDeviceGetCurrentClocksEventReasons(gpu)}
    except nvml.NVMLError as error:
        if error.value not in NOT_THERE:
            raise
        return {"reasons": nvml.nvmlDeviceGetCurrentClocksThrottleReasons(gpu)}  # drivers before 535


def counters(version: str) -> dict[str, int]:
    """Return the fields that count slow time in a driver of `version` ("" for not known), {} where there are none.

    >>> counters("580.65.06"), counters("615.71"), counters("570.172"), counters("")
    ({'heat': 252, 'brake': 253}, {'heat': 270, 'brake': 271}, {}, {})
    """
    return [{}, *(fields for first, fields in COUNTERS if first <= release(version))][-1]


def _counters(version: str) -> Question:
    fields = counters(version)
    return lambda nvml, gpu: ask_fields(nvml, gpu, fields) if fields else {}


def _margin(nvml: Any, gpu: Any) -> dict[str, Any]:
    limit = ask_fields(nvml, gpu, {"limit": SLOWDOWN_LIMIT})
    return {"margin": nvml.nvmlDeviceGetMarginTemperature(gpu), **limit} if limit else {}


def questions(version: str) -> dict[str, Question]:
    """Return the questions for a driver of `version`."""
    return {"clocks": _clocks, "slow time": _counters(version), "heat margin": _margin}


class Slow(NamedTuple):
    """A time between two runs: when it ended, how long it was, and how much of it was slow, each kind in seconds."""

    ended: float
    length: float
    kinds: Mapping[str, float]


class ThrottlePast(NamedTuple):
    """What is known of one GPU: when it was last asked, its counters then, and the times since."""

    at: float
    counters: Mapping[str, int]
    times: tuple[Slow, ...] = ()

    @property
    def observed(self) -> float:
        """Seconds that are known."""
        return sum(time.length for time in self.times)

    def slow(self, kind: str) -> float:
        """Seconds of those that were slow."""
        return sum(time.kinds.get(kind, 0.0) for time in self.times)


def signs(facts: Mapping[str, Mapping[str, Any]]) -> set[str]:
    """Return the kinds of slowness that a GPU shows at this moment.

    Bit 0x08 comes with the bits of its causes; alone it is a kind of its own.

    >>> sorted(signs({"clocks": {"reasons": 0x48}, "heat margin": {"margin": -3, "limit": -2}}))
    ['heat', 'margin']
    """
    reasons, heat = facts.get("clocks", {}).get("reasons", 0), facts.get("heat margin", {})
    return {
        *(["heat"] if reasons & HW_THERMAL else []),
        *(["brake"] if reasons & POWER_BRAKE else []),
        *(["slowdown"] if reasons & (HW_SLOWDOWN | HW_THERMAL | POWER_BRAKE) == HW_SLOWDOWN else []),
        *(["margin"] if "margin" in heat and heat["margin"] < heat.get("limit", heat["margin"]) else []),
    }


def advance(past: ThrottlePast | None, facts: Mapping[str, Mapping[str, Any]], now: float) -> ThrottlePast:
    """Return what is known after one more look at a GPU; times that ended before the window are dropped."""
    counters = facts.get("slow time", {})
    if past is None or past.at > now:
        return ThrottlePast(now, counters)
    kept = tuple(time for time in past.times if now - WINDOW < time.ended <= now)
    length = now - past.at
    if not 0 < length <= GAP:
        return ThrottlePast(now, counters, kept)
    kinds = dict.fromkeys(signs(facts), length)
    for name, count in counters.items():
        grown = count - past.counters.get(name, count)
        if grown > 0:  # a counter that went back was cleared by a reset, one that stands may not be kept at all
            kinds[name] = min(grown / 1e9, length)
    return ThrottlePast(now, counters, (*kept, Slow(now, length, kinds)))

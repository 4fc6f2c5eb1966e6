"""What some policies of a plan make their cases wait for: windows, approvals, nodes without work."""

from collections.abc import Sequence
from datetime import timedelta
from random import Random
from zoneinfo import ZoneInfo

from remediator_sim.simulation.clock import BEGIN
from remediator_sim.simulation.fault import ACTING
from remediator_sim.simulation.plan import Step, Words

APPROVAL = ("approval", "Required")
ZONES = ("UTC", "Asia/Tokyo", "Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe")
DEADLINES = ("5m", "20m", "1h", "None")


def drawn_for(chance: Random, policies: Sequence[str], faults: Sequence[Step]) -> tuple[tuple[str, Words], ...]:
    """One policy that acts waits for something, or for two things at once: that of one of the faults."""
    conditions = [fault["condition"] for fault in faults]
    acting = [name for kind in conditions for name in policies if name in ACTING and ACTING[name].condition == kind]
    if not acting:
        return ()
    kinds = _kinds(chance)
    return ((chance.choice(acting), tuple(chance.sample(kinds, chance.choice((1, 1, 1, 2))))),)


def drawn(chance: Random) -> tuple[str, object]:
    """One thing to wait for: a part of the spec of a policy, and its value."""
    return chance.choice(_kinds(chance))


def _kinds(chance: Random) -> tuple[tuple[str, object], ...]:
    return (APPROVAL, _windows(chance), _idle(chance))


def _idle(chance: Random) -> tuple[str, object]:
    return "urgency", {"mode": "WhenIdle", "deadline": chance.choice(DEADLINES)}


def _windows(chance: Random) -> tuple[str, object]:
    """Each hour, or twice in the afternoon of the day on which a plan begins, by the clocks of some zone."""
    zone, minutes = chance.choice(ZONES), chance.choice((20, 40))
    opens = (BEGIN + timedelta(minutes=chance.randint(10, 100))).astimezone(ZoneInfo(zone))
    again = opens + timedelta(hours=2)
    at = f"{opens.minute} {opens.hour},{again.hour} * * {opens.isoweekday() % 7},{again.isoweekday() % 7}"
    cron = chance.choice((f"{opens.minute} * * * *", at))
    return "windows", [{"cron": cron, "duration": f"{minutes}m", "timeZone": zone}]

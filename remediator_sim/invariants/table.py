"""The thirteen promises in words, and which check looks at which kind of event for each of them."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from remediator_sim.invariants import (
    absence,
    attempts,
    budgets,
    endings,
    evidence,
    marks,
    objects,
    outside,
    stops,
    survival,
    tickets,
)
from remediator_sim.invariants.contract import BUDGETS, CASES, NODES, OPERATIONS, PODS, TICKETS
from remediator_sim.invariants.event import ALERTS, BAD, FINAL, HARM, ISSUES, PROBE, REBOOT, TICK, Event
from remediator_sim.invariants.history import History

# Gives HELD, or a sentence, for each thing that there was to look at: for most events none.
Check = Callable[[History, Event], Iterable[str]]


class CheckRow(NamedTuple):
    """One check: what it is for, which events it is told of, and the function."""

    name: str
    kind: str
    check: Check


TEXTS = {
    "I1": "No budget is exceeded by our doing",
    "I2": "A disruptive Pod runs once per attempt; a node reboots once per intent",
    "I3": "Nothing disruptive starts on unknown, stale or absent evidence",
    "I4": "The breaker and every hold stop starts, and only starts",
    "I5": "Every case ends or is handed to a person, and leaves nothing behind",
    "I6": "What a person set survives",
    "I7": "Killing the controller loses nothing",
    "I8": "One thing gone wrong, at most one open issue",
    "I9": "The extender names each node once, and gives no work to an unhealthy one",
    "I10": "Attempts are finite; after the last one the case escalates",
    "I11": "Bad data harms only its own object",
    "I12": "Every stop takes effect at the next step, also in the middle of a case",
    "I13": "Our own absence is nobody's fault",
}

# What only the simulation puts to the test: odd objects, and a replica or a server that is away for long.
SIMULATED = frozenset({"I11", "I13"})

CHECKS = (
    CheckRow("I1", BUDGETS, budgets.admitted),
    CheckRow("I1", BUDGETS, budgets.kept),
    CheckRow("I1", NODES, budgets.entered),
    CheckRow("I1", FINAL, budgets.adopted),
    CheckRow("I2", PODS, attempts.one_pod),
    CheckRow("I2", PODS, attempts.of_the_attempt),
    CheckRow("I2", OPERATIONS, attempts.one_operation),
    CheckRow("I2", OPERATIONS, attempts.one_intent),
    CheckRow("I2", OPERATIONS, attempts.present_boot),
    CheckRow("I2", REBOOT, attempts.one_reboot),
    CheckRow("I3", NODES, evidence.claim),
    CheckRow("I3", CASES, evidence.start),
    CheckRow("I3", OPERATIONS, evidence.intent),
    CheckRow("I3", PODS, evidence.pod),
    CheckRow("I4", CASES, stops.breaker),
    CheckRow("I4", CASES, stops.held),
    CheckRow("I4", PODS, stops.pod),
    CheckRow("I4", CASES, stops.goes_on),
    CheckRow("I4", TICK, stops.stuck),
    CheckRow("I5", CASES, endings.in_time),
    CheckRow("I5", CASES, endings.ends_once),
    CheckRow("I5", NODES, endings.come_back),
    CheckRow("I5", TICK, endings.still_open),
    CheckRow("I5", TICK, endings.waits_for_the_dead),
    CheckRow("I5", TICK, endings.cleared),
    CheckRow("I5", FINAL, endings.end),
    CheckRow("I6", NODES, marks.survive),
    CheckRow("I6", FINAL, marks.end),
    CheckRow("I6", ISSUES, tickets.left_to_users),
    CheckRow("I7", CASES, survival.stays),
    CheckRow("I7", OPERATIONS, survival.stays),
    CheckRow("I7", TICKETS, survival.stays),
    CheckRow("I7", TICK, survival.moves_on),
    CheckRow("I7", FINAL, survival.moves_on),
    CheckRow("I7", ALERTS, tickets.told_of_alerts),
    CheckRow("I8", ISSUES, tickets.one_issue),
    CheckRow("I8", TICKETS, tickets.one_ticket),
    CheckRow("I8", FINAL, tickets.told_a_person),
    CheckRow("I8", FINAL, tickets.closed_when_over),
    CheckRow("I9", PROBE, outside.each_once),
    CheckRow("I9", PROBE, outside.no_sick_node),
    CheckRow("I10", CASES, attempts.finite),
    CheckRow("I10", CASES, attempts.handed_over),
    CheckRow("I11", BAD, objects.written),
    CheckRow("I11", HARM, objects.harmed),
    CheckRow("I12", PODS, stops.next_pod),
    CheckRow("I12", OPERATIONS, stops.next_intent),
    CheckRow("I12", TICK, stops.cancelled),
    CheckRow("I12", TICK, endings.obeyed),
    CheckRow("I12", NODES, stops.claimed),
    CheckRow("I12", PODS, stops.evicted),
    CheckRow("I12", REBOOT, stops.rebooted),
    CheckRow("I12", CASES, stops.truly_of_control_plane),
    CheckRow("I13", OPERATIONS, absence.in_vain),
    CheckRow("I13", CASES, absence.verified_in_vain),
)

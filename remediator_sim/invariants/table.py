"""The ten promises in words, and which check looks at which kind of event for each of them."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from remediator_sim.invariants import attempts, budgets, endings, evidence, marks, outside, stops, survival
from remediator_sim.invariants.contract import BUDGETS, CASES, NODES, OPERATIONS, PODS, TICKETS
from remediator_sim.invariants.event import FINAL, ISSUES, PROBE, REBOOT, TICK, Event
from remediator_sim.invariants.history import History

# Gives HELD, or a sentence, for each thing that there was to look at: for most events none.
Check = Callable[[History, Event], Iterable[str]]


class Row(NamedTuple):
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
    "I9": "The extender names each node once, and gives no work to a sick one",
    "I10": "Attempts are finite; after the last one the case escalates",
}

CHECKS = (
    Row("I1", BUDGETS, budgets.admitted),
    Row("I1", BUDGETS, budgets.kept),
    Row("I1", NODES, budgets.entered),
    Row("I2", PODS, attempts.one_pod),
    Row("I2", OPERATIONS, attempts.one_operation),
    Row("I2", OPERATIONS, attempts.one_intent),
    Row("I2", REBOOT, attempts.one_reboot),
    Row("I3", NODES, evidence.claim),
    Row("I3", CASES, evidence.start),
    Row("I3", OPERATIONS, evidence.intent),
    Row("I3", PODS, evidence.pod),
    Row("I4", CASES, stops.breaker),
    Row("I4", CASES, stops.held),
    Row("I4", PODS, stops.pod),
    Row("I4", CASES, stops.goes_on),
    Row("I4", TICK, stops.stuck),
    Row("I5", CASES, endings.in_time),
    Row("I5", NODES, endings.come_back),
    Row("I5", TICK, endings.still_open),
    Row("I5", TICK, endings.cleared),
    Row("I5", FINAL, endings.end),
    Row("I6", NODES, marks.survive),
    Row("I6", FINAL, marks.end),
    Row("I7", CASES, survival.stays),
    Row("I7", OPERATIONS, survival.stays),
    Row("I7", TICKETS, survival.stays),
    Row("I7", TICK, survival.moves_on),
    Row("I7", FINAL, survival.moves_on),
    Row("I8", ISSUES, outside.one_issue),
    Row("I8", TICKETS, outside.one_ticket),
    Row("I8", FINAL, outside.told_a_person),
    Row("I9", PROBE, outside.each_once),
    Row("I9", PROBE, outside.no_sick_node),
    Row("I10", CASES, attempts.finite),
    Row("I10", CASES, attempts.handed_over),
)

"""Each row of a decision table left out, and each condition of each row; each look-again left out."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from remediator.controller.handlers import case as case_handlers
from remediator.controller.handlers import operation as operation_handlers
from remediator.controller.handlers import request as request_handlers
from remediator.core import case_table, offer, operation_table, outside_request, request_table
from remediator.core.table import Table
from remediator.tickets.reconcile import states
from tests.simulation.mutations.patch import Patches, handler, sets

HANDLERS = (case_handlers.HANDLERS, operation_handlers.HANDLERS, request_handlers.HANDLERS)


def rows() -> Iterator[tuple[str, Patches]]:
    """By name, what takes a row or a condition away."""
    for module, name, label in (
        (case_table, "CASE_TABLE", "case table"),
        (operation_table, "OPERATION_TABLE", "operation table"),
        (offer, "OFFER_TABLE", "offer table"),
        (request_table, "REQUEST_TABLE", "request table"),
        (outside_request, "OUTSIDE_TABLE", "outside table"),
    ):
        for row, table in _without(getattr(module, name), looser=True):
            yield f"{label}, {row}", sets(module, name, table)
    for state, whole in states.TABLES.items():
        for row, table in _without(whole, looser=False):
            yield f"ticket table {state.name}, {row}", sets(states.TABLES, state, table)


def _without(table: Table[Any], *, looser: bool) -> Iterator[tuple[str, Table[Any]]]:
    whole = table.rows
    for index, row in enumerate(whole[:-1]):
        asks = " ".join(f"{word}={getattr(value, 'name', value)}" for word, value in row.asks.items())
        label = f"{asks} -> {row.result.name}"
        yield f"{label}: no row", Table((*whole[:index], *whole[index + 1 :]))
        for word in row.asks if looser and len(row.asks) > 1 else ():
            fewer = replace(row, asks={key: value for key, value in row.asks.items() if key != word})
            yield f"{label}: without {word}", Table((*whole[:index], fewer, *whole[index + 1 :]))


def looks() -> Iterator[tuple[str, Patches]]:
    """By name, what takes a look-again away."""
    for handlers in HANDLERS:
        for step, held in handlers.items():
            if held.check is not None:
                yield f"{step.name} is not looked at again", handler(handlers, step, check=None)

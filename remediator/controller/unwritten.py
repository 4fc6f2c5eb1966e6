"""Ledgers that could not be written: which cases need them, and how these are held."""

from collections.abc import Mapping
from dataclasses import replace

from remediator.controller.effects import GaveUp, Retry
from remediator.core import guard
from remediator.core.admission import Admission, StartRequest
from remediator.core.case import Block
from remediator.core.census import BudgetIndex
from remediator.core.reasons import Reason

Failed = Mapping[str, Retry | GaveUp]  # ledgers that could not be written, by name


def unwritten(request: StartRequest, index: BudgetIndex, failed: Failed) -> Failed:
    """The ledgers that the case needs and that failed; one that holds its node, or asks for a new one, needs none."""
    if request.case.claimed or not request.case.takes_capacity or not failed:
        return {}
    return {name: failed[name] for name in index.over(request.node) if name in failed}


def moves(missing: Failed) -> bool:
    """Whether a ledger changes at this moment: nothing is worth telling of that."""
    return any(isinstance(result, Retry) for result in missing.values())


def refusals(missing: Failed) -> tuple[Block, ...]:
    """What such ledgers hold a case with."""
    return tuple(guard.block(Reason.BUDGET_REFUSED, f"budget {name}: {result.why}") for name, result in missing.items())


def entered(admission: Admission, index: BudgetIndex, refused: Failed) -> Admission:
    """What is left of an admission where some ledgers could not be written: who needs a refused one is held."""
    admitted: list[StartRequest] = []
    held = list(admission.held)
    for request in admission.admitted:
        missing = unwritten(request, index, refused)
        if not missing:
            admitted.append(request)
        elif not moves(missing):
            held.append((request, refusals(missing)))
    return replace(admission, admitted=tuple(admitted), held=tuple(held))

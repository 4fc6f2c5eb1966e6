"""An answer to a user's operation → its effects. Pure: it builds every request body and sends nothing."""

from dataclasses import replace
from datetime import datetime

from remediator.controller import pods
from remediator.controller.effects import Create, Plan, SaveOperation
from remediator.controller.request_view import RequestView
from remediator.core import keep_out, manual
from remediator.core.case import Attempt, AttemptOutcome, Case, Phase
from remediator.core.operation import Operation, OperationPhase
from remediator.core.reasons import Reason
from remediator.kube import api
from remediator.kube.api import encode


def open_case(view: RequestView, now: datetime) -> Plan:
    """Open its case, under a name that follows from the operation, then say so."""
    asked, name = view.operation, manual.case_name(view.operation)
    opened = replace(asked, phase=OperationPhase.PENDING, case_name=name, message=f"case {name} is open")
    return (Create(api.CASE, encode.manual_case(name, asked)), SaveOperation(asked, opened))


def show(view: RequestView, now: datetime) -> Plan:
    """How far its case is."""
    before, case, current = view.operation, view.case, view.current
    if case is None:
        return ()
    phase, message = OperationPhase.PENDING, case.message
    if case.blocks:
        message = f"held: {case.blocks[0].reason.value}: {case.blocks[0].message}"
    elif current is not None:
        phase = current.phase if current.finished is None else OperationPhase.OPERATING
        message = current.message or message
    after = replace(before, phase=phase, case_name=case.name, message=message)
    return (SaveOperation(before, after),) if after != before else ()


def finish(view: RequestView, now: datetime) -> Plan:
    """What became of it."""
    if view.case is None:
        return ()
    return ended(view.operation, view.case, now, pods.given_back(view.case.node, view.pods, view.node))


def ended(asked: Operation, case: Case, now: datetime, given_back: str) -> Plan:
    """Its end, once its case is over: nothing more is done for it, whatever becomes of the case.

    `given_back`: in words, whether the node is.
    """
    if asked.finished is not None or case.manual is None or asked.uid != case.manual.uid:
        return ()
    attempt = _telling(case)
    outcome = attempt.outcome if attempt else AttemptOutcome.CANCELLED
    phase = OperationPhase(outcome.value) if outcome is not AttemptOutcome.OPEN else OperationPhase.CANCELLED
    reason, message = (attempt.reason, attempt.message) if attempt else (case.reason or "", case.message)
    if case.phase is Phase.ESCALATED and phase is OperationPhase.SUCCEEDED and not keep_out.was_out(case):
        phase, reason = OperationPhase.FAILED, case.reason or ""
    if case.keep_out and phase is OperationPhase.SUCCEEDED and not keep_out.was_out(case):
        recovered = case.phase is Phase.RECOVERED
        phase, reason = OperationPhase.CANCELLED, Reason.UNCORDONED_BY_USER if recovered else case.reason or ""
        message = case.message if recovered else f"{message}; {case.node} was not kept out"
    if case.phase is Phase.ESCALATED:
        message = f"{message}; case {case.name}: {case.message}"
    elif attempt:
        message = f"{message}; case {case.name} is over, and {given_back}"
    after = replace(asked, phase=phase, reason=reason, message=message, case_name=case.name, finished=now)
    return (SaveOperation(asked, after),)


def _telling(case: Case) -> Attempt | None:
    """The attempt that says what became of it: the newest, but the try itself where there was nothing to complete."""
    newest = case.attempt
    idle = newest is not None and newest.follows and newest.outcome is AttemptOutcome.REFUSED
    return case.tries[-1] if idle and case.tries else newest


def became_of(case: Case) -> str:
    """What became of the operation that a case carries out, in a few words."""
    attempt = case.newest_counted
    return f"{attempt.template}, {attempt.outcome.value}: {attempt.message}" if attempt else "nothing was done"


def give_up(view: RequestView, now: datetime) -> Plan:
    """Its case was taken away: nobody knows what was done."""
    message = f"case {view.operation.case_name} was taken away; look at the node, then make another NodeOperation"
    after = replace(
        view.operation, phase=OperationPhase.CANCELLED, reason=Reason.CASE_GONE, message=message, finished=now
    )
    return (SaveOperation(view.operation, after),)


def refuse(view: RequestView, now: datetime) -> Plan:
    """There is no such node."""
    asked = view.operation
    message = (
        f"no node {asked.node} with the uid {asked.node_uid}; write metadata.uid of the node into spec.nodeUID of "
        "another NodeOperation"
    )
    after = replace(asked, phase=OperationPhase.REFUSED, reason=Reason.NODE_GONE, message=message, finished=now)
    return (SaveOperation(asked, after),)

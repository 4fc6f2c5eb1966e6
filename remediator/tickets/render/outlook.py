"""What comes next in the cases of an issue, and who must act."""

from collections.abc import Iterable

from remediator.core.case import Case, Phase
from remediator.core.keep_out import is_out
from remediator.core.policy import Policy
from remediator.tickets.reconcile.input import LinkedCase
from remediator.tickets.reconcile.wanted import needs_user
from remediator.tickets.render.markdown import code

SHOWN = 10
A_PERSON = "it escalates"


def outlook(cases: Iterable[LinkedCase]) -> str:
    """One paragraph for each case that goes on; "" where none does."""
    going = [linked for linked in cases if linked.wanted]
    return "\n\n".join(f"Next on {code(linked.case.node)}: {_next(linked)}." for linked in going[:SHOWN])


def _next(linked: LinkedCase) -> str:
    case, then = linked.case, _after(linked.case, linked.policy)
    if is_out(case):
        return "a person must act: put the node back, or take it out for longer; Remediator waits for that"
    if linked.escalated:
        return "a person must act; Remediator tries nothing more and waits until the node is given back"
    waiting = next((block.reason for block in case.blocks if needs_user(block)), None)
    if waiting:
        return f"a person must act: held by {waiting.value}" + (f", then Remediator runs {then}" if then else "")
    if case.blocks:
        return f"nobody needs to act: held by {case.blocks[0].reason.value}, then Remediator runs {then or 'nothing'}"
    if case.phase is Phase.VERIFYING:
        return f"nobody needs to act: Remediator looks whether the node is healthy; if not, {then or A_PERSON}"
    if case.attempt and case.phase in (Phase.DRAINING, Phase.OPERATING):
        running = f"Remediator runs {code(case.attempt.template)}{_place(case, linked.policy)}"
        return f"nobody needs to act: {running}; if that does not cure it, {then or A_PERSON}"
    return f"nobody needs to act: Remediator runs {then}" if then else "a person must act"


def _place(case: Case, policy: Policy | None) -> str:
    rungs = len(policy.ladder) if policy else 0
    return f" (rung {case.rung + 1} of {rungs})" if rungs else ""


def _after(case: Case, policy: Policy | None) -> str:
    """The operation that follows what is being tried; "" where the ladder has come to its end, or is not known."""
    if policy is None or not policy.ladder:
        return ""
    rung = case.rung
    tried = sum(attempt.rung == rung for attempt in case.tries)
    if rung < len(policy.ladder) and tried >= policy.ladder[rung].attempts:
        rung += 1
    return f"{code(policy.ladder[rung].operation)} (rung {rung + 1})" if rung < len(policy.ladder) else ""

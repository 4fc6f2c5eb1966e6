"""I10: what an operation of the case has covered is not tried further up its ladder."""

from collections.abc import Iterator

from remediator_sim.invariants import contract
from remediator_sim.invariants.contract import TEMPLATES, clock, part
from remediator_sim.invariants.event import Event
from remediator_sim.invariants.history import History, begun
from remediator_sim.invariants.results import HELD


def not_again(history: History, event: Event) -> Iterator[str]:
    """A case was written. Counts each try on a higher rung than before: nothing that has worked below covers it."""
    tries = [attempt for attempt in contract.attempts(event.new) if contract.is_try(attempt)]
    for attempt in begun(event):
        below = [each for each in tries[: tries.index(attempt)] if each["rung"] < attempt["rung"]]
        template = attempt.get("template", "")
        worked = {each.get("template", "") for each in below if each.get("outcome") == "Succeeded"} - {template}
        over = sorted(name for name in worked if template in _covered(history, name))
        sentence = f"case {event.key} began {attempt['operation']} at {clock(event.at)}"
        if below:
            yield f"{sentence}, which {over[0]} has covered" if over else HELD


def _covered(history: History, template: str) -> set[str]:
    """What it covers, and what that covers."""
    covered: set[str] = set()
    ahead = [template]
    while ahead:
        names = part(history.objects[TEMPLATES].get(ahead.pop()), "spec").get("covers") or ()
        ahead += set(names) - covered
        covered.update(names)
    return covered

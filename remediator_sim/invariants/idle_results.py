"""I3: what is said of a node by tests of it while it was idle, is what one of them has proven."""

from collections.abc import Iterator

from remediator_sim.invariants import contract
from remediator_sim.invariants.contract import INVENTORIES, clock, part
from remediator_sim.invariants.event import Event
from remediator_sim.invariants.history import History
from remediator_sim.invariants.results import HELD

FAILED = "IdleTestFailed"


def kept(history: History, event: Event) -> Iterator[str]:
    """A NodeInventory was written. Counts each new result: a test has said so of this node in its present boot."""
    result, before = (part(obj, "status").get("idleTest") for obj in (event.new, event.old))
    if not result or result == before:
        return
    node = part(event.new, "spec").get("nodeName", "")
    words = f"{result['policy']} {'passed' if result.get('passed') else 'failed'} in boot {result.get('bootID', '')}"
    sentence = f"{node} is said at {clock(event.at)} to have been tested for policy {words}"
    about = result["policy"], node, result.get("bootID", ""), result.get("passed", False)
    if about not in history.proven:
        yield f"{sentence}, and no test has proven that"
        return
    boots = [contract.boot(state) for state in history.lately(node)]
    yield HELD if about[2] in boots else f"{sentence}, and its boot is {boots[-1:]}"


def found(history: History, event: Event) -> Iterator[str]:
    """A node was written. Counts each time that it begins to say that a test has failed there: one has."""
    if contract.says(event.new, FAILED) != "True" or contract.says(event.old, FAILED) == "True":
        return
    of_node = [each for each in history.proven if each.node == event.key]
    result = part(history.objects[INVENTORIES].get(event.key), "status").get("idleTest") or {}
    failed = any(not each.passed for each in of_node) and not result.get("passed")
    text = f"{event.key} says {FAILED} since {clock(event.at)}, and its newest test has not failed"
    yield HELD if failed else text

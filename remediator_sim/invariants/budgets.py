"""I1: no budget is exceeded by our doing. Recounted from the ledgers, the taints and the nodes at each write."""

from collections.abc import Iterator

from remediator_sim.invariants import contract, ledger, new_nodes
from remediator_sim.invariants.contract import BUDGETS, Obj, clock, part
from remediator_sim.invariants.event import Event
from remediator_sim.invariants.history import History
from remediator_sim.invariants.results import HELD


def admitted(history: History, event: Event) -> Iterator[str]:
    """A budget was written. Counts each entry that joined its ledger for a node that its case did not hold before."""
    before, after = ledger.claims(event.old), ledger.claims(event.new)
    if event.new is None or _moved(history, event.key):
        return
    for case, node in after.items():
        if case not in before and contract.held_by(history.nodes.get(node)) != case:
            yield _of_its_group(history, event, case, node) or _fits(history, event, event.new, case, node)


def _of_its_group(history: History, event: Event, case: str, node: str) -> str:
    """What is wrong with the group of a new entry: it must be one that the node was in a moment ago."""
    group, lately = ledger.entry_group(event.new, case), history.lately(node)
    if not ledger.grouped(event.new) or (group and group in {ledger.group(event.new, state) for state in lately}):
        return ""
    return f"budget {event.key}: {node} was claimed at {clock(event.at)} in group {group!r}, in which it is not"


def _fits(history: History, event: Event, budget: Obj, case: str, node: str) -> str:
    """What is wrong with a new entry in its group, and, for what is said as a percentage, in all groups together."""
    group = ledger.entry_group(budget, case)
    wrong = _within(history, event, budget, group, node) or _below_ceiling(history, event, budget, group, node)
    if wrong or not ledger.grouped(budget):
        return wrong
    wrong = _within(history, event, budget, None, node) if ledger.percentage(budget, "maxUnavailable") else HELD
    if wrong or not ledger.percentage(budget, "maxQuarantined", "20%"):
        return wrong
    return _below_ceiling(history, event, budget, None, node)


def _selected(history: History, budget: Obj, group: str | None) -> set[str]:
    """The nodes of a group under a budget that work, or once did; None for all."""
    counted = (node for node in _under(history, budget) if not new_nodes.waits(history, node))
    return {contract.name(node) for node in counted if group in {None, ledger.group(budget, node)}}


def _entries(budget: Obj | None, group: str | None) -> dict[str, str]:
    """The nodes that the ledger holds in a group, by case; None for all."""
    held = ledger.claims(budget).items()
    return {case: node for case, node in held if group in {None, ledger.entry_group(budget, case)}}


def _within(history: History, event: Event, budget: Obj, group: str | None, node: str) -> str:
    """A node that was down within the grace, or waited at its gate, is weighed against the claims only; any other also
    against the nodes that were down for all of it, and of which whoever claims must have heard.

    Quarantined nodes, and those that a rung keeps out for a person, are neither, but unavailable for minAvailable.
    """
    selected, waiting = _selected(history, budget, group), ledger.quarantined(budget)
    claimed = set(_entries(budget, group).values()) - waiting
    kept_out = {name for name in selected if any(contract.kept_out(state) for state in history.lately(name))}
    counted = selected if budget["spec"].get("maxUnavailable") is None else selected - waiting - kept_out
    heard = history.at - history.limits.silence
    lost = {name for name in counted if all(contract.down(state) for state in history.lately(name))}
    lost = {name for name in lost if history.down.get(name, heard) <= heard}
    gated = any(new_nodes.waits(history, state) for state in history.lately(node))
    was_down = node in counted and any(contract.down(state) for state in history.lately(node))
    taken = claimed if gated or was_down else claimed | lost
    most = ledger.most(budget, len(selected))
    if len(taken) <= most:
        return HELD
    listed = ", ".join(sorted(taken))
    return (
        f"budget {event.key}: the claim of {node} at {clock(event.at)} made {len(taken)} of {len(selected)} nodes "
        f"unavailable where {most} may be ({listed})"
    )


def _below_ceiling(history: History, event: Event, budget: Obj, group: str | None, node: str) -> str:
    """Counts against maxQuarantined the nodes that have waited for a person, or that a rung has kept out, for longer
    than the grace: not those that another case has claimed.
    """
    selected, entries = _selected(history, budget, group), _entries(event.old, group)
    waiting = {case for case in entries if _waits(history, case)}
    kept = {name for name in selected if all(contract.kept_down(state) for state in history.lately(name))}
    out = ({entries[case] for case in waiting} | kept) - {entries[case] for case in entries.keys() - waiting}
    most = ledger.most_quarantined(event.obj, len(selected))
    if len(out) < most:
        return HELD
    return (
        f"budget {event.key}: the claim of {node} at {clock(event.at)} was made with {len(out)} nodes in quarantine, "
        f"and at {most} nothing starts ({', '.join(sorted(out))})"
    )


def _waits(history: History, case: str) -> bool:
    """Whether a case was handed to a person so long ago that everybody who could act has heard of it."""
    tracked = history.tracked.get(case)
    if tracked is None or tracked.over or not tracked.escalated:
        return False
    return history.at - tracked.escalated - history.absent(tracked.escalated) > history.limits.grace


def entered(history: History, event: Event) -> Iterator[str]:
    """A node was written. Counts, where our case taint appeared, each budget over the node: it must hold the entry."""
    case = contract.held_by(event.new)
    if event.new is None or not case or case == contract.held_by(event.old) or _of_new_node(history, case):
        return
    budgets = history.objects[BUDGETS]
    over = [budget for budget in budgets.values() if event.new in _under(history, budget)]
    if not over:
        yield f"{event.key} was taken by case {case} at {clock(event.at)} with no budget over it"
    for budget in over:
        if not (_moved(history, contract.name(budget)) or _new(history, budget)):
            listed = ledger.claims(budget).get(case) == event.key
            sentence = f"{event.key} was taken by case {case} at {clock(event.at)} without an entry in budget"
            yield HELD if listed else f"{sentence} {contract.name(budget)}"


def kept(history: History, event: Event) -> Iterator[str]:
    """A budget was written. Counts each entry that left its ledger: its case must be off its node, and be over or never
    have claimed it. A node that is marked later without an entry is told of by `entered`.
    """
    gone = ledger.claims(event.old).keys() - ledger.claims(event.new).keys()
    for case in gone if event.new is not None and part(event.new, "status") else ():  # we never write an empty one
        tracked, node = history.tracked.get(case), ledger.claims(event.old)[case]
        sentence = (
            f"budget {event.key}: the entry of case {tracked.name if tracked else case} went at {clock(event.at)}"
        )
        if tracked is not None and tracked.over is None and tracked.claimed is not None:
            yield f"{sentence} while the case still held its node"
        elif contract.held_by(history.nodes.get(node)) == case:
            yield f"{sentence} while {node} still carried its taint"
        else:
            yield HELD


def adopted(history: History, event: Event) -> Iterator[str]:
    """The end. Tells of each claim that has stood for long and that a budget over its node does not hold."""
    settle = history.limits.settle
    long = {
        uid: tracked
        for uid, tracked in history.open.items()
        if not contract.gate(tracked.last) and tracked.claimed and history.at - tracked.claimed > settle
    }
    for budget in history.objects[BUDGETS].values() if history.acts() else ():
        known = history.at - history.tracked[contract.uid(budget)].made > settle
        missing = {contract.held_by(node) for node in _under(history, budget)} & long.keys() - ledger.claims(
            budget
        ).keys()
        for uid in sorted(missing) if known else ():
            sentence = f"budget {contract.name(budget)} has no entry of case {long[uid].name} at the end"
            yield f"{sentence}, which holds its node"


def counted(history: History, name: str, uid: str) -> Iterator[str]:
    """For each budget over a node that has not moved for a moment: HELD, or why it does not count it as quarantined."""
    for budget in history.objects[BUDGETS].values():
        over = name in {contract.name(node) for node in _under(history, budget)}
        if over and not (_moved(history, contract.name(budget)) or _new(history, budget)):
            counts = ledger.claims(budget).get(uid) == name and name in ledger.quarantined(budget)
            yield HELD if counts else f"budget {contract.name(budget)} does not count {name} as quarantined"


def _of_new_node(history: History, case: str) -> bool:
    """Whether no budget counts it: its node has never worked."""
    tracked = history.tracked.get(case)
    return tracked is not None and bool(contract.gate(tracked.last))


def _moved(history: History, budget: str) -> bool:
    """Whether somebody changed the rules a moment ago: what was decided under the old ones cannot be judged."""
    newest = max(history.moved.get(budget, history.shrunk), history.shrunk)
    return history.at - newest < history.limits.grace


def _new(history: History, budget: Obj) -> bool:
    """Whether the budget is so young that whoever takes a node may not have known it."""
    return history.at - history.tracked[contract.uid(budget)].made < history.limits.grace


def _under(history: History, budget: Obj) -> list[Obj]:
    return list(ledger.under(budget, history.nodes.values(), history.objects[BUDGETS].values()))

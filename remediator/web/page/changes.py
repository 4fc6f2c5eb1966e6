"""What has changed between two snapshots, for browsers that show the older one. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any

from remediator.web.page.fleet_view import FleetView, RackView, counted
from remediator.web.page.node_standing import NodeStanding

MOST_NODES = 500  # whose changes are told one by one; of more, the page is loaded anew


Event = tuple[str, dict[str, Any]]  # its name, and its data


def change(before: FleetView | None, after: FleetView) -> Event:
    """What the racks show otherwise. Lines, queue and budgets are loaded anew after each change.

    "other": the racks are loaded anew, since nobody knows what is shown, or there are other nodes now, or too many have
    changed. Another replica may serve those, as of another moment: so this says how each node is. Both say of when the
    view is, and why it is not of now.
    """
    old, new = _states(before) if before else {}, _states(after)
    moved = {name: state for (name, rack), state in new.items() if old.get((name, rack)) is not state}
    if old.keys() != new.keys() or len(moved) > MOST_NODES:
        return "other", _data({name: state for (name, _), state in new.items()}, after.racks, after)
    counts = {rack.name: rack.counts for rack in before.racks} if before else {}
    return "changed", _data(moved, [rack for rack in after.racks if counts[rack.name] != rack.counts], after)


def _data(nodes: Mapping[str, NodeStanding], racks: Iterable[RackView], view: FleetView) -> dict[str, Any]:
    words = {state.letter: state.word for state in nodes.values()}
    letters = {name: state.letter for name, state in nodes.items()}
    changed = {"nodes": letters, "words": words, "racks": {rack.name: counted(rack.counts) for rack in racks}}
    return changed | {"asOf": view.as_of, "stale": view.stale}


def _states(view: FleetView) -> dict[tuple[str, str], NodeStanding]:
    return {(cell.name, rack.name): cell.state for rack in view.racks for cell in rack.nodes}

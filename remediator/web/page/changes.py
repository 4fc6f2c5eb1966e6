"""What has changed between two snapshots, for browsers that show the older one. Pure."""

from dataclasses import dataclass
from typing import Any

from remediator.web.page.fleet_view import FleetView, counted
from remediator.web.page.node_standing import NodeStanding

MOST_NODES = 500  # whose changes are told one by one; of more, the page is loaded anew


@dataclass(frozen=True, slots=True)
class PageChange:
    """`nodes` None: there are others now, or too many have changed, and the racks are loaded anew."""

    nodes: dict[str, NodeStanding] | None
    racks: dict[str, str]

    @property
    def event(self) -> tuple[str, dict[str, Any]]:
        """The name of the event that tells it, and its data."""
        if self.nodes is None:
            return "other", {}
        nodes = {name: {"letter": state.letter, "word": state.word} for name, state in self.nodes.items()}
        return "changed", {"nodes": nodes, "racks": self.racks}


def change(before: FleetView, after: FleetView) -> PageChange:
    """What the racks show otherwise. Lines, queue and budgets are loaded anew after each change."""
    old, new = _states(before), _states(after)
    if old.keys() != new.keys():
        return PageChange(None, {})
    moved = {name: state for (name, rack), state in new.items() if old[name, rack] is not state}
    if len(moved) > MOST_NODES:
        return PageChange(None, {})
    counts = {rack.name: rack.counts for rack in before.racks}
    others = (rack for rack in after.racks if counts[rack.name] != rack.counts)
    return PageChange(moved, {rack.name: counted(rack.counts) for rack in others})


def _states(view: FleetView) -> dict[tuple[str, str], NodeStanding]:
    return {(cell.name, rack.name): cell.state for rack in view.racks for cell in rack.nodes}

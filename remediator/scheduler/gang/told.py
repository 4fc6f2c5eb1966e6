"""What is said of the gang of a Pod: who is there already, and which domain the Pod prefers, and why. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from remediator.scheduler.gang.preference import GangReason, Preference, preferred
from remediator.scheduler.gang.rooms import GangRooms, fits
from remediator.scheduler.gang.topology import Domain, Topology
from remediator.scheduler.row import NodeState
from remediator.scheduler.verdict import Shape, verdict

SHOWN = 3  # names of nodes in a line


class Near(NamedTuple):
    """A domain that is preferred: its label, how many nodes it has, and for how many such Pods it has room."""

    label: str
    nodes: int
    room: int

    def __str__(self) -> str:
        return f"{self.label} ({self.nodes} nodes, room for {self.room} such Pods)"


class Gang(NamedTuple):
    """The gang of one Pod. `size` 0: nobody says how many there will be; `siblings`: its Pods by node."""

    name: str
    size: int
    siblings: Mapping[str, int]
    preference: Preference
    near: tuple[Near, ...]

    def lines(self) -> list[str]:
        """For a person."""
        of = f"of {self.size} Pods" if self.size else "no annotation says of how many Pods"
        shown = ", ".join(f"{node} ({pods})" for node, pods in sorted(self.siblings.items())[:SHOWN])
        more = ", …" if len(self.siblings) > SHOWN else ""
        there = f"{sum(self.siblings.values())} with GPUs are on {shown}{more}" if self.siblings else "none has a node"
        prefers = " and ".join(map(str, reversed(self.near))) or "no domain"
        return [
            f"gang: {self.name}, {of}; {there}",
            f"  {self.preference.why}: prefers {prefers}{_WORDS[self.preference.why]}",
        ]


_WORDS: Mapping[GangReason, str] = {
    GangReason.NEAR_SIBLINGS: ", where most of its siblings are",
    GangReason.ROOM_FOR_ALL: ", the smallest with room for all",
    GangReason.MOST_ROOM: ", the one with the most room",
    GangReason.ANYWHERE: ": no healthy node with room has a label of --gang-topology",
}


def rooms_of(
    rows: Mapping[str, NodeState], shape: Shape, only_scores: bool, topology: Topology
) -> Mapping[Domain, int]:
    """For how many Pods of this shape each domain has room."""
    rooms = GangRooms(topology)
    for name, row in rows.items():
        rooms.put(name, fits(verdict(row, shape, only_scores), row, shape))
    return rooms.now()


def gang(name: str, size: int, siblings: Iterable[str], topology: Topology, rooms: Mapping[Domain, int]) -> Gang:
    """What is said of a gang whose Pods are on these nodes."""
    nodes = Counter(siblings)
    near = [domain for node in nodes.elements() for domain in topology.of(node)]
    preference = preferred(near, {} if near else rooms, size)
    domains = (Near(each.value, len(topology.members(each)), rooms.get(each, 0)) for each in preference.domains)
    return Gang(name, size, nodes, preference, tuple(domains))

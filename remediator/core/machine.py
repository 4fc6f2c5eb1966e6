"""Machines of Cluster API behind nodes: which one a node is, and the mark by which one goes before all others. Pure."""

from collections.abc import Mapping
from typing import NamedTuple

GROUP, PLURAL = "cluster.x-k8s.io", "machines"
GOES_FIRST = f"{GROUP}/delete-machine"  # that it is there counts, whatever its value is
_MACHINE, _NAMESPACE = f"{GROUP}/machine", f"{GROUP}/cluster-namespace"  # Cluster API annotates nodes with these


class MachineName(NamedTuple):
    """Where a Machine is."""

    namespace: str
    name: str

    def __str__(self) -> str:
        """As it is shown.

        >>> str(MachineName("training", "md-0-x7k2p"))
        'Machine training/md-0-x7k2p'
        """
        return f"Machine {self.namespace}/{self.name}"


def machine_of(annotations: Mapping[str, str]) -> MachineName | None:
    """The Machine that a node with these annotations is; None where Cluster API has not made it."""
    namespace, name = annotations.get(_NAMESPACE, ""), annotations.get(_MACHINE, "")
    return MachineName(namespace, name) if namespace and name else None


def nothing_to_do(machine: MachineName, *, marked: bool, off: bool) -> str:
    """Why the order would change nothing; "" where it changes something."""
    if off:
        return "" if marked else f"{machine} is not marked to go first"
    return f"{machine} is marked already: it goes first" if marked else ""


def before(node: str, machine: MachineName, owner: str, *, off: bool) -> tuple[str, ...]:
    """What a user reads before they answer. `owner`: what makes machines like this one, "" where nothing does."""
    if off:
        return (f"{machine} of {node} is no longer marked: which machine goes first is for Cluster API to choose",)
    fewer = f"once {owner}, or what owns that, has fewer replicas" if owner else "only if somebody deletes it"
    return (
        f"{machine} of {node} goes before all others, {fewer}; Cluster API drains the node then",
        f"  until then {node} works on; to empty it before: remediator take-out {node} --for LENGTH",
        f"  to take the mark off: remediator retire {node} --off",
    )

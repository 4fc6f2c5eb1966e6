"""Machines of Cluster API behind nodes: which one a node is, and the mark by which one goes before all others. Pure."""

from collections.abc import Mapping
from typing import NamedTuple

GROUP, PLURAL = "cluster.x-k8s.io", "machines"
GOES_FIRST = f"{GROUP}/delete-machine"  # that it is there counts, whatever its value is
_MACHINE, _NAMESPACE = f"{GROUP}/machine", f"{GROUP}/cluster-namespace"  # Cluster API annotates nodes with these

_HEED = (
    "MachineSet",
    "KubeadmControlPlane",
)  # the owners of machines that Cluster API itself ships: they heed the mark


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


def another(node: str, machine: MachineName, knows: str) -> str:
    """Why the machine that a node names is not its own; "" where the machine says the same.

    The kubelet of a node may write these annotations; what a Machine says of its node, Cluster API alone writes.
    """
    if knows == node:
        return ""
    if not knows:
        return f"{machine}, which {node} names, has no status.nodeRef: whether it is that of {node} is not known"
    return (
        f"{machine}, which {node} names, is the machine of {knows}: whoever is root on {node} may have changed the "
        f"annotations of {node}; look at that node"
    )


def nothing_to_do(machine: MachineName, *, marked: bool, off: bool) -> str:
    """Why the order would change nothing; "" where it changes something."""
    if off:
        return "" if marked else f"{machine} is not marked to go first"
    return f"{machine} is marked already: it goes first" if marked else ""


def before(node: str, machine: MachineName, owner: str, *, off: bool) -> tuple[str, ...]:
    """What a user reads before they answer. `owner`: kind and name of what makes machines like this one, or ""."""
    if off:
        return (f"{machine} of {node} is no longer marked: which machine goes first is for Cluster API to choose",)
    fewer = f"once {owner}, or what owns that, has fewer replicas" if owner else "only if somebody deletes it"
    goes = f"goes before all others, {fewer}"
    if owner and owner.partition(" ")[0] not in _HEED:
        goes = (
            f"is marked for {owner}: whether it goes first, once there are to be fewer, is for its provider to decide"
        )
    return (
        f"{machine} of {node} {goes}; Cluster API drains the node then",
        f"  until then {node} works on; to empty it before: remediator take-out {node} --for LENGTH",
        f"  to take the mark off: remediator retire {node} --off",
    )

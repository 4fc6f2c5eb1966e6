"""What a command says of placing: the fleet as the extender would see it now, read once. Writes nothing."""

from collections.abc import Sequence
from typing import NamedTuple

from remediator.clock import Clock
from remediator.core.names import Namespaces
from remediator.kube.informers import SHARED_GPUS, Informers
from remediator.kube.wire.client import Client
from remediator.scheduler.fail_open import OpenReason, Tally, describe, open_reason
from remediator.scheduler.fleet import Fleet
from remediator.scheduler.gang.siblings import Siblings
from remediator.scheduler.gang.topology import Topology
from remediator.scheduler.row import NodeState
from remediator.scheduler.shared.books import Books


class Outlook(NamedTuple):
    """A row for each node, the nodes that a user has cordoned, and why health refuses nobody, if so.

    `left_out`: what could not be read, so that what is said of shared GPUs may be incomplete.
    """

    rows: dict[str, NodeState]
    cordoned: frozenset[str]
    open: OpenReason | None
    health: str
    siblings: Siblings
    topology: Topology
    left_out: list[str]


async def outlook(
    client: Client, namespaces: Namespaces, clock: Clock, domains: Sequence[str] = (), shared: bool = False
) -> Outlook:
    """Read nodes, policies, cases, Pods and our namespace, and judge every node. Raises ApiError.

    `domains`: the labels by which nodes are near each other. `shared`: say who holds memory of shared GPUs, too. So it
    is where the cluster has ledgers of them: the extender goes by them for each Pod then.
    """
    informers = Informers(client, clock, namespaces)
    books = Books(informers)
    fleet = Fleet(informers, lambda *_: None, lambda: None, clock, domains, books=books)
    left_out = await informers.read(SHARED_GPUS)
    fleet.look()
    rows = fleet.rows
    if not (shared or any(True for _ in informers.gpu_ledgers)):
        rows, left_out = {name: row._replace(cards=None) for name, row in rows.items()}, []
    tally = Tally()
    for row in rows.values():
        tally = tally.plus(row, 1)
    reason = open_reason(None, tally, fleet.paused)
    cordoned = frozenset(node.name for node in informers.nodes if node.cordoned_by_user)
    health = describe(reason, tally)
    return Outlook(rows, cordoned, reason, health, fleet.siblings, fleet.topology, left_out)

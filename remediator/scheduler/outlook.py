"""What a command says of placing: the fleet as the extender would see it now, read once. Writes nothing."""

from typing import NamedTuple

from remediator.clock import Clock
from remediator.core.names import Namespaces
from remediator.kube.informers import Informers
from remediator.kube.wire.client import Client
from remediator.scheduler.fail_open import OpenReason, Tally, describe, open_reason
from remediator.scheduler.fleet import Fleet
from remediator.scheduler.verdict import NodeState


class Outlook(NamedTuple):
    """A row for each node, the nodes that a user has cordoned, and why health refuses nobody, if so."""

    rows: dict[str, NodeState]
    cordoned: frozenset[str]
    open: OpenReason | None
    health: str


async def outlook(client: Client, namespaces: Namespaces, clock: Clock) -> Outlook:
    """Read nodes, policies, cases, Pods and our namespace, and judge every node. Raises ApiError."""
    informers = Informers(client, clock, namespaces)
    fleet = Fleet(informers, lambda *_: None, lambda: None, clock)
    await informers.read()
    fleet.look()
    tally = Tally()
    for row in fleet.rows.values():
        tally = tally.plus(row, 1)
    reason = open_reason(None, tally, fleet.paused)
    cordoned = frozenset(node.name for node in informers.nodes if node.cordoned_by_user)
    return Outlook(fleet.rows, cordoned, reason, describe(reason, tally))

"""The cases of one node, for commands of a user."""

from remediator.clock import Clock
from remediator.core.case import Case
from remediator.core.names import Namespaces
from remediator.core.past_cases import oldest_first
from remediator.kube.informers import Informers, OfNode
from remediator.kube.wire import errors
from remediator.kube.wire.client import Client


async def cases_of(client: Client, clock: Clock, node: str) -> tuple[Case, ...]:
    """All that are kept, oldest first. Definitions of an older version know no field selector: then all are read."""
    try:
        return await _read(OfNode(client, clock, Namespaces(), node), node)
    except errors.Invalid:
        return await _read(Informers(client, clock, Namespaces()), node)


async def _read(informers: Informers, node: str) -> tuple[Case, ...]:
    cases = informers.cases
    await informers.read()
    return tuple(oldest_first(cases.by("node", node)))

"""The neighbours of a node to which an operation measures: which are taken, and what its program is told of them.

All that is known of them is their Pods and when the intent was written: a leader that goes on in the middle waits no
longer than the one before. Whoever looks after tests of idle nodes takes the Pods back.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from remediator.controller.effects import Create, Done, Retry
from remediator.controller.handlers.base import Dependencies
from remediator.controller.idle_nodes import SLICE, obstacle
from remediator.controller.operation_view import OperationView
from remediator.core import neighbour
from remediator.core.neighbour import Reached
from remediator.core.node import Node
from remediator.core.operation import Operation
from remediator.core.pod import Pod, PodPhase
from remediator.core.template import Neighbours, Template
from remediator.kube.api import encode
from remediator.kube.api.builtin import NODE_ADDRESSES, POD
from remediator.kube.runtime.turns import sliced
from remediator.kube.wire import errors

MOST_READ = 8  # candidates, in one pass
MOST_SAID = 200  # characters of an answer of the API server
WAITS = Retry(1.0, "the Pods on its neighbours have not started yet")
FULL = Retry(2.0, "as many neighbours as may be are measured to by other operations")


async def arranged(view: OperationView, dependencies: Dependencies, now: datetime) -> OperationView | Retry:
    """The view with what its program is told of its neighbours; Retry while the Pods on them start.

    No neighbour, or one that cannot be made or does not get ready, holds nothing up: the program is told why.
    """
    template, operation = view.template, view.operation
    if template is None or template.neighbours is None or view.node is None or operation.intent_at is None:
        return view
    pods = _standing(operation, dependencies)
    waits = neighbour.in_time(operation.intent_at, template.timeout, now)
    if waits and neighbour.starting(pods):
        return WAITS
    if running := [pod for pod in pods if pod.phase is PodPhase.RUNNING]:
        known = [Reached(pod.tested, await address_of(dependencies, pod.tested)) for pod in running]
        reached = [each for each in known if each.address]
        return _told(view, reached, "the addresses of its neighbours are not known")
    if not waits:
        full = not pods and not _slots(template, template.neighbours, dependencies)
        return _told(view, (), FULL.why if full else neighbour.NOT_READY)
    return await _take(view, view.node, template, template.neighbours, dependencies, now)


def _standing(operation: Operation, dependencies: Dependencies) -> list[Pod]:
    """Its Pods on neighbours that have not ended."""
    pods = dependencies.cache.pods.by("neighbour_of", operation.uid)
    return [pod for pod in pods if not pod.ended and not pod.deleting]


def _slots(template: Template, asked: Neighbours, dependencies: Dependencies) -> list[str]:
    """The names that more Pods may have now."""
    taken = {pod.name for pod in dependencies.cache.pods if pod.neighbour_of and pod.template == template.name}
    return neighbour.free_slots(template.name, asked.at_once, taken)


def _told(view: OperationView, reached: Sequence[Reached], why: str) -> OperationView:
    return replace(view, neighbours=neighbour.orders(view.operation, reached, why))


async def _take(
    view: OperationView, node: Node, template: Template, asked: Neighbours, dependencies: Dependencies, now: datetime
) -> OperationView | Retry:
    """Make Pods on idle nodes; the view with the reason where there is none, or none can be made."""
    cache = dependencies.cache
    if why := neighbour.lacking(node, asked.label) or _unknown(dependencies):
        return _told(view, (), why)
    candidates = [
        other.name
        async for other in sliced(list(cache.nodes), SLICE)
        if neighbour.beside(node, other, asked.label) and _is_free(other, template, dependencies)
    ]
    if not candidates:
        return _told(view, (), f"no idle node has {asked.label}={node.labels[asked.label]}")
    client = await address_of(dependencies, node.name)
    if not client:
        return _told(view, (), f"{node.name} has no address")
    slots = _slots(template, asked, dependencies)
    if not slots:
        return FULL
    pods = await _pods(view, template, slots, neighbour.in_turn(view.operation, candidates), client, dependencies, now)
    return await _made(view, pods, dependencies)


async def _made(view: OperationView, pods: Sequence[encode.Body], dependencies: Dependencies) -> OperationView | Retry:
    """Make them. Where the API server takes none the search is over, and nobody waits until it might take one."""
    result = await dependencies.performer.all(Create(POD, body, gated=True) for body in pods)
    if isinstance(result, Done) or _standing(view.operation, dependencies):
        return WAITS
    return _told(view, (), f"no Pod can be made on a neighbour: {result.why[:MOST_SAID]}")


async def _pods(
    view: OperationView,
    template: Template,
    slots: Sequence[str],
    candidates: Sequence[str],
    client: str,
    dependencies: Dependencies,
    now: datetime,
) -> tuple[encode.Body, ...]:
    """A Pod for each slot, on the first candidates that are idle by a live read, too."""
    pods: list[encode.Body] = []
    for name in candidates[:MOST_READ]:
        live = await dependencies.performer.node(name)
        if live is None or not _is_free(live, template, dependencies):
            continue
        if address := await address_of(dependencies, name):
            service = neighbour.service(view.operation, address, client)
            pods.append(_pod(view, template, slots[len(pods)], live, service, now))
        if len(pods) == len(slots):
            break
    return tuple(pods)


def _unknown(dependencies: Dependencies) -> str:
    """Why nobody knows which nodes are idle."""
    cache = dependencies.cache
    return "nobody knows now which nodes are idle" if cache.silent or cache.spare is None else ""


def _is_free(node: Node, template: Template, dependencies: Dependencies) -> bool:
    cache = dependencies.cache
    known = cache.has_open_case(node.name) or cache.pods.by("tested", node.name)
    return not known and not obstacle(cache, node, template)


async def address_of(dependencies: Dependencies, name: str) -> str:
    """The address of a node inside the cluster, "" where it says none that can be read as an IP address."""
    try:
        node = await dependencies.performer.client.get(NODE_ADDRESSES, name)
    except errors.NotFound:
        return ""
    addresses = (neighbour.address(each.address) for each in node.status.addresses if each.type == "InternalIP")
    return next(filter(None, addresses), "")


def _pod(
    view: OperationView, template: Template, slot: str, node: Node, service: Mapping[str, object], now: datetime
) -> encode.Body:
    operation = view.operation
    policy = (view.case.policy if view.case else "") or operation.template
    return encode.neighbour_pod(template, slot, policy, node, operation.uid, service, now)

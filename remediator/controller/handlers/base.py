"""A handler defines one step: what is read from the API server, which effects follow, when the next pass is."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Generic, TypeVar

import structlog

from remediator.controller.cache import ClusterCache
from remediator.controller.confirmations import Confirmations
from remediator.controller.effects import Done, EffectResult, GaveUp, Plan, Retry
from remediator.controller.fleet import hosted, static_pod
from remediator.controller.kubelet_leases import KubeletLeases
from remediator.controller.node_leases import NodeLeases
from remediator.controller.perform import Performer
from remediator.controller.records import Records
from remediator.core import guard, names
from remediator.core.case import Block, Case
from remediator.core.node import Node
from remediator.core.policy import Policy
from remediator.core.quiet import QuietRule
from remediator.kube.api import decode
from remediator.kube.api.builtin import POD, on_node

log = structlog.get_logger()
# After a step the next one follows at once; this many seconds later, so that a cache that lags makes no hot loop.
SOON = 0.05
STOP_SECONDS = 5.0  # until what a user stops is asked about again: as long as what a pause stops

View = TypeVar("View")


@dataclass(frozen=True, slots=True)
class Dependencies:
    """What every reconciler works with.

    `drains`: how many operations may drain at once. `records`: what the admission pass leaves to be written.
    `confirmations`: what the second sources of policies say. `leases`: whether silent kubelets are dead; where nobody
    can tell, nothing is done to their nodes. `alerts`: whether Alertmanagers are asked which alerts fire.
    `node_leases`: by which other systems know who works on a node; None without any. `quiet`: for how long criteria
    that are new in a release are only shown.
    """

    cache: ClusterCache
    performer: Performer
    request_admission: Callable[[], None]
    drains: int
    records: Records = field(default_factory=Records)
    confirmations: Confirmations = field(default_factory=Confirmations)
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    leases: KubeletLeases | None = None
    alerts: bool = False
    node_leases: NodeLeases | None = None
    quiet: QuietRule = field(default_factory=QuietRule)


async def read_live(case: Case, dependencies: Dependencies) -> tuple[Case | None, Node | None, Policy | None]:
    """The case, its node and its policy as the server has them now; the cache learns them, too."""
    performer = dependencies.performer
    return await asyncio.gather(performer.case(case.name), performer.node(case.node), performer.policy_of(case))


async def stops_live(
    case: Case, node: Node, policy: Policy | None, dependencies: Dependencies, now: datetime
) -> tuple[Block, ...]:
    """What stops the case, a pause apart, with the static Pods of the control plane that the server has there now."""
    where, labels = names.CONTROL_PLANE_NAMESPACE, names.CONTROL_PLANE_LABELS
    client, cache = dependencies.performer.client, dependencies.cache
    listed = await client.list_all(POD, namespace=where, labels=labels, fields=on_node(node.name))
    live = replace(hosted(cache, node.name), static_pod=static_pod(map(decode.operation_pod, listed)))
    return guard.stops(case, node, policy, False, live, now)


def stopped(stops: tuple[Block, ...]) -> Retry:
    """The watch tells when a user ends a stop; should it be silent, the server is asked again."""
    return Retry(STOP_SECONDS, f"stopped: {stops[0].reason.value}")


def never(view: object, now: datetime) -> float | None:
    """An event will wake the object."""
    return None


def after(seconds: float) -> Callable[[object, datetime], float | None]:
    """Look again after so many seconds."""

    def again(view: object, now: datetime) -> float | None:
        return seconds

    return again


next_step = after(SOON)


def nothing(view: object, now: datetime) -> Plan:
    """No effect."""
    return ()


@dataclass(frozen=True, slots=True)
class Handler(Generic[View]):
    """What one step does.

    Attributes:
        plan: The effects, in order. Pure.
        check: Reads live what the cache alone must not decide. Gives the view to plan from, or Retry.
        again: After how many seconds the object is looked at again when the effects are done; None waits for an event.
        one_at_a_time: Check and effects of such steps never run beside each other.
        by_admission: The effects are carried out by the admission pass, and only when it admits the case.
    """

    plan: Callable[[View, datetime], Plan]
    check: Callable[[View, Dependencies, datetime], Awaitable[View | Retry]] | None = None
    again: Callable[[View, datetime], float | None] = next_step
    one_at_a_time: bool = False
    by_admission: bool = False

    async def handle(self, view: View, dependencies: Dependencies, now: datetime) -> float | None:
        """Carry the step out; returns seconds until the next look."""
        async with dependencies.turn if self.one_at_a_time else contextlib.nullcontext():
            result = await self._carry_out(view, dependencies, now)
        return self.again(view, now) if isinstance(result, Done) else seconds(result)

    async def _carry_out(self, view: View, dependencies: Dependencies, now: datetime) -> EffectResult:
        checked = await self.check(view, dependencies, now) if self.check else view
        return checked if isinstance(checked, Retry) else await dependencies.performer.all(self.plan(checked, now))


def seconds(result: EffectResult) -> float | None:
    """Seconds until what was not done is tried again; None where it was done."""
    match result:
        case Retry(after, why):
            log.debug("retry", seconds=after, why=why)
            return after
        case GaveUp(_, after):
            return after
    return None


def seconds_until(when: datetime, now: datetime) -> float:
    """Seconds until `when`; a little more, since times are whole seconds."""
    return max(0.0, (when - now + timedelta(milliseconds=50)).total_seconds())

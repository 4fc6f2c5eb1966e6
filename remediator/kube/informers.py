"""The informers of one replica: each kind is watched once under each selector, for all parts."""

import asyncio
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from weakref import WeakSet

import msgspec

from remediator.clock import Clock
from remediator.core import names
from remediator.core.budget import Budget
from remediator.core.case import Case
from remediator.core.devices import Slice
from remediator.core.node import Node
from remediator.core.node_events import NodeEvent
from remediator.core.node_inventory import Inventory
from remediator.core.operation import Operation
from remediator.core.outside_request import OutsideRequest
from remediator.core.pod import Pod
from remediator.core.policy import Policy
from remediator.core.rejections import Rejection
from remediator.core.reporters import Reporter, ReporterPod
from remediator.core.shared_gpus import Ledger
from remediator.core.spare import PodHolding
from remediator.core.template import Template
from remediator.core.ticket import Ticket
from remediator.core.ticket_route import TicketRoute
from remediator.kube import api
from remediator.kube.api import (
    builtin,
    decode,
    devices,
    gpu_pods,
    node_events,
    outside,
    rejected_pods,
    reporter_pods,
    shared_gpus,
)
from remediator.kube.api.decode import careful
from remediator.kube.fault_memory import FaultMemory
from remediator.kube.runtime.informer import F, Informer, synced
from remediator.kube.wire import errors
from remediator.kube.wire.client import Client, Kind


@dataclass(frozen=True, slots=True)
class Pause:
    """Whether somebody stopped everything new, and whether they do so to leave, as our namespace says."""

    paused: bool
    version: str = field(default="", compare=False)
    name: str = field(default="", compare=False)
    leaving: bool = False


@dataclass(frozen=True, slots=True)
class UnhealthyCards:
    """The unhealthy cards of a node; None where nobody can tell which. Without a node: it is about something else."""

    node: str = ""
    cards: frozenset[int] | None = frozenset()

    @property
    def version(self) -> str:
        """None: no write of ours is ever awaited."""
        return ""


SHARED_GPUS = ("gpu-ledgers", "unhealthy-cards")  # what only clusters have whose GPUs Pods share by memory


class Informers:
    """The informers of one replica. What nobody asks for before `run` is not watched."""

    whole = True  # whether they show all nodes, and all cases

    def __init__(self, client: Client, clock: Clock, namespaces: names.Namespaces) -> None:
        self.namespaces = namespaces
        self._client, self._clock = client, clock
        self._informers: dict[str, Informer[Any]] = {}
        self._run_by_others: WeakSet[Informer[Any]] = WeakSet()
        self._group: asyncio.TaskGroup | None = None  # once they run

    # --- what is watched ---------------------------------------------------------------------------------------------

    @cached_property
    def nodes(self) -> Informer[Node]:
        """All nodes, by name."""
        return self.watch("nodes", builtin.NODE, decode.node)

    @cached_property
    def policies(self) -> Informer[Policy]:
        """All policies, by name."""
        return self.watch("policies", api.POLICY, decode.remediation_policy, careful=careful.policy)

    @cached_property
    def templates(self) -> Informer[Template]:
        """All templates of operations, by name."""
        return self.watch("templates", api.TEMPLATE, decode.template)

    @cached_property
    def budgets(self) -> Informer[Budget]:
        """All budgets with their ledgers, by name."""
        return self.watch("budgets", api.BUDGET, decode.disruption_budget, careful=careful.budget)

    @cached_property
    def cases(self) -> Informer[Case]:
        """All cases, by name; also by node, policy and uid."""
        index = ("node", "policy", "uid")
        return self.watch("cases", api.CASE, decode.remediation_case, careful=careful.case, index=index)

    @cached_property
    def fault_memory(self) -> FaultMemory:
        """The cases by the boards and the GPUs that they were about."""
        return FaultMemory(self.cases)

    @cached_property
    def operations(self) -> Informer[Operation]:
        """All operations, by name; also by case and drain Pod."""
        index = ("case_uid", "drain_pod")
        return self.watch("operations", api.OPERATION, decode.operation, index=index)

    @cached_property
    def tickets(self) -> Informer[Ticket]:
        """All Tickets, by name."""
        return self.watch("tickets", api.TICKET, decode.ticket)

    @cached_property
    def ticket_routes(self) -> Informer[TicketRoute]:
        """The TicketRoutes of all namespaces, by namespace/name."""
        return self.watch("ticket routes", api.TICKET_ROUTE, decode.ticket_route)

    @cached_property
    def pods(self) -> Informer[Pod]:
        """The Pods of operations, by namespace/name; also by case, operation, the policy and the node of a test, and
        the operation that measures to it.
        """
        where = self.namespaces.operations
        index = ("case_uid", "operation_uid", "idle_test", "tested", "neighbour_of")
        return self.watch("pods", builtin.POD, decode.operation_pod, index=index, namespace=where)

    @cached_property
    def gpu_pods(self) -> Informer[PodHolding]:
        """What each Pod that runs somewhere holds of GPUs, by namespace/name."""
        return self.watch("gpu-pods", gpu_pods.POD, shared_gpus.holding, fields=gpu_pods.RUNNING)

    @cached_property
    def gpu_ledgers(self) -> Informer[Ledger]:
        """Who has reserved memory of shared GPUs, by node."""
        return self.watch("gpu-ledgers", api.GPU_LEDGER, decode.gpu_ledger)

    @cached_property
    def unhealthy_cards(self) -> Informer[UnhealthyCards]:
        """The ConfigMaps that name unhealthy cards of nodes, by namespace/name, among others that name none."""
        where = shared_gpus.UNHEALTHY_NAMESPACE
        return self.watch("unhealthy-cards", shared_gpus.CONFIG_MAP, unhealthy_cards_of, namespace=where)

    @cached_property
    def rejected_pods(self) -> Informer[Rejection]:
        """The Pods that nodes did not take or cannot start, by namespace/name, among all that are not running."""
        return self.watch("rejected-pods", rejected_pods.POD, rejected_pods.rejection, fields=rejected_pods.NOT_RUNNING)

    @cached_property
    def inventories(self) -> Informer[Inventory]:
        """What nodes, and groups of nodes, are known to have, by name."""
        return self.watch("inventories", api.INVENTORY, decode.node_inventory, careful=careful.node_inventory)

    @cached_property
    def device_slices(self) -> Informer[Slice]:
        """What drivers of DRA publish of devices, by name; also by node."""
        return self.watch("device slices", devices.RESOURCE_SLICE, devices.device_slice, index=("node",))

    def outside_requests(self, source: outside.OutsideKind) -> Informer[OutsideRequest]:
        """The objects of one source by which other controllers ask for repairs; also by their operation."""
        return self.watch(f"requests of {source.name}", source.kind, source.read, index=("operation",))

    @cached_property
    def replicas(self) -> Informer[Pod]:
        """The Pods of the controller itself, by namespace/name."""
        where, labels = self.namespaces.system, names.CONTROLLER_LABELS
        return self.watch("replicas", builtin.POD, decode.operation_pod, namespace=where, labels=labels)

    @cached_property
    def control_plane(self) -> Informer[Pod]:
        """The Pods of the control plane, by namespace/name; also by node."""
        where, labels = names.CONTROL_PLANE_NAMESPACE, names.CONTROL_PLANE_LABELS
        return self.watch(
            "control plane",
            builtin.POD,
            decode.operation_pod,
            careful=careful.control_plane_pod,
            index=("node",),
            namespace=where,
            labels=labels,
        )

    @cached_property
    def pause(self) -> Informer[Pause]:
        """Our namespace, which says whether everything new is stopped."""
        return self.watch("pause", builtin.NAMESPACE, pause_of, fields=builtin.named(self.namespaces.system))

    def reporter(self, reporter: Reporter) -> Informer[ReporterPod]:
        """The Pods of a reporter, by namespace/name. Policies name it while watches run: who asks runs it."""
        kind, project = reporter_pods.POD, reporter_pods.reporter_pod
        where, labels = reporter.namespace, reporter.selector
        return self._lent(Informer(self._client, kind, project, self._clock, namespace=where, labels=labels))

    def node_events(self, reason: str) -> Informer[NodeEvent]:
        """The Events about nodes that have this reason, by namespace/name. As with `reporter`, who asks runs it."""
        where, fields = node_events.NAMESPACE, node_events.about_nodes(reason)
        informer = Informer(
            self._client,
            node_events.EVENT,
            node_events.node_event,
            self._clock,
            careful=node_events.unreadable,
            namespace=where,
            fields=fields,
        )
        return self._lent(informer)

    def _lent(self, informer: Informer[F]) -> Informer[F]:
        self._run_by_others.add(informer)
        return informer

    def watch(
        self,
        name: str,
        kind: Kind[Any],
        project: Callable[[Any], F],
        *,
        careful: Callable[[msgspec.Raw], F] | None = None,
        index: tuple[str, ...] = (),
        namespace: str = "",
        labels: str = "",
        fields: str = "",
    ) -> Informer[F]:
        """One more informer, under a name for people; it begins with the others, or at once where these run."""
        informer = Informer(
            self._client,
            kind,
            project,
            self._clock,
            careful=careful,
            index=index,
            namespace=namespace,
            labels=labels,
            fields=fields,
        )
        self._informers[name] = informer
        if self._group is not None:
            self._group.create_task(informer.run())
        return informer

    # --- all of them -------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Follow the API server until cancelled."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            for informer in self._informers.values():
                group.create_task(informer.run())

    async def read(self, optional: Collection[str] = ()) -> list[str]:
        """Read everything once, for a command that ends. Raises ApiError.

        What a cluster may lack, or a user may not read, is left out where its name is `optional`; why, is returned.
        """
        left_out = []
        for name, informer in self._informers.items():
            try:
                await informer.read()
            except (errors.NotFound, errors.Forbidden) as failed:
                if name not in optional:
                    raise
                left_out.append(failed.message)
        return left_out

    def list_anew(self) -> None:
        """Read everything again, whoever runs it: the API server went back, and what it told since then is not so."""
        for informer in (*self._informers.values(), *self._run_by_others):
            informer.list_anew()

    async def synced(self) -> None:
        """Wait until every list is complete."""
        await synced(*self._informers.values())

    def fresh(self) -> bool:
        """Whether every list is complete and every watch shows signs of life."""
        return all(informer.fresh() for informer in self._informers.values())

    def ages(self) -> Mapping[str, float]:
        """Seconds since the last sign of life of each watch, by name."""
        return {name: informer.age() for name, informer in self._informers.items()}

    def unreadable(self) -> Mapping[str, int]:
        """How many objects of each watch cannot be read, by name."""
        return {name: informer.unreadable() for name, informer in self._informers.items()}


class OfNode(Informers):
    """What is read of one node, for a command of a user: of nodes, cases and operations those of this node alone."""

    whole = False

    def __init__(
        self, client: Client, clock: Clock, namespaces: names.Namespaces, node: str, *, all_cases: bool = False
    ) -> None:
        super().__init__(client, clock, namespaces)
        self._node, self._all_cases = node, all_cases

    @cached_property
    def nodes(self) -> Informer[Node]:
        """This node, where it is there."""
        return self.watch("nodes", builtin.NODE, decode.node, fields=builtin.named(self._node))

    @cached_property
    def cases(self) -> Informer[Case]:
        """Its cases, or those of all nodes: a board may have been moved."""
        index, fields = ("node", "policy", "uid"), "" if self._all_cases else builtin.on_node(self._node)
        project = decode.remediation_case
        return self.watch("cases", api.CASE, project, careful=careful.case, index=index, fields=fields)

    @cached_property
    def operations(self) -> Informer[Operation]:
        """Its operations."""
        fields = builtin.on_node(self._node)
        return self.watch("operations", api.OPERATION, decode.operation, index=("case_uid",), fields=fields)

    @cached_property
    def inventories(self) -> Informer[Inventory]:
        """What the controller has learnt of it."""
        project, fields = decode.node_inventory, builtin.named(self._node)
        return self.watch("inventories", api.INVENTORY, project, careful=careful.node_inventory, fields=fields)


def pause_of(wire: builtin.Namespace) -> Pause:
    """What a namespace says."""
    return Pause(decode.paused(wire), wire.metadata.resource_version, wire.metadata.name, decode.leaving(wire))


def unhealthy_cards_of(wire: shared_gpus.ConfigMap) -> UnhealthyCards:
    """What a ConfigMap says of cards."""
    node = shared_gpus.unhealthy_node(wire)
    return UnhealthyCards(node, shared_gpus.unhealthy(wire.data.gpus if wire.data else None)) if node else _OTHER


_OTHER = UnhealthyCards()

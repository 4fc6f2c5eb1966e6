"""The informers of one replica: each kind is watched once under each selector, for all parts."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import msgspec

from remediator.clock import Clock
from remediator.core import names
from remediator.core.budget import Budget
from remediator.core.case import Case, Operation
from remediator.core.node import Node
from remediator.core.pod import Pod
from remediator.core.policy import Policy, Template
from remediator.core.ticket import Ticket
from remediator.kube import api
from remediator.kube.api import builtin, decode
from remediator.kube.api.decode import careful
from remediator.kube.runtime.informer import F, Informer, synced
from remediator.kube.wire.client import Client, Kind


@dataclass(frozen=True, slots=True)
class Pause:
    """Whether somebody stopped everything new, as our namespace says."""

    paused: bool
    version: str = field(default="", compare=False)


class Informers:
    """The informers of one replica. What nobody asks for before `run` is not watched."""

    def __init__(self, client: Client, clock: Clock, namespaces: names.Namespaces) -> None:
        self.namespaces = namespaces
        self._client, self._clock = client, clock
        self._informers: dict[str, Informer[Any]] = {}
        self._running = False

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
    def operations(self) -> Informer[Operation]:
        """All operations, by name; also by case."""
        return self.watch("operations", api.OPERATION, decode.operation, index=("case_uid",))

    @cached_property
    def tickets(self) -> Informer[Ticket]:
        """All Tickets, by name."""
        return self.watch("tickets", api.TICKET, decode.ticket)

    @cached_property
    def pods(self) -> Informer[Pod]:
        """The Pods of operations, by namespace/name; also by case and by operation."""
        where, index = self.namespaces.operations, ("case_uid", "operation_uid")
        return self.watch("pods", builtin.POD, decode.operation_pod, index=index, namespace=where)

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
        return self.watch("pause", builtin.NAMESPACE, _pause, fields=builtin.named(self.namespaces.system))

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
        """One more informer, under a name for people. Raises RuntimeError after `run` has begun."""
        if self._running:
            raise RuntimeError(f"{name} was asked for after the watches had begun")
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
        return informer

    # --- all of them -------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Follow the API server until cancelled."""
        self._running = True
        async with asyncio.TaskGroup() as group:
            for informer in self._informers.values():
                group.create_task(informer.run())

    async def read(self) -> None:
        """Read everything once, for a command that ends. Raises ApiError."""
        for informer in self._informers.values():
            await informer.read()

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


def _pause(wire: builtin.Namespace) -> Pause:
    return Pause(decode.paused(wire), wire.metadata.resource_version)

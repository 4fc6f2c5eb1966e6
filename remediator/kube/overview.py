"""What is read of the whole fleet for one screen: no node, and of cases only those that are open."""

from dataclasses import dataclass, field
from functools import cached_property

from remediator.clock import Clock
from remediator.core import names
from remediator.core.budget import Budget
from remediator.core.case import Case
from remediator.core.missing_fields import Missing
from remediator.core.pod import Pod
from remediator.core.policy import Policy
from remediator.kube import api
from remediator.kube.api import builtin, decode
from remediator.kube.api.decode import careful
from remediator.kube.api.remediation import OPEN
from remediator.kube.informers import Informers
from remediator.kube.runtime.informer import Informer
from remediator.kube.wire import errors
from remediator.kube.wire.client import Client


@dataclass(frozen=True, slots=True)
class Overview:
    """The fleet as it was read. `nodes` None: the server does not say how many there are.

    `missing`: what definitions lack that are older than this command.
    """

    nodes: int | None
    cases: tuple[Case, ...]
    policies: tuple[Policy, ...]
    budgets: tuple[Budget, ...]
    paused: bool
    tests: tuple[Pod, ...] = ()  # of idle nodes
    missing: Missing = field(default_factory=dict)

    @property
    def idle_tests(self) -> tuple[Pod, ...]:
        """The tests without those Pods that are only the other end of a measurement, which test nothing."""
        return tuple(pod for pod in self.tests if not pod.neighbour_of)


class _OfFleet(Informers):
    def __init__(self, client: Client, clock: Clock, namespaces: names.Namespaces, fields: str) -> None:
        super().__init__(client, clock, namespaces)
        self._fields = fields

    @cached_property
    def cases(self) -> Informer[Case]:
        return self.watch("cases", api.CASE, decode.remediation_case, careful=careful.case, fields=self._fields)

    @cached_property
    def pods(self) -> Informer[Pod]:
        where, labels = self.namespaces.operations, f"{names.IDLE_TEST}=true"
        return self.watch("tests", builtin.POD, decode.operation_pod, namespace=where, labels=labels)


async def overview(client: Client, clock: Clock, namespaces: names.Namespaces) -> Overview:
    """Read it. Definitions of an older version know no field selector: then all cases are read."""
    try:
        return await _read(client, clock, namespaces, OPEN)
    except errors.Invalid:
        return await _read(client, clock, namespaces, "")


async def open_cases(client: Client, clock: Clock, namespaces: names.Namespaces) -> tuple[Case, ...]:
    """These alone, in the same way."""
    try:
        return await _open_cases(client, clock, namespaces, OPEN)
    except errors.Invalid:
        return await _open_cases(client, clock, namespaces, "")


async def _open_cases(client: Client, clock: Clock, namespaces: names.Namespaces, fields: str) -> tuple[Case, ...]:
    informers = _OfFleet(client, clock, namespaces, fields)
    cases = informers.cases
    await informers.read()
    return tuple(case for case in cases if case.open)


async def _read(client: Client, clock: Clock, namespaces: names.Namespaces, fields: str) -> Overview:
    informers = _OfFleet(client, clock, namespaces, fields)
    cases, policies, budgets = informers.cases, informers.policies, informers.budgets
    pause, tests = informers.pause, informers.pods
    await informers.read()
    open_cases = tuple(case for case in cases if case.open)
    paused = any(each.paused for each in pause)
    return Overview(await client.count(builtin.NODE), open_cases, tuple(policies), tuple(budgets), paused, tuple(tests))

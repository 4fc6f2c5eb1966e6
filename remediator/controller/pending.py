"""The cases that ask to start, and the request that each of them makes as case, node, policy and pause are now."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from remediator.controller import blast_looks
from remediator.controller.blast_looks import Looks
from remediator.controller.cache import ClusterCache
from remediator.controller.case_view import CaseView, case_view
from remediator.controller.handlers.case import HANDLERS
from remediator.controller.records import Records
from remediator.core import guard
from remediator.core.admission import StartRequest
from remediator.core.case import AttemptOutcome, Case, Phase
from remediator.core.case_table import CaseStep, case_step
from remediator.core.confirmation import question
from remediator.core.giving_way import takes_over
from remediator.core.guard import FleetContext
from remediator.core.node import Status
from remediator.core.policy import Urgency
from remediator.kube.runtime.turns import sliced
from remediator.metrics import Contained

SLICE = 25  # cases between two turns of the loop
Waiting = Sequence[tuple[CaseView, CaseStep]]


@dataclass(frozen=True, slots=True)
class PendingAdmission:
    """One request with the view and the step it was made from."""

    request: StartRequest
    view: CaseView
    step: CaseStep


class PendingAdmissions:
    """Makes the requests of a pass. A case that fails stops no other."""

    def __init__(self, cache: ClusterCache, records: Records, looks: Looks) -> None:
        self.cache, self.records, self.looks = cache, records, looks

    async def waiting(self, now: datetime) -> list[tuple[CaseView, CaseStep]]:
        """The open cases that request admission, our finalizer on them."""
        waiting: list[tuple[CaseView, CaseStep]] = []
        async for case in sliced(self.cache.unfinished, SLICE):
            if _asks(case) and not self.records.has_claim(case):
                with Contained("admission", case.name):
                    view = case_view(self.cache, case, now)
                    waiting.append((view, case_step(view.observation)))
        return [(view, step) for view, step in waiting if HANDLERS[step].by_admission and view.node is not None]

    async def all(self, waiting: Waiting, fleet: FleetContext, now: datetime) -> list[PendingAdmission]:
        """The requests, in the order in which they are decided."""
        pending: list[PendingAdmission] = []
        async for view, step in sliced(waiting, SLICE):
            with Contained("admission", view.case.name):
                pending.append(self.of(view, step, fleet, now))
        return sorted(pending, key=lambda pending: pending.request.order)

    def of(self, view: CaseView, step: CaseStep, fleet: FleetContext, now: datetime) -> PendingAdmission:
        """The request of one case. Raises ValueError where it has no node."""
        case, node, policy = view.case, view.node, view.policy
        if node is None:
            raise ValueError(f"case {case.name} requests admission without a node")
        past = self.cache.cases.by("node", case.node)
        blocks = guard.preconditions(case, node, policy, past, fleet, now)
        severity = policy.severity.rank if policy else 0
        needs, asked = guard.needs_of(policy, fleet), question(policy, case.node)
        spare_gpus = policy is not None and policy.require_spare_gpus and policy.urgency is not Urgency.NEVER
        seen = blast_looks.seen(self.looks, case, policy, step, now)
        others = ((other, self.cache.policy_of(other)) for other in past if other.uid != case.uid)
        over = policy is not None and not case.claimed and takes_over(blocks, policy, others)
        request = StartRequest(case, node, severity, blocks, needs, asked, spare_gpus, seen, over)
        # What it is let through for is what it keeps: a look may have come since the view was made.
        blast = self.looks.radius(case.node, now)
        return PendingAdmission(request, view if view.blast == blast else replace(view, blast=blast), step)

    def as_it_is_now(self, pending: PendingAdmission, fleet: FleetContext, now: datetime) -> PendingAdmission | None:
        """The request, made again where case, node, policy or pause have moved since; None where it asks no more."""
        view = pending.view
        case = self.cache.cases.get(view.case.name)
        node, policy = self.cache.nodes.get(view.case.node), self.cache.policy_of(view.case)
        if (case, node, policy) == (view.case, view.node, view.policy) and self.cache.paused == fleet.paused:
            return pending
        if case is None or case.uid != view.case.uid or not _asks(case):
            return None
        newer = replace(case_view(self.cache, case, now), gone=view.gone)
        step = case_step(newer.observation)
        if newer.node is None or not HANDLERS[step].by_admission:
            return None
        return self.of(newer, step, replace(fleet, paused=self.cache.paused), now)

    def unknown(self, waiting: Waiting, fleet: FleetContext, now: datetime) -> set[str]:
        """Uids on nodes that are to be claimed, of cases that the cache does not know, where nothing else holds."""
        unknown: set[str] = set()
        for view, step in waiting:
            marks = view.node.marks if view.node and step is CaseStep.CLAIM else ()
            uids = {uid for uid in marks if self.cache.case(uid) is None}
            if uids:
                with Contained("admission", view.case.name):
                    free = self.of(view, step, replace(fleet, gone=frozenset(uids)), now)
                    unknown |= set() if free.request.blocks else uids
        return unknown

    def silent(self, waiting: Waiting, fleet: FleetContext, now: datetime) -> set[str]:
        """The nodes whose kubelets do not report, of cases that nothing else holds: only their Leases are read."""
        silent: set[str] = set()
        for view, step in waiting:
            asks = view.policy is not None and view.policy.asks_unknown
            if asks and view.node is not None and view.node.ready is Status.UNKNOWN:
                with Contained("admission", view.case.name):
                    blocks = self.of(view, step, fleet, now).request.blocks
                    silent |= set() if blocks else {view.case.node}
        return silent


def _asks(case: Case) -> bool:
    """Whether the case may request admission: what holds a node must not vanish.

    One that a person has, or whose attempt goes on, requests nothing.
    """
    goes_on = case.attempt is not None and case.attempt.outcome is AttemptOutcome.OPEN
    settled = case.claimed and (case.phase is Phase.ESCALATED or goes_on)
    return case.open and case.finalizer and not case.unreadable and not settled

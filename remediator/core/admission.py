"""Which of the cases that ask may start: budgets, breakers, places and spare GPUs for all, the most urgent first."""

from bisect import insort
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

from remediator.core import blast_radius
from remediator.core.blast_radius import RadiusVerdict
from remediator.core.breaker import Breaker
from remediator.core.budget import Claim
from remediator.core.budget_breaker import BudgetBreakers, counted_by
from remediator.core.case import Block, Case
from remediator.core.census import BudgetSnapshot
from remediator.core.confirmation import ConfirmationAnswer, Question
from remediator.core.correlation import SharedCause, shared_cause, was_in_group
from remediator.core.duration import in_words
from remediator.core.guard import block, unconfirmed
from remediator.core.ledger_fold import LedgerFold
from remediator.core.node import Node
from remediator.core.places import EVERYWHERE, Places
from remediator.core.reasons import Reason
from remediator.core.spare import SpareGpus, SpareTaking
from remediator.core.template import Template


@dataclass(frozen=True, slots=True)
class StartRequest:
    """One case that asks to start: to claim its node, or, `claimed` already, for its next attempt.

    `blocks` hold it whatever the budgets say; with any, budgets are not asked. `needs`: by operation, the templates of
    its Pods with rights in the API, for each of which another node must have a place. `question` must be answered with
    yes last of all. `spare_gpus`: what the node runs on GPUs must fit elsewhere. `blast`: what is known of the work
    that would end; None where nobody need know. `takes_over`: another case holds the node, and would give it to this
    one; what else would hold this one is asked all the same.
    """

    case: Case
    node: Node
    severity: int
    blocks: tuple[Block, ...]
    needs: Mapping[str, tuple[Template, ...]] = field(default_factory=dict)
    question: Question | None = None
    spare_gpus: bool = False
    blast: RadiusVerdict | None = None
    takes_over: bool = False

    @property
    def order(self) -> tuple[bool, int, datetime, str]:
        """Cases that hold or have marked their node go first, then severity, then age; names settle ties."""
        holds = self.case.claimed or self.node.case_uid == self.case.uid
        return (not holds, self.severity, self.case.created, self.case.name)


@dataclass(frozen=True, slots=True)
class Admission:
    """What one pass over all requests allows: who goes on, who is held and why, and what each ledger gains."""

    admitted: tuple[StartRequest, ...]
    held: tuple[tuple[StartRequest, tuple[Block, ...]], ...]
    claims: Mapping[str, tuple[Claim, ...]]


@dataclass(frozen=True, slots=True)
class Basis:
    """What all admissions of one pass rest on.

    Attributes:
        ledgers: The budgets, one snapshot.
        starts: When attempts were started lately, for the breaker of the fleet.
        breaker: That of the fleet.
        now: Aware UTC.
        places: For Pods with rights in the API.
        answers: What the second sources of policies say, those that may still be used.
        under_repair: The case of each former group that is repaired now.
        spare: Which GPUs are free; None where nobody knows.
        leaving: The nodes that cases have taken in earlier passes: what they run on GPUs moves.
    """

    ledgers: BudgetSnapshot
    starts: Iterable[datetime]
    breaker: Breaker
    now: datetime
    places: Places = EVERYWHERE
    answers: Mapping[Question, ConfirmationAnswer] = field(default_factory=dict)
    under_repair: Mapping[SharedCause, str] = field(default_factory=dict)
    spare: SpareGpus | None = None
    leaving: Sequence[Node] = ()


def admit(requests: Iterable[StartRequest], basis: Basis) -> Admission:
    """Fold budgets and breaker over the requests, in order, each seeing what the ones before it were given."""
    fold = AdmissionFold(basis)
    for request in sorted(requests, key=lambda request: request.order):
        fold.decide(request)
    return fold.admission()


class AdmissionFold:
    """Decides one request after the other on one snapshot. Whoever folds hands them over in their order.

    Two passes over the same cache admit the same cases. A case that claims must be admitted by every budget over its
    node; one that has claimed needs only the breaker, and not even that for its first attempt, while the claim counts
    as its start. One of a new node needs neither: nobody misses a node that has never worked. One with entries that
    does not say yet that it holds its node is a start since the first of them.
    A node that is admitted is no place any more for the Pods of those after it: each waits only for nodes that were
    admitted later, so that two never wait for each other.
    """

    def __init__(self, basis: Basis) -> None:
        self.breaker, self.now, self.places = basis.breaker, basis.now, basis.places
        self.ledgers = LedgerFold(basis.ledgers, basis.now)
        self.answers, self.questions = basis.answers, list[Question]()  # those that wait for an answer, in their order
        self.spare = SpareTaking(basis.spare, basis.leaving)
        self.under_repair = dict(basis.under_repair)
        self.recent = basis.breaker.recent(basis.starts, basis.now)
        self.breakers = BudgetBreakers(basis.ledgers.budgets, basis.ledgers.members, basis.ledgers.starts, basis.now)
        self.unseen: list[StartRequest] = []  # somebody must look what runs on their nodes
        self.taken: dict[str, str] = {}  # the case that was admitted in this pass, by node
        self._admitted: list[StartRequest] = []
        self._held: list[tuple[StartRequest, tuple[Block, ...]]] = []

    def decide(self, request: StartRequest) -> None:
        """Admit or hold one case."""
        blocks = (
            _node_busy(request, self)
            or _one_by_one(request, self)
            or _homeless(request, self)
            or (_capacity(request, self) if request.case.takes_capacity else ())
        )
        if request.blast is not None and blast_radius.concerns(blocks):
            blocks, look = blocks or request.blast.blocks, request.blast.look
            self.unseen += [request] if look else []
            if look and not blocks:  # neither admitted nor held: it is decided when somebody has looked
                return
        if not blocks and request.question is not None:
            answer = self.answers.get(request.question)
            if answer is None or answer.open:
                self.questions.append(request.question)
            if answer is None:  # neither admitted nor held: it is decided when there is one
                return
            blocks = unconfirmed(answer)
        if request.takes_over:
            blocks = blocks or request.blocks
        if blocks:
            self._held.append((request, blocks))
            return
        self._admitted.append(request)
        self.taken[request.node.name] = request.case.name
        if request.case.takes_capacity:
            self._enter(request)
        self.places = self.places.without(request.node)
        self.spare.take(request.node)
        if was_in_group(request.case) and (cause := shared_cause(request.case)):
            self.under_repair[cause] = request.case.name

    def _enter(self, request: StartRequest) -> None:
        """Count one that was admitted, in the breakers and in the ledgers."""
        if not self.counts(request.case, self.breaker):
            insort(self.recent, self.now)
        if self.breakers:
            self.breakers.started(self.over(request), partial(self.counts, request.case))
        if not request.case.claimed:
            self.ledgers.take(request.node, request.case.uid)

    def counts(self, case: Case, breaker: Breaker) -> bool:
        """Whether the case counts as a start already: by its claim, or by its entries while no claim is recorded."""
        return counted_by(breaker, case, self.ledgers.first_entry(case.uid), self.now)

    def over(self, request: StartRequest) -> list[str]:
        """The budgets over the node now, and those that have an entry of the case."""
        return self.ledgers.over(request.node, request.case.uid)

    def admission(self) -> Admission:
        """What was decided."""
        return Admission(tuple(self._admitted), tuple(self._held), self.ledgers.gained)


def _capacity(request: StartRequest, fold: AdmissionFold) -> tuple[Block, ...]:
    """What holds a case because its node would be missed."""
    return (
        _breaker(request, fold) or _budget_breakers(request, fold) or _budgets(request, fold) or _spare(request, fold)
    )


def _node_busy(request: StartRequest, fold: AdmissionFold) -> tuple[Block, ...]:
    """What holds the case before anything is asked of budgets; not a case that would give the node to it."""
    return () if request.takes_over else request.blocks or _taken(request, fold) or _entered(request, fold)


def _taken(request: StartRequest, fold: AdmissionFold) -> tuple[Block, ...]:
    """One case per node, also within one pass."""
    first = fold.taken.get(request.node.name, "")
    return (block(Reason.NODE_BUSY, f"case {first} holds {request.node.name}"),) if first else ()


def _entered(request: StartRequest, fold: AdmissionFold) -> tuple[Block, ...]:
    """A node has one case: a ledger, written under its version, is what two leaders cannot both win."""
    others = fold.ledgers.entries.get(request.node.name, set()) - {request.case.uid}
    if request.case.claimed or not others:
        return ()
    return (block(Reason.NODE_BUSY, f"a budget says that case {min(others)} holds {request.node.name}"),)


def _spare(request: StartRequest, fold: AdmissionFold) -> tuple[Block, ...]:
    """Where the policy asks for it, what a node runs must have a place elsewhere before the node is taken."""
    lacking = fold.spare.lacking(request.node) if request.spare_gpus and not request.case.claimed else ""
    return (block(Reason.NOT_ENOUGH_SPARE_GPUS, lacking),) if lacking else ()


def _one_by_one(request: StartRequest, fold: AdmissionFold) -> tuple[Block, ...]:
    """Nodes that stay sick once their common cause has gone are repaired one after the other."""
    cause = shared_cause(request.case) if was_in_group(request.case) else None
    first = fold.under_repair.get(cause, "") if cause and not request.case.claimed else ""
    if first in ("", request.case.name):
        return ()
    return (block(Reason.SHARED_CAUSE, f"its node showed the same as others did; case {first} goes first"),)


def _homeless(request: StartRequest, fold: AdmissionFold) -> tuple[Block, ...]:
    """What admissions before it in this pass have left of the places for its Pods."""
    lacking = fold.places.lacking(request.needs, request.node)
    if not lacking:
        return ()
    return (block(Reason.NO_NODE_FOR_API_PODS, fold.places.missing(request.node, lacking)),)


def _breaker(request: StartRequest, fold: AdmissionFold) -> tuple[Block, ...]:
    breaker = fold.breaker
    if fold.counts(request.case, breaker):
        return ()
    until = breaker.opened(fold.recent)
    words = f"{breaker.starts} starts in {in_words(breaker.window)}"
    return (block(Reason.BREAKER_OPEN, words, until),) if until else ()


def _budget_breakers(request: StartRequest, fold: AdmissionFold) -> tuple[Block, ...]:
    """Each attempt on a node is a start under every budget over it, also that of a case that holds its node."""
    if not fold.breakers:
        return ()
    refusals = fold.breakers.refusals(fold.over(request), partial(fold.counts, request.case))
    return tuple(block(*refusal) for refusal in refusals)


def _budgets(request: StartRequest, fold: AdmissionFold) -> tuple[Block, ...]:
    """Every budget over the node must admit it; one that holds our entry already has."""
    return () if request.case.claimed else fold.ledgers.refusals(request.node, request.case.uid)

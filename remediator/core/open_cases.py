"""The open cases of the fleet in groups: what each waits for, and who must act. Pure."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from remediator.core.actors import ACTORS, Actor
from remediator.core.case import Case, Phase
from remediator.core.history import held_since, phase_since
from remediator.core.reasons import REMEDY, Reason

WAITS = "Waits"  # no reason is shown yet: the next admission pass says more
HEALTHY = "HealthyAgain"  # a person has the case, and its node looks healthy
UNREADABLE = "Unreadable"


class CaseWait(NamedTuple):
    """What a case waits for: who must act, in a word what for, and what would help."""

    actor: Actor
    word: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Group:
    """The open cases that wait for the same, the one that has waited longest first."""

    wait: CaseWait
    cases: tuple[Case, ...]
    since: datetime  # of the first


def wait_of(case: Case) -> tuple[CaseWait, datetime]:
    """What an open case waits for, and since when. Of several reasons the one counts for which a person is needed."""
    if case.unreadable:
        return CaseWait(Actor.ADMINISTRATOR, UNREADABLE, "run the version of Remediator that wrote it"), case.created
    if case.phase is Phase.ESCALATED:
        return _escalated(case)
    if case.blocks:
        block = min(case.blocks, key=lambda block: _actor(block.reason).rank)
        shown = CaseWait(_actor(block.reason), block.reason.value, REMEDY.get(block.reason, ""))
        return shown, held_since(case, block.reason)
    attempt = case.attempt
    doing = f" {attempt.template}" if attempt else ""
    return CaseWait(Actor.NOBODY, f"{case.phase.value}{doing}" if case.claimed else WAITS), phase_since(case)


def _escalated(case: Case) -> tuple[CaseWait, datetime]:
    if case.healthy_since is not None:
        return CaseWait(Actor.OPERATOR, HEALTHY, "set spec.release of the case to true"), case.healthy_since
    reason = case.reason if case.reason in REMEDY else Reason.LADDER_EXHAUSTED
    return CaseWait(ACTORS.get(reason, Actor.OPERATOR), reason.value, REMEDY[reason]), phase_since(case)


def _actor(reason: Reason) -> Actor:
    return ACTORS.get(reason, Actor.ADMINISTRATOR)


def groups(cases: Iterable[Case]) -> list[Group]:
    """The open ones of these cases: who must act first stands first, then the largest group."""
    sorted_out: defaultdict[CaseWait, list[tuple[datetime, Case]]] = defaultdict(list)
    for case in cases:
        if case.open:
            shown, since = wait_of(case)
            sorted_out[shown].append((since, case))
    ordered = []
    for shown, entries in sorted_out.items():
        entries.sort(key=lambda entry: (entry[0], entry[1].name))
        ordered.append(Group(shown, tuple(case for _, case in entries), entries[0][0]))
    return sorted(ordered, key=lambda group: (group.wait.actor.rank, -len(group.cases), group.wait.word))

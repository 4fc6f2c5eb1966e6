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


class Standing(NamedTuple):
    """What a case waits for: who must act, in a word what for, and what would help."""

    actor: Actor
    word: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Group:
    """The open cases that wait for the same, the one that has waited longest first."""

    standing: Standing
    cases: tuple[Case, ...]
    since: datetime  # of the first


def standing(case: Case) -> tuple[Standing, datetime]:
    """What an open case waits for, and since when. Of several reasons the one counts for which a person is needed."""
    if case.unreadable:
        return Standing(Actor.ADMINISTRATOR, UNREADABLE, "run the version of Remediator that wrote it"), case.created
    if case.phase is Phase.ESCALATED:
        return _escalated(case)
    if case.blocks:
        block = min(case.blocks, key=lambda block: _actor(block.reason).rank)
        shown = Standing(_actor(block.reason), block.reason.value, REMEDY.get(block.reason, ""))
        return shown, held_since(case, block.reason)
    attempt = case.attempt
    doing = f" {attempt.template}" if attempt else ""
    return Standing(Actor.NOBODY, f"{case.phase.value}{doing}" if case.claimed else WAITS), phase_since(case)


def _escalated(case: Case) -> tuple[Standing, datetime]:
    if case.healthy_since is not None:
        return Standing(Actor.OPERATOR, HEALTHY, "set spec.release of the case to true"), case.healthy_since
    reason = case.reason if case.reason in REMEDY else Reason.LADDER_EXHAUSTED
    return Standing(ACTORS.get(reason, Actor.OPERATOR), reason.value, REMEDY[reason]), phase_since(case)


def _actor(reason: Reason) -> Actor:
    return ACTORS.get(reason, Actor.ADMINISTRATOR)


def groups(cases: Iterable[Case]) -> list[Group]:
    """The open ones of these cases: who must act first stands first, then the largest group."""
    sorted_out: defaultdict[Standing, list[tuple[datetime, Case]]] = defaultdict(list)
    for case in cases:
        if case.open:
            shown, since = standing(case)
            sorted_out[shown].append((since, case))
    ordered = []
    for shown, entries in sorted_out.items():
        entries.sort(key=lambda entry: (entry[0], entry[1].name))
        ordered.append(Group(shown, tuple(case for _, case in entries), entries[0][0]))
    return sorted(ordered, key=lambda group: (group.standing.actor.rank, -len(group.cases), group.standing.word))

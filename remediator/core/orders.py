"""What a user orders about an open case: what is set on it, or why that would do nothing. Pure, one row per command."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType

from remediator.core import keep_out
from remediator.core.blast_radius import described
from remediator.core.case import MOST_RETRIES, Case, KeepOut, Phase
from remediator.core.command import APPROVABLE, CaseChange
from remediator.core.names import EXCLUDE
from remediator.core.open_cases import wait_of


class Command(StrEnum):
    """What can be ordered, as it is written on the command line."""

    HOLD = "hold"
    UNHOLD = "hold --off"
    APPROVE = "approve"
    RELEASE = "release"
    RETRY = "retry"
    CANCEL = "cancel"
    TAKE_OUT = "take-out"  # of a node that its user has taken out already: for longer, or shorter
    PUT_BACK = "put-back"


OF_EACH = frozenset({Command.PUT_BACK})  # each node is named, so that all are meant
STARTS = frozenset({Command.APPROVE, Command.RETRY})  # after these, work on the node may end


@dataclass(frozen=True, slots=True)
class Order:
    """`user`: who orders, "" where the server does not say. `until` and `because` are of a hold, or of a take-out."""

    command: Command
    user: str
    until: datetime | None = None
    because: str = ""


@dataclass(frozen=True, slots=True)
class OrderAnswer:
    """What an order does to one case, in a sentence whose subject is the case; without change and deletion: nothing."""

    case: Case
    text: str
    change: CaseChange | None = None
    delete: bool = False

    @property
    def acts(self) -> bool:
        """Whether anything is done."""
        return self.change is not None or self.delete


@dataclass(frozen=True, slots=True)
class Choice:
    """Which cases obey, and of those that were named which would not change.

    `nothing`: why the order would do nothing; `unclear`: why nobody can tell which is meant.
    """

    answers: tuple[OrderAnswer, ...] = ()
    idle: tuple[OrderAnswer, ...] = ()
    nothing: str = ""
    unclear: str = ""


def choose(cases: Iterable[Case], order: Order, where: str, named: Collection[str] = ()) -> Choice:
    """The cases among these that obey an order: open ones.

    Args:
        cases: Those of the nodes that are meant.
        order: What is ordered.
        where: The nodes, in words.
        named: Names of cases; with none, exactly one case must be able to obey.
    """
    meant = [case for case in cases if (case.name in named if named else case.open)]
    if not any(case.open for case in meant):
        return Choice(nothing=f"no case of {where} is open, so there is nothing to do{_instead(order)}")
    answers = [ANSWERS[order.command](case, order) if case.open else _over(case) for case in meant]
    acting = tuple(answer for answer in answers if answer.acts)
    if not acting:
        return Choice(nothing="; ".join(f"{shown(answer.case)} {answer.text}" for answer in answers))
    if len(acting) > 1 and not named and order.command not in OF_EACH:
        listed = ", ".join(f"{shown(answer.case)} ({wait_of(answer.case)[0].word})" for answer in acting)
        return Choice(unclear=f"{len(acting)} cases can be meant: {listed}; say which with --case NAME")
    return Choice(acting, tuple(answer for answer in answers if named and not answer.acts))


def question(answer: OrderAnswer) -> str:
    """What a user is asked before work on a node may end."""
    case = answer.case
    ends = described(case.blast) if case.blast else "not looked at yet"
    return f"{shown(case)} {answer.text}; what would end with it: {ends}. Go on?"


def stopped_short(done: Sequence[OrderAnswer], trying: OrderAnswer | None, rest: Sequence[OrderAnswer]) -> str:
    """What a command that was ended before its end has done, and what not. `trying`: what nobody has an answer to."""
    if not done and trying is None:
        return "nothing was done"
    parts = (
        ("done", done),
        ("not known whether done", [trying] if trying else []),
        ("not done", rest),
    )
    lists = "; ".join(f"{word}: {', '.join(shown(each.case) for each in which)}" for word, which in parts if which)
    look = f"; to look: remediator explain {trying.case.node}" if trying else ""
    return f"{lists}; what is done stays{look}"


def shown(case: Case) -> str:
    """A case with its node, as it is named to a person."""
    return f"case {case.name} on {case.node}"


def _instead(order: Order) -> str:
    return _INSTEAD.get(order.command, "")


_INSTEAD = {
    Command.HOLD: f"; to keep Remediator off a node: kubectl label node NODE {EXCLUDE}=true",
    Command.PUT_BACK: "; what is asked for and has no case yet is taken back with: kubectl delete nop NAME",
}


def _over(case: Case) -> OrderAnswer:
    return OrderAnswer(case, f"is over ({case.phase.value})")


def _hold(case: Case, order: Order) -> OrderAnswer:
    same = case.hold_terms == (order.until, order.because)
    if case.hold and (same or case.set_by.hold != order.user):
        by = f", set by {case.set_by.hold}" if case.set_by.hold else ""
        return OrderAnswer(case, f"is held already{by}{case.hold_terms}")
    change = CaseChange(case.name, case.version, hold=True, until=order.until, because=order.because)
    ends = f"{order.until:%Y-%m-%d %H:%M:%S} UTC" if order.until else f"`remediator hold {case.node} --off`"
    return OrderAnswer(case, f"starts nothing new until {ends}{_UNDER_WAY.get(case.phase, '')}", change)


_UNDER_WAY = {
    Phase.DRAINING: "; its drain is stopped, and Pods that have gone stay away",
    Phase.OPERATING: "; the operation that runs goes on to its end",
}


def _unhold(case: Case, order: Order) -> OrderAnswer:
    if not case.hold:
        return OrderAnswer(case, "is not held")
    return OrderAnswer(case, "goes on", CaseChange(case.name, case.version, hold=False))


def _approve(case: Case, order: Order) -> OrderAnswer:
    if case.approved:
        return OrderAnswer(case, f"is approved already{f', by {case.set_by.approved}' if case.set_by.approved else ''}")
    if not any(block.reason in APPROVABLE for block in case.blocks):
        return OrderAnswer(case, f"waits for no approval ({wait_of(case)[0].word})")
    return OrderAnswer(case, "may start", CaseChange(case.name, case.version, approve=True))


def _release(case: Case, order: Order) -> OrderAnswer:
    if case.phase is not Phase.ESCALATED:
        return OrderAnswer(case, f"{_not_escalated(case)}; `remediator cancel {case.node}` ends it")
    if case.release:
        return OrderAnswer(case, "is released already")
    return OrderAnswer(
        case, "is released: its node takes work again", CaseChange(case.name, case.version, release=True)
    )


def _retry(case: Case, order: Order) -> OrderAnswer:
    count = max(case.retry, case.retries) + 1
    if case.phase is not Phase.ESCALATED:
        return OrderAnswer(case, _not_escalated(case))
    if keep_out.is_out(case):
        return OrderAnswer(
            case, f"has nothing to try: {case.node} is out for a user; `remediator put-back {case.node}` ends that"
        )
    if case.wants_retry:
        return OrderAnswer(case, "is about to try again already")
    if count > MOST_RETRIES:
        return OrderAnswer(
            case, f"has tried again {MOST_RETRIES} times, which is the most: repair the node, then release it"
        )
    text = "tries again from the rung that it came to last, where its policy lets it"
    return OrderAnswer(case, text, CaseChange(case.name, case.version, retry=count))


def _cancel(case: Case, order: Order) -> OrderAnswer:
    if case.deleting:
        return OrderAnswer(case, "is being cancelled already")
    again = "; it is not opened again before its condition has changed" if case.trigger else ""
    return OrderAnswer(case, f"is cancelled: {cancelled(case)}{again}", delete=True)


def cancelled(case: Case) -> str:
    """When a case that is cancelled ends, and what then is."""
    ends = "once its operation has ended" if case.phase is Phase.OPERATING else "at once"
    return f"it ends {ends}, and its node takes work again"


def _keep_longer(case: Case, order: Order) -> OrderAnswer:
    """Who has taken a node out says another time, or another reason."""
    if order.until is None or case.keep_out is None or case.manual is None:
        return OrderAnswer(case, "keeps no node out for a user")
    if case.deleting or case.release:
        return OrderAnswer(case, "is about to give the node back; ask again once it is over")
    if case.manual.requested_by != order.user:
        return OrderAnswer(case, f"keeps the node out already, {keep_out.terms(case)}; `remediator put-back` ends that")
    wanted = KeepOut(order.until, order.because or case.keep_out.reason)
    if wanted == case.keep_out:
        return OrderAnswer(case, f"keeps the node out already, {keep_out.terms(case)}")
    now, before = (f"{terms.until:%Y-%m-%d %H:%M:%S} UTC" for terms in (wanted, case.keep_out))
    text = f"keeps the node out until {now}; before: until {before}"
    return OrderAnswer(case, text, CaseChange(case.name, case.version, keep_out=wanted))


def _put_back(case: Case, order: Order) -> OrderAnswer:
    if case.keep_out is None:
        return OrderAnswer(case, f"is no take-out of a user ({wait_of(case)[0].word})")
    if case.deleting or case.release:
        return OrderAnswer(case, "is about to give the node back already")
    if case.phase is Phase.ESCALATED:
        return OrderAnswer(
            case, "is over: its node takes work again", CaseChange(case.name, case.version, release=True)
        )
    ends = "once its operation has ended" if case.phase is Phase.OPERATING else "at once"
    return OrderAnswer(case, f"is cancelled before its node was out: it ends {ends}", delete=True)


def _not_escalated(case: Case) -> str:
    return f"is {case.phase.value or 'new'}, and only an Escalated case waits for this"


ANSWERS: Mapping[Command, Callable[[Case, Order], OrderAnswer]] = MappingProxyType(
    {
        Command.HOLD: _hold,
        Command.UNHOLD: _unhold,
        Command.APPROVE: _approve,
        Command.RELEASE: _release,
        Command.RETRY: _retry,
        Command.CANCEL: _cancel,
        Command.TAKE_OUT: _keep_longer,
        Command.PUT_BACK: _put_back,
    }
)

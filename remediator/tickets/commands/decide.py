"""What each command does, and what is answered. Pure: one function for each word, in one table."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import MappingProxyType

from remediator.core import names
from remediator.core.case import MOST_RETRIES, Case, Phase
from remediator.core.command import APPROVABLE, CaseChange, Keep
from remediator.core.reasons import REMEDY
from remediator.tickets.commands.parse import WrittenCommand
from remediator.tickets.render.markdown import code, moment

SHORTEST, LONGEST = timedelta(minutes=1), timedelta(days=7)
MOST_HELD, MOST_NAMED = 20, 10
RMA_LABEL = "rma"
_UNITS = {"m": "minutes", "h": "hours", "d": "days"}
LOGIN = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,38})")


@dataclass(frozen=True, slots=True)
class IssueCommand:
    """One command: who wrote it, and when. `cases` are those of the issue that were there then, `work` the objects of
    an owner of which the janitor had given notice.
    """

    command: WrittenCommand
    author: str
    at: datetime
    cases: tuple[Case, ...]
    work: tuple[str, ...] = ()

    @property
    def user(self) -> str:
        """The author, as cases name who decided about them."""
        return f"{names.COMMENTER}{self.author}"

    @property
    def open(self) -> tuple[Case, ...]:
        """The cases that have not ended."""
        return tuple(case for case in self.cases if case.open)


@dataclass(frozen=True, slots=True)
class CommandDecision:
    """What is answered, and what is done before."""

    answer: str
    changes: tuple[CaseChange, ...] = ()
    assign: str = ""  # a login; `answer` is for where it was taken
    label: str = ""
    keeps: tuple[Keep, ...] = ()
    known: bool = True  # whether there is such a command


@dataclass(frozen=True, slots=True)
class Word:
    """One command: how it is written, what it does, and how that is decided."""

    form: str
    does: str
    decide: Callable[[IssueCommand], CommandDecision]


def decide(asked: IssueCommand) -> CommandDecision:
    """What one command does."""
    word = WORDS.get(asked.command.word)
    return (
        word.decide(asked) if word else CommandDecision("there is no such command, so nothing was done.", known=False)
    )


def length(text: str) -> timedelta | None:
    """A length of time such as 30m, 2h, 1d or 1h30m, from a minute to a week; None for anything else.

    >>> length("1h30m")
    datetime.timedelta(seconds=5400)
    """
    if not re.fullmatch(r"(?:[0-9]{1,5}[mhd])+", text):
        return None
    parts = re.findall(r"([0-9]+)([mhd])", text)
    total = sum((timedelta(**{_UNITS[unit]: int(count)}) for count, unit in parts), timedelta())
    return total if SHORTEST <= total <= LONGEST else None


def _hold(asked: IssueCommand) -> CommandDecision:
    if asked.command.argument == "off":
        return _unhold(asked)
    if (long := length(asked.command.argument)) is None:
        return CommandDecision("say for how long, from 1m to 7d, such as `/hold 2h`; or `/hold off`. Nothing was done.")
    theirs = [case for case in asked.open if case.hold and not _by_comment(case)]
    free = [case for case in asked.open if case not in theirs]
    if len(free) > MOST_HELD:
        return CommandDecision(f"this issue has {len(free)} open cases: set `mode: Paused` in their policy instead.")
    until = asked.at + long
    changes = tuple(CaseChange(case.name, case.version, hold=True, until=until) for case in free)
    lines = [f"nothing new starts in {_named(free)} until {moment(until)}."] if free else []
    lines += [f"{_named(theirs)}: held by somebody else (`spec.hold`), which stays as it is."] if theirs else []
    return CommandDecision(" ".join(lines) or _none("is open"), changes)


def _unhold(asked: IssueCommand) -> CommandDecision:
    held = [case for case in asked.open if case.hold and _by_comment(case)]
    changes = tuple(CaseChange(case.name, case.version, hold=False) for case in held)
    return CommandDecision(f"{_named(held)} goes on." if held else _none("is held by a comment"), changes)


def _approve(asked: IssueCommand) -> CommandDecision:
    waiting = [case for case in asked.open if any(block.reason in APPROVABLE for block in case.blocks)]
    approved = [case for case in asked.open if case.approved]
    free = [case for case in waiting if case not in approved]
    if approved and not free:
        return CommandDecision(f"{_named(approved)} is approved already, by {_who(approved[0].set_by.approved)}.")
    case, problem = _one(free, asked.command.argument, "waits for an approval")
    if case is None:
        return CommandDecision(problem)
    return CommandDecision(f"{_named([case])} may start.", (CaseChange(case.name, case.version, approve=True),))


def _release(asked: IssueCommand) -> CommandDecision:
    done = [case for case in asked.cases if case.release and case.set_by.release == asked.user]
    case, problem = _one(
        [case for case in _escalated(asked) if case not in done], asked.command.argument, _IS_ESCALATED
    )
    if case is None:
        return CommandDecision(f"{_named(done)} was given back." if done else problem)
    return CommandDecision(f"{_named([case])} is given back.", (CaseChange(case.name, case.version, release=True),))


def _retry(asked: IssueCommand) -> CommandDecision:
    case, problem = _one(
        [case for case in _escalated(asked) if case.set_by.retry != asked.user or not case.wants_retry],
        asked.command.argument,
        _IS_ESCALATED,
    )
    if case is None:
        return CommandDecision(problem)
    count = max(case.retry, case.retries) + 1
    if count > MOST_RETRIES:
        return CommandDecision(
            f"`spec.retry` of {_named([case])} is {count - 1}, its most: repair the node, then `/release`."
        )
    text = (
        f"{_named([case])} tries again from the rung that it came to last. Every hold, breaker and limit still counts: "
        "where its attempts are spent, it stays Escalated and says so."
    )
    change = CaseChange(case.name, case.version, retry=count)
    return CommandDecision(text, (change,))


def _rma(asked: IssueCommand) -> CommandDecision:
    case, problem = _one(_escalated(asked), asked.command.argument, _IS_ESCALATED)
    if case is None:
        return CommandDecision(problem)
    held = case.hold and not _by_comment(case)  # by somebody else, without an end
    hold = () if held else (CaseChange(case.name, case.version, hold=True),)
    text = f"{_named([case])} stays out of service, whatever its node shows, until `/release`. {_hardware(case)}"
    return CommandDecision(text, hold, label=RMA_LABEL)


def _keep(asked: IssueCommand) -> CommandDecision:
    long_for, _, target = asked.command.argument.partition(" ")
    if (long := length(long_for)) is None:
        return CommandDecision(
            "say for how long, from 1m to 7d, such as `/keep 8h`; longer: `remediator keep`. Nothing was done."
        )
    meant = [work for work in asked.work if target.strip() in ("", work)]
    if not meant:
        return CommandDecision("the janitor has given notice of no such work in this issue, so nothing was done.")
    until = asked.at + long
    shown = ", ".join(map(code, meant[:MOST_NAMED])) + (f", {len(meant) - MOST_NAMED} more" * (len(meant) > MOST_NAMED))
    answer = f"{shown}: kept until {moment(until)}. The janitor writes that on them with its next pass."
    return CommandDecision(answer, keeps=tuple(Keep(work, until, asked.user) for work in meant))


def _why(asked: IssueCommand) -> CommandDecision:
    if not asked.open:
        return CommandDecision(_none("is open"))
    lines = [line for case in asked.open[:MOST_NAMED] for line in _story(case)]
    return CommandDecision("\n".join(["", *(f"  - {line}" for line in lines)]))


def _assign(asked: IssueCommand) -> CommandDecision:
    login = asked.command.argument.removeprefix("@") or asked.author
    if not LOGIN.fullmatch(login):
        return CommandDecision("say whom, such as `/assign alice`. Nothing was done.")
    return CommandDecision(f"assigned to {code(login)}.", assign=login)


WORDS: Mapping[str, Word] = MappingProxyType(
    {
        "hold": Word(
            "/hold 2h", "starts nothing new in the cases of this issue for so long; `/hold off` ends that", _hold
        ),
        "approve": Word("/approve [NODE]", "lets a case start that waits for an approval", _approve),
        "release": Word("/release [NODE]", "gives the node of an Escalated case back, once it is repaired", _release),
        "retry": Word("/retry [NODE]", "lets an Escalated case try again from the rung that it came to last", _retry),
        "rma": Word("/rma [NODE]", "keeps the node of an Escalated case out of service, and names its hardware", _rma),
        "assign": Word("/assign [NAME]", "assigns this issue to NAME, or to you", _assign),
        "keep": Word(
            "/keep 8h [OBJECT]", "keeps the work of an owner that this issue is about, or one object of it", _keep
        ),
        "why": Word("/why", "says what each case waits for", _why),
    }
)
_IS_ESCALATED = "is Escalated"


def _one(cases: Sequence[Case], argument: str, what: str) -> tuple[Case | None, str]:
    """The one case that is meant, by its name or its node; else what is answered."""
    meant = [case for case in cases if argument in ("", case.name, case.node)]
    if len(meant) == 1:
        return meant[0], ""
    if not meant:
        return None, _none(what)
    return None, f"{_named(meant)}: each {what}. Say which, by its name. Nothing was done."


def _none(what: str) -> str:
    return f"no case of this issue {what}, so nothing was done."


def _escalated(asked: IssueCommand) -> list[Case]:
    return [case for case in asked.open if case.phase is Phase.ESCALATED]


def _by_comment(case: Case) -> bool:
    return case.set_by.hold.startswith(names.COMMENTER)


def _who(user: str) -> str:
    return code(user) if user else "somebody who is not named"


def _named(cases: Sequence[Case]) -> str:
    shown = [f"{code(case.name)} on {code(case.node)}" for case in cases[:MOST_NAMED]]
    more = [f"{len(cases) - MOST_NAMED} more"] if len(cases) > MOST_NAMED else []
    return ", ".join(shown + more)


def _hardware(case: Case) -> str:
    boards = [f"board {code(gpu.serial)}, GPU {code(gpu.uuid)}" for gpu in case.gpus]
    return f"For the vendor: {'; '.join(boards)}." if boards else "Its case names no GPU; see the evidence above."


def _story(case: Case) -> list[str]:
    phase = f"**{case.phase.value or 'New'}**"
    why = f", {case.reason.value}: {code(case.message, 400)}" if case.reason else ""
    blocks = [
        f"{_named([case])} waits, {block.reason.value}: {code(block.message, 400)}. "
        f"To do: {REMEDY.get(block.reason, 'look at the case')}."
        for block in case.blocks
    ]
    return [f"{_named([case])} is {phase}{why}.", *blocks]

"""Which comments still want an answer, and what stands in one. Pure.

An answer names its comment in a hidden mark, so that whoever comes next sees that it was given.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta

from remediator.core.owner_work import firing, logins
from remediator.core.ticket import Ticket
from remediator.tickets.channels.inbox import Comment
from remediator.tickets.commands.decide import LOGIN, WORDS, CommandDecision
from remediator.tickets.commands.parse import WrittenCommand, parse
from remediator.tickets.render.markdown import code, table

FRESH = timedelta(hours=1)  # how old a comment may be when it is first seen
SHOWN_BY = timedelta(minutes=10)  # how late a list may show an answer that was given
_ANSWER, _REFUSED = re.compile(r"<!-- remediator answer ([0-9]+) -->"), re.compile(r"<!-- remediator refused (\S+) -->")


def wanted(thread: Iterable[Comment], now: datetime) -> tuple[Comment, ...]:
    """The comments of one issue that may hold commands: of people, unchanged, and fresh."""
    return tuple(
        comment
        for comment in thread
        if comment.author and not comment.program and not comment.edited and now - comment.created <= FRESH
        if parse(comment.text)
    )


def unanswered(comments: Iterable[Comment], thread: Sequence[Comment], us: str) -> tuple[Comment, ...]:
    """Those of others that have no answer of ours below."""
    answered = set(_marks(_ANSWER, thread, us))
    others = (comment for comment in comments if comment.author.lower() != us.lower())
    return tuple(comment for comment in others if str(comment.id) not in answered)


def is_owner(ticket: Ticket, comment: Comment) -> bool:
    """Whether whoever's work an issue is about asks to keep it, and nothing else: who needs no right but that."""
    owners = [login.lower() for login in logins(firing(ticket))]
    return comment.author.lower() in owners and {command.word for command in parse(comment.text)} == {"keep"}


def was_refused(login: str, thread: Iterable[Comment], us: str) -> bool:
    """Whether somebody without write access was told so below this issue lately."""
    return login.lower() in (name.lower() for name in _marks(_REFUSED, thread, us))


def window(now: datetime) -> datetime:
    """Since when comments are read: the hour before the last full one, so that the question stays the same for long."""
    return now.replace(minute=0, second=0, microsecond=0) - FRESH


def answer(comment: Comment, decided: Sequence[tuple[WrittenCommand, CommandDecision]]) -> str:
    """What is said of all commands of a comment."""
    lines = [f"- {_written(command)}: {decision.answer}" for command, decision in decided]
    known = all(decision.known for _, decision in decided)
    return "\n".join([_head(comment), "", *lines, *([] if known else ["", *_list()])])


def refusal(comment: Comment) -> str:
    """What somebody without write access is told, once."""
    mark = f"<!-- remediator refused {comment.author} -->\n" if LOGIN.fullmatch(comment.author) else ""
    return (
        f"{mark}{_head(comment)}\n\nYou have no write access to this repository, so nothing was done. "
        "More commands of yours below this issue are not answered."
    )


def _head(comment: Comment) -> str:
    return f"<!-- remediator answer {comment.id} -->\n{code(comment.author)}:"


def _written(command: WrittenCommand) -> str:
    return code(f"/{command.word} {command.argument}".rstrip())


def _list() -> list[str]:
    return [table(("command", "what it does"), [(f"`{word.form}`", word.does) for word in WORDS.values()], len(WORDS))]


def _marks(form: re.Pattern[str], thread: Iterable[Comment], us: str) -> Iterator[str]:
    ours = (comment for comment in thread if comment.author.lower() == us.lower())
    return (match[1] for comment in ours for match in form.finditer(comment.text))

"""Errors of GitHub as the errors of channels/base.py. In the tables, the first row that fits gives the answer.

Two questions decide: was the request certainly not carried out? And if that is not known, is it harmful to repeat it?
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

import requests
from github import GithubException
from urllib3.exceptions import ConnectTimeoutError, NewConnectionError

from remediator.tickets.channels.base import ChannelError, Later, Refused, Unsure

PAUSE = 60.0  # GitHub: wait at least one minute where it names no time, and longer each time it says so again
LONGEST = 900.0  # a limit of this kind ends within minutes; nothing is told meanwhile
SOON, LATER = 10.0, 60.0  # after the first failure that names no limit; twice as long after each further one, at most


class Redirected(Exception):
    """GitHub sends us to another address instead of answering: nothing was carried out."""


class NoInstallationToken(Exception):
    """The App got no token for its installation, because of `cause`: what was to be done was not sent."""

    def __init__(self, cause: Exception) -> None:
        super().__init__("no token for the installation of the App")
        self.cause = cause


@dataclass(frozen=True, slots=True)
class GithubCall:
    """What was asked of GitHub."""

    what: str  # for a user: "create an issue in org/repo"
    once: bool = False  # repeating it could do it twice
    issue: bool = False  # it is about one issue that should exist
    board: str = ""  # it is about this project board: org/7
    resource: str = "core"  # GitHub's name of the limit that it counts against
    hidden: Callable[[str], str] = str  # takes what is secret out of GitHub's words, before they are cut


@dataclass(frozen=True, slots=True)
class FailureTime:
    """When it went wrong: unix seconds, and how many limits GitHub named in a row before this one."""

    now: float
    limits: int = 0
    failures: int = 0  # others, in a row

    @property
    def soon(self) -> float:
        """Seconds until the next try where nobody names a time."""
        return min(LATER, SOON * 2.0 ** min(self.failures, 16))


def translate(error: Exception, call: GithubCall, when: FailureTime) -> ChannelError:
    """One error of PyGithub, requests or the file system as one of ours."""
    return next(row for kind, row in _KINDS if isinstance(error, kind))(error, call, when)


def limited(error: Exception) -> str:
    """The name of the limit (core, search, ...) that GitHub says is spent; "" where it says no such thing."""
    if not isinstance(error, GithubException) or not _spent(error):
        return ""
    return _headers(error).get("x-ratelimit-resource", "core")


def field_of(error: GithubException) -> str:
    """Which field of ours a 422 is about: assignees, labels, title, body, ...; "" where it does not say."""
    for detail in _details(error):
        if detail.get("resource") == "Label":
            return "labels"
        if field := str(detail.get("field") or ""):
            return _FIELDS.get(field, field)
    return ""


def already_there(error: GithubException) -> bool:
    """True where GitHub refuses to add what is there: the documents do not say so, but people get this answer."""
    words = " ".join([_message(error), *map(_detail, _details(error))])
    return error.status in (400, 422) and "already exists" in words


def _answered(error: GithubException, call: GithubCall, when: FailureTime) -> ChannelError:
    if _spent(error):
        after = _pause(_headers(error), when)
        return Later(f"{_sentence(error, call)}. Nothing to do: it goes on in {after:.0f} s", after)
    if error.status >= 500 or error.status == 408:
        after = float(_seconds(_headers(error).get("retry-after", ""), when.now) or when.soon)
        return _lost(f"{_sentence(error, call)}", call, after)
    field, remedy = _refusal(error, call)
    return Refused(f"{_sentence(error, call)}. {remedy}", field)


def _spent(error: GithubException) -> bool:
    """True for a rate limit: 429, or a 403 that says so in its headers or words (GitHub uses both)."""
    if error.status != 403:
        return error.status == 429
    headers, words = _headers(error), _message(error).lower()
    named = "rate limit" in words or "abuse detection" in words
    return named or "retry-after" in headers or headers.get("x-ratelimit-remaining") == "0"


def _pause(headers: Mapping[str, str], when: FailureTime) -> float:
    """Seconds until the next try, in GitHub's order: Retry-After, the reset of a spent quota, else a growing minute."""
    if asked := _seconds(headers.get("retry-after", ""), when.now):
        return asked
    reset = headers.get("x-ratelimit-reset", "")
    if headers.get("x-ratelimit-remaining") == "0" and reset.isdigit():
        return max(1.0, float(reset) - when.now + 1)
    return min(LONGEST, PAUSE * 2.0 ** min(when.limits, 16))


def _seconds(text: str, now: float) -> float:
    """A Retry-After header, seconds or a date, as seconds from now; 0 where it says nothing."""
    if text.strip().isdigit():
        return float(text)
    try:
        return max(1.0, parsedate_to_datetime(text).timestamp() - now)
    except ValueError:
        return 0.0


def _refusal(error: GithubException, call: GithubCall) -> tuple[str, str]:
    """Which field a user must correct, and how."""
    words = _message(error).lower()
    if call.board and error.status != 401:
        return "board", BOARD_REMEDY.format(board=call.board)
    if error.status == 422:
        field = field_of(error)
        return field, f"Correct {field} in the route." if field else "Correct the route."
    if error.status == 410 and call.issue and "deleted" in words:
        return "issue", "The issue was deleted; what is new gets a new one."
    if error.status == 403 and "archived" in words:
        return "repository", "Choose another repository, or have this one unarchived."
    return _REFUSALS.get(error.status, ("", "Repeating this is useless until a user changes something."))


def _connection(error: requests.ConnectionError, call: GithubCall, when: FailureTime) -> ChannelError:
    if _never_sent(error):
        return Later(f"could not {call.what}: no connection to GitHub ({_root(error, call)})", when.soon)
    return _lost(f"could not {call.what}: the connection broke ({_root(error, call)})", call, when.soon)


def _never_sent(error: requests.ConnectionError) -> bool:
    """True when no connection came about, so that nothing can have reached GitHub."""
    reason = getattr(error.args[0] if error.args else None, "reason", None)
    return isinstance(error, requests.ConnectTimeout) or isinstance(reason, (NewConnectionError, ConnectTimeoutError))


def _broken(error: Exception, call: GithubCall, when: FailureTime) -> ChannelError:
    """Only the kind of error is named: the words of some quote a header of the request, and so the token."""
    return _lost(f"could not {call.what}: no answer that we understand ({type(error).__name__})", call, when.soon)


def _foreign(error: Exception, call: GithubCall, when: FailureTime) -> ChannelError:
    """An answer that names another host: PyGithub asserts that it is ours, maybe only after it was sent."""
    text = f"could not {call.what}: GitHub's answer names another address ({error}). Correct the base URL or the proxy"
    return Unsure(text) if call.once else Refused(text, "url")


def _moved(error: Exception, call: GithubCall, when: FailureTime) -> ChannelError:
    return Refused(f"could not {call.what}: it was renamed or moved. Correct the routes", "repository")


def _redirected(error: Exception, call: GithubCall, when: FailureTime) -> ChannelError:
    return Refused(f"could not {call.what}: {error}", "url")


def _no_token(error: NoInstallationToken, call: GithubCall, when: FailureTime) -> ChannelError:
    failure = translate(error.cause, GithubCall(f"get a token of the App to {call.what}", hidden=call.hidden), when)
    if not isinstance(failure, Refused):
        return failure
    return Refused(f"{failure.message.partition('. ')[0]}. {APP_REMEDY}", "token")


def _secret(error: Exception, call: GithubCall, when: FailureTime) -> ChannelError:
    return Refused(f"could not {call.what}: {error}. Correct the token file", "token")


def _lost(text: str, call: GithubCall, after: float) -> ChannelError:
    """Nobody knows whether it was carried out."""
    return Unsure(f"{text}. It may have been carried out all the same") if call.once else Later(text, after)


def _sentence(error: GithubException, call: GithubCall) -> str:
    details = ", ".join(filter(None, map(_detail, _details(error))))
    answer = call.hidden(_message(error))[:300].rstrip(".")
    return f"could not {call.what}: GitHub answered {error.status} {answer}" + (f" ({details})" if details else "")


def _detail(detail: Mapping[str, Any]) -> str:
    value = f" {detail['value']}" if detail.get("value") not in (None, "") else ""
    return str(detail.get("message") or f"{detail.get('field', '')} {detail.get('code', '')}{value}").strip()


def _message(error: GithubException) -> str:
    data: Any = error.data
    text = str(data.get("message") or "") if isinstance(data, dict) else str(data or "")
    return " ".join(text.split())


def _details(error: GithubException) -> list[Mapping[str, Any]]:
    data: Any = error.data
    details = data.get("errors") if isinstance(data, dict) else None
    return [detail if isinstance(detail, dict) else {"message": str(detail)} for detail in details or ()]


def _headers(error: GithubException) -> Mapping[str, str]:
    return {str(name).lower(): str(value) for name, value in (error.headers or {}).items()}


def _root(error: BaseException, call: GithubCall) -> str:
    """The innermost cause, in one line."""
    inner: Any = getattr(error.args[0], "reason", error.args[0]) if error.args else error
    return call.hidden(" ".join(str(inner).split()))[:200]


APP_REMEDY = (
    "Correct --github-app-id, --github-app-installation-id or the key file, and see that the clock of this machine is "
    "right"
)
BOARD_REMEDY = (
    "Let the token, or the App, read and write projects of the organization (permission Projects), and see that the "
    "route names the board as it is: {board}"
)
_FIELDS = {"assignee": "assignees", "label": "labels"}
_REFUSALS: Mapping[int, tuple[str, str]] = {
    401: ("token", "Put a valid token into its file."),
    403: ("token", "Give the token, or the App, write access to issues of this repository."),
    404: ("repository", "Check the repository's name, and that the token may see it."),
    410: ("repository", "Issues are switched off in this repository: switch them on, or choose another."),
    451: ("repository", "GitHub blocks this repository for legal reasons: choose another."),
}
_KINDS: tuple[
    tuple[type[Exception] | tuple[type[Exception], ...], Callable[[Any, GithubCall, FailureTime], ChannelError]], ...
] = (
    (NoInstallationToken, _no_token),
    (GithubException, _answered),
    (requests.ConnectionError, _connection),
    (requests.RequestException, _broken),
    (AssertionError, _foreign),
    (Redirected, _moved),
    (RuntimeError, _redirected),
    ((ConnectionError, TimeoutError), _broken),
    (OSError, _secret),
    (Exception, _broken),  # an answer that is not GitHub's: a proxy's page, half a JSON
)

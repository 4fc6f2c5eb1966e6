"""Why a server gave no answer, in one word and one sentence that names the option to look at."""

from collections.abc import Callable
from dataclasses import dataclass

import requests

from remediator.prometheus.addresses import NoAddress
from remediator.prometheus.connection import BrokenOff, NoBearerToken, TooLarge, TooSlow
from remediator.prometheus.reading import CannotTell, Doubt, shown


@dataclass(frozen=True, slots=True)
class Server:
    """Who was asked: how its options begin, and what to do where its answer is too large."""

    option: str
    too_large: str


def _cause(failed: Exception) -> str:
    """What the connection came to; the library writes the whole address before it."""
    inner = failed.args[0] if failed.args else None
    return str(getattr(inner, "reason", None) or failed)


def failure(server: Server, failed: Exception, patience: float, hidden: Callable[[str], str] = str) -> CannotTell:
    """Why no answer came. What the library says of it is long, and says where it asked: the log has that.

    `hidden` takes out of it what no log may have.
    """
    for kinds, doubt, message in FAILURES:
        if isinstance(failed, kinds):
            detail = shown(hidden(_cause(failed)))
            return CannotTell(doubt, shown(message(server, failed, patience)), detail)
    raise failed


def _away(server: Server, failed: Exception, patience: float) -> str:
    return f"it cannot be reached; look at {server.option}-url"


# In this order: a certificate that is refused is a failure to connect, too.
FAILURES: tuple[tuple[tuple[type[Exception], ...], Doubt, Callable[[Server, Exception, float], str]], ...] = (
    ((NoBearerToken,), Doubt.NO_TOKEN, lambda server, failed, patience: str(failed)),
    ((TooLarge,), Doubt.TOO_LARGE, lambda server, failed, patience: server.too_large),
    (
        (NoAddress,),
        Doubt.UNREACHABLE,
        lambda server, failed, patience: (
            f"nobody told its address within {patience:g} s; look at the DNS of the controller"
        ),
    ),
    ((requests.ConnectTimeout,), Doubt.UNREACHABLE, _away),
    (
        (TooSlow, requests.Timeout),
        Doubt.TIMED_OUT,
        lambda server, failed, patience: f"it gave no answer within {patience:g} s",
    ),
    (
        (requests.exceptions.SSLError,),
        Doubt.UNTRUSTED,
        lambda server, failed, patience: (
            f"its certificate is not trusted; give {server.option}-ca-file the authority that signs it"
        ),
    ),
    ((BrokenOff,), Doubt.UNREADABLE, lambda server, failed, patience: "its answer breaks off"),
    ((requests.RequestException, OSError), Doubt.UNREACHABLE, _away),
)

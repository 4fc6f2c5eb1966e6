"""Errors of Slack as the errors of channels/base.py. Two questions decide, as for GitHub.

Was it certainly not carried out, and if that is not known, is it harmful to repeat it?
"""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.error import URLError

from slack_sdk.errors import SlackApiError

from remediator.tickets.channels.base import ChannelError, Later, Refused, Unsure

SOON, PAUSE, LONGEST = 10.0, 60.0, 900.0
SCOPE = "scope"  # the field of a token that may do less than was asked
TOKEN = "correct the token in the file of slack.tokenFile, which needs the scope chat:write"
CHANNEL = "correct the channel: invite the app to it, or correct its id"
NOT_OURS = "nothing to do: it is not ours to change any more"
# What Slack calls an error → the field that a user corrects, and what to do. Of all others nobody knows more.
REFUSALS: Mapping[str, tuple[str, str]] = {
    "missing_scope": (SCOPE, TOKEN),
    **dict.fromkeys(("invalid_auth", "not_authed", "account_inactive", "token_revoked"), ("token", TOKEN)),
    **dict.fromkeys(("token_expired", "no_permission", "not_allowed_token_type"), ("token", TOKEN)),
    **dict.fromkeys(("channel_not_found", "not_in_channel", "is_archived", "restricted_action"), ("slack", CHANNEL)),
    **dict.fromkeys(("message_not_found", "cant_update_message", "edit_window_closed"), ("thread", NOT_OURS)),
    "thread_not_found": ("thread", NOT_OURS),
}
UNKNOWN = frozenset({"internal_error", "fatal_error", "service_unavailable", "request_timeout"})
NOT_SENT = frozenset({"ConnectionRefusedError", "gaierror", "SSLCertVerificationError"})


@dataclass(frozen=True, slots=True)
class SlackCall:
    """What was asked of Slack."""

    what: str  # for a user: "room gpu-team: could not post to C0123456789"
    url: str
    once: bool  # repeating it could do it twice

    def lost(self, how: str, after: float) -> ChannelError:
        """Nobody knows whether it was carried out."""
        return Unsure(f"{self.what}: {how}; it is looked for") if self.once else Later(f"{self.what}: {how}", after)


def translate(error: Exception, call: SlackCall) -> ChannelError:
    """One error of slack_sdk, urllib or the system as one of ours; it quotes nothing that was sent."""
    return _answered(error, call) if isinstance(error, SlackApiError) else _unanswered(error, call)


def _answered(error: SlackApiError, call: SlackCall) -> ChannelError:
    answer, status = error.response.data, error.response.status_code
    code = str(answer.get("error", "")) if isinstance(answer, dict) else ""
    if status == 429 or code in ("ratelimited", "rate_limited"):
        headers = {name.lower(): value for name, value in error.response.headers.items()}
        after = _seconds(headers.get("retry-after", ""))
        return Later(f"{call.what}: Slack asks to wait {after:.0f} s", after)
    if code in REFUSALS:
        field, remedy = REFUSALS[code]
        return Refused(f"{call.what}: Slack says {code}; {remedy}", field)
    if not _is_word(code):
        return call.lost(f"status {status}, and no answer of Slack's", PAUSE)
    if status >= 500 or code in UNKNOWN:
        return call.lost(code, PAUSE)
    return Refused(f"{call.what}: Slack says {code}")


def _unanswered(error: Exception, call: SlackCall) -> ChannelError:
    cause = type(error.reason if isinstance(error, URLError) else error).__name__
    if cause in NOT_SENT:
        return Later(f"{call.what}: {call.url} is not reached ({cause})", SOON)
    return call.lost(f"no answer ({cause})", SOON)


def _seconds(text: object) -> float:
    """How long Slack asks to wait; a minute where it does not say."""
    try:
        return min(max(float(str(text)), 1.0), LONGEST)
    except ValueError:
        return PAUSE


def _is_word(code: str) -> bool:
    """A code of Slack's, and not a page of a proxy, which may repeat what it was sent."""
    return 0 < len(code) <= 64 and code.replace("_", "").isalnum() and code.isascii()

"""The checkpoint handshake: a Pod asks by annotation to be told before it is evicted, and says when it is ready. Pure,
but for `ask`.
"""

import re
from collections import namedtuple
from datetime import UTC, datetime, timedelta

from nodelib.k8s.api import MERGE_PATCH, Api, ApiReply

WANTED = "remediator.dev/checkpoint"  # on the Pod, by its author: the longest time that a checkpoint takes, "10m"
REQUESTED = "remediator.dev/checkpoint-requested"  # by the drain: when it asked
DONE = "remediator.dev/checkpoint-done"  # by the Pod: a time that is not before the request
MOST = timedelta(hours=1)
UNREADABLE = timedelta(minutes=10)  # what is waited for where nobody can read how long
AHEAD = timedelta(minutes=1)  # by how much the clocks of two API servers may differ
REPORTED = 15.0  # seconds in which a kubelet notices that a Pod has ended, and its object goes
LEAST = 60.0  # seconds that every Pod has to end, whatever its grace
UNITS = {"h": 3600, "m": 60, "s": 1}


class Checkpoint(namedtuple("Checkpoint", "wanted requested done now")):
    """What a Pod says of its checkpoint, read at `now` by the server's clock. The times are None where none is said."""

    __slots__ = ()

    def asked(self, since: datetime) -> bool:
        """Tell whether it was asked for by this drain, which began at `since`: not by an earlier one or the Pod."""
        return self.requested is not None and since <= self.requested <= self.now + AHEAD

    def waits_until(self, since: datetime) -> datetime:
        """Return until when it is waited for; one that was not asked yet is asked now."""
        return (self.requested if self.asked(since) else self.now) + self.wanted

    @property
    def over(self) -> bool:
        """Tell whether nobody need wait any longer for one that was asked."""
        return (self.done is not None and self.done >= self.requested) or self.now >= self.requested + self.wanted


def checkpoint_of(item: dict, now: datetime | None) -> Checkpoint | None:
    """Return what a Pod object says; None where it does not want to be asked, or runs nothing that could answer."""
    notes = item["metadata"].get("annotations") or {}
    wanted = _length(notes[WANTED]) if WANTED in notes else timedelta(0)
    if not wanted or (item.get("status") or {}).get("phase") != "Running":
        return None
    now = now or datetime.now(UTC)
    return Checkpoint(wanted, _time(notes.get(REQUESTED)), _time(notes.get(DONE)), now)


def last_call(timeout: float, grace: float) -> float:
    """Return how long before the end of a drain nobody waits for a checkpoint any longer; all in seconds.

    From then on the Pod has its own `grace` and REPORTED to be gone within the drain's time, and LEAST in any case.
    Of a `timeout` that is too short for both, the checkpoint and the end have one half each.
    """
    return min(max(LEAST, grace + REPORTED), timeout / 2)


def ask(api: Api, pod_path: str, uid: str, at: datetime) -> ApiReply:
    """Ask exactly this Pod, not a later one of the same name. Raises Unreachable."""
    body = {"metadata": {"uid": uid, "annotations": {REQUESTED: text_of(at)}}}
    return api.request("PATCH", pod_path, body, MERGE_PATCH)


def text_of(at: datetime) -> str:
    """Return a time as annotations have it, in whole seconds."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _length(text: str) -> timedelta:
    """Return a length such as 1h30m or 90s, never more than MOST."""
    if not re.fullmatch(r"(\d{1,9}[hms])+", text):
        return timedelta(0) if text == "0" else UNREADABLE
    seconds = sum(int(count) * UNITS[unit] for count, unit in re.findall(r"(\d+)([hms])", text))
    return min(MOST, timedelta(seconds=min(seconds, 86400)))


def _time(text: str | None) -> datetime | None:
    """Return a time, None for one that cannot be read; one without a time zone is meant in UTC."""
    try:
        read = datetime.fromisoformat(text or "")
    except ValueError:
        return None
    return read if read.tzinfo else read.replace(tzinfo=UTC)

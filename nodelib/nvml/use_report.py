"""Which Pods have used the GPUs of a node lately: what is kept from look to look, and the line that tells of it. Pure.

Times are seconds since 1970 by the node's clock, unless another clock is named. A Pod is known by the first 8 digits of
its uid, the part before the first -: two Pods of one node have the same once in four thousand million.
"""

import time
from collections.abc import Collection, Mapping
from typing import NamedTuple

HOLD = 3600.0  # seconds after its last use until a Pod counts as idle
GAP = 300.0  # seconds from one whole look to the next in which nothing may have happened unseen
JUMP = 60.0  # seconds by which the node's clock may be set without times from before meaning nothing
PAUSE = 1800.0  # seconds: over a long time a line is told as seldom
LONGEST = 480  # bytes of a line
MOST = 128  # Pods that are remembered
NEVER = 1e15  # in place of a time: nobody can tell. No infinity, which a memory does not keep


class Seen(NamedTuple):
    """One GPU. `pods` with a process on it; `used`: whether it is or was in use, None where it does not tell.

    `strange`: a process on it is, or was, of no Pod that is known.
    """

    pods: frozenset[str]
    used: bool | None
    strange: bool = False


class Uses(NamedTuple):
    """When each Pod was last seen to use a GPU; `others`: when one that is not among them, or since when was looked.

    `looked`: when the last whole look was, in seconds since boot; `ahead`: how far the clock was before that.
    """

    pods: Mapping[str, float] = {}
    others: float = NEVER
    looked: float = -NEVER
    ahead: float = 0.0


class UseReport(NamedTuple):
    """What is told: who has used a GPU in the last hour; who did before, and until when; since when nobody else."""

    gpus: int = 0
    used: frozenset[str] = frozenset()
    until: Mapping[str, int] = {}
    others: float = NEVER


class Published(NamedTuple):
    """What was told last, and the second since boot at which the next ordinary change may be told."""

    line: str = ""
    known: bool = False
    used: frozenset[str] = frozenset()
    others: float = 0.0
    due: float = 0.0


def short(uid: str) -> str:
    """Return what a Pod is known by."""
    return uid[:8]


def looked(before: Uses, gpus: Collection[Seen], now: float, wall: float) -> Uses:
    """Add a whole look. After a gap, or a step of the clock, nobody can tell what was before: others begin anew.

    Several Pods on a GPU that is in use share it: another one that does may have begun and ended between two looks.
    """
    whole = 0 <= now - before.looked <= GAP and abs(wall - now - before.ahead) <= JUMP
    others = before.others if whole else wall
    if any(gpu.used and (gpu.strange or len(gpu.pods) != 1) for gpu in gpus):
        others = wall
    now_used = {pod for gpu in gpus if gpu.used for pod in gpu.pods}
    pods = {**(before.pods if whole else _past(before.pods, wall)), **dict.fromkeys(now_used, wall)}
    newest = sorted(pods.items(), key=lambda item: -item[1])
    forgotten = [at for _, at in newest[MOST:]]
    others = max([others, *forgotten])
    remembered = {pod: at for pod, at in newest[:MOST] if at >= others or wall - at < HOLD}
    return Uses(remembered, others, now, wall - now)


def _past(pods: Mapping[str, float], wall: float) -> dict[str, float]:
    """What is no time of the future after a step of the clock."""
    return {pod: at for pod, at in pods.items() if at <= wall}


def report(uses: Uses, gpus: Collection[Seen], wall: float) -> UseReport:
    """What is to be told. Where a GPU does not tell of its use, nobody knows who has used it."""
    used = frozenset(pod for pod, at in uses.pods.items() if wall - at < HOLD)
    until = {pod: int(at) for pod, at in uses.pods.items() if pod not in used}
    unsure = any(gpu.used is None for gpu in gpus)
    return _fitting(UseReport(len(gpus), used, until, NEVER if unsure else uses.others))


def _fitting(use: UseReport) -> UseReport:
    """As much as fits into a line, the newest use first; of who is left out is told as of the others."""
    while len(words(use)) > LONGEST:
        if use.until:
            oldest = min(use.until, key=lambda pod: (use.until[pod], pod))
            rest = {pod: at for pod, at in use.until.items() if pod != oldest}
            use = use._replace(until=rest, others=max(use.others, use.until[oldest]))
        else:
            use = use._replace(used=frozenset(sorted(use.used)[:-1]), others=NEVER)
    return use


def words(use: UseReport) -> str:
    """The line.

    >>> words(UseReport(8, frozenset({"3f2a1b0c"}), {"9c0d11e2": 1768003920}, 1767999780.5))
    'gpus=8 used=3f2a1b0c used-until=9c0d11e2@20260110T0012Z others-until=20260109T2304Z'
    """
    parts = [f"gpus={use.gpus}"]
    if use.used:
        parts.append(f"used={','.join(sorted(use.used))}")
    if use.until:
        parts.append(f"used-until={','.join(f'{pod}@{stamp(at)}' for pod, at in sorted(use.until.items()))}")
    return " ".join([*parts, f"others-until={'?' if use.others == NEVER else stamp(use.others)}"])


def stamp(at: float) -> str:
    """A time in UTC, to the next full minute: what is told to have ended has ended by then."""
    return time.strftime("%Y%m%dT%H%MZ", time.gmtime(-(-at // 60) * 60))


def tell(before: Published, new: UseReport, now: float) -> Published:
    """What is told now: the new report where it may be, else the same as before.

    In the long run one change in PAUSE is told, of whatever kind, which spares the API server. News of use, by which
    somebody is no longer idle, may come one PAUSE earlier: so it is told at once, but for the second in a row.
    """
    line = words(new)
    if before.known and line == before.line:
        return before
    urgent = before.known and (bool(new.used - before.used) or new.others > before.others)
    if before.line and now < before.due - (PAUSE if urgent else 0.0):
        return before
    return Published(line, True, new.used, new.others, max(now, before.due) + PAUSE)


def doubt(before: Published, why: str, now: float) -> Published:
    """What is told where nobody can tell: at once, and then in the same words."""
    if before.line and not before.known:
        return before
    return Published(why, False, due=max(now, before.due) + PAUSE)

"""Whether a node boots again and again though nobody has asked for it. Pure.

The bootID that the kubelet tells is compared with the one that was kept of the node. A boot counts at the time when it
is seen: boots that lie between two looks are one.

* What somebody has asked for is no fault of the node. So no boot counts that an operation of ours may have caused, nor
  one while another system works on the node, or the cloud says that it stops the machine.
* Who reboots nodes in turn, or works on one, cordons it first. So the boots of a node that a user keeps out of work
  raise nothing. Where the Condition stands already they count: nobody can tell whose they are.
* While the Condition stands one boot within WINDOW is enough, and nobody can tell of a node whose kubelet is silent.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum

from remediator.core.case import Attempt, AttemptOutcome, Case, Phase
from remediator.core.clocks import AHEAD
from remediator.core.maintenance import maintained
from remediator.core.node import Node, Status
from remediator.core.own_condition import OwnCondition
from remediator.core.template import RunOn, Template

REBOOT_LOOP = "RebootLoop"  # the Condition
CLOUD = "CloudMaintenance"  # the Condition by which a detector says that the cloud stops the machine
BOOTS, WINDOW = 4, timedelta(hours=2)  # so many, within this time
MOST_BOOTS, LONGEST = 8, 64  # times that are kept, and characters of a bootID: a longer one is none
LATE = timedelta(hours=1)  # so long after an operation of any sort a boot may be its doing
REPEATS, QUIET, SILENT = "BootsRepeat", "NoRebootLoop", "BootsUnknown"


class BootCause(Enum):
    """Whether an operation boots the node that it is about."""

    NEVER = "it runs elsewhere and does not succeed by a boot"
    PERHAPS = "it runs on the node"
    ALWAYS = "it succeeds by a boot"


@dataclass(frozen=True, slots=True)
class Boots:
    """What is kept of a Node: its newest boot, and when it booted though nobody had asked for it, oldest first."""

    boot_id: str
    node_uid: str
    unasked: tuple[datetime, ...] = ()


def tells_boot(node: Node) -> bool:
    """Whether the node tells in which boot it is."""
    return 0 < len(node.boot_id) <= LONGEST


def seen(kept: Boots | None, node: Node, counts: bool, now: datetime) -> Boots:
    """What is to be kept of a node that tells in which boot it is. `counts`: whether a new boot does.

    The first sight of a Node is no boot: neither of a new one, nor of one that was made again.
    """
    if kept is None or kept.node_uid != node.uid:
        return Boots(node.boot_id, node.uid)
    if kept.boot_id == node.boot_id:
        return kept
    times = (*lately(kept, now), *((now,) if counts else ()))
    return replace(kept, boot_id=node.boot_id, unasked=times[-MOST_BOOTS:])


def counts(node: Node, kept: Boots, cases: Iterable[Case], causes: Mapping[str, BootCause], now: datetime) -> bool:
    """Whether nobody asked for the boot in which the node is. `cases`: all of the node.

    `causes`: by the name of each template, whether its operation boots the node; one that is gone may have.
    """
    known = tuple(cases)
    if others_stop(node) or any(ordered(case, kept.boot_id, causes, now) for case in known):
        return False
    condition = node.conditions.get(REBOOT_LOOP)
    stands = condition is not None and condition.status is not Status.FALSE
    return stands or not _kept_by_users(node, known)


def others_stop(node: Node) -> bool:
    """Whether another system works on the node, or says that it stops it."""
    of_cloud = node.conditions.get(CLOUD)
    return bool(maintained(node)) or (of_cloud is not None and of_cloud.status is Status.TRUE)


def cause_of(template: Template) -> BootCause:
    """Whether its operation boots the node."""
    if template.boot_id_changed:
        return BootCause.ALWAYS
    return BootCause.NEVER if template.run_on is RunOn.ELSEWHERE else BootCause.PERHAPS


def ordered(case: Case, ended: str, causes: Mapping[str, BootCause], now: datetime) -> bool:
    """Whether an operation of the case may have ended this boot; of a case that cannot be read it may."""
    return case.unreadable or any(_may_have_ended(attempt, ended, causes, now) for attempt in case.attempts)


def _may_have_ended(attempt: Attempt, ended: str, causes: Mapping[str, BootCause], now: datetime) -> bool:
    """Of cases that are over it is not kept in which boot their operations were begun."""
    cause = causes.get(attempt.template, BootCause.ALWAYS)
    if cause is BootCause.NEVER or not attempt.operated or attempt.boot_id not in ("", ended):
        return False
    finished = attempt.finished
    if attempt.outcome is AttemptOutcome.OPEN or finished is None or now - finished < LATE:
        return True
    return attempt.boot_id == ended and cause is BootCause.ALWAYS


def _kept_by_users(node: Node, cases: Iterable[Case]) -> bool:
    """Whether a user keeps work off the node, or has to look after it; so of a new node that does not work yet."""
    escalated = any(case.open and case.phase is Phase.ESCALATED for case in cases)
    return escalated or bool(node.gates) or node.cordoned_by_user or node.kept_out or node.opted_out


def lately(kept: Boots, now: datetime) -> tuple[datetime, ...]:
    """When there were boots that count now; what lies ahead does not."""
    return tuple(at for at in kept.unasked if -AHEAD <= now - at < WINDOW)


def released(cases: Iterable[Case]) -> datetime | None:
    """When a user last gave the node back after a case: boots before that were looked after, and raise nothing."""
    return max((case.ended for case in cases if case.release and case.ended is not None), default=None)


def own_condition(node: Node, kept: Boots | None, given_back: datetime | None, now: datetime) -> OwnCondition | None:
    """What the Condition should say; None where it never stood, and too few boots count.

    `kept`: None where nothing is: for as long as boots count nobody can tell. `given_back`: see released.
    """
    times = tuple(at for at in lately(kept, now) if given_back is None or at > given_back) if kept else ()
    before = node.conditions.get(REBOOT_LOOP)
    stands = before is not None and before.status is not Status.FALSE
    if len(times) >= BOOTS or (times and stands):
        return OwnCondition(REBOOT_LOOP, Status.TRUE, REPEATS, f"{_number(times)} within {_hours()}: {_told(times)}")
    if before is None:
        return None
    if stands and node.ready is Status.UNKNOWN:
        text = f"its kubelet is silent, so nobody can tell whether the node has booted within {_hours()}"
        return OwnCondition(REBOOT_LOOP, Status.UNKNOWN, SILENT, text)
    if stands and kept is None and (before.status is Status.TRUE or now - before.since < WINDOW):
        text = f"what was kept of its boots is gone, so nobody can tell whether there were any within {_hours()}"
        return OwnCondition(REBOOT_LOOP, Status.UNKNOWN, SILENT, text)
    few = f"fewer than {BOOTS} boots" if times else "no boot"
    return OwnCondition(REBOOT_LOOP, Status.FALSE, QUIET, f"{few} that nobody asked for within {_hours()}")


def _number(times: tuple[datetime, ...]) -> str:
    return f"{len(times)} boot{'s' if len(times) > 1 else ''} that nobody asked for"


def _told(times: Iterable[datetime]) -> str:
    return f"{', '.join(f'{at:%H:%M}' for at in times)} UTC"


def _hours() -> str:
    return f"{WINDOW.total_seconds() / 3600:g} hours"

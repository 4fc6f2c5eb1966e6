"""Criteria that are new in a release: nobody knows yet what they show on the nodes of a cluster. One table.

A criterion is what makes a detector, or the controller, say that a node is unhealthy. Its row stays for as long as
anybody may upgrade from a release that did not have it.
"""

from dataclasses import dataclass

from remediator.core.node import Status
from remediator.core.policy import Clause, Policy


@dataclass(frozen=True, slots=True)
class Criterion:
    """A Condition; or only where it has this reason, or where its message contains these words."""

    condition: str
    release: str
    reason: str = ""
    says: str = ""

    @property
    def name(self) -> str:
        """The word for it in status, events and annotations.

        >>> Criterion("NvmlHung", "0.1.0").name, Criterion("GpuXid", "0.1.0", says="Xid 154").name
        ('NvmlHung', 'GpuXid/Xid-154')
        """
        return "/".join(part.replace(" ", "-") for part in (self.condition, self.reason, self.says) if part)

    def told_by(self, condition: str, reason: str, message: str) -> bool:
        """Whether a Condition that stands with these words stands by this criterion."""
        return condition == self.condition and self.reason in ("", reason) and self.says in message

    def asked_by(self, clause: Clause) -> bool:
        """Whether this part of a policy would act on it."""
        same = clause.condition == self.condition and clause.status is Status.TRUE
        return same and (not self.reason or not clause.reasons or self.reason in clause.reasons)


# condition, the release that brings it; a reason or words, where the Condition itself is older
TABLE: tuple[Criterion, ...] = (
    Criterion("ChassisFault", "0.1.0"),
    Criterion("FilesystemDamage", "0.1.0"),
    Criterion("GpuMemoryWorn", "0.1.0"),
    Criterion("IdleTestFailed", "0.1.0"),
    Criterion("KernelFault", "0.1.0"),
    Criterion("NetworkPathSlow", "0.1.0"),
    Criterion("NodeDrift", "0.1.0"),
    Criterion("NvlinkDomainFault", "0.1.0"),
    Criterion("NvmlHung", "0.1.0"),
    Criterion("PodNetworkUnavailable", "0.1.0"),
    Criterion("PodsStuckTerminating", "0.1.0"),
    Criterion("RebootLoop", "0.1.0"),
    Criterion("RemoteMountFault", "0.1.0"),
    Criterion("SystemOom", "0.1.0"),
    Criterion("TaskHung", "0.1.0"),
)
# CloudMaintenance is no row: it judges no hardware, and a week later nobody needs it. The cloud names machine and hour,
# and stops it whether it is empty or not.


def asked(policy: Policy) -> tuple[Criterion, ...]:
    """The new criteria that a policy would act on. A case that a user asks for rests on none."""
    if policy.manual or policy.unreadable:
        return ()
    new = {criterion.condition for criterion in TABLE}
    clauses = [clause for when in policy.when for clause in when.clauses if clause.condition in new]
    if not clauses:  # as of nearly all policies
        return ()
    return tuple(criterion for criterion in TABLE if any(map(criterion.asked_by, clauses)))

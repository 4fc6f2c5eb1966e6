"""Who must act before a case goes on: one table over all reasons that hold cases or give them to a person. Pure."""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

from remediator.core.reasons import Reason


class Actor(StrEnum):
    """Who must act, most urgent to be told first."""

    OPERATOR = "Operator"  # a person: repairs, approves, takes a stop of a user back
    ADMINISTRATOR = "Administrator"  # who writes policies, budgets and templates, and runs the cluster
    NOBODY = "Nobody"  # it goes on by itself

    @property
    def rank(self) -> int:
        """0 for who is told first."""
        return _RANKS[self]


_RANKS = {actor: rank for rank, actor in enumerate(Actor)}
_OPERATOR = (
    Reason.PAUSED,
    Reason.HELD_BY_USER,
    Reason.OPTED_OUT,
    Reason.CONTROL_PLANE,
    Reason.CORDONED_BY_USER,
    Reason.UNCORDONED_BY_USER,
    Reason.TICKET_ONLY,
    Reason.SHARED_CAUSE,
    Reason.CRITERION_MUTED,
    Reason.QUARANTINE_FULL,
    Reason.POLICY_FAILING,
    Reason.BUDGET_FAILING,
    Reason.APPROVAL_NEEDED,
    Reason.BLAST_RADIUS,
    Reason.BLAST_RADIUS_UNKNOWN,
    Reason.LADDER_EXHAUSTED,
    Reason.ATTEMPTS_SPENT,
    Reason.RELAPSED,
    Reason.LEMON,
    Reason.TAKE_OUT_OVERDUE,
)
_ADMINISTRATOR = (
    Reason.DRY_RUN,
    Reason.POLICY_PAUSED,
    Reason.POLICY_MISSING,
    Reason.POLICY_UNREADABLE,
    Reason.NOT_SELECTED,
    Reason.UNKNOWN_OPERATION,
    Reason.NEEDS_KUBELET,
    Reason.WINDOW_INVALID,
    Reason.HOSTS_CONTROLLER,
    Reason.NO_NODE_FOR_API_PODS,
    Reason.IMAGE_NOT_PULLED,
    Reason.CONTAINER_NOT_CREATED,
    Reason.POD_NOT_PLACED,
    Reason.POD_START_UNKNOWN,
    Reason.BUDGET_REFUSED,
    Reason.GROUP_UNKNOWN,
    Reason.ZONE_UNREACHABLE,
    Reason.HEALTH_UNKNOWN,
    Reason.NOT_CONFIRMED,
    Reason.CONFIRMATION_UNKNOWN,
)
_NOBODY = (
    Reason.TAKEN_OUT,
    Reason.NEW_CRITERION,
    Reason.NODE_BUSY,
    Reason.COOLDOWN,
    Reason.OUTSIDE_WINDOW,
    Reason.WAITING_FOR_IDLE,
    Reason.UNDER_MAINTENANCE,
    Reason.NOT_ENOUGH_SPARE_GPUS,
    Reason.LEASE_RENEWED,
    Reason.BUDGET_SPENT,
    Reason.BUDGET_UNREADY,
    Reason.BREAKER_OPEN,
)
ACTORS: Mapping[Reason, Actor] = MappingProxyType(
    dict.fromkeys(_OPERATOR, Actor.OPERATOR)
    | dict.fromkeys(_ADMINISTRATOR, Actor.ADMINISTRATOR)
    | dict.fromkeys(_NOBODY, Actor.NOBODY)
)

"""Operations that users ask for: each gets a case of its own, without a policy, that passes every guard."""

from datetime import timedelta
from functools import lru_cache

from remediator.core import names, outside_request
from remediator.core.case import MOST_ATTEMPTS, AttemptOutcome, Case, Manual
from remediator.core.health import Health
from remediator.core.node import Node
from remediator.core.operation import Operation
from remediator.core.policy import InventoryMode, Mode, Policy, Rung, Severity, Verify
from remediator.core.selector import Selector

WHAT = "manual"
NOTHING = timedelta(0)
SEVERITY = Severity.WARNING
# How long the node may take to be Ready again, once the operation is over.
TIMEOUT = timedelta(minutes=20)


def case_name(operation: Operation) -> str:
    """The name of the case of a user's operation: the same from every replica, and after every crash."""
    return names.name(operation.node, WHAT, operation.uid)


def policy(asked: Manual) -> Policy:
    """What rules a case that a user asks for, in the place of a policy: one try of one operation.

    It has no condition to clear: afterwards the node must be Ready and its detectors must run.
    """
    return _policy(asked.template, tuple(asked.parameters.items()), TIMEOUT)


@lru_cache(256)
def _policy(template: str, parameters: tuple[tuple[str, str], ...], timeout: timedelta) -> Policy:
    return Policy(
        name="",
        selector=Selector(()),
        when=(),
        ladder=(Rung(template, 1, dict(parameters)),),
        severity=SEVERITY,
        verify=Verify(settle=NOTHING, fresh=NOTHING, timeout=timeout, inventory=InventoryMode.IGNORE),
        attempts_max=MOST_ATTEMPTS,  # its rung has one, and other cases of the node do not count
        attempts_window=NOTHING,
        cooldown=NOTHING,
        mode=Mode.ENFORCE,
        manual=True,
    )


def cordoned_by_who_asks(case: Case, node: Node) -> bool:
    """Whether who asks for the case has cordoned its node for it, and keeps the cordon until the end."""
    return case.manual is not None and outside_request.cordoned_by_who_asks(case.manual.requested_by, node)


def carried_out(case: Case) -> bool:
    """Whether the operation was tried, with whatever outcome, since the case began or a user let it try again.

    One that a user stopped in time is still to come.
    """
    newest = case.newest_counted
    return newest in case.attempts[case.retried_after :] and newest.outcome is not AttemptOutcome.OPEN


def health(case: Case) -> Health:
    """What takes the place of health in such a case: UNHEALTHY until the operation was tried."""
    return Health.HEALTHY if carried_out(case) else Health.UNHEALTHY

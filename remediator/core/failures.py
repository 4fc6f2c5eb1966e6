"""The breaker on failures: where most attempts are in vain, no more begin until a user has looked.

What it rests on is kept in the status of the policies, so that neither a restart nor the end of a case forgets it.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from remediator.core import names
from remediator.core.case import NOT_TOLD, AttemptOutcome, Case, Phase, handed_over
from remediator.core.policy import AttemptRecord, FailureBreaker, Policy
from remediator.core.reasons import Reason

OF, MOST = 8, 4  # of so many attempts, so many may not be in vain
NODES, POLICIES = 4, 2  # so many must say it of a template before all policies with it stop
COUNTS_FOR = timedelta(days=1)
KEPT = 2 * OF
OF_TEMPLATE = " of template "
FAR = timedelta(days=1)  # a time that lies further ahead was not meant
MARKING = frozenset({"cordon", "uncordon"})  # templates that cure nothing, and are not meant to


def records(cases: Iterable[Case]) -> Iterator[AttemptRecord]:
    """What became of the attempts of these cases, once the last word about each case is known.

    Each says it by its last attempt alone, however many rungs it has gone through: in vain where it went to a user, not
    where it recovered. One that ended in its drain says nothing: Pods kept the node, and what they ask for must not
    stop the repair of others. Nor does one that went to a user since nobody could tell whether the node is healthy.
    """
    for case in cases:
        in_vain = _in_vain(case)
        done = (AttemptOutcome.SUCCEEDED, AttemptOutcome.FAILED) if in_vain else (AttemptOutcome.SUCCEEDED,)
        tries = [attempt for attempt in case.tries if attempt.template not in MARKING and not attempt.kept_by_pods]
        for attempt in [attempt for attempt in tries if attempt.outcome in done][-1:] if in_vain else tries[-1:]:
            if in_vain is not None and attempt.outcome in done:
                ended = attempt.finished or attempt.started
                yield AttemptRecord(attempt.operation, attempt.template, ended, in_vain, case.node)


def _in_vain(case: Case) -> bool | None:
    """None where nobody can tell yet, or ever will: health that is unknown says nothing of what was done.

    Nor does a user who keeps the node.
    """
    if handed_over(case) in NOT_TOLD or case.keep_out:
        return None
    if case.phase is Phase.ESCALATED or case.reason is Reason.RELEASED_BY_USER:
        return True
    return False if case.phase is Phase.RECOVERED else None


def merged(known: Iterable[AttemptRecord], more: Iterable[AttemptRecord]) -> tuple[AttemptRecord, ...]:
    """The newest of both, oldest first, each operation once."""
    by_operation = {record.operation: record for record in (*known, *more)}
    return tuple(sorted(by_operation.values(), key=lambda record: (record.ended, record.operation))[-KEPT:])


def of_which_attempts_tell(
    policies: Iterable[Policy], all_records: Mapping[str, Iterable[AttemptRecord]]
) -> Iterator[Policy]:
    """The policies whose breaker may be open by what they say themselves or by these records; `opened` of others is "".

    Few have attempts, and every pass asks.
    """
    templates = {record.template for group in all_records.values() for record in group}
    for policy in policies:
        concerned = policy.name in all_records or any(rung.operation in templates for rung in policy.ladder)
        if policy.breaker.opened is not None or concerned:
            yield policy


def opened(policy: Policy, all_records: Mapping[str, Iterable[AttemptRecord]], now: datetime) -> str:
    """Why the breaker of a policy is open; "" where it is closed. Once open it stays so until a user closes it.

    `all_records` are those of every policy, by its name: a template that does nothing for many nodes under several
    policies stops every policy that has it.
    """
    if policy.breaker.stays_open(policy.closed_at, now):
        return policy.breaker.message
    own = _by_node(counted(all_records.get(policy.name, ()), policy.closed_at, now))[-OF:]
    if in_vain_of(own) >= MOST:
        return f"{in_vain_of(own)} of the last {len(own)} attempts under policy {policy.name} were in vain"
    for template in dict.fromkeys(rung.operation for rung in policy.ladder):
        message = _of_template(template, all_records, policy.closed_at, now)
        if message:
            return message
    return ""


def _by_node(group: Iterable[AttemptRecord]) -> tuple[AttemptRecord, ...]:
    """The newest of each node, oldest first: one dead board must not stop the repair of others, however often tried."""
    return merged((), {record.node or record.operation: record for record in group}.values())


def _of_template(
    template: str, all_records: Mapping[str, Iterable[AttemptRecord]], closed_at: datetime | None, now: datetime
) -> str:
    """Why a template stops whoever has it; "" where it does not."""
    every = [record for group in all_records.values() for record in group if record.template == template]
    if not every:  # as of nearly all
        return ""
    policies = {
        record.operation: name
        for name, group in all_records.items()
        for record in group
        if record.template == template and record.in_vain
    }
    newest = counted(every, closed_at, now)[-OF:]
    in_vain = [record for record in newest if record.in_vain]
    nodes = {record.node for record in in_vain}
    if len(nodes) < NODES or len({policies[record.operation] for record in in_vain}) < POLICIES:
        return ""
    return f"{len(in_vain)} of the last {len(newest)} attempts{OF_TEMPLATE}{template} were in vain"


def counted(group: Iterable[AttemptRecord], closed_at: datetime | None, now: datetime) -> tuple[AttemptRecord, ...]:
    """Those of the last day that ended after a user closed the breaker, oldest first."""
    after = now - COUNTS_FOR
    if closed_at is not None and closed_at <= now:  # a time that is still to come closes it only then
        after = max(after, closed_at)
    return merged((), (record for record in group if record.ended > after))


def in_vain_of(group: Iterable[AttemptRecord]) -> int:
    """How many of them were in vain."""
    return sum(record.in_vain for record in group)


def template_of(message: str) -> str:
    """The template that opened a breaker, by what the breaker says; "" where none did."""
    _, of, rest = message.partition(OF_TEMPLATE)
    return rest.partition(" ")[0] if of else ""


def opened_by(policy: str, message: str) -> str:
    """What is to be closed where the breaker of a policy says this: policy/NAME, or template/NAME."""
    template = template_of(message)
    return f"template/{template}" if template else f"policy/{policy}"


def close_command(what: str) -> str:
    """The command that closes a breaker: of policy/NAME, template/NAME or budget/NAME."""
    return f"remediator close-breaker {what}"


def command_in(message: str) -> str:
    """The command that a hold names to close a breaker; "" where it names none."""
    command = re.search(r"remediator close-breaker (policy|template|budget)/[a-z0-9]([-a-z0-9.]*[a-z0-9])?", message)
    return command.group() if command else ""


def how_to_close(policy: Policy, message: str, now: datetime) -> str:
    """What a user does about an open breaker of a policy."""
    return closing(opened_by(policy.name, message), policy.closed_at, now)


def closing(what: str, closed_at: datetime | None, now: datetime) -> str:
    """What a user does about an open breaker, or when the time comes that they have set."""
    if closed_at is not None and now < closed_at <= now + FAR:
        return f"it closes at {closed_at:%Y-%m-%d %H:%M:%S} UTC"
    if closed_at is None or closed_at <= now:
        return close_command(what)
    return f"what {names.BREAKER_CLOSED_AT} says is no time, or lies more than a day ahead: {close_command(what)}"


def state(policy: Policy, all_records: Mapping[str, Iterable[AttemptRecord]], now: datetime) -> FailureBreaker:
    """What the status of a policy should say."""
    kept = merged((), all_records.get(policy.name, ()))
    message = opened(policy, all_records, now)
    if not message:
        return FailureBreaker(records=kept)
    stays = policy.breaker.opened is not None and policy.breaker.message == message
    return replace(policy.breaker if stays else FailureBreaker(now, message), records=kept)

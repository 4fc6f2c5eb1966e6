"""The breaker on failures: where most attempts are in vain, no more begin until a user has looked.

What it rests on is kept in the status of the policies, so that neither a restart nor the end of a case forgets it.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime

from remediator.core.case import Attempt, AttemptOutcome, Case, Phase
from remediator.core.policy import AttemptRecord, FailureBreaker, Policy

OF, MOST = 8, 4  # of so many attempts, so many may not be in vain
KEPT = 2 * OF


def records(cases: Iterable[Case]) -> Iterator[AttemptRecord]:
    """What is known of the attempts of these cases: one is in vain if it failed, or if the fault outlived it."""
    for case in cases:
        tries = case.tries
        for number, attempt in enumerate(tries):
            in_vain = _in_vain(case, attempt, last=number == len(tries) - 1)
            if in_vain is not None:
                ended = attempt.finished or attempt.started
                yield AttemptRecord(attempt.operation, attempt.template, ended, in_vain)


def _in_vain(case: Case, attempt: Attempt, last: bool) -> bool | None:
    """None where nobody can tell yet, or ever will."""
    if attempt.outcome is AttemptOutcome.FAILED:
        return True
    if attempt.outcome is not AttemptOutcome.SUCCEEDED:
        return None
    if not last or case.phase is Phase.ESCALATED:
        return True
    return False if case.phase is Phase.RECOVERED else None


def merged(known: Iterable[AttemptRecord], more: Iterable[AttemptRecord]) -> tuple[AttemptRecord, ...]:
    """The newest of both, oldest first, each operation once."""
    by_operation = {record.operation: record for record in (*known, *more)}
    return tuple(sorted(by_operation.values(), key=lambda record: (record.ended, record.operation))[-KEPT:])


def opened(policy: Policy, all_records: Mapping[str, Iterable[AttemptRecord]], now: datetime) -> str:
    """Why the breaker of a policy is open; "" where it is closed. Once open it stays so until a user closes it.

    `all_records` are those of every policy, by its name: what one template does in vain counts under all of them.
    """
    since = policy.closed_at if policy.closed_at is not None and policy.closed_at <= now else None
    breaker = policy.breaker
    if breaker.opened is not None and (since is None or since < breaker.opened):
        return breaker.message
    templates = [rung.operation for rung in policy.ladder]
    every = [record for found in all_records.values() for record in found]
    groups = {f"under policy {policy.name}": list(all_records.get(policy.name, ()))} | {
        f"of template {template}": [record for record in every if record.template == template] for template in templates
    }
    for name, group in groups.items():
        newest = merged((), (record for record in group if since is None or record.ended > since))[-OF:]
        vain = sum(record.in_vain for record in newest)
        if vain >= MOST:
            return f"{vain} of the last {len(newest)} attempts {name} were in vain"
    return ""


def state(policy: Policy, all_records: Mapping[str, Iterable[AttemptRecord]], now: datetime) -> FailureBreaker:
    """What the status of a policy should say."""
    kept = merged((), all_records.get(policy.name, ()))
    message = opened(policy, all_records, now)
    if not message:
        return FailureBreaker(records=kept)
    stays = policy.breaker.opened is not None and policy.breaker.message == message
    return replace(policy.breaker if stays else FailureBreaker(now, message), records=kept)

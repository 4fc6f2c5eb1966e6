"""What holds a case that rests on nothing but criteria that are new in a release. Pure."""

from datetime import datetime

from remediator.core import names
from remediator.core.case import Case
from remediator.core.health import shows
from remediator.core.new_criteria import Criterion, asked
from remediator.core.node import Node
from remediator.core.policy import CriterionState, NewCriterion, Policy, When
from remediator.core.reasons import Reason


def holding(case: Case, node: Node, policy: Policy, now: datetime) -> tuple[Reason, str] | None:
    """What holds a case that rests on nothing but new criteria on which its policy does not act; None where it does.

    It rests on what the node shows of what the policy asks for, by evidence that counts and for as long as the policy
    tolerates it; where it shows nothing so, on what it was opened for.
    """
    quiet = _quiet(policy)
    trigger = case.trigger
    if not quiet or trigger is None:
        return None
    shown = _shown(node, policy, now) or [[(trigger.condition, trigger.reason, trigger.message)]]
    rests = [next((each for each in quiet if any(each.told_by(*words) for words in entry)), None) for entry in shown]
    known = [each for each in rests if each is not None]
    return _told(known[0], quiet[known[0]], policy) if len(known) == len(rests) else None


def only_shows(policy: Policy) -> bool:
    """Whether all that a policy asks for is new, and shown only."""
    whole = {each.condition for each in _quiet(policy) if not (each.reason or each.says)}
    return bool(whole) and all(any(clause.condition in whole for clause in when.clauses) for when in policy.when)


def _quiet(policy: Policy) -> dict[Criterion, NewCriterion | None]:
    """The criteria on which a policy does not act, and its status of each; one that is missing there starts nothing."""
    rows = {row.criterion: row for row in policy.criteria}
    untrusted = {each: rows.get(each.name) for each in asked(policy) if each.name not in policy.trusts}
    return {each: row for each, row in untrusted.items() if row is None or row.state is not CriterionState.ACTS}


def _shown(node: Node, policy: Policy, now: datetime) -> list[list[tuple[str, str, str]]]:
    """Of each entry of the policy that is due: type, reason and message of its Conditions."""
    entries = [
        [node.conditions[clause.condition] for clause in when.clauses]
        for when in policy.when
        if all(shows(node, clause, now) for clause in when.clauses) and _since(node, when) + when.tolerance <= now
    ]
    return [[(condition.type, condition.reason, condition.message) for condition in entry] for entry in entries]


def _since(node: Node, when: When) -> datetime:
    return max(node.conditions[clause.condition].since for clause in when.clauses)


def _told(criterion: Criterion, row: NewCriterion | None, policy: Policy) -> tuple[Reason, str]:
    new = f"{criterion.name} is new in {criterion.release}"
    act = f"to let it act now: {trust_command(policy, criterion.name)}"
    if row is not None and row.state is CriterionState.MUTED:
        return Reason.CRITERION_MUTED, f"{new}, and too many nodes of policy {policy.name} show it at once; {act}"
    when = f"from {row.until:%Y-%m-%d %H:%M} UTC on" if row else "after a time that is not known yet"
    return Reason.NEW_CRITERION, f"{new}: policy {policy.name} acts on it {when}; {act}"


def command_in(message: str) -> str:
    """The command that a hold names to let a policy act on what is new; "" where it names none."""
    _, names_it, rest = message.partition("to let it act now: ")
    return rest.partition(";")[0] if names_it else ""


def trust_command(policy: Policy, criterion: str) -> str:
    """The command by which a user says that a policy may act on a criterion, beside those that it names already."""
    trusted = ",".join(sorted({*policy.trusts, criterion}))
    return f"kubectl annotate --overwrite rp {policy.name} {names.TRUSTED_CRITERIA}={trusted}"

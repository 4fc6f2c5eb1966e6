"""The one command by which a user changes what happens to a node now. Pure."""

from remediator.core.case import Case, Phase
from remediator.core.keep_out import is_out
from remediator.core.names import EXCLUDE, PAUSED
from remediator.core.quiet_hold import command_in
from remediator.core.reasons import Reason

_APPROVE = "remediator approve {node}"
_ENFORCE = """kubectl patch rp {policy} --type=merge -p '{{"spec":{{"mode":"Enforce"}}}}'"""
# In this order: what stops everything stands before what stops one node, and what waits for a person before all else.
COMMANDS: dict[Reason, str] = {
    Reason.PAUSED: "kubectl annotate ns {namespace} " + f"{PAUSED}-",
    Reason.OPTED_OUT: "kubectl label node {node} " + f"{EXCLUDE}-",
    Reason.CORDONED_BY_USER: "kubectl uncordon {node}",
    Reason.HELD_BY_USER: "remediator hold {node} --off",
    Reason.POLICY_PAUSED: _ENFORCE,
    Reason.DRY_RUN: _ENFORCE,
    Reason.POLICY_FAILING: "remediator close-breaker policy/{policy}",
    Reason.APPROVAL_NEEDED: _APPROVE,
    Reason.BLAST_RADIUS: _APPROVE,
    Reason.BLAST_RADIUS_UNKNOWN: _APPROVE,
}

NEW = frozenset({Reason.NEW_CRITERION, Reason.CRITERION_MUTED})


def command(case: Case, namespace: str) -> str:
    """What lets the case go on, where a user holds it up or it waits for one; else what stops it."""
    if is_out(case):
        return f"remediator put-back {case.node}"
    if case.phase is Phase.ESCALATED:
        return f"remediator release {case.node}   # once it is repaired"
    held = {block.reason for block in case.blocks}
    form = next((form for reason, form in COMMANDS.items() if reason in held), "")
    if form:
        return form.format(node=case.node, policy=case.policy, namespace=namespace)
    new = next((block.message for block in case.blocks if block.reason in NEW), "")
    return command_in(new) or f"remediator hold {case.node}   # nothing new starts"

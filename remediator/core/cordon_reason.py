"""Why a node is cordoned, as slurm-operator (Slinky) hands it to Slurm. Pure.

It reads the annotation `nodeset.slinky.slurm.net/node-cordon-reason` of a node that is cordoned (its document "NodeSet
controller"), so the reason must stand there when the cordon does.
"""

import re

from remediator.core.case import Case

MOST = 200  # characters of what was seen: the reason is one line in Slurm's lists
_OURS = re.compile(r"\(remediator \S+\)$", re.ASCII)


def text(case: Case) -> str:
    """What was seen, and which case has cordoned the node: one line of ASCII.

    A case that a user asks for names the operation; one that somebody made by hand its policy.
    """
    return f"{_seen(case)} (remediator {case.name})"


def ours(annotation: str) -> bool:
    """Whether we wrote it; what a user or another system has written stays."""
    return _OURS.search(annotation) is not None


def _seen(case: Case) -> str:
    if case.manual:
        return f"operation {case.manual.template}"
    if case.trigger is None or not case.trigger.condition:
        return f"policy {case.policy}"
    seen = f"{case.trigger.condition}: {case.trigger.message or case.trigger.reason}"
    return " ".join("".join(sign if " " < sign <= "~" else " " for sign in seen).split())[:MOST]

"""Fields about starts in policies that start nothing (urgency.mode Never): legal, but hardly meant.

They are not refused, for a user may stop a policy by Never at any time. A ladder is no mistake: it may wait for the day
on which urgency is taken away.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from remediator.core.policy import Approval, Urgency
from remediator.kube import api

STARTS = ("windows", "maxBlastRadius", "requireSpareGPUs", "approval")


def warnings(documents: Iterable[tuple[str, dict[str, Any]]]) -> Iterator[str]:
    """What to look at, a sentence each."""
    for _, document in documents:
        spec = _part(document, "spec") if document.get("kind") == api.POLICY.name else {}
        if _part(spec, "urgency").get("mode") == Urgency.NEVER:
            name = _part(document, "metadata").get("name", "?")
            for field in STARTS:
                if spec.get(field) not in (None, False, [], Approval.NONE):
                    what = f"spec.{field} has no effect, for nothing starts with urgency.mode Never"
                    yield f"policy {name}: {what}; remove it, or choose Now or WhenIdle"


def _part(document: dict[str, Any], field: str) -> dict[str, Any]:
    """Empty where it is no object, which the schema refuses."""
    part = document.get(field)
    return part if isinstance(part, dict) else {}

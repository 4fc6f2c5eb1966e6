"""Fields that are planned but not supported yet.

The schema contains them only to refuse them with a message. Otherwise the API server would remove such a field without
a message, and a policy would act without it.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from remediator.kube.api.common import Rule


class NotYet(NamedTuple):
    """One field that is refused. `schema` is what the schema must know of it."""

    kind: str
    path: str  # "spec.when[].staleAfter"
    meaning: str  # what it will do
    schema: Mapping[str, Any]

    @property
    def parents(self) -> tuple[str, ...]:
        """The fields that lead to this one."""
        return tuple(self.path.split("."))[:-1]

    @property
    def field(self) -> str:
        """The field's own name."""
        return self.path.rpartition(".")[2]

    @property
    def rule(self) -> Rule:
        """The rule on the object that has the field."""
        return Rule(f"!has(self.{self.field})", f"{self.refused} is not supported yet; remove it", f".{self.field}")

    @property
    def refused(self) -> str:
        """What is refused, as messages and docs name it."""
        return self.path.removeprefix("spec.")

    @property
    def explained(self) -> str:
        """What `kubectl explain` says of the field."""
        return f"{self.meaning} Not supported yet."


_POLICY = "RemediationPolicy"
_TEXT = {"type": "string", "maxLength": 253}
_OBJECT = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
NOT_YET = (
    NotYet(_POLICY, "spec.when[].staleAfter", "After what time without a heartbeat the condition is unknown.", _TEXT),
    NotYet(_POLICY, "spec.when[].reportedBy", "Pods whose readiness shows that the condition is kept.", _OBJECT),
)

"""Fields that are planned but not supported yet.

The schema contains them only to refuse them with a message. Otherwise the API server would remove such a field without
a message, and `approval: Required` would act without approval.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from remediator.kube.api.common import Rule

_TEXT = {"type": "string", "maxLength": 253}
_OBJECT = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_TEXTS = {"type": "array", "maxItems": 16, "items": _TEXT, "x-kubernetes-list-type": "atomic"}
_OBJECTS = {"type": "array", "maxItems": 16, "items": _OBJECT, "x-kubernetes-list-type": "atomic"}
_APPROVAL = {"type": "string", "enum": ["None", "Required"], "default": "None"}


class NotYet(NamedTuple):
    """One field, or some values of one, that are refused.

    `schema` is what the schema must know of a field that no type has; None where a type has it. `values` are those that
    are refused; empty where every value is. `absent`: refused is an object without the field. `instead` says what the
    user does about it.
    """

    kind: str
    path: str  # "spec.when[].alert"
    meaning: str  # what it will do
    schema: Mapping[str, Any] | None = None
    values: tuple[str, ...] = ()
    absent: bool = False
    instead: str = "remove it"

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
        return Rule(self._expression, f"{self.refused} is not supported yet; {self.instead}", f".{self.field}")

    @property
    def refused(self) -> str:
        """What is refused, as messages and docs name it."""
        shown = self.path.removeprefix("spec.")
        if self.absent:
            return f"a {self.kind} without {shown}"
        return f"{shown}: {' or '.join(self.values)}" if self.values else shown

    def explained(self, known: str) -> str:
        """What `kubectl explain` says of the field; `known` is what its type says."""
        if self.absent:
            return f"{known} An object without it is not supported yet."
        return f"{known or self.meaning} Not supported yet{': ' + ', '.join(self.values) if self.values else ''}."

    @property
    def _expression(self) -> str:
        given = f"has(self.{self.field})"
        if self.absent:
            return given
        return f"!{given} || !(self.{self.field} in {list(self.values)})" if self.values else f"!{given}"


_POLICY, _TEMPLATE, _BUDGET = "RemediationPolicy", "NodeOperationTemplate", "NodeDisruptionBudget"
_OTHER = "choose another value"
NOT_YET = (
    NotYet(_POLICY, "spec.when[].alert", "Name of an Alertmanager alert that names the node.", _TEXT),
    NotYet(_POLICY, "spec.confirm", "A second source that must agree before anything is done.", _OBJECT),
    NotYet(_POLICY, "spec.verify.probe", "Operation that must succeed before the node is given back.", _TEXT),
    NotYet(_POLICY, "spec.relapse", "A new case soon after the last one starts one rung higher.", _OBJECT),
    NotYet(_POLICY, "spec.urgency.mode", "Wait until no Pod works on the node.", values=("WhenIdle",), instead=_OTHER),
    NotYet(_POLICY, "spec.urgency.deadline", "Do not wait longer than this for the node to be idle.", _TEXT),
    NotYet(_POLICY, "spec.windows", "Times in which cases may start.", _OBJECTS),
    NotYet(
        _POLICY,
        "spec.approval",
        "A person must approve each case. Default None.",
        _APPROVAL,
        ("Required",),
        instead=_OTHER,
    ),
    NotYet("NodeRemediation", "spec.approved", "A person approves this case.", {"type": "boolean"}),
    NotYet(
        "NodeOperation",
        "spec.caseUID",
        "An operation that a person asks for gets a case of its own.",
        absent=True,
        instead="make a NodeRemediation",
    ),
    NotYet(_BUDGET, "spec.breaker", "Stop new disruption in a storm of faults under this budget.", _OBJECT),
    NotYet(
        _TEMPLATE,
        "spec.drain.strategy",
        "Other ways to move Pods away.",
        values=("ForceDelete", "EvictThenDelete", "WaitForCompletion"),
        instead=_OTHER,
    ),
    NotYet(_TEMPLATE, "spec.drain.rules", "Other strategies for some Pods.", _OBJECTS),
    NotYet(_TEMPLATE, "spec.covers", "Operations that need not be tried once this one was done.", _TEXTS),
)

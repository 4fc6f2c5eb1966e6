"""What the kinds share: metadata, selectors, conditions, descriptions and CEL rules of types."""

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Any, NamedTuple, Protocol, TypeVar

import msgspec
from msgspec import Meta

from remediator.core.node import Status
from remediator.core.selector import Operator

GROUP, VERSION = "remediator.dev", "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"


class Rule(NamedTuple):
    """One CEL rule that must be true, else `message` is shown, at the field `path` below the value (".mode")."""

    rule: str
    message: str
    path: str = ""

    @property
    def validation(self) -> dict[str, str]:
        """The rule as a schema has it."""
        return {"rule": self.rule, "message": self.message} | ({"fieldPath": self.path} if self.path else {})


def doc(text: str, **extra: Any) -> Meta:
    """What `kubectl explain` says of a field; `extra` are further words of its schema, `_` standing for `-`."""
    return Meta(description=text, extra_json_schema={key.replace("_", "-"): value for key, value in extra.items()})


def rules(*held: Rule) -> Meta:
    """CEL rules on the annotated type."""
    return Meta(extra_json_schema={"x-kubernetes-validations": [rule.validation for rule in held]})


SHAPE = "x-shape"  # the word of a schema beside a pattern that becomes a rule, see manifests/structural.py


def shaped(pattern: str, says: str, longest: int) -> Meta:
    """A pattern that a user reads as `says`, with an example, for an API server shows patterns as they are."""
    return Meta(pattern=pattern, max_length=longest, extra_json_schema={SHAPE: says})


def fixed(field: str) -> Meta:
    """The rule that a required value never changes after creation."""
    return rules(Rule("self == oldSelf", f"{field} is immutable"))


Percent = Annotated[str, shaped("^(100|[0-9]{1,2})%$", "must be a number of nodes or a percentage: 5 or 10%", 4)]
Count = Annotated[int, Meta(ge=0, le=1_000_000)]
CountOrPercent = Count | Percent
Name = Annotated[str, Meta(min_length=1, max_length=253)]
# The name of a template becomes the value of a Pod label.
NAME_PATTERN = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
TemplateName = Annotated[str, Meta(pattern=NAME_PATTERN, max_length=63)]
# The same where a user writes it.
Operation = Annotated[
    str, shaped(NAME_PATTERN, "must be the name of a NodeOperationTemplate: lower-case, such as reset-gpu", 63)
]
# A label key: a DNS name and a slash, or neither, and a name of at most 63 characters.
LabelKey = Annotated[
    str,
    shaped(
        "^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
        "[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$",
        "must be the key of a label, such as pool or topology.kubernetes.io/rack",
        317,
    ),
]
LabelValue = Annotated[
    str,
    shaped(
        "^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$",
        "must be the value of a label: letters, digits, '-', '_' and '.', such as a100 or true",
        63,
    ),
]
# What an authenticator calls somebody: alice@example.com, system:serviceaccount:NAMESPACE:NAME, or an issuer with it.
User = Annotated[str, Meta(min_length=1, max_length=1024)]
Uid = Annotated[str, Meta(min_length=1, max_length=64)]
Time = Annotated[datetime, Meta(tz=True)]
Message = Annotated[str, Meta(max_length=4096)]
Reason = Annotated[str, Meta(max_length=128)]
Because = Annotated[str, Meta(max_length=200)]
Anything = Annotated[dict[str, Any], Meta(extra_json_schema={"x-kubernetes-preserve-unknown-fields": True})]


class Base(msgspec.Struct, rename="camel", frozen=True, kw_only=True, omit_defaults=True):
    """Every type below: camelCase on the wire, unknown fields skipped, fields at their default left out."""


class OwnerReference(Base, frozen=True, kw_only=True):
    """Which object this one belongs to."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class ObjectMeta(Base, frozen=True, kw_only=True):
    """The part of Kubernetes' metadata that we read or write."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    annotations: dict[str, str] = msgspec.field(default_factory=dict)
    finalizers: tuple[str, ...] = ()
    owner_references: tuple[OwnerReference, ...] = ()


class AnyOwner(Protocol):
    """What every reference to an owner has, however much of it is read."""

    @property
    def kind(self) -> str:
        """Of the owner."""

    @property
    def controller(self) -> bool | None:
        """Whether it makes the object anew; of all owners one at most."""


_Owner = TypeVar("_Owner", bound=AnyOwner)
ON_EACH_NODE = ("DaemonSet", "Node")  # Pods of these, and static ones, have their one node and no other


def controller(owners: Iterable[_Owner]) -> _Owner | None:
    """Who makes an object anew."""
    return next((owner for owner in owners if owner.controller), None)


def controller_kind(owners: Iterable[AnyOwner]) -> str:
    """The kind of who does, "" for nobody."""
    owner = controller(owners)
    return owner.kind if owner is not None else ""


class Requirement(Base, frozen=True, kw_only=True):
    """One requirement on a label."""

    key: Annotated[LabelKey, doc("Label key.")]
    operator: Annotated[Operator, doc("How the label's value relates to `values`.")]
    values: Annotated[
        tuple[LabelValue, ...],
        Meta(max_length=64),
        doc("Values for In and NotIn; must be absent for Exists and DoesNotExist."),
    ] = ()


_VALUES = Rule(
    "self.operator in ['In', 'NotIn'] == (has(self.values) && size(self.values) > 0)",
    "values must be given for In and NotIn, and only for them",
    ".values",
)


class LabelSelector(Base, frozen=True, kw_only=True):
    """Chooses nodes by their labels; every entry must hold."""

    match_labels: Annotated[
        dict[LabelKey, LabelValue],
        Meta(max_length=32),
        doc("Labels that the node must have, with these values."),
    ] = msgspec.field(default_factory=dict)
    match_expressions: Annotated[
        tuple[Annotated[Requirement, rules(_VALUES)], ...],
        Meta(max_length=32),
        doc("Requirements on labels: In, NotIn, Exists, DoesNotExist.", x_kubernetes_list_type="atomic"),
    ] = ()


class Condition(Base, frozen=True, kw_only=True):
    """One observation about this object."""

    type: Annotated[str, Meta(min_length=1, max_length=128), doc("What is observed, for example Ready.")]
    status: Annotated[Status, doc("Whether it holds.")]
    reason: Annotated[Reason, doc("One word for a machine, for example UnknownOperation.")] = ""
    message: Annotated[Message, doc("One sentence for a person.")] = ""
    last_transition_time: Annotated[Time | None, doc("When the status last changed.")] = None
    observed_generation: Annotated[int, doc("The metadata.generation that was judged.")] = 0


Conditions = Annotated[
    tuple[Condition, ...],
    Meta(max_length=16),
    doc("The latest observations, one per type.", x_kubernetes_list_type="map", x_kubernetes_list_map_keys=["type"]),
]

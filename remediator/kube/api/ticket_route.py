"""TicketRoute: where a team wants its issues. It lies in a namespace of the team's own."""

from typing import Annotated

import msgspec
from msgspec import Meta

from remediator.core.policy import Severity
from remediator.core.ticket_route import REPOSITORY
from remediator.kube.api.common import (
    API_VERSION,
    Base,
    Conditions,
    LabelKey,
    ObjectMeta,
    Rule,
    doc,
    rules,
    shaped,
)

_Repository = Annotated[str, shaped(f"^{REPOSITORY}$", "must be owner/name, such as org/ml", 140)]
_Values = Annotated[tuple[Annotated[str, Meta(min_length=1, max_length=256)], ...], Meta(min_length=1, max_length=64)]


class IssueMatch(Base, frozen=True, kw_only=True):
    """Which issues; every field that is given must fit."""

    severity: Annotated[
        tuple[Severity, ...],
        Meta(max_length=3),
        doc("Any of these. Left out: all.", x_kubernetes_list_type="set"),
    ] = ()
    labels: Annotated[
        dict[LabelKey, _Values],
        Meta(max_length=16),
        doc("Each of these labels has one of its values on the node or in an alert of the issue."),
    ] = msgspec.field(default_factory=dict)


class TicketRouteSpec(Base, frozen=True, kw_only=True):
    """Which issues go where."""

    match: Annotated[
        IssueMatch,
        rules(Rule("has(self.severity) || has(self.labels)", "give severity or labels: {} would be every issue")),
        doc("Which issues. Only those that the routes file leaves to the namespace are taken. Required."),
    ]
    repository: Annotated[
        _Repository, doc("Where they go: owner/name, of those that the routes file allows the namespace. Required.")
    ]
    labels: Annotated[
        tuple[Annotated[str, Meta(min_length=1, max_length=50)], ...],
        Meta(max_length=32),
        doc("Labels that they get.", x_kubernetes_list_type="atomic"),
    ] = ()
    assignees: Annotated[
        tuple[Annotated[str, Meta(min_length=1, max_length=64)], ...],
        Meta(max_length=10),
        doc("Who is assigned.", x_kubernetes_list_type="atomic"),
    ] = ()
    milestone: Annotated[str, Meta(max_length=255), doc("Title of an open milestone.")] = ""


class TicketRouteStatus(Base, frozen=True, kw_only=True):
    """Whether it is used; written by the leader."""

    issues: Annotated[Annotated[int, Meta(ge=0)], doc("How many open issues it fits now.")] = 0
    conditions: Conditions = ()


class TicketRoute(Base, frozen=True, kw_only=True):
    """Where a team wants its issues, within what the routes file leaves to its namespace."""

    api_version: str = msgspec.field(default_factory=lambda: API_VERSION)
    kind: str = msgspec.field(default_factory=lambda: "TicketRoute")
    metadata: ObjectMeta
    spec: TicketRouteSpec
    status: TicketRouteStatus = TicketRouteStatus()

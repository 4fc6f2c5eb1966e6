"""Ticket: the GitHub issue that one case should have."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from remediator.kube.api.common import API_VERSION, Base, Conditions, Name, ObjectMeta, Rule, doc, rules


class Route(Base, frozen=True, kw_only=True):
    """Where the issue goes."""

    repository: Annotated[str, Meta(pattern="^[^/]+/[^/]+$", max_length=140), doc("owner/name on GitHub.")]
    labels: Annotated[
        tuple[Annotated[str, Meta(max_length=50)], ...],
        Meta(max_length=32),
        doc("Labels that the issue gets.", x_kubernetes_list_type="atomic"),
    ] = ()
    assignees: Annotated[
        tuple[Name, ...], Meta(max_length=10), doc("Who is asked.", x_kubernetes_list_type="atomic")
    ] = ()
    board: Annotated[Name | None, doc("Project board that the issue is put on.")] = None


class TicketSpec(Base, frozen=True, kw_only=True):
    """Which case the issue mirrors, and where it goes."""

    case_name: Annotated[Name, doc("Name of the NodeRemediation.")]
    node_name: Annotated[Name, doc("Name of the node.")]
    alerts: Annotated[
        tuple[Name, ...], Meta(max_length=64), doc("Names of the alerts.", x_kubernetes_list_type="atomic")
    ] = ()
    route: Annotated[Route | None, doc("Where the issue goes.")] = None


class Issue(Base, frozen=True, kw_only=True):
    """The issue on GitHub."""

    number: Annotated[int, doc("Its number.")]
    url: Annotated[str, Meta(max_length=512), doc("Its address.")] = ""


class TicketStatus(Base, frozen=True, kw_only=True):
    """Where the issue stands."""

    phase: Annotated[Literal["", "Pending", "Open", "Closed"], doc("Where the issue stands.")] = ""
    issue: Annotated[Issue | None, doc("The issue on GitHub.")] = None
    last_write_hash: Annotated[str, Meta(max_length=64), doc("Hash of what was last written to the issue.")] = ""
    observed_generation: Annotated[int, doc("The metadata.generation that was acted on.")] = 0
    conditions: Conditions = ()


class Ticket(Base, frozen=True, kw_only=True):
    """The GitHub issue that one case should have. Not honoured yet."""

    api_version: str = msgspec.field(default_factory=lambda: API_VERSION)
    kind: str = msgspec.field(default_factory=lambda: "Ticket")
    metadata: ObjectMeta
    spec: Annotated[TicketSpec, rules(Rule("!has(self.caseName)", "Ticket is not honoured yet; remove it"))]
    status: TicketStatus = TicketStatus()

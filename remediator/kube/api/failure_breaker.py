"""The breaker on failures, as the status of a policy or a budget shows it."""

from typing import Annotated

from msgspec import Meta

from remediator.kube.api.common import Base, Message, Name, TemplateName, Time, doc


class AttemptRecord(Base, frozen=True, kw_only=True):
    """What became of one attempt."""

    operation: Annotated[Name, doc("Name of the NodeOperation.")]
    template: Annotated[TemplateName, doc("Name of its NodeOperationTemplate.")]
    ended_at: Annotated[Time, doc("When it ended.")]
    in_vain: Annotated[bool, doc("Its case went to a person: it failed, or the fault outlived it.")] = False
    node: Annotated[str, Meta(max_length=253), doc("Name of the Node.")] = ""


class FailureBreaker(Base, frozen=True, kw_only=True):
    """The breaker on failures: opens when so many of the last attempts of a day were in vain."""

    opened_at: Annotated[Time | None, doc("Since when it is open; absent while it is closed.")] = None
    message: Annotated[Message, doc("Why it is open.")] = ""
    attempts: Annotated[
        tuple[AttemptRecord, ...],
        Meta(max_length=16),
        doc("The newest attempts that count, oldest first.", x_kubernetes_list_type="atomic"),
    ] = ()

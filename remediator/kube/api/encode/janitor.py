"""What the janitor writes on objects of any kind: Events, and the mark that their owner was told."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from msgspec import UNSET

from remediator.core import names
from remediator.kube import api
from remediator.kube.api import builtin
from remediator.kube.api.encode.objects import body, second
from remediator.kube.api.patch import Body, MergePatch, MetaPatch
from remediator.kube.wire.times import stamp

EVERYWHERE = "default"  # where Events on what has no namespace lie
LONGEST = 1024  # letters of an Event's message


def janitor_event(
    name: str, about: builtin.ObjectReference, reason: str, message: str, at: datetime, *, warns: bool = False
) -> Body:
    """An Event on an object, where `kubectl describe` shows it."""
    return body(
        builtin.Event(
            metadata=api.ObjectMeta(name=name, namespace=about.namespace or EVERYWHERE),
            involved_object=about,
            reason=reason,
            message=message[:LONGEST],
            type="Warning" if warns else "Normal",
            source=builtin.EventSource(component="remediator-janitor"),
            first_timestamp=second(at),
            last_timestamp=second(at),
            count=1,
        )
    )


def notified(uid: str, version: str, deadline: datetime, at: datetime) -> Body:
    """A merge patch that says for which deadline the owner was told, and when; refused if the object has moved."""
    marks = {names.JANITOR_NOTIFIED: stamp(deadline), names.JANITOR_NOTIFIED_AT: stamp(at)}
    return body(MergePatch(metadata=MetaPatch(uid=uid, resource_version=version, annotations=marks)))


def idle_marks(uid: str, version: str, marks: Mapping[str, str | None], spec: Mapping[str, Any] | None = None) -> Body:
    """A merge patch of what is said of idle GPUs (None takes it away); refused if the object has moved.

    `spec`: that its owner makes no Pods.
    """
    meta = MetaPatch(uid=uid, resource_version=version, annotations=marks)
    return body(MergePatch(metadata=meta, spec=UNSET if spec is None else spec))


SUSPENDED, SCALED = {"suspend": True}, {"replicas": 0}

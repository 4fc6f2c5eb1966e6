"""One object from the wire → what is kept of it, whatever it holds."""

from collections.abc import Callable, Container
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec
import structlog

from remediator.kube.wire import frames as wire
from remediator.kube.wire.client import Kind

F = TypeVar("F")
log = structlog.get_logger(__name__)


class Reading(NamedTuple, Generic[F]):
    """One object as read: the fact is None where only its head could be read, the key "" where not even that."""

    key: str
    version: str
    fact: F | None
    readable: bool = True


class Reader(Generic[F]):
    """Reads objects of `kind`; `undecodable` counts those that could not be read.

    Args:
        kind: What is read.
        project: Makes the fact of an object.
        careful: Makes it of one that cannot be read.
        unknown: The keys of which that is known already: it is logged once.
    """

    def __init__(
        self,
        kind: Kind[Any],
        project: Callable[[Any], F],
        careful: Callable[[msgspec.Raw], F] | None,
        unknown: Container[str],
    ) -> None:
        self.undecodable = 0
        self._decode = msgspec.json.Decoder(kind.type).decode
        self._project, self._careful, self._unknown = project, careful, unknown
        self._log = log.bind(kind=kind.name)

    def read(self, raw: msgspec.Raw, head_only: bool = False) -> Reading[F]:
        """What is known of one object by its bytes."""
        key, version = "", ""
        try:
            meta = wire.HEAD.decode(raw).metadata
            key, version = meta.key, meta.resource_version
            if head_only:
                return Reading(key, version, None)
            fact = self._project(self._decode(raw))
            name = getattr(fact, "name", "")
            return Reading(name if name == key else key, version, fact)  # one text is kept, not two
        except Exception as error:  # one odd object must not blind us to the others
            self.miss(key, error)
            return Reading(key, version, self._most_careful(raw) if key else None, readable=False)

    def miss(self, key: str, error: Exception) -> None:
        """Count one that could not be read; "" where not even its key is known."""
        self.undecodable += 1
        if not key or key not in self._unknown:
            self._log.error("object cannot be read", key=key, error=str(error), once=bool(key))

    def _most_careful(self, raw: msgspec.Raw) -> F | None:
        """What stands for an object that cannot be read; None where even that cannot be made."""
        try:
            return self._careful(raw) if self._careful else None
        except Exception as error:
            self._log.error("not even the head of an object can be read", error=str(error))
            return None

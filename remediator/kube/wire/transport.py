"""The interface below encoding: a few requests over bytes.

`HttpTransport` (http.py) talks to a real API server. `remediator_sim` implements the same interface for the embedded
one. All code above this Protocol is the same for both.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import NamedTuple, Protocol

JSON = "application/json"
HEADS = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"  # of a list, only the metadata
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"

Query = Sequence[tuple[str, str]]


class Reply(NamedTuple):
    """One answer. `headers` has lower-case names."""

    status: int
    body: bytes
    headers: Mapping[str, str]


class Stream(Protocol):
    """An open watch. Iterating yields chunks of the body as they arrive, not lines, until it ends."""

    @property
    def status(self) -> int: ...
    @property
    def headers(self) -> Mapping[str, str]: ...

    def __aiter__(self) -> AsyncIterator[bytes]: ...


class Transport(Protocol):
    """What an API server connection can do. Raises `errors.Unavailable` when no answer came at all."""

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Query = (),
        body: bytes = b"",
        content_type: str = JSON,
        accept: str = JSON,
        timeout: float = 30.0,
    ) -> Reply:
        """Send one request and read the whole answer, whatever its status. `timeout` in seconds covers all of it.

        `accept` is the form of the answer.
        """
        ...

    def stream(
        self, path: str, *, query: Query = (), idle_timeout: float = 75.0
    ) -> AbstractAsyncContextManager[Stream]:
        """Open a GET whose body is read as it comes; silence longer than `idle_timeout` seconds raises Unavailable."""
        ...

    async def close(self) -> None:
        """Close every connection."""
        ...

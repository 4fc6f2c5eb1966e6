"""The common parts of every list and watch, for all kinds: only the fields that are needed to follow them."""

from collections.abc import AsyncIterator

import msgspec


class WatchEvent(msgspec.Struct):
    """One line of a watch. `object` is the object, or a bookmark, or what went wrong."""

    type: str  # ADDED MODIFIED DELETED BOOKMARK ERROR
    object: msgspec.Raw


class Meta(msgspec.Struct, rename="camel"):
    """What names an object and its version."""

    name: str
    namespace: str = ""
    resource_version: str = ""

    @property
    def key(self) -> str:
        """`namespace/name`, or the name alone."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class ObjectHead(msgspec.Struct):
    """Any object."""

    metadata: Meta


class BookmarkMeta(msgspec.Struct, rename="camel"):
    """How far the watch has come."""

    resource_version: str
    annotations: dict[str, str] | None = None

    @property
    def ends_the_list(self) -> bool:
        """Whether all objects that existed at the start of the watch have been sent."""
        return (self.annotations or {}).get("k8s.io/initial-events-end") == "true"


class Preconditions(msgspec.Struct, rename="camel", omit_defaults=True):
    """What must be so for a delete; "" does not matter."""

    uid: str = ""
    resource_version: str = ""


class DeleteOptions(msgspec.Struct, rename="camel", omit_defaults=True):
    """The body of a delete."""

    preconditions: Preconditions | None = None
    propagation_policy: str = ""


class Bookmark(msgspec.Struct):
    """The object of a BOOKMARK."""

    metadata: BookmarkMeta


class WatchFailure(msgspec.Struct):
    """The object of an ERROR: a Status."""

    code: int = 500
    reason: str = ""
    message: str = ""


class PageMeta(msgspec.Struct, rename="camel"):
    """Where a list stands; `continue_` is empty on its last page, and `remaining_item_count` says what is after it."""

    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")
    remaining_item_count: int | None = None


class Page(msgspec.Struct):
    """One page of a list."""

    metadata: PageMeta
    items: list[msgspec.Raw] | None = None


class Heads(msgspec.Struct):
    """One page of a list of heads."""

    metadata: PageMeta
    items: list[ObjectHead] | None = None


EVENT, HEAD = msgspec.json.Decoder(WatchEvent), msgspec.json.Decoder(ObjectHead)


async def lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes | bytearray]:
    """Cut a stream of chunks into its non-empty lines; each byte is looked at once. An unended last line is dropped."""
    tail = bytearray()
    async for chunk in chunks:
        first, *rest = chunk.split(b"\n")
        tail += first
        for piece in rest:
            if tail:
                yield tail
            tail = bytearray(piece)

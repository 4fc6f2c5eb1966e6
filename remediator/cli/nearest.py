"""The names that are nearest to one that nothing has."""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from remediator.kube.wire.client import Client

MOST = 3


def hint(name: str, known: Iterable[str]) -> str:
    """The end of a sentence that says that there is no such name; "" where none is near.

    >>> hint("gpu17", ["gpu-17", "system-1"])
    '; did you mean gpu-17?'
    """
    near = get_close_matches(name, sorted(set(known)), n=MOST)
    return f"; did you mean {' or '.join(near)}?" if near else ""


async def missing_node(client: "Client", name: str) -> str:
    """That there is no such node, with the nearest names. Reads the names of all nodes."""
    from remediator.kube.api.builtin import NODE

    known, _ = await client.heads(NODE)
    return f"no node {name} in the cluster{hint(name, known)}"

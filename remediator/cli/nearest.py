"""The names that are nearest to one that nothing has."""

from collections.abc import Collection, Iterable, Sequence
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
    return _meant(nearest(name, known))


def nearest(name: str, known: Iterable[str]) -> list[str]:
    """Those that are written nearly so, or else those that begin as it does: of a case, those of its node.

    >>> nearest("gpu-17-x", ["gpu-17-remote-mount-fault-8d2f1c", "gpu-18-gpu-lost-0ab3e9"])
    ['gpu-17-remote-mount-fault-8d2f1c']
    """
    names = sorted(set(known))
    beginning, dash, _ = name.rpartition("-")
    alike = [each for each in names if dash and each.startswith(beginning + dash)]
    return get_close_matches(name, names, n=MOST) or alike[:MOST]


def hint_within(namespace: str, name: str, known: Collection[tuple[str, str]], noun: str) -> str:
    """As `hint`, for names in namespaces: where none is near, what the namespace has, or which one has any.

    >>> hint_within("team", "nopod", [("research", "train-0"), ("team", "web-0")], "Pods")
    '; Pods there: web-0'
    >>> hint_within("default", "train-0", [("research", "train-0"), ("research", "train-1")], "Pods")
    '; no Pods there; did you mean research/train-0?'
    >>> hint_within("team", "nopod", [("research", "train-0")], "Pods")
    '; no Pods there; namespaces that have some: research'
    """
    own = sorted({each for space, each in known if space == namespace})
    same = sorted(f"{space}/{each}" for space, each in set(known) if each == name)
    near = [f"{namespace}/{each}" for each in nearest(name, own)] or same[:MOST]
    near = near or get_close_matches(f"{namespace}/{name}", ["/".join(each) for each in sorted(set(known))], n=MOST)
    if near or own:
        return ("" if own else f"; no {noun} there") + (_meant(near) if near else f"; {noun} there: {_some(own)}")
    spaces = sorted({space for space, _ in known})
    return f"; no {noun} there" + (f"; namespaces that have some: {_some(spaces)}" if spaces else "")


def _meant(near: Sequence[str]) -> str:
    return f"; did you mean {' or '.join(near)}?" if near else ""


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST} more" if len(names) > MOST else ""
    return ", ".join(names[:MOST]) + more


async def missing_node(client: "Client", name: str) -> str:
    """That there is no such node, with the nearest names. Reads the names of all nodes."""
    from remediator.kube.api.builtin import NODE

    known, _ = await client.heads(NODE)
    return f"no node {name} in the cluster{hint(name, known)}"

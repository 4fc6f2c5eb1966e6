"""Lists of names that are asked about again: told by their bytes, so that thousands of names are not read each time.

That a request ends as one before it proves nothing. What stands before its last list must, with a mark in the place of
the list, be arguments of an extender that have the mark for names. Then the list has their names, and these bytes were
read as the same names before.
"""

from typing import NamedTuple

import msgspec

from remediator.scheduler.pieces import MARK

SLICE = 64  # names whose part of an answer is made together
KEPT = 4  # lists; the one that was sent longest ago goes first
LONGEST = 2**20  # bytes of a list that is kept: three times 10,000 names
BEFORE = 2**17  # bytes before it: a Pod is seldom as large


class AskedNames:
    """The names of one list as they were sent, and each once in slices. One object while the same list is sent."""

    def __init__(self, sent: list[str]) -> None:
        self.sent, distinct = sent, list(dict.fromkeys(sent))
        self.slices = {at: dict.fromkeys(distinct[at : at + SLICE]) for at in range(0, len(distinct), SLICE)}
        self.slice_of = {name: at for at, names in self.slices.items() for name in names}


class AskedAgain(NamedTuple):
    """A request whose list of names was sent before."""

    pod: msgspec.Raw
    names: AskedNames


class NameLists:
    """The lists that were sent last."""

    def __init__(self) -> None:
        self._kept: list[tuple[bytes, AskedNames | list[str]]] = []  # with how a request ends that has it

    def again(self, body: bytes) -> AskedAgain | None:
        """What is asked, if its list of names is kept."""
        at = next((at for at, (ends, _) in enumerate(self._kept) if body.endswith(ends)), None)
        if at is None:
            return None
        ends, names = self._kept[at]
        if (pod := _pod(body[: -len(ends)])) is None:
            return None
        names = names if isinstance(names, AskedNames) else AskedNames(names)
        del self._kept[at]
        self._kept.append((ends, names))
        return AskedAgain(pod, names)

    def keep(self, body: bytes, names: list[str]) -> None:
        """These names were read of this request."""
        ends = _ending(body)
        if ends is not None and _pod(body[: -len(ends)]) is not None:
            self._kept = [*self._kept[1 - KEPT :], (ends, names)]


def _ending(body: bytes) -> bytes | None:
    """The last list of a request that ends with it; None where a bracket is in a name, too."""
    at = body.rfind(b"[")
    if at < 0 or len(body) - at > LONGEST or body.find(b"]", at) != len(body) - 2:
        return None
    return body[at:]


class _Marked(msgspec.Struct, rename="pascal"):
    """ExtenderArgs with the mark for names."""

    pod: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    nodes: None = None
    node_names: str = ""


_MARKED = msgspec.json.Decoder(_Marked)


def _pod(before: bytes) -> msgspec.Raw | None:
    """The Pod of a request whose names come next; None where something else does."""
    if len(before) > BEFORE:
        return None
    try:
        args = _MARKED.decode(b"%s%s}" % (before, MARK))
    except (ValueError, RecursionError):
        return None
    return args.pod if isinstance(args.pod, msgspec.Raw) and f'"{args.node_names}"'.encode() == MARK else None

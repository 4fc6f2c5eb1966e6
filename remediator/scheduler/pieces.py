"""Whole Nodes in a request, cut where one ends and the next begins: to skip 75 MiB of them in one step takes too long.

No cut is believed: what stands between two of them must be one JSON value, and the rest, with a mark in the place of
all Nodes, arguments of an extender that have the mark there. Then the whole is JSON, and these are its Nodes. A request
of another form is read at once, as a small one.
"""

import re
import secrets

import msgspec

from remediator.scheduler.turns import Steps

LARGE = 4 * 2**20  # less takes 2 ms to read at once
REACH = 2**21  # of a request before its Nodes, and of one Node; what is longer is read at once
MOST = 2**16  # Nodes; a large cluster has fewer, and each piece takes more memory than its text where that is short
TOGETHER = 128  # Nodes that are cut in one step: about 2 MiB
MARK = f'"{secrets.token_hex(16)}"'.encode()  # nobody who writes a Pod or a Node knows it
# As Go and Python write it. What begins the first Node begins all of them.
_BEGINS = re.compile(rb'"Nodes": ?\{(?:"metadata": ?\{[^{}]*\}, ?)?"items": ?\[(?=(\{"\w+": ?))')


def cutting(body: bytes) -> Steps[tuple[bytes, list[msgspec.Raw]] | None]:
    """The request with the mark in the place of its Nodes, and these; None where it is of another form."""
    begins = _BEGINS.search(body, 0, REACH) if len(body) > LARGE else None
    if begins is None:
        return None
    at, end, view, nodes = begins.end(), body.rfind(b"]"), memoryview(body), list[msgspec.Raw]()
    between = next((glue for glue in (b",", b", ") if body.find(b"}" + glue + begins[1], at, at + REACH) >= 0), b",")
    cut = b"}" + between + begins[1]
    while (brace := body.find(cut, at, at + REACH)) >= 0:
        nodes.append(msgspec.Raw(view[at : brace + 1]))
        at = brace + 1 + len(between)
        if len(nodes) == MOST:
            return None
        if len(nodes) % TOGETHER == 0:
            yield
    if len(body) - end > REACH:
        return None
    rest = body[: begins.end()] + MARK + body[end:]
    return (rest, [*nodes, msgspec.Raw(view[at:end])]) if rest.count(MARK) == 1 else None

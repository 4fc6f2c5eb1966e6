"""Large requests are read Node by Node: the same is understood, and no step takes long."""

import json
from typing import Any

import msgspec
import pytest

from remediator.scheduler import pieces, protocol
from remediator.scheduler.protocol import Malformed, decode, decoding
from remediator.scheduler.turns import at_once
from tests.harness.scheduler import node, nodes_body, pod

GO, PYTHON = (",", ":"), (", ", ": ")
CUT = '},{"metadata":'


class Counted:
    """A decoder that keeps how long the bodies were that it was given."""

    def __init__(self, decoder: msgspec.json.Decoder[Any]) -> None:
        self.decoder, self.given = decoder, list[int]()

    def decode(self, body: bytes) -> object:
        self.given.append(len(body))
        return self.decoder.decode(body)


def large(count: int = 400) -> dict[str, Any]:
    """A request with so many whole Nodes of 16 KiB."""
    request: dict[str, Any] = json.loads(nodes_body([]))
    spec = {"note": "x" * 2**14, "taints": [{"metadata": 1}]}
    items = [node(f"n{at}") | {"spec": spec} for at in range(count)]
    return request | {"Nodes": {"metadata": {}, "items": items}}


@pytest.mark.parametrize("form", [GO, PYTHON], ids=["as Go writes it", "as Python writes it"])
def test_of_400_large_nodes_none_is_read_beside_another_one(
    form: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """6 MiB; what is read as a whole is what is left of the request without them."""
    counted = Counted(protocol._ARGS)
    monkeypatch.setattr(protocol, "_ARGS", counted)
    sent = large()
    body = json.dumps(sent, separators=form).encode()
    request = at_once(decoding(body))
    assert request.names == [f"n{at}" for at in range(400)]
    assert [json.loads(bytes((request.whole or {})[name])) for name in request.names] == sent["Nodes"]["items"]
    assert (len(body) > 6 * 2**20, len(counted.given), max(counted.given) < 2**14) == (True, 1, True)


def test_no_step_cuts_more_than_128_nodes() -> None:
    """400 take four steps to be cut, and four until their names are read; 6 MiB of UTF-8 are looked at in seven."""
    steps = decoding(json.dumps(large(), separators=GO).encode())
    assert sum(1 for _ in steps) == 3 + 7 + 4


def test_more_nodes_than_any_cluster_has_are_not_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last of 400 is one too many: they are read as before, in no piece of memory for each."""
    monkeypatch.setattr(pieces, "MOST", 399)
    body = json.dumps(large(), separators=GO).encode()
    assert at_once(pieces.cutting(body)) is None
    assert len(decode(body).names) == 400


def a_request(nodes: str, more: str = "", first: str = "", then: str = "") -> bytes:
    """One as Go writes it: `nodes` as they stand in the list, `more` in the Pod, and what stands around."""
    own = json.dumps(pod(), separators=GO)[:-1] + more + "}"
    return f'{{{first}"Pod":{own},"Nodes":{{"metadata":{{}},"items":[{nodes}]}},"NodeNames":null{then}}}'.encode()


def one(name: str, more: str = "") -> str:
    return f'{{"metadata":{{"name":"{name}"}}{more}}}'


A, B, MARKED = one("a"), one("b"), pieces.MARK.decode()
TWO = f"{A},{B}"
ALIKE, QUOTED = one("a", f',"x":[{TWO}]'), one("a", ',"x":' + json.dumps(CUT + '"'))
ANOTHER = one("a", ',"x":1')


def nodes_only(nodes: str, more: str = "") -> bytes:
    return f'{{"Nodes":{{"items":[{nodes}]}}{more}}}'.encode()


FORMS = {
    "two": a_request(TWO),
    "one": a_request(A),
    "none": a_request(""),
    "a list within a Node that looks the same": a_request(f"{ALIKE},{B}"),
    "a string that looks like a cut": a_request(f"{QUOTED},{B}"),
    "Nodes that begin with another field": a_request(f'{A},{{"kind":"Node","metadata":{{"name":"b"}}}}'),
    "a space after one of them": a_request(f"{A} ,{B}"),
    "one name twice": a_request(f"{A},{ANOTHER}"),
    "names, too": a_request(TWO, then=',"NodeNames":["a","b"]'),
    "Nodes twice": a_request(TWO, then=f',"Nodes":{{"items":[{one("c")}]}}'),
    "other Nodes in the Pod": a_request(TWO, more=f',"Nodes":{{"items":[{TWO}]}}'),
    "the mark in the Pod": a_request(TWO, more=f',"x":{MARKED}'),
    "the mark before other Nodes": a_request(TWO, first=f'"Nodes":{{"items":[{MARKED}]}},'),
    "the mark as Nodes, and Nodes in the Pod": nodes_only(MARKED, f',"Pod":{{"Nodes":{{"items":[{TWO}]}}}}'),
    "no Nodes, and Nodes in the Pod": nodes_only("", f',"Pod":{{"Nodes":{{"items":[{TWO}]}}}}'),
    "keys in another case": a_request(TWO).replace(b'"Pod"', b'"pod"'),
    "the Pod behind": nodes_only(TWO, ',"Pod":{"spec":{}}'),
    "no Pod": nodes_only(TWO),
    "a Pod that is none": nodes_only(TWO, ',"Pod":5'),
    "a second Node that is none": a_request(f'{A},{{"metadata":5}}'),
    "a second Node that does not end": a_request(f'{A},{{"metadata":{{"name":"b"}}'),
    "no UTF-8 in a name": a_request(TWO).replace(b'"b"', b'"\xff"'),
    "no UTF-8 in what is not read": a_request(one("a", ',"x":"y"') + "," + B).replace(b'"y"', b'"\xff"'),
    "no end": a_request(TWO)[:-3],
    "a list that does not end": a_request(TWO).replace(b"]", b""),
    "more after the end": a_request(TWO) + b"{}",
    "more far behind the end": a_request(TWO) + b" " * pieces.REACH + b"{}",
    "names, and Nodes that are none": a_request(f"{A},{B}5", then=',"NodeNames":["a","b"]'),
}


@pytest.mark.parametrize("body", FORMS.values(), ids=FORMS.keys())
def test_the_same_is_understood_as_of_a_small_request(body: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or the same is wrong with it."""

    def read(least: int) -> object:
        monkeypatch.setattr(pieces, "LARGE", least)
        try:
            request = decode(body)
        except Malformed as error:
            return str(error)
        return request.pod, request.names, {name: bytes(raw) for name, raw in (request.whole or {}).items()}

    assert read(0) == read(len(body))

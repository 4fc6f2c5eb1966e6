"""The extender protocol: bytes ↔ requests and answers.

Go's structs have no tags: keys are PascalCase, and other callers may write them in any case. A request has either names
(nodeCacheCapable: true) or whole Nodes, and its answer has the same form. Scores must be integers: kube-scheduler drops
the whole list, without a message, if one of them is a float.
"""

import codecs
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

import msgspec

from remediator.kube.api import builtin, gpu_pods
from remediator.kube.wire import frames as wire
from remediator.scheduler.asked import AskedNames, NameLists
from remediator.scheduler.pieces import MARK, cutting
from remediator.scheduler.prepared import FilteredNames
from remediator.scheduler.turns import Steps, at_once

SLICE = 2**20
NAMED = 128  # whole Nodes whose names are read in one step: about 2 MiB
TOGETHER = 16  # whole Nodes in one part of an answer: about a quarter of a MiB
OBJECTS = 2**16  # of JSON in one Pod, many times as many as a real one has: more take the loop too long to read
NAMES = 2**17  # of nodes that are kept as JSON: a large cluster has fewer
KEYS = {key.lower(): key for key in ("Pod", "Nodes", "NodeNames")}


class NodeList(msgspec.Struct):
    """Whole Nodes, as they were sent."""

    items: list[msgspec.Raw] | None


class Args(msgspec.Struct, rename="pascal"):
    """ExtenderArgs: one of `nodes` and `node_names` is null. `pod` is as it was sent, for a look before it is read."""

    pod: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    nodes: NodeList | None = None
    node_names: list[str] | None = None


class ExtenderRequest(msgspec.Struct, frozen=True):
    """What is asked. `whole` has the Nodes themselves, by name, where they were sent; else it is None.

    `again`: the names, if the same list was sent before.
    """

    pod: gpu_pods.GpuPod
    names: list[str]
    whole: dict[str, msgspec.Raw] | None
    again: AskedNames | None = None


class Malformed(ValueError):
    """The body is no ExtenderArgs; the message says where, and what to do."""


_ARGS, _POD = msgspec.json.Decoder(Args), msgspec.json.Decoder(gpu_pods.GpuPod)
_NODE, _ENCODER = msgspec.json.Decoder(builtin.Node), msgspec.json.Encoder()
REMEDY = "send the JSON that kube-scheduler sends to an extender"


def decode(body: bytes) -> ExtenderRequest:
    """Read a request. Raises Malformed."""
    return at_once(decoding(body))


def decoding(body: bytes, lists: NameLists | None = None) -> Steps[ExtenderRequest]:
    """The same, in steps where whole Nodes came. `lists`: what was sent before."""
    if (request := (yield from _cut(body))) is not None:
        return request
    try:
        if lists is not None and (known := lists.again(body)) is not None:
            return ExtenderRequest(pod(known.pod), known.names.sent, None, known.names)
        args = _ARGS.decode(body)
        if args.pod is msgspec.UNSET or (args.nodes is None and args.node_names is None):
            args = _any_case(body)
        if args.nodes is not None:
            yield from _require_utf8(body)  # they go back as they came, and what decoding skips it does not look at
        return (yield from _request(args))
    except (ValueError, RecursionError) as error:
        raise Malformed(f"not ExtenderArgs: {error}; {REMEDY}") from error


def _cut(body: bytes) -> Steps[ExtenderRequest | None]:
    """What is read of a large request Node by Node; None where it is not what it seems, or says what is wrong."""
    try:
        if (cut := (yield from cutting(body))) is None:
            return None
        args, nodes = _ARGS.decode(cut[0]), cut[1]
        if args.nodes is None or args.node_names is not None or list(map(bytes, args.nodes.items or ())) != [MARK]:
            return None  # another list looked like that of the Nodes, or nobody reads them
        args.nodes.items = nodes
        yield from _require_utf8(body)
        return (yield from _request(args))
    except (ValueError, RecursionError):
        return None


def _require_utf8(body: bytes) -> Steps[None]:
    """Raises ValueError. In parts: the text of many whole Nodes is never there twice."""
    read, view = codecs.getincrementaldecoder("utf-8")(), memoryview(body)
    for start in range(0, len(view), SLICE):
        yield
        read.decode(view[start : start + SLICE])
    read.decode(b"", final=True)


def _any_case(body: bytes) -> Args:
    sent = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
    return _ARGS.decode(_ENCODER.encode({KEYS.get(key.lower(), key): value for key, value in sent.items()}))


def _request(args: Args) -> Steps[ExtenderRequest]:
    if isinstance(args.pod, msgspec.UnsetType):
        raise ValueError("Pod is missing")
    wanted = pod(args.pod)
    if args.node_names is not None:
        return ExtenderRequest(wanted, args.node_names, None)
    if args.nodes is None:
        raise ValueError("NodeNames and Nodes are both missing")
    whole: dict[str, msgspec.Raw] = {}
    for at, item in enumerate(args.nodes.items or ()):
        if at % NAMED == 0:
            yield
        whole[wire.HEAD.decode(item).metadata.name] = item
    return ExtenderRequest(wanted, list(whole), whole)


def pod(raw: msgspec.Raw) -> gpu_pods.GpuPod:
    """A Pod as it was sent. Raises ValueError.

    To skip 1.5 MiB takes 2 ms, to read them as containers 40 ms, in which nobody is answered.
    """
    if bytes(raw).count(b"{") > OBJECTS:
        raise ValueError(f"Pod: more than {OBJECTS} objects of JSON")
    try:
        return _POD.decode(raw)
    except ValueError as error:
        raise ValueError(f"Pod: {error}") from error


def node(raw: msgspec.Raw) -> builtin.Node:
    """A Node that came whole. Raises ValueError."""
    try:
        return _NODE.decode(raw)
    except RecursionError as error:
        raise ValueError(str(error)) from error


def filtered(whole: Mapping[str, msgspec.Raw] | None, parts: Sequence[FilteredNames]) -> bytes | Iterator[bytes]:
    """ExtenderFilterResult: the nodes that are left, in the form in which they came, and refusals of the others.

    In parts where whole Nodes go back, each made when it is asked for: together they are as large as the request.
    """
    refusals = listed([part.failed for part in parts]), listed([part.unresolvable for part in parts])
    rest = b'"FailedNodes":{%s},"FailedAndUnresolvableNodes":{%s},"Error":""}' % refusals
    if whole is None:
        return b'{"Nodes":null,"NodeNames":[%s],%s' % (listed([part.text for part in parts]), rest)
    return _with_nodes([whole[name] for part in parts for name in part.left], rest)


def listed(parts: Iterable[bytes]) -> bytes:
    """Entries, or lists of some, as one list."""
    return b",".join(filter(None, parts))


def _with_nodes(nodes: list[msgspec.Raw], rest: bytes) -> Iterator[bytes]:
    yield b'{"Nodes":{"metadata":{},"items":['
    for at in range(0, len(nodes), TOGETHER):
        yield (b"," if at else b"") + b",".join(nodes[at : at + TOGETHER])
    yield b']},"NodeNames":null,%s' % rest


def quoted_all(names: list[str]) -> bytes:
    """Names of nodes as JSON, in a list without its brackets."""
    return _ENCODER.encode(names)[1:-1]


@lru_cache(NAMES)
def quoted(name: str) -> bytes:
    """The name of a node as JSON."""
    return _ENCODER.encode(name)


def words(text: str) -> bytes:
    """Why nodes are refused, for `refusal`."""
    return _ENCODER.encode(text)


def refusal(name: str, why: bytes) -> bytes:
    """One entry of FailedNodes or FailedAndUnresolvableNodes."""
    return b"%s:%s" % (quoted(name), why)


def score(points: int) -> bytes:
    """What ends the entries of all nodes of one score, for `host`."""
    return b',"Score":%d}' % points


def host(name: str, tail: bytes) -> bytes:
    """One entry of a HostPriorityList."""
    return b'{"Host":%s%s' % (quoted(name), tail)


def error(text: str) -> bytes:
    """ExtenderFilterResult that says why there is none."""
    empty: dict[str, object] = {"Nodes": None, "NodeNames": None, "FailedNodes": {}, "FailedAndUnresolvableNodes": {}}
    return _ENCODER.encode({**empty, "Error": text})

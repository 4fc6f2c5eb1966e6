"""Preemption in the extender protocol: bytes ↔ the Pods that kube-scheduler would evict from each node for another.

A request names Pods by UID (nodeCacheCapable: true) or has them whole; the answer always names them by UID. It has no
place for words: where anything goes wrong it has no nodes, so that nobody is evicted.
"""

from collections.abc import Mapping

import msgspec

from remediator.kube.api import gpu_pods
from remediator.scheduler import protocol
from remediator.scheduler.protocol import Malformed

NOBODY = b'{"NodeNameToMetaVictims":{}}'


class Victim(msgspec.Struct, frozen=True):
    """One Pod, by its UID."""

    uid: str = msgspec.field(name="UID")


class Victims(msgspec.Struct, frozen=True):
    """The Pods of one node, and how many PodDisruptionBudgets their eviction violates."""

    pods: tuple[Victim, ...] | None = msgspec.field(name="Pods")
    violations: int = msgspec.field(default=0, name="NumPDBViolations")

    @property
    def uids(self) -> tuple[str, ...]:
        """The UIDs of the Pods."""
        return tuple(pod.uid for pod in self.pods or ())


class _Meta(msgspec.Struct):
    uid: str


class _WholePod(msgspec.Struct):
    metadata: _Meta


class _WholeVictims(msgspec.Struct):
    pods: tuple[_WholePod, ...] | None = msgspec.field(name="Pods")
    violations: int = msgspec.field(default=0, name="NumPDBViolations")

    def by_uid(self) -> Victims:
        return Victims(tuple(Victim(pod.metadata.uid) for pod in self.pods or ()), self.violations)


class _Args(msgspec.Struct):
    """ExtenderPreemptionArgs: one of the two maps is null."""

    pod: msgspec.Raw = msgspec.field(name="Pod")
    whole: dict[str, _WholeVictims] | None = msgspec.field(default=None, name="NodeNameToVictims")
    by_uid: dict[str, Victims] | None = msgspec.field(default=None, name="NodeNameToMetaVictims")

    def __post_init__(self) -> None:
        if self.whole is None and self.by_uid is None:
            raise ValueError("NodeNameToVictims and NodeNameToMetaVictims are both missing")

    def victims(self) -> dict[str, Victims]:
        return self.by_uid or {name: victims.by_uid() for name, victims in (self.whole or {}).items()}


class Preemption(msgspec.Struct, frozen=True):
    """What is asked: the Pod that is to be placed, and who would be evicted for it, by node."""

    pod: gpu_pods.GpuPod
    victims: Mapping[str, Victims]


_DECODER, _ENCODER = msgspec.json.Decoder(_Args), msgspec.json.Encoder()
_FORMS = ("NodeNameToVictims", "NodeNameToMetaVictims")
_KEYS = {key.lower(): key for key in ("Pod", *_FORMS, "Pods", "NumPDBViolations", "UID")}
_NULL = msgspec.Raw(b"null")
_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])
_NODES: msgspec.json.Decoder[dict[str, msgspec.Raw] | None] = msgspec.json.Decoder(dict[str, msgspec.Raw] | None)
_LIST: msgspec.json.Decoder[list[msgspec.Raw] | None] = msgspec.json.Decoder(list[msgspec.Raw] | None)


def decode(body: bytes) -> Preemption:
    """Read a request; its keys may be in any case. Raises Malformed."""
    try:
        args = _args(body)
        return Preemption(protocol.pod(args.pod), args.victims())
    except (ValueError, RecursionError) as error:
        raise Malformed(f"not ExtenderPreemptionArgs: {error}; {protocol.REMEDY}") from error


def _args(body: bytes) -> _Args:
    try:
        return _DECODER.decode(body)
    except msgspec.ValidationError:
        return _DECODER.decode(_any_case(body))


def _any_case(body: bytes) -> bytes:
    sent = _keyed(body)
    forms = {form: _NODES.decode(sent[form]) for form in _FORMS if form in sent}
    renamed = {
        form: None if nodes is None else {name: _victims(raw) for name, raw in nodes.items()}
        for form, nodes in forms.items()
    }
    return _ENCODER.encode({**sent, **renamed})


def _victims(raw: msgspec.Raw) -> dict[str, object]:
    sent = _keyed(raw)
    return {**sent, "Pods": [_keyed(pod) for pod in _LIST.decode(sent.get("Pods", _NULL)) or ()]}


def _keyed(raw: bytes | msgspec.Raw) -> dict[str, msgspec.Raw]:
    """An object with Go's keys, whatever case they were sent in."""
    return {_KEYS.get(key.lower(), key): value for key, value in _OBJECT.decode(raw).items()}


def encode(victims: Mapping[str, Victims]) -> bytes:
    """ExtenderPreemptionResult."""
    return b'{"NodeNameToMetaVictims":%s}' % _ENCODER.encode(victims)

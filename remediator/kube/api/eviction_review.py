"""What the API server asks about an eviction before it evicts (AdmissionReview), and what is answered."""

from typing import Any

import msgspec

from remediator.core import names
from remediator.core.eviction import AskedEviction, EvictablePod, EvictionRuling, Ruling
from remediator.kube.api.access_reviews import TokenUser
from remediator.kube.api.builtin import POD
from remediator.kube.api.common import Base, ObjectMeta, controller_kind
from remediator.kube.wire.client import Kind

API_VERSION, KIND = "admission.k8s.io/v1", "AdmissionReview"
SPEAKER = "authentication.kubernetes.io/pod-name"  # of a token that is bound to a Pod
CODES = {Ruling.REFUSED: (403, "Forbidden"), Ruling.LATER: (503, "ServiceUnavailable")}


class EvictionPreconditions(Base, frozen=True, kw_only=True):
    """Which Pod is meant."""

    uid: str = ""


class EvictionOptions(Base, frozen=True, kw_only=True):
    """How the Pod is to end."""

    preconditions: EvictionPreconditions | None = None


class Eviction(Base, frozen=True, kw_only=True):
    """What is asked for."""

    delete_options: EvictionOptions | None = None


class EvictionQuestion(Base, frozen=True, kw_only=True):
    """One request that the API server has before it."""

    uid: str
    name: str
    namespace: str
    user_info: TokenUser
    object: Eviction = Eviction()


class EvictionReview(Base, frozen=True, kw_only=True):
    """What is posted to a webhook."""

    request: EvictionQuestion


class EvictedPodSpec(Base, frozen=True, kw_only=True):
    """Where a Pod runs."""

    node_name: str = ""


class EvictedPod(Base, frozen=True, kw_only=True):
    """A Pod that somebody asks to evict."""

    metadata: ObjectMeta
    spec: EvictedPodSpec = EvictedPodSpec()


EVICTED_POD: Kind[EvictedPod] = Kind(POD.group, POD.version, POD.plural, POD.name, EvictedPod, namespaced=True)


def question(body: bytes) -> EvictionQuestion:
    """What is asked. Raises ValueError for what the API server would not send."""
    try:
        asked = msgspec.json.decode(body, type=EvictionReview).request
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"no AdmissionReview of an eviction: {error}") from error
    if not (asked.name and asked.namespace):
        raise ValueError("no AdmissionReview of an eviction: it names no Pod")
    return asked


def asked_eviction(wire: EvictionQuestion) -> AskedEviction:
    """Who asks for which Pod."""
    options = wire.object.delete_options
    uid = options.preconditions.uid if options and options.preconditions else ""
    speaker = next(iter(wire.user_info.extra.get(SPEAKER, ())), "")
    return AskedEviction(wire.user_info.username, speaker, wire.namespace, wire.name, uid)


def evictable_pod(wire: EvictedPod) -> EvictablePod:
    """What decides of a Pod."""
    meta = wire.metadata
    daemon = controller_kind(meta.owner_references) == "DaemonSet"
    return EvictablePod(meta.uid, wire.spec.node_name, names.MIRROR in meta.annotations, daemon)


def answer(uid: str, ruling: EvictionRuling) -> dict[str, Any]:
    """The review that goes back; the API server shows its status to whoever has asked for the eviction."""
    response: dict[str, Any] = {"uid": uid, "allowed": ruling.ruling is Ruling.ALLOWED}
    if ruling.ruling in CODES:
        code, reason = CODES[ruling.ruling]
        response["status"] = {"code": code, "reason": reason, "message": ruling.why}
    return {"apiVersion": API_VERSION, "kind": KIND, "response": response}

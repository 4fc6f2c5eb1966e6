"""TokenRequest: tokens of service accounts; reviews: whose a token is, and what that user may, which is everything."""

import base64
import binascii
import hmac
from datetime import timedelta

import msgspec

from remediator.kube.wire import times
from remediator_sim.apiserver import status
from remediator_sim.apiserver.cluster import Cluster
from remediator_sim.apiserver.status import Failure, Obj
from remediator_sim.apiserver.writes import Target

ANONYMOUS = "system:anonymous"
SELF = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
TOKEN = "/apis/authentication.k8s.io/v1/tokenreviews"
ACCESS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
REVIEWS = frozenset({SELF, TOKEN, ACCESS})
_SHORTEST = 600
_ISSUER = "https://kubernetes.default.svc"


def issue(cluster: Cluster, target: Target, asked: Obj) -> Obj:
    """Answer a TokenRequest with a JWT that this server will know again. Raises 404, and 422 for a short life."""
    account = cluster.get(target.resource, target.namespace, target.name)
    spec = asked.get("spec") or {}
    seconds = int(spec.get("expirationSeconds") or 3600)
    if seconds < _SHORTEST:
        cause = status.wrong("spec.expirationSeconds", seconds, "may not specify a duration less than 10 minutes")
        raise status.invalid("authentication.k8s.io", "TokenRequest", target.name, [cause])
    now = cluster.now()
    end = now + timedelta(seconds=seconds)
    audiences = spec.get("audiences") or [_ISSUER]
    claims = {
        "iss": _ISSUER,
        "sub": f"system:serviceaccount:{target.namespace}:{target.name}",
        "aud": audiences,
        "iat": int(now.timestamp()),
        "exp": int(end.timestamp()),
        "kubernetes.io": _bound(target, account.obj, spec.get("boundObjectRef")),
    }
    text = ".".join(_part(msgspec.json.encode(part)) for part in ({"alg": "HS256", "typ": "JWT"}, claims))
    token = f"{text}.{_signature(cluster, text)}"
    return {
        "kind": "TokenRequest",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {"name": target.name, "namespace": target.namespace, "creationTimestamp": times.stamp(now)},
        "spec": {**spec, "audiences": audiences, "expirationSeconds": seconds},
        "status": {"token": token, "expirationTimestamp": times.stamp(end)},
    }


def review(cluster: Cluster, path: str, user: str, asked: Obj) -> Obj:
    """Answer one of the reviews; `user` asks."""
    if path == SELF:
        return _review_of_self(cluster, user)
    spec = asked.get("spec") or {}
    return {**asked, "status": _whose(cluster, spec) if path == TOKEN else {"allowed": True}}


def _whose(cluster: Cluster, spec: Obj) -> Obj:
    """Groups are left out, since this server knows none."""
    try:
        name, good_for = _bearer(cluster, str(spec.get("token", "")), spec.get("audiences") or [_ISSUER])
    except Failure:
        name, good_for = ANONYMOUS, []
    if name == ANONYMOUS:
        return {"user": {}, "error": "[invalid bearer token, token lookup failed]"}
    return {"authenticated": True, "user": {"username": name}, "audiences": good_for}


def _review_of_self(cluster: Cluster, user: str) -> Obj:
    return {
        "kind": "SelfSubjectReview",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {"creationTimestamp": times.stamp(cluster.now())},
        "status": {"userInfo": {"username": user}},
    }


def _bound(target: Target, account: Obj, bound: Obj | None) -> Obj:
    own = {"name": target.name, "uid": account["metadata"]["uid"]}
    claims: Obj = {"namespace": target.namespace, "serviceaccount": own}
    if bound:
        claims[bound["kind"].lower()] = {"name": bound.get("name", ""), "uid": bound.get("uid", "")}
    return claims


def _part(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def _signature(cluster: Cluster, text: str) -> str:
    return _part(hmac.digest(cluster.secret, text.encode(), "sha256"))


def user_of(cluster: Cluster, authorization: str) -> str:
    """Who a request comes from. Raises 401 for a token of ours that was changed, has expired, or is for somebody else.

    A token that is no JWT is its own user's name: whoever reaches the server may say who he is.
    """
    return _bearer(cluster, authorization.removeprefix("Bearer ").strip(), [_ISSUER])[0]


def _bearer(cluster: Cluster, token: str, audiences: list[str]) -> tuple[str, list[str]]:
    """Whose a token is, and for which of these audiences it was made; a name for all of them."""
    if not token:
        return ANONYMOUS, []
    signed, _, signature = token.rpartition(".")
    if signed.count(".") != 1:
        return token, audiences
    if not hmac.compare_digest(signature.encode(), _signature(cluster, signed).encode()):
        raise _UNKNOWN
    claims = _claims(signed.partition(".")[2])
    good_for = [audience for audience in audiences if audience in claims["aud"]]
    if claims["exp"] <= cluster.now().timestamp() or not good_for:
        raise _UNKNOWN
    return str(claims["sub"]), good_for


def _claims(part: str) -> Obj:
    try:
        return msgspec.json.decode(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)), type=Obj)
    except (binascii.Error, msgspec.MsgspecError):
        raise _UNKNOWN from None


_UNKNOWN = Failure(401, "Unauthorized", "Unauthorized")

"""Whose a bearer token is, and what that user may do, as the API server says."""

import msgspec

from remediator.kube.api.common import Base
from remediator.kube.wire.client import Kind


class TokenUser(Base, frozen=True, kw_only=True):
    """A user with what decides on their rights."""

    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)


class TokenReviewStatus(Base, frozen=True, kw_only=True):
    """Whether the token is good, for which of the audiences that were asked about, and whose it is."""

    authenticated: bool = False
    audiences: tuple[str, ...] = ()
    user: TokenUser = TokenUser()


class TokenReviewAnswer(Base, frozen=True, kw_only=True):
    """A review as it comes back."""

    status: TokenReviewStatus = TokenReviewStatus()


class AccessStatus(Base, frozen=True, kw_only=True):
    """Whether a user may."""

    allowed: bool = False


class AccessReviewAnswer(Base, frozen=True, kw_only=True):
    """A review as it comes back."""

    status: AccessStatus = AccessStatus()


AUTHENTICATION, AUTHORIZATION = "authentication.k8s.io", "authorization.k8s.io"
TOKEN_REVIEW = Kind(AUTHENTICATION, "v1", "tokenreviews", "TokenReview", TokenReviewAnswer)
ACCESS_REVIEW = Kind(AUTHORIZATION, "v1", "subjectaccessreviews", "SubjectAccessReview", AccessReviewAnswer)


def token_review(token: str, audience: str) -> dict[str, object]:
    """Asks whose a token is that was made for this audience; "" for the API server."""
    audiences = {"audiences": [audience]} if audience else {}
    return {"apiVersion": f"{AUTHENTICATION}/v1", "kind": "TokenReview", "spec": {"token": token, **audiences}}


def access_review(user: TokenUser, verb: str, group: str, resource: str) -> dict[str, object]:
    """Asks whether a user may do this to all objects of a kind."""
    about = {"verb": verb, "group": group, "resource": resource}
    groups, extra = list(user.groups), {key: list(values) for key, values in user.extra.items()}
    spec = {"resourceAttributes": about, "user": user.username, "uid": user.uid, "groups": groups, "extra": extra}
    return {"apiVersion": f"{AUTHORIZATION}/v1", "kind": "SubjectAccessReview", "spec": spec}

"""Who a request comes from, as the API server says."""

import msgspec

from remediator.kube.api.common import Base
from remediator.kube.wire.client import Kind


class UserInfo(Base, frozen=True, kw_only=True):
    """A user."""

    username: str = ""


class ReviewStatus(Base, frozen=True, kw_only=True):
    """The answer."""

    user_info: UserInfo = UserInfo()


class SelfSubjectReview(Base, frozen=True, kw_only=True):
    """Asks who asks."""

    api_version: str = msgspec.field(default_factory=lambda: "authentication.k8s.io/v1")
    kind: str = msgspec.field(default_factory=lambda: "SelfSubjectReview")
    status: ReviewStatus = ReviewStatus()


REVIEW: Kind[SelfSubjectReview] = Kind(
    "authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", SelfSubjectReview
)

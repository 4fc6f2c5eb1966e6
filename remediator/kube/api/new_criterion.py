"""What a policy does by a criterion that is new in a release, as its status shows it."""

from typing import Annotated

from msgspec import Meta

from remediator.core.policy import CriterionState
from remediator.kube.api.common import Base, Time, doc


class NewCriterion(Base, frozen=True, kw_only=True):
    """A criterion that is new in a release: it is shown for a while before the policy acts on it."""

    criterion: Annotated[
        str, Meta(max_length=253), doc("Type of the Condition; then, each behind a /, a reason and words of it.")
    ]
    state: Annotated[
        CriterionState,
        doc("Quiet: only shown. Muted: only shown, since too many nodes show it at once. Acts: the policy acts on it."),
    ]
    since: Annotated[Time, doc("Since when the policy is known to a controller that knows the criterion.")]
    until: Annotated[Time, doc("Until when it is only shown, and may be muted.")]
    shared_at: Annotated[Time | None, doc("When so many nodes showed it that it is muted, as seen last.")] = None

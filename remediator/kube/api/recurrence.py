"""What a policy does about faults that come back."""

from typing import Annotated

from msgspec import Meta

from remediator.kube.api.common import Base, doc
from remediator.kube.api.durations import HistoryWindow, ShortWindow


class Relapse(Base, frozen=True, kw_only=True):
    """A fault that comes back soon after its case has recovered needs a stronger operation."""

    window: Annotated[
        ShortWindow,
        doc(
            "A case that is opened this soon after the last case of the node has recovered is a relapse: it starts "
            "one rung above the highest of the last case; the second within 7 days goes to a person. Default 72h."
        ),
    ] = "72h"


class Lemon(Base, frozen=True, kw_only=True):
    """A node, or a board, whose faults come back whatever is done goes to a person."""

    cases: Annotated[
        int,
        Meta(ge=1, le=20),
        doc("Number of cases of the node, or of the board on any node, after which the next escalates. Default 3."),
    ] = 3
    window: Annotated[HistoryWindow, doc("The time over which cases are counted, under any policy. Default 720h.")] = (
        "720h"
    )

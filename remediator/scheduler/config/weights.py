"""How much each way to score counts beside the plugins of kube-scheduler, and the weight that goes with it."""

from collections.abc import Mapping
from typing import NamedTuple

from remediator.scheduler.packing.points import Score


class Weight(NamedTuple):
    """`write`: the weight to write. `step`: points that one GPU more in use of eight is worth at weight 1.

    `most`: the largest weight that leaves room for what users prefer; `scores`: which there are, in words.
    """

    write: int
    step: int
    most: int
    scores: str


WEIGHTS: Mapping[Score, Weight] = {
    Score.FGD: Weight(1, 310, 1, "from 0 to 4,999,999"),
    Score.BLEND: Weight(7, 15, 19, "from 0 to 99"),
    Score.PACKING: Weight(10, 12, 39, "of 10 points a tier"),
}

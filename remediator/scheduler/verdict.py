"""The verdict on one node for one Pod, and its reason. Pure: facts in, one reason out.

Why each row is at its place (those of the node alone: health/node_health.py):

* Where health only scores (see fail_open.py), the nodes that would be refused for it are let through, after all others.
* Pods of a DaemonSet are let through to any node: each has only one node, and the detectors that must show the
  recovery of the node are such Pods.
* A node that we do not know is let through: kube-scheduler may have seen it before us, or it is a simulated one.
* A node that is well and has failed lately comes after those that have not: the more often, the later (see
  health/history.py). Where detectors have been silent for long, nobody knows whether the node is still well.
* A Pod may ask for a node that is proven to be well: then what nobody can tell is refused, too.
* Attributes that a Pod requires of its GPUs must be known to hold: on other GPUs its work would fail, or be slow.
  "Not known" has a reason of its own, since its remedy is another: the labels of the node. Where the annotation cannot
  be read, no node is right: without its requirements the Pod would land anywhere.
* A Pod that asks for MPS needs a node whose labels say that it offers it, with GPUs on which MPS keeps limits, and
  whose daemon nobody has found unhealthy: elsewhere it would run without its limits, or not at all.
* Memory of shared GPUs must fit on single cards; whether it does is judged in shared/cards.py. A node that offers its
  GPUs both whole and by memory would sell a card twice: it gets Pods of neither sort.
"""

from typing import NamedTuple

from remediator.core.node import Gpus
from remediator.core.shared_gpus import NO_ASK, Ask
from remediator.scheduler.attributes.requirement import Met
from remediator.scheduler.attributes.selector import ANYTHING, AttributeSelector
from remediator.scheduler.mps import Mps
from remediator.scheduler.reasons import HEALTH, UNRESOLVABLE, WELL, VerdictReason
from remediator.scheduler.row import NodeState
from remediator.scheduler.shared.cards import NO_CARDS, CardsReason, refusal


class Shape(NamedTuple):
    """All that a verdict depends on in a Pod."""

    gpus: Gpus = ()
    daemon: bool = False
    attributes: AttributeSelector = ANYTHING
    proven: bool = False  # only nodes that are known to be well
    gang: bool = False  # near its siblings rather than on the fullest node
    short: bool = False  # over before its node is likely to fail again
    cpu: int = 0  # in thousandths of a core
    memory: Ask = NO_ASK  # of shared GPUs
    mps: bool = False  # only on nodes that offer it

    @property
    def resources(self) -> tuple[str, ...]:
        """The kinds of GPUs that are asked for."""
        return tuple(name for name, _ in self.gpus)


def verdict(row: NodeState, shape: Shape, only_scores: bool = False) -> VerdictReason:
    """What is said of the node for Pods of this shape. A resource that the node does not list is not ours to judge.

    `only_scores`: health refuses nothing now.
    """
    reason = VerdictReason.FIT if shape.daemon or (shape.short and row.health in WELL) else row.standing
    if only_scores and reason in HEALTH:
        reason = VerdictReason.ONLY_SCORED
    if reason in UNRESOLVABLE:
        return reason
    if shape.proven and reason not in WELL:
        return VerdictReason.UNPROVEN
    other = _attributes(row, shape) or _mps(row, shape)
    if other is not None:
        return other
    return _too_few(row, shape) or _memory(row, shape) or reason


def _too_few(row: NodeState, shape: Shape) -> VerdictReason | None:
    """Why the node has no whole GPUs for the Pod; None where it has."""
    taken = False
    for total, used, asked in row.of(shape.gpus):
        if total < asked:
            return VerdictReason.TOO_FEW_GPUS
        taken = taken or total - used < asked
    return VerdictReason.NO_FREE_GPUS if taken else None


def _memory(row: NodeState, shape: Shape) -> VerdictReason | None:
    """Why the node has no memory of GPUs for the Pod, or no whole ones; None where it has, or where nobody asks."""
    cards = row.cards
    if row.health is VerdictReason.UNKNOWN_NODE or not (shape.memory.memory or (shape.gpus and cards)):
        return None
    if cards is not None and cards.reason is CardsReason.WHOLE:
        return VerdictReason.SHARED_AND_WHOLE
    if not shape.memory.memory:
        return None
    reason = refusal(cards or NO_CARDS, shape.memory)
    return VerdictReason(reason.value) if reason else None


def _attributes(row: NodeState, shape: Shape) -> VerdictReason | None:
    """Why the GPUs of the node are not what the Pod requires; None where they are, or where nobody asks."""
    if shape.attributes is ANYTHING or shape.daemon or row.health is VerdictReason.UNKNOWN_NODE:
        return None
    if shape.attributes.mistake:
        return VerdictReason.ATTRIBUTES_MALFORMED
    return _UNMET.get(shape.attributes.met(row.facts, shape.resources))


def _mps(row: NodeState, shape: Shape) -> VerdictReason | None:
    """Why the node has no MPS for the Pod; None where it has, or where nobody asks."""
    if not shape.mps or shape.daemon or row.health is VerdictReason.UNKNOWN_NODE or row.mps is Mps.USABLE:
        return None
    return VerdictReason(row.mps.value) if row.mps is not None else VerdictReason.MPS_NOT_OFFERED


_UNMET = {Met.NO: VerdictReason.OTHER_ATTRIBUTES, Met.UNKNOWN: VerdictReason.ATTRIBUTES_UNKNOWN}

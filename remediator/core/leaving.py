"""What is given back before Remediator is taken away, and what nodes still carry of it. Pure."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from remediator.core import gpu_operator, keep_out, names
from remediator.core.case import Case, Phase
from remediator.core.node import Node

MOST_NAMED = 20
TAINT = "kubectl taint node NODE broken=true:NoSchedule"
GIVE_BACK_BROKEN = "--give-back-broken"


@dataclass(frozen=True, slots=True)
class Leaving:
    """The open cases, all of which are cancelled."""

    cases: tuple[Case, ...]

    @property
    def taken_out(self) -> tuple[str, ...]:
        """The nodes that users keep for themselves."""
        return tuple(sorted({case.node for case in self.cases if keep_out.is_out(case)}))

    @property
    def quarantined(self) -> tuple[str, ...]:
        """The nodes that wait for a person, who has not released them."""
        escalated = {case.node for case in self.cases if case.phase is Phase.ESCALATED and not keep_out.is_out(case)}
        return tuple(sorted(escalated))

    @property
    def question(self) -> str:
        """What a user is asked. A node that is broken is the one thing that nobody may overlook."""
        nodes = {case.node for case in self.cases if case.claimed}
        text = f"cases that are cancelled: {len(self.cases)}; nodes that take work again: {len(nodes)}"
        return f"{'; '.join(filter(None, (text, self.broken)))}. Everything new stays paused. Go on?"

    @property
    def broken(self) -> str:
        """Which nodes take work again though a person should see to them first, and what to do; "" where none."""
        nodes = (
            f"nobody has repaired {named(self.quarantined)}" if self.quarantined else "",
            f"users have taken out {named(self.taken_out)}" if self.taken_out else "",
        )
        people = "; ".join(filter(None, nodes))
        # Our cordon goes with the case, and a cordon of a user beside it is the same field.
        return f"{people}; a cordon goes with the case: taint first what must take no work: {TAINT}" if people else ""


class Leftover(NamedTuple):
    """A mark of ours on a node; `blocks`: nothing is well while it is there."""

    what: str
    command: str  # what takes it off
    blocks: bool = True


def named(names_: Collection[str]) -> str:
    """Names in a sentence, not too many.

    >>> named(["gpu-1", "gpu-2"])
    'gpu-1, gpu-2'
    """
    shown = ", ".join(sorted(names_)[:MOST_NAMED])
    return shown if len(names_) <= MOST_NAMED else f"{shown} and {len(names_) - MOST_NAMED} more"


def leftovers(node: Node) -> tuple[Leftover, ...]:
    """Every mark of ours on a node, with the command that takes it off."""
    return (*_taints(node), *_cordons(node), *_notes(node), *_operands(node))


def _taints(node: Node) -> Iterator[Leftover]:
    ours = [
        *node.gates,
        *([names.CASE_TAINT] if node.case_uid else []),
        *([names.DEGRADED_TAINT] if node.degraded else []),
    ]
    if node.out_of_service_boot and any(taint.key == names.OUT_OF_SERVICE[0] for taint in node.taints):
        ours.append(names.OUT_OF_SERVICE[0])
    for key in ours:
        yield Leftover(f"the taint {key}", f"kubectl taint node {node.name} {key}-")


def _cordons(node: Node) -> Iterator[Leftover]:
    uncordon = f"kubectl uncordon {node.name}"
    if node.cordoned_by:
        yield Leftover("our cordon", f"{uncordon} && {_annotate(node, names.CORDONED_BY)}")
    if node.kept_out:
        yield Leftover("a cordon for a person, which stays", f"once it is repaired: {uncordon}", blocks=False)


def _notes(node: Node) -> Iterator[Leftover]:
    """Annotations by which others, or we, treat the node in another way."""
    if node.in_service:
        yield Leftover(f"the annotation {names.IN_SERVICE}", _annotate(node, names.IN_SERVICE))
    if node.out_of_service_boot:
        yield Leftover(f"the annotation {names.OUT_OF_SERVICE_BOOT}", _annotate(node, names.OUT_OF_SERVICE_BOOT))
    if node.drain_requested is not None:
        yield Leftover(f"the annotation {names.DRAIN_REQUESTED}", _annotate(node, names.DRAIN_REQUESTED))
    if node.scale_down_disabled_by:
        both = (names.SCALE_DOWN_DISABLED, names.SCALE_DOWN_DISABLED_BY)
        yield Leftover(f"the annotation {names.SCALE_DOWN_DISABLED} of ours", _annotate(node, *both))


def _operands(node: Node) -> Iterator[Leftover]:
    labels = " ".join(f"{label}={word}" for label, word in sorted(gpu_operator.resumed(node.labels).items()))
    if labels:
        yield Leftover("operands of the GPU operator paused", f"kubectl label node {node.name} --overwrite {labels}")


def _annotate(node: Node, *keys: str) -> str:
    return f"kubectl annotate node {node.name} {' '.join(f'{key}-' for key in keys)}"

"""What is given back before Remediator is taken away, and what nodes still carry of it. Pure."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from remediator.core.case import Case, Phase
from remediator.core.node import Node

MOST_NAMED = 20


@dataclass(frozen=True, slots=True)
class Leaving:
    """The open cases, all of which are cancelled."""

    cases: tuple[Case, ...]

    @property
    def question(self) -> str:
        """What a user is asked. A node in quarantine is the one thing that nobody may overlook."""
        nodes = sorted({case.node for case in self.cases if case.claimed})
        quarantined = sorted({case.node for case in self.cases if case.phase is Phase.ESCALATED})
        text = f"cases that are cancelled: {len(self.cases)}; nodes that take work again: {len(nodes)}"
        if quarantined:
            text += f"; nobody has repaired {named(quarantined)}: cordon what must stay out of service first"
        return f"{text}. Everything new stays paused. Go on?"


def named(names: Collection[str]) -> str:
    """Names in a sentence, not too many.

    >>> named(["gpu-1", "gpu-2"])
    'gpu-1, gpu-2'
    """
    shown = ", ".join(sorted(names)[:MOST_NAMED])
    return shown if len(names) <= MOST_NAMED else f"{shown} and {len(names) - MOST_NAMED} more"


def still_marked(nodes: Iterable[Node]) -> dict[str, str]:
    """What of ours keeps work off a node, by the node's name."""
    marks = {node.name: [*node.gates, *(["our cordon"] if node.cordoned_by else []), *_taint(node)] for node in nodes}
    return {name: ", ".join(each) for name, each in marks.items() if each}


def _taint(node: Node) -> list[str]:
    return ["our taint"] if node.case_uid or node.degraded else []

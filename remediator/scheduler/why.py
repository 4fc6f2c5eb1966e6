"""Why a Pod has no node: the nodes by verdict, how many of each, and what would make the Pod fit there. Pure.

The verdicts are those that kube-scheduler is answered with. What kube-scheduler refuses by itself is told of as far as
our rows show it: nodes that do not list the resource, and nodes that a user has cordoned.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from remediator.core.names import GPU_MPS
from remediator.core.node import Gpus
from remediator.scheduler.attributes.catalog import ATTRIBUTES, WHOLE
from remediator.scheduler.attributes.requirement import Met
from remediator.scheduler.attributes.selector import ANYTHING
from remediator.scheduler.reasons import FAILED, UNRESOLVABLE, VerdictReason
from remediator.scheduler.row import NodeState
from remediator.scheduler.verdict import Shape, verdict

REFUSED: Mapping[VerdictReason, str] = {**UNRESOLVABLE, **FAILED}
LET_THROUGH = "let through by Remediator"
NOT_LISTED = "let through by Remediator, but they do not list what the Pod requests"
USERS_CORDON = "let through by Remediator, but a user has cordoned them"


class NodeClass(NamedTuple):
    """Nodes of which the same is said. `says`: what kube-scheduler shows of them; `fits`: whether the Pod may go there.

    `remedy`: what would make it fit, where it does not.
    """

    reason: VerdictReason
    says: str
    fits: bool
    nodes: tuple[str, ...]
    remedy: str


class _NodesOfClass(NamedTuple):
    """The nodes of one class, and the Pod that asks."""

    rows: Mapping[str, NodeState]
    shape: Shape

    @property
    def example(self) -> str:
        return min(self.rows)

    @property
    def roomy(self) -> int:
        """How many would let the Pod through if nothing were wrong with them, and it took any GPUs."""
        shape = self.shape._replace(attributes=ANYTHING, proven=False)
        sound = (verdict(row._replace(health=VerdictReason.FIT, history=0), shape) for row in self.rows.values())
        return sum(reason not in REFUSED for reason in sound)


def classes(
    rows: Mapping[str, NodeState], cordoned: Collection[str], shape: Shape, only_scores: bool
) -> list[NodeClass]:
    """Every node in one class: those that fit first, else the class with the most nodes first.

    `cordoned`: the nodes that a user has cordoned.
    """
    groups: defaultdict[tuple[VerdictReason, str], dict[str, NodeState]] = defaultdict(dict)
    for name, row in rows.items():
        reason = verdict(row, shape, only_scores)
        groups[reason, REFUSED.get(reason) or _let_through(name, row, cordoned, shape)][name] = row
    made = [_class(reason, says, _NodesOfClass(group, shape)) for (reason, says), group in groups.items()]
    return sorted(made, key=lambda each: (not each.fits, -len(each.nodes), each.reason, each.says))


def _let_through(name: str, row: NodeState, cordoned: Collection[str], shape: Shape) -> str:
    if name in cordoned:
        return USERS_CORDON
    listed = {resource for resource, _ in row.total}
    return LET_THROUGH if listed.issuperset(shape.resources) else NOT_LISTED


def _class(reason: VerdictReason, says: str, group: _NodesOfClass) -> NodeClass:
    fits = says == LET_THROUGH
    remedy = "" if fits else (REMEDIES[reason] if reason in REFUSED else _OTHERS[says])(group)
    return NodeClass(reason, says, fits, tuple(sorted(group.rows)), remedy)


# --- what would make it fit ------------------------------------------------------------------------------------------


def _sound(deed: str) -> Callable[[_NodesOfClass], str]:
    """A remedy that makes the nodes sound, and how many of them have room then."""

    def remedy(group: _NodesOfClass) -> str:
        return f"{deed.format(node=group.example)}; {group.roomy} of {len(group.rows)} would have room"

    return remedy


def _missing(row: NodeState, gpus: Gpus) -> list[tuple[str, int]]:
    return [(name, count - row.free()[name]) for name, count in gpus if row.free().get(name, count) < count]


def _more_free(group: _NodesOfClass) -> str:
    asked = group.shape.gpus
    lacks = {name: sum(count for _, count in _missing(row, asked)) for name, row in group.rows.items()}
    name = min(lacks, key=lambda name: (lacks[name], name))
    row = group.rows[name]
    lacking = ", ".join(f"{count} more {resource}" for resource, count in _missing(row, asked))
    have = ", ".join(
        f"{max(0, row.free()[resource])} of {dict(row.total)[resource]}" for resource, _ in _missing(row, asked)
    )
    sums = {resource: sum(max(0, row.free().get(resource, 0)) for row in group.rows.values()) for resource, _ in asked}
    in_all = ", ".join(f"{count} {resource}" for resource, count in sums.items())
    return f"{lacking} free on {name}, where {have} are; {in_all} are free on all of them together"


def _larger(group: _NodesOfClass) -> str:
    most = (
        f"{max(dict(row.total).get(resource, 0) for row in group.rows.values())} {resource}"
        for resource, _ in group.shape.gpus
    )
    return f"request at most {', '.join(most)}, the most that one of them has, or add larger nodes"


def _more_memory(group: _NodesOfClass) -> str:
    """The node that lacks the least memory on its cards."""
    ask = group.shape.memory

    def fits_on(name: str) -> int:
        cards = group.rows[name].cards
        rooms = sorted((room for _, room in cards.free), reverse=True) if cards else []
        return rooms[ask.cards - 1] if len(rooms) >= ask.cards else 0

    name = min(group.rows, key=lambda name: (-fits_on(name), name))
    where = "one GPU" if ask.cards == 1 else f"each of {ask.cards} GPUs"
    have = max(0, fits_on(name))
    return (
        f"{ask.each - have} more memory free on {where} of {name}, where {have} of {ask.each} are;"
        f" `remediator gpus {name}` shows who holds it"
    )


def _larger_cards(group: _NodesOfClass) -> str:
    ask = group.shape.memory
    cards = [row.cards.well for row in group.rows.values() if row.cards is not None]
    most = max((well[ask.cards - 1] for well in cards if len(well) >= ask.cards), default=0)
    if not most:
        on = f" on {ask.cards} GPUs that are well" if ask.cards > 1 else " of a GPU that is well"
        return f"none: they offer no memory{on}, or their device plugin does not run"
    return f"request at most {most} of one GPU, the most that one of them has, or add nodes with larger GPUs"


def _unknown_cards(group: _NodesOfClass) -> str:
    cards = group.rows[group.example].cards
    return f"{group.example}: {cards.why if cards else 'nothing is known'}; `remediator gpus` says it of each node"


def _both_ways(group: _NodesOfClass) -> str:
    cards = group.rows[group.example].cards
    why = f" ({cards.why})" if cards else ""
    return f"offer the GPUs of {group.example} whole or by memory, not both{why}; `remediator gpus` says who holds them"


def _unlike(group: _NodesOfClass) -> str:
    """What the GPUs of one of them are, of all that is required and not so."""
    facts, kinds = group.rows[group.example].facts, group.shape.resources or (WHOLE,)
    wrong = []
    for row in group.shape.attributes.required:
        if any(row.met(facts, kind) is Met.NO for kind in kinds):
            values = [f"{label} {value!r}" for kind in kinds for label, value in facts.said(row.attribute, kind)]
            wrong.append(f"{row.attribute} by {' and '.join(values)}" if values else f"no {row.attribute}")
    have = ", ".join(dict.fromkeys(wrong))
    return f"{group.example} has {have}; require other GPUs, or add nodes that have them"


def _unlabelled(group: _NodesOfClass) -> str:
    facts, kinds = group.rows[group.example].facts, group.shape.resources or (WHOLE,)
    required = group.shape.attributes.required
    lacks = dict.fromkeys(
        label
        for row in required
        for kind in kinds
        if row.met(facts, kind) is Met.UNKNOWN
        for label in ATTRIBUTES[row.attribute].labels_of(kind)[:1]
    )
    return f"label the nodes, by GPU Feature Discovery or by hand: {group.example} has no readable {', '.join(lacks)}"


def _annotation(group: _NodesOfClass) -> str:
    return f"correct the annotation: {group.shape.attributes.mistake}"


REMEDIES: Mapping[VerdictReason, Callable[[_NodesOfClass], str]] = {
    VerdictReason.QUARANTINED: _sound("a person releases them: `remediator explain {node}` says how"),
    VerdictReason.CLAIMED: _sound("wait for their repair: `remediator explain {node}` says how far it is"),
    VerdictReason.CORDONED: _sound("`kubectl uncordon {node}`, or what `remediator explain {node}` says"),
    VerdictReason.NOT_READY: _sound("their kubelets must report again: `kubectl describe node {node}`"),
    VerdictReason.UNHEALTHY: _sound("repair them: `remediator explain {node}` says what holds it"),
    VerdictReason.UNPROVEN: _sound("drop require-health from the Pod, or see what `remediator explain {node}` lacks"),
    VerdictReason.TOO_FEW_GPUS: _larger,
    VerdictReason.NO_FREE_GPUS: _more_free,
    VerdictReason.NO_GPU_MEMORY: _more_memory,
    VerdictReason.GPU_CARDS_TOO_SMALL: _larger_cards,
    VerdictReason.GPU_CARDS_UNKNOWN: _unknown_cards,
    VerdictReason.SHARED_AND_WHOLE: _both_ways,
    VerdictReason.MPS_NOT_OFFERED: lambda group: (
        f"label nodes that offer it: `kubectl label node {group.example} {GPU_MPS}=true`; GPU Feature Discovery must"
        " say their compute capability"
    ),
    VerdictReason.MPS_TOO_OLD: lambda _: "drop gpu-mps from the Pod, or add nodes with GPUs of Volta or newer",
    VerdictReason.MPS_UNHEALTHY: lambda group: (
        f"restart the MPS daemon: `kubectl describe node {group.example}` shows the Condition MpsUnhealthy"
    ),
    VerdictReason.GPU_MEMORY_MALFORMED: lambda group: f"correct the Pod: {group.shape.memory.mistake}",
    VerdictReason.OTHER_ATTRIBUTES: _unlike,
    VerdictReason.ATTRIBUTES_UNKNOWN: _unlabelled,
    VerdictReason.ATTRIBUTES_MALFORMED: _annotation,
}
_OTHERS: Mapping[str, Callable[[_NodesOfClass], str]] = {
    NOT_LISTED: lambda _: "none: they have no such GPUs, or their device plugin does not run",
    USERS_CORDON: _sound("`kubectl uncordon {node}`"),
}

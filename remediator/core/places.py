"""Where Pods with rights in the API may run: which nodes the settings choose, and whether one can take a Pod now."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from remediator.core.node import Node, Status, Taint
from remediator.core.selector import Selector, parse
from remediator.core.template import RunOn, Template, Toleration

# The token of such a Pod lies on its node: whoever takes that node over has it.
DEFAULT = "!nvidia.com/gpu.present,!remediator.dev/gpu.present"  # that of GPU feature discovery, and ours
# Nobody's work runs there, so all of these Pods bear its taint.
BORNE = Toleration("node-role.kubernetes.io/control-plane", None, "NoSchedule")
CORDON = "node.kubernetes.io/unschedulable"  # the taint that comes with a cordon
_REPELLING = frozenset({"NoSchedule", "NoExecute"})
Taints = tuple[Taint, ...]


@dataclass(frozen=True, slots=True)
class ApiNodes:
    """The nodes that the settings choose. Raises ValueError where `text` is no label selector."""

    text: str = DEFAULT

    selector: Selector = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "selector", parse(self.text))

    def taints(self, node: Node) -> Taints | None:
        """The taints that keep Pods off a node that is chosen, Ready and schedulable; None for any other node."""
        if node.ready is not Status.TRUE or node.unschedulable or not self.selector.matches(node.labels):
            return None
        return tuple(
            Taint(taint.key, taint.value, taint.effect)
            for taint in node.taints
            if taint.effect in _REPELLING and taint.key != CORDON
        )


@dataclass(frozen=True, slots=True)
class Places:
    """How many of the chosen nodes are Ready and schedulable, by the taints that keep Pods off them.

    `free` None: nobody has counted, and every Pod has a place.
    """

    nodes: ApiNodes
    free: Mapping[Taints, int] | None

    def take(self, needs: Iterable[Template], target: Node) -> bool:
        """Whether the Pod of each of these templates can be placed on a node that is not the target."""
        return self.free is None or all(self._take(template, target) for template in needs)

    def lacking(self, needs: Mapping[str, Sequence[Template]], target: Node) -> list[str]:
        """The operations, by what each needs, whose Pods have no place."""
        return [operation for operation, templates in needs.items() if not self.take(templates, target)]

    def without(self, node: Node) -> "Places":
        """The same once this node is out of service: it is no place for the Pods of others any more."""
        own = self.nodes.taints(node)
        if not self.free or own is None or own not in self.free:
            return self
        return replace(self, free={**self.free, own: self.free[own] - 1})

    def _take(self, template: Template, target: Node) -> bool:
        return any(_borne(taints, template) for taints in self._others(target))

    def _others(self, target: Node) -> list[Taints]:
        """The taints of those that are not the target, each once."""
        own = self.nodes.taints(target)
        return [taints for taints, count in (self.free or {}).items() if count > (1 if taints == own else 0)]

    def missing(self, target: Node, operations: Sequence[str]) -> str:
        """Why there is no place for what these operations need."""
        chosen = f" and matches {self.nodes.text!r}" if self.nodes.text.strip() else ""
        wanted = (
            f"a Pod of {', '.join(operations)} needs a node other than {target.name} that is Ready, schedulable{chosen}"
        )
        repelling = sorted({_shown(taint) for taints in self._others(target) for taint in taints})
        if not repelling:
            return f"{wanted}: there is none"
        return f"{wanted}: such nodes repel it with {', '.join(repelling[:SHOWN])}"


SHOWN = 3  # taints that are named
SHIPPED = ApiNodes()
EVERYWHERE = Places(SHIPPED, None)


def _shown(taint: Taint) -> str:
    return f"{taint.key}{'=' * bool(taint.value)}{taint.value}:{taint.effect}"


def _borne(taints: Taints, template: Template) -> bool:
    tolerations = (*template.tolerations, BORNE)
    return all(any(toleration.bears(taint) for toleration in tolerations) for taint in taints)


def needs(template: Template, drain: Template | None) -> tuple[Template, ...]:
    """The templates of the Pods with rights in the API that an operation needs: its own, and its drain's."""
    wanted = (template, drain if template.has_drain_pod else None)
    return tuple(each for each in wanted if each is not None and each.run_on is RunOn.ELSEWHERE)

"""What Pods hold of each node, GPUs and CPU, as the watch of Pods shows it."""

from collections import Counter

from remediator.core.node import Gpus, Node
from remediator.core.spare import PodHolding
from remediator.scheduler.packing.room import CPU_STEP


class Holdings:
    """Follows Pods. `by_uid`: those with GPUs, or with CPU of a node."""

    def __init__(self) -> None:
        self.by_uid: dict[str, PodHolding] = {}
        self._used: dict[str, Counter[str]] = {}
        self._cpu: Counter[str] = Counter()  # in use, by node

    def moved(self, old: PodHolding, new: PodHolding) -> None:
        """A Pod as it was, and as it is now."""
        self.by_uid.pop(old.uid, None)
        if new.uid:
            self.by_uid[new.uid] = new
        self._used.setdefault(old.node, Counter()).subtract(dict(old.gpus))
        self._used.setdefault(new.node, Counter()).update(dict(new.gpus))
        for holding, sign in ((old, -1), (new, 1)):
            self._cpu[holding.node] += sign * holding.cpu
            if not self._cpu[holding.node]:
                del self._cpu[holding.node]

    def gpus(self, node: str) -> Gpus:
        """How many of each resource Pods hold."""
        if node not in self._used:
            return ()
        used = +self._used[node]
        if not used:
            del self._used[node]
        return tuple(sorted(used.items()))

    def free_cpu(self, node: Node) -> int:
        """In steps: a little more or less makes no other row. 0 where no GPUs are, since nobody packs its CPU."""
        return max(0, node.cpu - self._cpu[node.name]) // CPU_STEP * CPU_STEP if node.gpus else 0

"""What the watches of this replica say of shared GPUs, by node. It may be late: no card is given by it alone."""

from collections import Counter
from collections.abc import Callable

from remediator.core.node import Node
from remediator.core.shared_gpus import CardPod, CardSizes, Ledger
from remediator.core.spare import PodHolding
from remediator.kube.informers import Informers, UnhealthyCards
from remediator.scheduler.shared.cards import NO_CARDS, Cards, held_whole, of_node


class Books:
    """Follows ledgers, Pods with cards and unhealthy cards; tells of each node whose cards may have changed."""

    def __init__(self, informers: Informers) -> None:
        self.nodes, self.ledgers = informers.nodes, informers.gpu_ledgers
        self.informers = (informers.gpu_ledgers, informers.unhealthy_cards, informers.gpu_pods)
        self.departed: dict[str, set[str]] = {}  # by node: uids of Pods that were there, until they are looked after
        self._pods: dict[str, dict[str, CardPod]] = {}
        self._whole: Counter[str] = Counter()  # by node: GPUs that Pods hold whole
        self._unhealthy: dict[str, frozenset[int] | None] = {}
        self._listeners: list[Callable[[str], None]] = []
        informers.gpu_pods.on_change(self._on_pod)
        informers.gpu_ledgers.on_change(lambda key, *_: self._tell(key))
        informers.unhealthy_cards.on_change(self._on_unhealthy)

    def on_node(self, listener: Callable[[str], None]) -> None:
        """Call `listener(name)` after each change of what is known of a node's cards."""
        self._listeners.append(listener)

    def pods(self, node: str) -> list[CardPod]:
        """The Pods with cards that are known on a node."""
        return list(self._pods.get(node, {}).values())

    def ledger(self, node: str) -> Ledger:
        """The ledger of a node, as it was last seen."""
        return self.ledgers.get(node) or Ledger(node)

    def unhealthy(self, node: str) -> frozenset[int] | None:
        """The unhealthy cards of a node; None where nobody can tell."""
        return self._unhealthy.get(node, frozenset())

    def cards(self, node: Node) -> Cards | None:
        """The cards of a node; None of one that has none to share."""
        name = node.name
        return of_node(node, self._whole[name], self.unhealthy(name), self.ledger(name), self.pods(name))

    def sizes(self, node: Node) -> CardSizes:
        """What a node offers, and how many of its GPUs Pods hold whole."""
        return node.cards._replace(held_whole=self._whole[node.name])

    def known(self, name: str) -> Cards:
        """The same by name, for who has no Node."""
        node = self.nodes.get(name)
        return (self.cards(node) if node else None) or NO_CARDS

    def _on_pod(self, key: str, old: PodHolding | None, new: PodHolding | None) -> None:
        self._on_whole(old, new)
        before, after = (holding.cards if holding else None for holding in (old, new))
        if before == after:
            return
        if before is not None:
            self._drop(before)
            if after is None or after.uid != before.uid:
                self.departed.setdefault(before.node, set()).add(before.uid)
        if after is not None:
            self._pods.setdefault(after.node, {})[after.uid] = after
        for pod in (before, after):
            if pod is not None:
                self._tell(pod.node)

    def _on_whole(self, old: PodHolding | None, new: PodHolding | None) -> None:
        for pod, sign in ((old, -1), (new, 1)):
            if pod is not None and (count := held_whole(pod)):
                self._whole[pod.node] += sign * count
                node = self.nodes.get(pod.node)
                if not self._whole[pod.node]:
                    del self._whole[pod.node]
                if node is not None and node.cards.shared:
                    self._tell(pod.node)

    def _drop(self, pod: CardPod) -> None:
        on = self._pods.get(pod.node, {})
        on.pop(pod.uid, None)
        if not on:
            self._pods.pop(pod.node, None)

    def _on_unhealthy(self, key: str, old: UnhealthyCards | None, new: UnhealthyCards | None) -> None:
        for seen in (old, new):
            if seen is not None and seen.node:
                self._unhealthy.pop(seen.node, None)
        if new is not None and new.node:
            self._unhealthy[new.node] = new.cards
        for node in {seen.node for seen in (old, new) if seen is not None and seen.node}:
            self._tell(node)

    def _tell(self, node: str) -> None:
        for listener in self._listeners:
            listener(node)

"""All GPUs by node, for a person: how many, which Pod was given what, what is idle, and why a node is not free."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from remediator.core.node import Node
from remediator.core.shared_gpus import Ledger
from remediator.core.spare import Holding
from remediator.scheduler.shared.cards import Cards, cards, shares_of
from remediator.scheduler.verdict import UNRESOLVABLE, VerdictReason

HEAD = ("NODE", "GPUS", "TOTAL", "GIVEN", "IDLE", "TO")


class Row(NamedTuple):
    """One line. `gpus`: a resource, or a card that Pods share by memory. `to`: the Pods, or why it is not free."""

    node: str
    gpus: str
    total: int
    given: int
    to: str

    def texts(self) -> tuple[str, ...]:
        """As they are shown; more is given than there is where idle is below 0."""
        return (self.node, self.gpus, str(self.total), str(self.given), str(self.total - self.given), self.to)


def rows(
    nodes: Iterable[Node],
    pods: Mapping[str, Holding],
    ledgers: Mapping[str, Ledger],
    unhealthy: Mapping[str, frozenset[int] | None],
    health: Mapping[str, VerdictReason],
    namespace: str = "",
) -> Iterator[Row]:
    """Each resource and each shared card of each node. `pods`: by namespace/name. `namespace`: only what its Pods hold.

    A node that has no GPUs has no row.
    """
    by_node: defaultdict[str, dict[str, Holding]] = defaultdict(dict)
    for key, holding in pods.items():
        by_node[holding.node][key] = holding
    for node in sorted(nodes, key=lambda each: each.name):
        mine = by_node[node.name]
        why = health.get(node.name, VerdictReason.HEALTH_UNKNOWN)
        listed = [*_whole(node, mine), *_shared(node, mine, ledgers.get(node.name) or Ledger(node.name), unhealthy)]
        for row in listed:
            if namespace and f"{namespace}/" not in row.to:
                continue
            yield row._replace(to=", ".join(filter(None, (row.to, why.value if why in UNRESOLVABLE else ""))))


def _whole(node: Node, pods: Mapping[str, Holding]) -> Iterator[Row]:
    for name, total in node.gpus:
        held = {key: dict(holding.gpus)[name] for key, holding in pods.items() if name in dict(holding.gpus)}
        yield Row(node.name, name, total, sum(held.values()), _named(held))


def _shared(
    node: Node, pods: Mapping[str, Holding], ledger: Ledger, unhealthy: Mapping[str, frozenset[int] | None]
) -> Iterator[Row]:
    if not node.cards.shared:
        return
    on = [holding.cards for holding in pods.values() if holding.cards is not None]
    names = {entry.pod_uid: f"{entry.namespace}/{entry.name}" for entry in ledger.reservations}
    names |= {pod.uid: f"{pod.namespace}/{pod.name}" for pod in on}
    mine = cards(node.cards, unhealthy.get(node.name, frozenset()), ledger, on)
    held: defaultdict[int, Counter[str]] = defaultdict(Counter)
    for uid, shares in shares_of(ledger, on, len(mine.sizes)).items():
        for card, memory in shares:
            held[card][names[uid]] += memory
    for card in sorted({*range(len(mine.sizes)), *held}) or [0]:
        total = mine.sizes[card] if card < len(mine.sizes) else 0
        to = ", ".join(filter(None, (_named(held[card]), _why(mine, card))))
        yield Row(node.name, f"memory of card {card}", total, held[card].total(), to)


def _why(mine: Cards, card: int) -> str:
    if mine.reason is not None:
        return f"{mine.reason.value}: {mine.why}"
    return "" if card in dict(mine.free) else "unhealthy"


def _named(held: Mapping[str, int]) -> str:
    return ", ".join(f"{key} ({count})" for key, count in sorted(held.items()))

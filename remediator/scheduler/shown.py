"""All GPUs for a person: by node, how many, which Pod was given what, what is used and idle, and why one is not free;
and what was given by namespace, and by Pod.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from remediator.core.node import Node
from remediator.core.shared_gpus import CardPod, Ledger
from remediator.core.spare import PodHolding
from remediator.scheduler.reasons import UNRESOLVABLE, VerdictReason
from remediator.scheduler.shared.cards import Cards, held_whole, of_node, shares_of
from remediator.scheduler.usage import UNKNOWN, Usage

HEAD = ("NODE", "GPUS", "TOTAL", "GIVEN", "USED", "IDLE", "TO")
HELD = ("GPUS", "GIVEN", "USED")  # after who holds them
MEMORY = "memory of GPUs"


class ShownGpus(NamedTuple):
    """One line. `gpus`: a resource, or a card that Pods share by memory. `to`: the Pods, or why it is not free.

    `used`: None where nobody knows.
    """

    node: str
    gpus: str
    total: int
    given: int
    to: str
    used: int | None = None

    def texts(self) -> tuple[str, ...]:
        """As they are shown; more is given than there is where idle is below 0."""
        numbers = (str(self.total), str(self.given), _known(self.used), str(self.total - self.given))
        return (self.node, self.gpus, *numbers, self.to)


class ShownHolder(NamedTuple):
    """What one namespace, or one Pod, was given of one resource; `used` None where nobody knows."""

    holder: str
    gpus: str
    given: int
    used: int | None = None

    def texts(self) -> tuple[str, ...]:
        """As they are shown."""
        return (self.holder, self.gpus, str(self.given), _known(self.used))


def _known(used: int | None) -> str:
    return "unknown" if used is None else str(used)


def rows(
    nodes: Iterable[Node],
    pods: Mapping[str, PodHolding],
    ledgers: Mapping[str, Ledger],
    unhealthy: Mapping[str, frozenset[int] | None],
    health: Mapping[str, VerdictReason],
    namespace: str = "",
    usage: Usage = UNKNOWN,
) -> Iterator[ShownGpus]:
    """Each resource and each shared card of each node. `pods`: by namespace/name. `namespace`: only what its Pods hold.

    A node that has no GPUs has no row.
    """
    by_node: defaultdict[str, dict[str, PodHolding]] = defaultdict(dict)
    for key, holding in pods.items():
        by_node[holding.node][key] = holding
    for node in sorted(nodes, key=lambda each: each.name):
        mine = by_node[node.name]
        why = health.get(node.name, VerdictReason.HEALTH_UNKNOWN)
        ledger = ledgers.get(node.name) or Ledger(node.name)
        for row in (*_whole(node, mine, usage), *_shared(node, mine, ledger, unhealthy, usage)):
            if namespace and f"{namespace}/" not in row.to:
                continue
            yield row._replace(to=", ".join(filter(None, (row.to, why.value if why in UNRESOLVABLE else ""))))


def holders(
    nodes: Iterable[Node], pods: Mapping[str, PodHolding], ledgers: Mapping[str, Ledger], usage: Usage, by_pod: bool
) -> list[ShownHolder]:
    """What each namespace, or each Pod, was given, by name. What is only reserved counts, too."""
    sizes = {node.name: len(node.cards.sizes) for node in nodes}
    given: Counter[tuple[str, str]] = Counter()
    used: defaultdict[tuple[str, str], list[int | None]] = defaultdict(list)
    for key, holding in pods.items():
        holder = key if by_pod else key.partition("/")[0]
        for name, count in holding.gpus:
            given[holder, name] += count
            used[holder, name].append(usage.pods.get(key) if len(holding.gpus) == 1 else None)
    on: defaultdict[str, list[CardPod]] = defaultdict(list)
    for holding in pods.values():
        if holding.cards is not None:
            on[holding.node].append(holding.cards)
    for node in {*on, *ledgers}:
        ledger = ledgers.get(node) or Ledger(node)
        names = _names(ledger, on[node])
        for uid, shares in shares_of(ledger, on[node], sizes.get(node, 0)).items():
            holder = names[uid] if by_pod else names[uid].partition("/")[0]
            given[holder, MEMORY] += sum(memory for _, memory in shares)
    return [ShownHolder(*key, count, _sum(used.get(key, []))) for key, count in sorted(given.items())]


def _sum(used: list[int | None]) -> int | None:
    """None where one of them is not known."""
    known = [each for each in used if each is not None]
    return sum(known) if known and len(known) == len(used) else None


def _names(ledger: Ledger, on: Iterable[CardPod]) -> dict[str, str]:
    """namespace/name of Pods, by uid."""
    names = {entry.pod_uid: f"{entry.namespace}/{entry.name}" for entry in ledger.reservations}
    return names | {pod.uid: f"{pod.namespace}/{pod.name}" for pod in on}


def _whole(node: Node, pods: Mapping[str, PodHolding], usage: Usage) -> Iterator[ShownGpus]:
    gone = {name: 0 for holding in pods.values() for name, _ in holding.gpus}  # what Pods hold may not be offered now
    for name, total in sorted((gone | dict(node.gpus)).items()):
        held = {key: dict(holding.gpus)[name] for key, holding in pods.items() if name in dict(holding.gpus)}
        used = usage.whole(node, name, total)
        yield ShownGpus(node.name, name, total, sum(held.values()), _named(held), used)


def _shared(
    node: Node,
    pods: Mapping[str, PodHolding],
    ledger: Ledger,
    unhealthy: Mapping[str, frozenset[int] | None],
    usage: Usage,
) -> Iterator[ShownGpus]:
    on = [holding.cards for holding in pods.values() if holding.cards is not None]
    names, whole = _names(ledger, on), sum(map(held_whole, pods.values()))
    mine = of_node(node, whole, unhealthy.get(node.name, frozenset()), ledger, on)
    if mine is None:
        return
    held: defaultdict[int, Counter[str]] = defaultdict(Counter)
    for uid, shares in shares_of(ledger, on, len(mine.sizes)).items():
        for card, memory in shares:
            held[card][names[uid]] += memory
    for card in sorted({*range(len(mine.sizes)), *held}) or [0]:
        total = mine.sizes[card] if card < len(mine.sizes) else 0
        to = ", ".join(filter(None, (_named(held[card]), _why(mine, card))))
        used = usage.card(node.name, card, total)
        yield ShownGpus(node.name, f"memory of card {card}", total, held[card].total(), to, used)


def _why(mine: Cards, card: int) -> str:
    if mine.reason is not None:
        return f"{mine.reason.value}: {mine.why}"
    return "" if card in dict(mine.free) else "unhealthy"


def _named(held: Mapping[str, int]) -> str:
    return ", ".join(f"{key} ({count})" for key, count in sorted(held.items()))

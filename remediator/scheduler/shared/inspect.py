"""What is given of shared GPUs, in the form of gpushare-scheduler-extender: for its kubectl plugin, and for people."""

from collections.abc import Iterable

import msgspec

from remediator.core.node import Node
from remediator.core.shared_gpus import MOST_CARDS
from remediator.scheduler.shared.books import Books
from remediator.scheduler.shared.cards import shares_of


class InspectPod(msgspec.Struct, frozen=True):
    """A Pod on a card, and its memory there."""

    name: str
    namespace: str
    used: int = msgspec.field(name="usedGPU")


class InspectCard(msgspec.Struct, frozen=True):
    """A card; `total` 0 for one that Pods hold and that the node does not have."""

    id: int
    total: int = msgspec.field(name="totalGPU")
    used: int = msgspec.field(name="usedGPU")
    pods: tuple[InspectPod, ...] = ()


class Inspected(msgspec.Struct, frozen=True, omit_defaults=True):
    """A node. `problem`: why it gets no Pods; absent where it does."""

    name: str
    total: int = msgspec.field(name="totalGPU")
    used: int = msgspec.field(name="usedGPU")
    devs: tuple[InspectCard, ...]
    problem: str = ""


def inspected(books: Books, node: Node) -> Inspected:
    """A node with shared GPUs as the watches of this replica show it."""
    ledger, pods, sizes = books.ledger(node.name), books.pods(node.name), node.cards.sizes
    names = {entry.pod_uid: (entry.name, entry.namespace) for entry in ledger.reservations}
    names |= {pod.uid: (pod.name, pod.namespace) for pod in pods}
    held = {uid: dict(shares) for uid, shares in shares_of(ledger, pods, len(sizes)).items()}
    cards = sorted({*range(len(sizes)), *(card for shares in held.values() for card in shares if card < MOST_CARDS)})
    devs = []
    for card in cards:
        on = tuple(InspectPod(*names[uid], shares[card]) for uid, shares in held.items() if card in shares)
        devs.append(InspectCard(card, sizes[card] if card < len(sizes) else 0, sum(pod.used for pod in on), on))
    mine = books.known(node.name)
    problem = f"{mine.reason}: {mine.why}" if mine.reason else ""
    return Inspected(node.name, sum(sizes), sum(dev.used for dev in devs), tuple(devs), problem)


def answer(books: Books, name: str = "") -> tuple[int, bytes]:
    """The status and the JSON of an inspection of one node, or of all with shared GPUs."""
    node = books.nodes.get(name) if name else None
    if name and (node is None or not node.cards.shared):
        why = "is not in the cluster" if node is None else "shares no GPUs"
        return 404, msgspec.json.encode({"nodes": [], "error": f"node {name} {why}"})
    chosen: Iterable[Node] = [node] if node else (each for each in books.nodes if each.cards.shared)
    nodes = [inspected(books, each) for each in sorted(chosen, key=lambda each: each.name)]
    return 200, msgspec.json.encode({"nodes": nodes})

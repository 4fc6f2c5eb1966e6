"""GPUs that Pods share by memory, in the words of gpushare-scheduler-extender and its device plugin.

A Node offers the resources aliyun.com/gpu-mem and aliyun.com/gpu-count; a Pod asks for the first, and its annotations
say which card it was given. One card is named by its index; more are only in the annotation by container.
"""

import re
from collections import Counter
from datetime import datetime
from sys import intern

import msgspec

from remediator.core import names
from remediator.core.shared_gpus import (
    MOST_CARDS,
    MOST_MEMORY,
    NO_ASK,
    NO_CARDS,
    Ask,
    CardPod,
    CardSizes,
    Shares,
)
from remediator.core.spare import NOTHING, PodHolding, ending
from remediator.kube.api import gpu_pods
from remediator.kube.api.builtin import Node
from remediator.kube.api.common import Base
from remediator.kube.api.decode.times import moment_of_node
from remediator.kube.wire.client import Kind

MEMORY, COUNT = "aliyun.com/gpu-mem", "aliyun.com/gpu-count"
CARD_SIZE, ASSIGNED, ASSUMED = "ALIYUN_COM_GPU_MEM_DEV", "ALIYUN_COM_GPU_MEM_ASSIGNED", "ALIYUN_COM_GPU_MEM_ASSUME_TIME"
# Of the ConfigMap that names the unhealthy cards of a node.
UNHEALTHY_NAMESPACE, UNHEALTHY_PREFIX = "kube-system", "unhealthy-gpu-"
ENDED = ("Succeeded", "Failed")
_MEMORY = re.compile(re.escape(MEMORY))
_WHOLE = re.compile(r"nvidia\.com/(gpu(\.shared)?|mig-.{1,59})")
_NUMBER = re.compile("[0-9]{1,9}")
_Allocation = dict[str, dict[str, int]]


class ConfigMapMeta(Base, frozen=True, kw_only=True):
    """Which ConfigMap it is."""

    name: str
    namespace: str = ""


class UnhealthyData(Base, frozen=True, kw_only=True):
    """The cards that are unhealthy: "0,2"."""

    gpus: str | None = None


class ConfigMap(Base, frozen=True, kw_only=True):
    """A ConfigMap as far as it may name unhealthy cards."""

    metadata: ConfigMapMeta
    data: UnhealthyData | None = None


CONFIG_MAP = Kind("", "v1", "configmaps", "ConfigMap", ConfigMap, namespaced=True)


# --- nodes -----------------------------------------------------------------------------------------------------------


def sizes(node: Node) -> CardSizes:
    """The cards that Pods share by memory. The capacity counts unhealthy cards, too; the rest of it is withheld.

    Sizes stand in the annotation remediator.dev/gpu-memory, else all cards are equal.
    """
    capacity, allocatable = node.status.capacity or {}, node.status.allocatable or {}
    if MEMORY not in capacity and MEMORY not in allocatable:
        return NO_CARDS
    try:
        total = gpu_pods.count(capacity.get(MEMORY, allocatable.get(MEMORY, 0)))
        offered = gpu_pods.count(allocatable.get(MEMORY, 0))
        cards = gpu_pods.count(capacity.get(COUNT, allocatable.get(COUNT, 0)))
        by_card = _by_card(total, cards, node.metadata.annotations.get(names.GPU_MEMORY))
    except ValueError as error:
        return CardSizes(unknown=str(error))
    return CardSizes(by_card, max(0, total - offered), "", _offers_whole(node)) if by_card else NO_CARDS


def _offers_whole(node: Node) -> bool:
    return any(sold_whole(name) and str(value) != "0" for name, value in (node.status.capacity or {}).items())


def sold_whole(resource: str) -> bool:
    """Whether a resource counts what another device plugin makes of the same GPUs: whole ones, MIG devices, replicas.

    >>> [sold_whole(f"nvidia.com/{name}") for name in ("gpu", "gpu.shared", "mig-1g.5gb", "gpumem")]
    [True, True, True, False]
    """
    return _WHOLE.fullmatch(resource) is not None


def _by_card(total: int, cards: int, written: str | None) -> tuple[int, ...]:
    """Raises ValueError where nobody can tell."""
    if total > MOST_MEMORY:
        raise ValueError(f"{MEMORY} is {total}, more than {MOST_MEMORY}")
    if written is not None:
        return _written(total, cards, written)
    if not total:
        return ()
    if not 1 <= cards <= MOST_CARDS:
        raise ValueError(f"{COUNT} is {cards}, not 1 to {MOST_CARDS}; or write {names.GPU_MEMORY}")
    return (total // cards,) * cards


def _written(total: int, cards: int, written: str) -> tuple[int, ...]:
    parts = [part.strip() for part in written.split(",")]
    if len(parts) > MOST_CARDS or not all(map(_NUMBER.fullmatch, parts)):
        raise ValueError(f"{names.GPU_MEMORY} must be the memory of each GPU, such as 16,16,32")
    by_card = tuple(map(int, parts))
    if sum(by_card) != total or cards not in (0, len(by_card)):
        raise ValueError(
            f"{names.GPU_MEMORY} names {len(by_card)} GPUs of {sum(by_card)} in all, not what {MEMORY} says"
        )
    return by_card


def unhealthy_node(wire: ConfigMap) -> str:
    """The node whose unhealthy cards it names; "" for any other ConfigMap."""
    name = wire.metadata.name
    return name.removeprefix(UNHEALTHY_PREFIX) if name.startswith(UNHEALTHY_PREFIX) else ""


def unhealthy(text: str | None) -> frozenset[int] | None:
    """The unhealthy cards; None where nobody can tell.

    >>> [sorted(unhealthy(text) or ()) for text in ("", "0, 2")], unhealthy("0,x"), unhealthy("0,,2")
    ([[], [0, 2]], None, None)
    """
    if text is None or not text.strip():
        return frozenset()
    parts = [part.strip() for part in text.split(",")]
    return frozenset(map(int, parts)) if all(map(_NUMBER.fullmatch, parts)) else None


# --- Pods ------------------------------------------------------------------------------------------------------------


def holding(wire: gpu_pods.GpuPod) -> PodHolding:
    """What a Pod that runs somewhere holds; an EndingPod where somebody has deleted it."""
    held, ends = _held(wire), wire.metadata.deletion_timestamp
    return held if ends is None else ending(held, intern(wire.spec.node_name or ""), moment_of_node(ends))


def _held(wire: gpu_pods.GpuPod) -> PodHolding:
    """Nothing where it gives way to any other."""
    if wire.gives_way:
        return NOTHING
    (gpus, cpu), node = gpu_pods.needed(wire), intern(wire.spec.node_name or "")  # of tens of thousands of Pods
    shared = card_pod(wire) if ask(wire).memory else None
    if not gpus and shared is None:
        return PodHolding(node, cpu=cpu, daemon=wire.daemon) if cpu else NOTHING
    asks = gpu_pods.asks(wire.metadata.annotations)
    return PodHolding(node, gpus, wire.gang, wire.metadata.uid, cpu, asks, wire.daemon, shared)


def ask(pod: gpu_pods.GpuPod) -> Ask:
    """What it asks of shared cards. Raises ValueError for a quantity that cannot be read."""
    memory = gpu_pods.at_once(pod, _MEMORY)[MEMORY]
    if not memory:
        return NO_ASK
    written = pod.metadata.annotations.gpu_cards if pod.metadata.annotations else None
    if written is None:
        return Ask(memory)
    if not _NUMBER.fullmatch(written) or not 1 <= int(written) <= MOST_CARDS:
        return Ask(memory, mistake=f"{names.GPU_CARDS} must be a number of GPUs from 1 to {MOST_CARDS}")
    if memory % int(written):
        return Ask(memory, mistake=f"{MEMORY} must be a multiple of {names.GPU_CARDS}")
    return Ask(memory, int(written))


def card_pod(wire: gpu_pods.GpuPod) -> CardPod:
    """A Pod as far as cards go. Raises ValueError for a quantity that cannot be read."""
    wants, meta, node = ask(wire), wire.metadata, wire.spec.node_name or ""
    named = _shares(meta.annotations) if node and wants.memory and meta.annotations else ()
    shares = tuple((card, min(memory, wants.memory)) for card, memory in named)  # whatever its author writes there
    return CardPod(
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        node=node,
        ask=wants,
        shares=shares,
        unreadable=bool(node and wants.memory and not shares),
        ended=wire.status.phase in ENDED,
        leaving=meta.deletion_timestamp is not None,
        containers=tuple(gpu_pods.wanted(each, _MEMORY)[MEMORY] for each in wire.spec.containers or ()),
        version=meta.resource_version,
    )


def _shares(written: gpu_pods.Annotations) -> Shares:
    """The cards that the annotations name; () where nobody can tell."""
    index, memory = written.card_index or "", written.card_memory or ""
    if written.card_allocation is not None:
        return _allocated(written.card_allocation)
    if not (_NUMBER.fullmatch(index) and _NUMBER.fullmatch(memory)) or int(index) >= MOST_CARDS:
        return ()
    return ((int(index), int(memory)),)


def _allocated(text: str) -> Shares:
    cards: Counter[int] = Counter()
    try:
        for container in msgspec.json.decode(text, type=_Allocation).values():
            for index, memory in container.items():
                cards[int(index)] += memory
    except (ValueError, RecursionError):
        return ()
    fits = all(0 <= index < MOST_CARDS and 0 <= memory <= MOST_MEMORY for index, memory in cards.items())
    return tuple(sorted(cards.items())) if fits else ()


def given(pod: CardPod, shares: Shares, by_card: tuple[int, ...], at: datetime) -> dict[str, str]:
    """The annotations by which the device plugin finds the cards of a Pod. It finds Pods in the order of their time.

    >>> from datetime import UTC, datetime
    >>> pod = CardPod("ns", "job", "u", ask=Ask(8), containers=(2, 6))
    >>> sorted(given(pod, ((3, 8),), (16,) * 4, datetime(2026, 1, 1, tzinfo=UTC)).values())
    ['16', '1767225600000000000', '3', '8', 'false', '{"0":{"3":2},"1":{"3":6}}']
    """
    nanoseconds = int(at.timestamp()) * 10**9 + at.microsecond * 1000
    return {
        gpu_pods.CARD_INDEX: ",".join(str(index) for index, _ in shares),
        gpu_pods.CARD_MEMORY: str(sum(memory for _, memory in shares)),
        CARD_SIZE: ",".join(str(by_card[index]) for index, _ in shares),
        ASSIGNED: "false",
        ASSUMED: str(nanoseconds),
        gpu_pods.CARD_ALLOCATION: msgspec.json.encode(_by_container(pod.containers, shares)).decode(),
    }


def _by_container(containers: tuple[int, ...], shares: Shares) -> _Allocation:
    """The memory of containers laid end to end over the cards; what only init containers need goes to the first."""
    over = sum(memory for _, memory in shares) - sum(containers)
    wants = [memory + (over if not place else 0) for place, memory in enumerate(containers or (0,))]
    left, laid = dict(shares), _Allocation()
    for place, wanted in enumerate(wants):
        for index in left:
            part = min(wanted, left[index])
            if part > 0:
                laid.setdefault(str(place), {})[str(index)] = part
                left[index] -= part
                wanted -= part
    return laid

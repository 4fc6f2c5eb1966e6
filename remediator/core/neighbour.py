"""Neighbours of a node that is tried: idle nodes beside it, to which its InfiniBand is measured. Pure.

A Pod on each of them is the other end of the measurement. It is placed as a test of an idle node is, gives way to all
that such a test gives way to, and marks nothing on its node, which stays in service: its own name is its claim, and
there are as many names as neighbours may be taken at once.
"""

import hashlib
import ipaddress
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from remediator.core import idle_test, names
from remediator.core.node import Node
from remediator.core.operation import Operation
from remediator.core.pod import Pod, PodPhase

MOST = 2  # of one operation: where the first one is slow, the second one tells whose fault it is
PORT = 18514  # on which they listen: one below that of ib_write_bw
STARTS_WITHIN = timedelta(seconds=60)  # after the intent: the operation goes on without those that have not
SERVES = timedelta(minutes=5)  # until one that was not told that the measurement is done ends by itself
NOT_READY = f"no neighbour was ready within {STARTS_WITHIN.seconds} s"


class Reached(NamedTuple):
    """A neighbour whose Pod runs."""

    name: str
    address: str


def slot(template: str, number: int) -> str:
    """The name of such a Pod: no two leaders, and no two operations, take more neighbours than there are names."""
    return names.name("neighbour", template, template, "neighbour", str(number))


def free_slots(template: str, at_once: int, taken: Collection[str]) -> list[str]:
    """The names that new ones may have; those of a number that was larger count, too."""
    free = [name for number in range(at_once) if (name := slot(template, number)) not in taken]
    return free[: max(0, min(MOST, at_once - len(taken)))]


def in_turn(operation: Operation, candidates: Iterable[str]) -> list[str]:
    """Candidates in an order of this operation's own: one bad neighbour must not be everybody's."""
    return sorted(candidates, key=lambda name: hashlib.sha256(f"{operation.uid}\0{name}".encode()).digest())


def beside(node: Node, other: Node, label: str) -> bool:
    """Whether another node has the same value of this label."""
    return other.name != node.name and bool(node.labels.get(label)) and other.labels.get(label) == node.labels[label]


def address(given: str) -> str:
    """The IP address that a node says, as the kernel would write it; "" for all that is none.

    It goes into the environment of a Pod on another node: a word without end would keep that from starting. So would a
    zone of IPv6, which is a word of any length, and means nothing on another node.
    """
    try:
        read = ipaddress.ip_address(given)
    except ValueError:
        return ""
    return "" if "%" in given else str(read)


def lacking(node: Node, label: str) -> str:
    """Why no node can be beside it; "" where one can."""
    return "" if node.labels.get(label) else f"{node.name} has no label {label}"


def in_time(since: datetime, timeout: timedelta, now: datetime) -> bool:
    """Whether an operation may still wait for neighbours, whose intent was written then, and which has so much time."""
    return now - since < min(STARTS_WITHIN, timeout / 4)


def starting(pods: Sequence[Pod]) -> bool:
    """Whether Pods of its neighbours have not started yet."""
    return any(pod.phase is not PodPhase.RUNNING for pod in pods)


def gives_way(pod: Pod, operation: Operation | None, node: Node | None, obstacle: str, now: datetime) -> str:
    """Why such a Pod is taken back; "" where it may go on.

    Args:
        pod: One that has not ended.
        operation: The one that measures; None where it is gone.
        node: The neighbour; None where it is gone.
        obstacle: Why nobody may test the neighbour.
        now: Aware UTC.
    """
    if operation is None or operation.finished is not None or operation.deleting:
        return "the operation that measures is over"
    if node is None or node.boot_id != pod.tested_boot:
        return f"{pod.tested} is gone, or has booted"
    return obstacle or ("its time is over" if idle_test.overdue(pod, SERVES, now) else "")


def orders(operation: Operation, reached: Sequence[Reached], why: str = "") -> dict[str, object]:
    """What the program of the operation is told of its neighbours; where it has none, why."""
    nodes = [each._asdict() for each in reached]
    return {"port": PORT, "token": operation.uid, "nodes": nodes} if nodes else {"why": why}


def service(operation: Operation, address: str, client: str) -> dict[str, object]:
    """What the program on a neighbour is told: where it listens, and whom it answers."""
    seconds = int(SERVES.total_seconds()) - 10  # it says so itself before its kubelet ends it
    return {"address": address, "port": PORT, "client": client, "token": operation.uid, "seconds": seconds}

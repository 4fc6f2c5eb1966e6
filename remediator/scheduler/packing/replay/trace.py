"""Lists of nodes and Pods: those of Alibaba's cluster-trace-gpu-v2023 ("openb"), or such as they could be."""

import csv
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple, TypeVar

from remediator.scheduler.attributes.catalog import WHOLE, facts_of
from remediator.scheduler.attributes.selector import ANYTHING, selector
from remediator.scheduler.packing.room import CARD, NodeRoom, Task

T = TypeVar("T")
NODES, PODS = "openb_node_list_gpu_node.csv", "openb_pod_list_{}.csv"
MODEL = f"{WHOLE}.product"  # the label that says it
LOAD = 1.3  # of the GPUs that the nodes have: what the Pods that arrive ask for


class TraceNode(NamedTuple):
    """A node that nothing runs on."""

    name: str
    room: NodeRoom
    memory: int


class Arrival(NamedTuple):
    """A Pod that is to be placed. `asks`: its annotation for models of cards, "" for any."""

    task: Task
    memory: int
    asks: str = ""

    @property
    def milli(self) -> int:
        """What it asks of cards, in thousandths."""
        return self.task.cards * self.task.milli


class Trace(NamedTuple):
    """Nodes, and Pods to draw from."""

    name: str
    machines: tuple[TraceNode, ...]
    arrivals: tuple[Arrival, ...]

    @property
    def capacity(self) -> int:
        """All cards of the nodes, in thousandths."""
        return sum(machine.room.rest for machine in self.machines)


def read(folder: Path, pods: str) -> Trace:
    """The nodes of a folder, and its list of Pods of this name. Raises OSError, and ValueError with file and line."""
    return Trace(pods, _rows(folder / NODES, _machine), _rows(folder / PODS.format(pods), _arrival))


def _rows(file: Path, made: Callable[[Mapping[str, str]], T]) -> tuple[T, ...]:
    with file.open(newline="", encoding="utf-8") as lines:
        reader = csv.DictReader(lines)
        try:
            rows = tuple(made(row) for row in reader)
        except (KeyError, TypeError, ValueError, csv.Error) as error:
            why = f"no column {error}" if isinstance(error, KeyError) else str(error)
            raise ValueError(
                f"{file}: line {reader.line_num}: {why}; give the files of the trace as they are"
            ) from None
    if not rows:
        raise ValueError(f"{file}: holds nothing; give the files of the trace as they are")
    return rows


def _machine(row: Mapping[str, str]) -> TraceNode:
    return machine(row["sn"], int(row["cpu_milli"]), int(row["memory_mib"]), int(row["gpu"]), row["model"])


def machine(name: str, cpu: int, memory: int, cards: int, model: str) -> TraceNode:
    """A node with cards of one model."""
    return TraceNode(name, NodeRoom(cpu, (CARD,) * cards, cards, WHOLE, facts_of({MODEL: model})), memory)


def _arrival(row: Mapping[str, str]) -> Arrival:
    models = (row.get("gpu_spec") or "").split("|")
    cpu, memory = int(row["cpu_milli"]), int(row["memory_mib"])
    return arrival(cpu, memory, int(row["num_gpu"]), int(row["gpu_milli"]), [model for model in models if model])


def arrival(cpu: int, memory: int, cards: int, milli: int = CARD, models: Sequence[str] = ()) -> Arrival:
    """A Pod that takes cards of these models only; of any where there are none."""
    if not cards:
        return Arrival(Task(cpu), memory)
    asks = f"model in ({', '.join(models)})" if models else ""
    attributes = selector(asks, None, None) if asks else ANYTHING
    return Arrival(Task(cpu, cards, milli, WHOLE, attributes), memory, asks)


def tuned(trace: Trace, chance: Random) -> tuple[list[TraceNode], list[Arrival]]:
    """Both in any order; as many Pods as ask for LOAD times the cards: drawn again, or left out."""
    machines, arrivals = list(trace.machines), list(trace.arrivals)
    chance.shuffle(machines)
    chance.shuffle(arrivals)
    asked, wanted = sum(arrival.milli for arrival in arrivals), LOAD * trace.capacity
    while asked < wanted:
        arrivals.append(chance.choice(trace.arrivals))
        asked += arrivals[-1].milli
    while asked > wanted:
        asked -= arrivals.pop().milli
    return machines, arrivals

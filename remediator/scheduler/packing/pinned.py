"""A workload that a site has written down: a list of the kinds of Pods that its cluster runs, with their weights."""

from pathlib import Path
from typing import NoReturn

import msgspec
import yaml

from remediator.kube.api import gpu_pods
from remediator.scheduler.attributes.selector import ANYTHING, AttributeSelector, selector
from remediator.scheduler.packing.room import CARD, Task
from remediator.scheduler.packing.workload import MOST_KINDS, Workload, shares

FORM = '{weight: 20, cpu: "8", gpus: {nvidia.com/gpu: 1}, attributes: "memory>=40G"}'


class WorkloadRow(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """One kind of Pods. `weight`: how many there are of it, beside the other rows."""

    weight: float
    cpu: str | int = 0
    gpus: dict[str, int] = {}
    attributes: str = ""


def read(file: Path) -> Workload:
    """The workload in a file. Raises OSError, and ValueError with the row and what would be right."""
    try:
        rows = msgspec.convert(yaml.safe_load(file.read_text("utf-8")), list[WorkloadRow])
    except (yaml.YAMLError, msgspec.ValidationError, UnicodeDecodeError) as error:
        raise ValueError(f"{file}: {error}; write a list of rows such as {FORM}") from None
    if not 0 < len(rows) <= MOST_KINDS:
        raise ValueError(f"{file}: {len(rows)} rows; write 1 to {MOST_KINDS} such as {FORM}")
    weights: dict[Task, float] = {}
    for index, row in enumerate(rows):
        try:
            for task in _tasks(row):
                weights[task] = weights.get(task, 0.0) + row.weight
        except ValueError as error:
            raise ValueError(f"{file}: row {index + 1}: {error}") from None
    return shares(weights, covered=1.0)


def _tasks(row: WorkloadRow) -> list[Task]:
    if not 0 < row.weight < 1e12:
        raise ValueError(f"weight is {row.weight:g}; write how many Pods there are of this kind")
    cpu = gpu_pods.milli_cores(row.cpu)
    if not cpu and str(row.cpu) not in ("", "0"):
        raise ValueError(f"cpu is {row.cpu!r}; write cores, such as 8 or 500m")
    attributes = _attributes(row.attributes)
    if not row.gpus:
        return [Task(cpu)]
    for name, count in row.gpus.items():
        if count < 1 or not gpu_pods.is_gpu(name):
            _refuse(name, count)
    return [Task(cpu, count, CARD, name, attributes) for name, count in row.gpus.items()]


def _refuse(name: str, count: int) -> NoReturn:
    raise ValueError(f"gpus has {name}: {count}; write a resource such as nvidia.com/gpu, and 1 or more of it")


def _attributes(text: str) -> AttributeSelector:
    if not text:
        return ANYTHING
    asked = selector(text, None, None)
    if asked.mistake:
        raise ValueError(f"attributes: {asked.mistake}")
    return asked

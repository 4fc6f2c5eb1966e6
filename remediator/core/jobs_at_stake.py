"""The jobs that the repair of a node would end, as they are stored in the API server."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class JobAtStake:
    """One job that has Pods on the node of a case: its GPUs `here` and on all nodes; `since` None: no work is lost."""

    kind: str
    namespace: str
    name: str
    here: int
    gpus: int
    since: datetime | None
    gpu_hours: int

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class BlastRadius:
    """What the repair of a node would end, as a look at it has shown. `jobs`: the largest of `count`.

    `pods` and `here`: Pods with GPUs on the node, and their GPUs. `unknown`: why nobody can tell; then all else is 0.
    """

    at: datetime
    jobs: tuple[JobAtStake, ...] = ()
    count: int = 0
    pods: int = 0
    here: int = 0
    gpus: int = 0
    gpu_hours: int = 0
    unknown: str = ""

"""How much of what Pods were given they use, as dcgm-exporter has told Prometheus. "Unknown" where nobody can tell.

A GPU is used where its utilization was above 0 at any moment of the last ten minutes. Of a GPU that Pods share by
memory, it is the part of its memory that is in use now.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from remediator.core.node import Node
from remediator.core.sharing import shares
from remediator.prometheus.reading import CannotTell, Doubt, Reading, Sample
from remediator.prometheus.source import Source

WHOLE = "nvidia.com/gpu"
_WITHIN = timedelta(minutes=5)
_BUSY = "(max_over_time(DCGM_FI_DEV_GPU_UTIL[10m]) > bool 0)"
BY_NODE = f"sum by (node, Hostname) {_BUSY}"
BY_POD = f"sum by (exported_namespace, exported_pod, namespace, pod) {_BUSY}"
# Between 0 and 1.
BY_CARD = "max by (node, Hostname, gpu) (DCGM_FI_DEV_FB_USED / (DCGM_FI_DEV_FB_USED + DCGM_FI_DEV_FB_FREE))"


@dataclass(frozen=True, slots=True)
class Usage:
    """GPUs that are used, by node and by namespace/name of a Pod, and the part of the memory of (node, card) in use.

    `doubts`: why nobody can tell, a sentence each; what is not here is not known.
    """

    nodes: Mapping[str, int] = field(default_factory=dict)
    pods: Mapping[str, int] = field(default_factory=dict)
    cards: Mapping[tuple[str, int], float] = field(default_factory=dict)
    doubts: tuple[str, ...] = ()

    def whole(self, node: Node, resource: str, total: int) -> int | None:
        """The GPUs of this resource that are used: not known of MIG devices, nor of replicas of a GPU."""
        used = self.nodes.get(node.name)
        only = resource == WHOLE and not shares(node, resource) and not any(name != WHOLE for name, _ in node.gpus)
        return min(used, total) if used is not None and only else None

    def card(self, node: str, card: int, total: int) -> int | None:
        """The memory of a shared card that is used, in the units of its size."""
        part = self.cards.get((node, card))
        return round(part * total) if part is not None else None


UNKNOWN = Usage()


async def usage(source: Source, shared: bool) -> Usage:
    """Ask Prometheus; about memory of cards only where some are `shared`."""
    nodes, pods = await source.instant(BY_NODE, _WITHIN), await source.instant(BY_POD, _WITHIN)
    cards: Reading = await source.instant(BY_CARD, _WITHIN) if shared else ()
    answers = (nodes, pods, cards)
    return Usage(
        {_node(sample): round(sample.value) for sample in _samples(nodes)},
        {_pod(sample): round(sample.value) for sample in _samples(pods)},
        {(_node(sample), _card(sample)): sample.value for sample in _samples(cards)},
        tuple(dict.fromkeys(map(_doubt, (each for each in answers if isinstance(each, CannotTell))))),
    )


def _samples(reading: Reading) -> tuple[Sample, ...]:
    return () if isinstance(reading, CannotTell) else reading


def _node(sample: Sample) -> str:
    """`node` where a relabelling gives it, else the exporter's own label."""
    return sample.labels.get("node") or sample.labels.get("Hostname", "")


def _pod(sample: Sample) -> str:
    """Prometheus calls what the exporter says of a Pod exported_…, unless it honours its labels."""
    of = "exported_" if sample.labels.get("exported_pod") else ""
    return f"{sample.labels.get(f'{of}namespace', '')}/{sample.labels.get(f'{of}pod', '')}"


def _card(sample: Sample) -> int:
    text = sample.labels.get("gpu", "")
    return int(text) if text.isdecimal() and len(text) < 4 else -1


def _doubt(failed: CannotTell) -> str:
    if failed.doubt is Doubt.EMPTY:
        return "Prometheus has no fresh DCGM_FI_DEV_… series: does it scrape dcgm-exporter?"
    return f"Prometheus: {failed.doubt.value}: {failed.message}"

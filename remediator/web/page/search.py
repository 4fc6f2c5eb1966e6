"""Nodes and cases by a part of their names. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass

MOST = 100


@dataclass(frozen=True, slots=True)
class Matches:
    """The names that have it, in their order; `cut`: more have."""

    nodes: tuple[str, ...]
    cases: tuple[str, ...]
    cut: bool


def matches(query: str, nodes: Iterable[str], cases: Iterable[str]) -> Matches:
    """Whatever the case of letters.

    >>> matches("GPU-1", ["gpu-2", "gpu-1"], ["gpu-1-gpulost"])
    Matches(nodes=('gpu-1',), cases=('gpu-1-gpulost',), cut=False)
    """
    part = query.strip().lower()
    of_nodes = sorted(name for name in nodes if part and part in name.lower())
    of_cases = sorted(name for name in cases if part and part in name.lower())
    return Matches(tuple(of_nodes[:MOST]), tuple(of_cases[:MOST]), len(of_nodes) > MOST or len(of_cases) > MOST)

"""What the annotations of a Pod say about being moved: ours, and those of Cluster Autoscaler and Karpenter. Pure."""

import re
from collections import namedtuple
from collections.abc import Mapping

EVICT = "remediator.dev/evict"
SAFE = "cluster-autoscaler.kubernetes.io/safe-to-evict"
SAFE_VOLUMES = f"{SAFE}-local-volumes"
DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"
LET_GO = f"annotate it with {EVICT}=true"
_SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_DURATION = re.compile(r"(?:[0-9]+(?:\.[0-9]+)?(?:h|ms|m|s))+")


class Wish(namedtuple("Wish", "declared kept")):
    """`declared`: it may go, whatever is lost. `kept`: why it may not; "" where nothing is written."""

    __slots__ = ()


NOTHING = Wish(False, "")


def wish_of(annotations: Mapping[str, str], age: float) -> Wish:
    """Return what the annotations say of a Pod that started `age` seconds ago.

    Ours says most. Of the others, one that keeps the Pod outweighs one that lets it go.
    """
    ours = annotations.get(EVICT)
    if ours is not None:
        return Wish(True, "") if ours == "true" else _kept(EVICT)
    if _protects(annotations.get(DO_NOT_DISRUPT, ""), age):
        return _kept(DO_NOT_DISRUPT)
    if annotations.get(SAFE) == "false":
        return _kept(SAFE)
    return Wish(annotations.get(SAFE) == "true", "")


def _kept(annotation: str) -> Wish:
    return Wish(False, f"its annotation {annotation} keeps it: let it end by itself, or {LET_GO}")


def _protects(value: str, age: float) -> bool:
    """Tell whether do-not-disrupt holds: "true", or a duration after the start of the Pod. Karpenter ignores others."""
    if not _DURATION.fullmatch(value):
        return value == "true"
    parts = re.findall(r"([0-9.]+)(h|ms|m|s)", value)
    return age < sum(float(count) * _SECONDS[unit] for count, unit in parts)


def data_of(volumes: list[dict], annotations: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of the emptyDir volumes, in memory or not, whose loss nobody has declared."""
    safe = {name.strip() for name in annotations.get(SAFE_VOLUMES, "").split(",")}
    return tuple(volume["name"] for volume in volumes if "emptyDir" in volume and volume["name"] not in safe)

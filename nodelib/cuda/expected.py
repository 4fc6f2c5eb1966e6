"""What memory and links of a GPU should reach, and which of them are too slow. Pure.

A share of what is possible in theory is asked for that a healthy GPU exceeds by far: what is below is broken, not slow.
What nobody knows the speed of is told and not judged.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

# GB/s of one PCIe lane in one direction by generation, encoding taken off (PCI-SIG: 2.5, 5, 8, 16, 32, 64 GT/s).
LANE = {1: 0.25, 2: 0.5, 3: 0.985, 4: 1.969, 5: 3.938, 6: 7.563}
# GB/s of one NVLink in one direction, by the model's name, from NVIDIA's data sheets and architecture white papers:
# P100 20; V100 25 (6 links, 300 GB/s both ways); A100 and A800 25 (12 links, 600; 8 links, 400); A30 25 (4 links, 200);
# A40, A10 bridges 14 (4 links, 112.5); Hopper 25 (18 links, 900); Blackwell 50 (18 links, 1,800).
NVLINK = (
    (r"P100", 20.0),
    (r"V100", 25.0),
    (r"A100|A800|A30\b", 25.0),
    (r"A40\b|RTX A[456]\d00", 14.0),
    (r"H100|H200|H800|H20\b|GH200", 25.0),
    (r"B100|B200|B300|GB200|GB300", 50.0),
)
PERCENT = 50.0


class Speed(NamedTuple):
    """What was measured, in GB/s, and what would be possible: None where that is not known."""

    measured: float
    possible: float | None

    def __str__(self) -> str:
        return f"{self.measured:.0f} of {self.possible:.0f} GB/s" if self.possible else f"{self.measured:.0f} GB/s"

    def is_below(self, percent: float) -> bool:
        """Whether it is less than so much of what is possible."""
        return bool(self.possible) and self.measured < (self.possible or 0.0) * percent / 100


def pcie(link: list[int] | None) -> float | None:
    """Return the GB/s of a link of this generation and so many lanes in one direction; None where it is not known.

    >>> pcie([5, 16, 16])
    63.0
    """
    generation, lanes = (link or [0, 0])[:2]
    return round(LANE[generation] * lanes, 1) if generation in LANE and 0 < lanes <= 32 else None


def nvlink(model: str, source: Mapping[str, int], target: Mapping[str, int], ends: tuple[str, str]) -> float | None:
    """Return the GB/s from one GPU to another, 0 where no NVLink joins them; None for a model that is not in the table.

    `source`, `target`: links of each by their far end; `ends`: the addresses of both.

    >>> nvlink("NVIDIA H100 80GB HBM3", {"switch": 18}, {"switch": 18}, ("0000:10:00.0", "0000:11:00.0"))
    450.0
    """
    direct = min(source.get(ends[1], 0), target.get(ends[0], 0))
    links = direct or min(source.get("switch", 0), target.get("switch", 0))
    speed = next((speed for names, speed in NVLINK if re.search(names, model)), None)
    return links * speed if speed is not None or not links else None

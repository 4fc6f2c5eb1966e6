"""What NVML's answers on NVLink and the fabric are signs of, held against what was known of each GPU before. Pure."""

from collections.abc import Mapping, Set
from typing import NamedTuple

from nodelib.nvml.results import GpuReadings, NvmlGpu

PATIENCE = 300.0  # seconds that the fabric manager has to register a GPU, and a fabric to recover
NO_TRAFFIC = 3  # state of a link that is up, but closed by the driver (since 615)
SWITCH = 2  # NVML_NVLINK_DEVICE_TYPE_SWITCH, at the other end of a link
UNREGISTERED, REGISTERED = (1, 2), 3  # states of the fabric; 0: there is none
PER_MINUTE = {"replays": 1.0, "recoveries": 1.0, "CRC errors": 6000.0}  # DCGM's limits for a failure
EARLY = {"effective errors": 1.0, "symbol errors": 1.0}  # a minute; of links that correct errors themselves
TRANSIENT = ("recovering", "time-out")
# Two bits each in the mask of health, from this bit on; 1 says that it is so, 0 that it is not told.
HEALTH = {"bandwidth": 0, "recovering": 2, "unhealthy": 4, "time-out": 6}
CONFIGURATION, RIGHT = 8, (0, 1)  # four bits: not told, and nothing wrong

Signs = Set[tuple[str, str]]  # (name of the sign, uuid of the GPU)


class NvlinkPast(NamedTuple):
    """What is known of one GPU: the links that were up in this boot; when it was last asked, its errors then.

    `registered`: when it last was, or the driver was not there; `healing`: since when its fabric recovers, 0 for not.
    """

    ups: frozenset[int] = frozenset()
    at: float = 0.0
    errors: Mapping[str, int] = {}
    registered: float = 0.0
    healing: float = 0.0


def up(gpu: NvmlGpu) -> frozenset[int]:
    """Return the links that are up."""
    links = gpu.facts.get("NVLink", {"link": [], "up": []})
    return frozenset(link for link, state in zip(links["link"], links["up"], strict=True) if state)


def down(gpu: NvmlGpu) -> frozenset[int]:
    """Return the links that are not."""
    return frozenset(gpu.facts.get("NVLink", {"link": []})["link"]) - up(gpu)


def mig(seen: GpuReadings) -> frozenset[str]:
    """Return the GPUs in MIG mode."""
    return frozenset(gpu.uuid for gpu in seen.answering if gpu.facts.get("MIG", {}).get("current"))


def judged(seen: GpuReadings) -> list[NvmlGpu]:
    """Return the GPUs that may use links and the fabric."""
    return [gpu for gpu in seen.answering if gpu.uuid not in mig(seen)]


def linked(seen: GpuReadings) -> list[NvmlGpu]:
    """Return the GPUs whose links matter."""
    return [gpu for gpu in judged(seen) if "NVLink" in gpu.facts]


def switched(gpu: NvmlGpu) -> bool:
    """Tell whether a GPU's links lead to a switch, and not to other GPUs."""
    return SWITCH in gpu.facts.get("NVLink", {"remote": []})["remote"]


def find(
    seen: GpuReadings,
    pasts: Mapping[str, NvlinkPast],
    declared: int,
    now: float,
    silent: float = 0.0,
    managed: bool = True,
) -> Signs:
    """Return the signs that this run sees. `managed`: whether a fabric manager runs, or none is needed."""
    signs = {
        ("down", gpu.uuid) for gpu in linked(seen) if _is_down(gpu, seen, pasts.get(gpu.uuid, NvlinkPast()), declared)
    }
    for gpu in judged(seen):
        past = pasts.get(gpu.uuid, NvlinkPast())
        names = [*_erring(gpu, past, now), *_of_fabric(gpu, past, silent, now)]
        names += ["disabled"] if NO_TRAFFIC in gpu.facts.get("NVLink", {"up": []})["up"] else []
        signs |= {(name, gpu.uuid) for name in names}
    return signs if managed else signs | {("no manager", gpu.uuid) for gpu in unaware(seen)}


def unaware(seen: GpuReadings) -> list[NvmlGpu]:
    """Return the GPUs with links that know nothing of a fabric, though a switch may join them."""
    return [gpu for gpu in linked(seen) if gpu.facts.get("fabric", {"state": 0})["state"] == 0]


def _is_down(gpu: NvmlGpu, seen: GpuReadings, past: NvlinkPast, declared: int) -> bool:
    return bool(past.ups - up(gpu)) or len(up(gpu)) < declared or (bool(down(gpu)) and _alone(gpu, seen))


def _alone(gpu: NvmlGpu, seen: GpuReadings) -> bool:
    """Whether all links of every other GPU are up, and this one is no card that stands for itself without a bridge."""
    others = [other for other in linked(seen) if other.uuid != gpu.uuid]
    whole = bool(others) and all(up(other) and not down(other) for other in others)
    return whole and (bool(up(gpu)) or all(map(switched, others)))


def _erring(gpu: NvmlGpu, past: NvlinkPast, now: float) -> list[str]:
    errors = gpu.facts.get("NVLink errors", {})
    grown = {name: count - past.errors[name] for name, count in errors.items() if name in past.errors}
    minutes = max(now - past.at, 60.0) / 60.0
    often = [name for name, most in {**PER_MINUTE, **EARLY}.items() if grown.get(name, 0) >= most * minutes]
    return [*often, *(["failed recoveries"] if grown.get("failed recoveries", 0) > 0 else [])]


def _of_fabric(gpu: NvmlGpu, past: NvlinkPast, silent: float, now: float) -> list[str]:
    fabric = gpu.facts.get("fabric", {"state": 0, "status": 0, "health": 0})
    health = fabric["health"]
    wrong = health >> CONFIGURATION & 0xF not in RIGHT
    patient = now - max(past.registered, silent) < PATIENCE
    bits = ill(gpu)
    healed = past.healing and now - past.healing >= PATIENCE
    return [
        *(["waiting" if patient else "unregistered"] if fabric["state"] in UNREGISTERED else []),
        *(["refused"] if fabric["state"] == REGISTERED and fabric["status"] else []),
        *(name if healed or name not in TRANSIENT else "healing" for name in bits),
        *(["configuration"] if wrong else []),
    ]


def ill(gpu: NvmlGpu) -> list[str]:
    """Return what the fabric says is wrong."""
    health = gpu.facts.get("fabric", {"health": 0})["health"]
    return [name for name, bit in HEALTH.items() if health >> bit & 3 == 1]

"""What the driver wants done to GPUs, from run to run, for each detector whose concern it is.

Two runs in a row must find something asked for, because a wish may be carried out and withdrawn at once.
"""

from collections.abc import Mapping
from typing import NamedTuple

from nodelib.contract.detector import Detector, Findings, Run, explain
from nodelib.contract.npd import Verdict
from nodelib.nvml.recovery import QUESTIONS, meaning
from nodelib.nvml.results import GpuReadings, NvmlGpu, absent, doubts, look, views

[QUESTION] = QUESTIONS
SHAPES = {QUESTION: {"action": "number"}}
TIMES = 2  # answers in a row


class Concern(NamedTuple):
    """Which wishes a detector tells of. `unclear`: whether numbers without a known meaning are told of as a doubt."""

    name: str
    condition: str
    wishes: frozenset[str]
    fine: str
    unclear: bool = False


class NvmlMemory(NamedTuple):
    """What NVML's last answer was: when it was asked for, and how many in a row wanted something of a GPU, by UUID."""

    asked_at: float = -1.0
    times: Mapping[str, int] = {}


def action(gpu: NvmlGpu) -> int:
    """Return the number of what the driver wants of one GPU, 0 for nothing or not told."""
    return int(gpu.facts.get(QUESTION, {}).get("action", 0))


def wanted(gpu: NvmlGpu, seen: GpuReadings, concern: Concern) -> bool:
    """Tell whether something is wanted that is this detector's concern."""
    return meaning(action(gpu), seen.driver) in concern.wishes


def wish(gpu: NvmlGpu, driver: str) -> str:
    """Say what the driver, of this version, wants of one GPU.

    >>> wish(NvmlGpu(0, 0, "0000:3b:00.0", "GPU-9f3c01ab-77aa", facts={"recovery action": {"action": 1}}), "")
    'the driver wants GPU reset of 0000:3b:00.0 (GPU-9f3c01ab)'
    """
    return f"the driver wants {meaning(action(gpu), driver) or f'unknown action {action(gpu)}'} of {gpu.name}"


def count(seen: GpuReadings, before: NvmlMemory, concern: Concern) -> NvmlMemory:
    """Add this answer to what is remembered; one that was counted already, and GPUs that do not tell, add nothing."""
    asked_at = seen.nvml.answers.get("asked_at")
    if not seen.gpus or asked_at == before.asked_at or type(asked_at) not in (int, float):
        return before
    asking = {gpu.uuid: wanted(gpu, seen, concern) for gpu in seen.gpus if QUESTION in gpu.facts}
    times = {uuid: before.times.get(uuid, 0) + 1 for uuid, asks in asking.items() if asks}
    silent = {uuid: n for uuid, n in before.times.items() if uuid not in asking}
    return NvmlMemory(asked_at, {**silent, **times})


def judge(seen: GpuReadings, memory: NvmlMemory, concern: Concern) -> tuple[Verdict, str]:
    """Turn what was read, and counted in `memory`, into a verdict and its line: fault before doubt before health."""
    asked = [gpu for gpu in seen.gpus if wanted(gpu, seen, concern)]
    lasting = [wish(gpu, seen.driver) for gpu in asked if memory.times.get(gpu.uuid, 0) >= TIMES]
    if lasting:
        return Verdict.FAULT, "; ".join(lasting)
    waiting = [f"{wish(gpu, seen.driver)} (to be confirmed by the next run)" for gpu in asked]
    doubtful = [*doubts(seen, SHAPES), *waiting, *(unclear(seen) if concern.unclear else [])]
    if doubtful:
        return Verdict.UNKNOWN, "; ".join(doubtful)
    unaware = [gpu.name for gpu in seen.answering if QUESTION not in gpu.facts]
    words = [f"it knows of no such thing at {', '.join(unaware)}"] if unaware else []
    others = [wish(gpu, seen.driver) for gpu in seen.answering if meaning(action(gpu), seen.driver)]
    words += [f"{', '.join(others)}: not for this Condition"] if others else []
    return Verdict.OK, "; ".join([absent(seen) or concern.fine, *words])


def unclear(seen: GpuReadings) -> list[str]:
    """Return what the driver wants by numbers that nobody can read."""
    return [wish(gpu, seen.driver) for gpu in seen.gpus if action(gpu) and not meaning(action(gpu), seen.driver)]


def detector(concern: Concern) -> Detector[NvmlMemory]:
    """Return the detector that tells of the wishes of one concern."""
    return Detector(concern.name, concern.condition, lambda run: check(run, concern), NvmlMemory)


def check(run: Run[NvmlMemory], concern: Concern) -> Findings:
    """One run: look, count, judge."""
    seen = look(run.options, SHAPES)
    memory = count(seen, run.last, concern)
    verdict, line = judge(seen, memory, concern)
    asking = [{**gpu.who, "action": action(gpu)} for gpu in seen.gpus if wanted(gpu, seen, concern)]
    return Findings(
        verdict,
        line,
        memory,
        evidence=lambda: {"gpus": asking},
        explain=lambda: explain({**views(seen), "counted": memory}, checks(seen), verdict),
    )


def checks(seen: GpuReadings) -> dict[str, str]:
    """Return all wishes, and the doubts."""
    wishes = "; ".join(wish(gpu, seen.driver) for gpu in seen.gpus if action(gpu))
    return {"wanted": wishes, "doubts": "; ".join(doubts(seen, SHAPES))}

"""What the memory of GPUs shows: which counters are a sign of what, and what is due. Pure.

The first words of a text say what is wrong, the word in parentheses what helps.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from nodelib.nvml.ecc import QUESTIONS
from nodelib.nvml.results import GpuReadings, NvmlGpu

MOST_PAGES = 60  # a card has room for 64 retired pages (NVIDIA, GPU memory error management: row remapping)
COUNTER_CHARS = 800  # evidence must fit into the 4096 characters that collect-diagnostics has for all that it finds
INVALID_ARGUMENT = 2
DRAIN_AND_RESET = 4  # of the driver's recovery actions
RESET, REPLACE = "reset", "replace"


class MemorySign(NamedTuple):
    """Something that a GPU's counters show. `remedy`: what to do with the GPU, "" for nothing."""

    words: str
    remedy: str
    shows: Callable[[NvmlGpu], bool]


def fact(gpu: NvmlGpu, question: str, name: str) -> int:
    """Return one number, 0 where the GPU does not report it."""
    return int(gpu.facts.get(question, {}).get(name, 0))


def pages(gpu: NvmlGpu) -> int:
    """Return how many pages the GPU has retired."""
    return fact(gpu, "retired pages", "single") + fact(gpu, "retired pages", "double")


# In the order of the line. What nothing on the node cures:
WORN: tuple[MemorySign, ...] = (
    MemorySign("row remap failed", REPLACE, lambda gpu: fact(gpu, "row remap", "failed") > 0),
    MemorySign("memory that cannot be repaired", REPLACE, lambda gpu: fact(gpu, "unrepairable memory", "flag") > 0),
    MemorySign("SRAM error threshold exceeded", REPLACE, lambda gpu: fact(gpu, "SRAM", "exceeded") > 0),
    MemorySign("too many retired pages", REPLACE, lambda gpu: pages(gpu) >= MOST_PAGES),
)
# What a reset cures, when it suits the jobs:
WAITING: tuple[MemorySign, ...] = (
    MemorySign(
        "uncorrected memory errors since the driver loaded",
        RESET,
        lambda gpu: fact(gpu, "uncorrected errors", "volatile") > 0,
    ),
    MemorySign("row remap pending", RESET, lambda gpu: fact(gpu, "row remap", "pending") > 0),
    MemorySign("page retirement pending", RESET, lambda gpu: fact(gpu, "retired pages", "pending") > 0),
    MemorySign(
        "the driver asks to drain and reset",
        RESET,
        lambda gpu: fact(gpu, "recovery action", "action") == DRAIN_AND_RESET,
    ),
)
# What only a person should know:
FEW_ROWS = MemorySign(
    "few spare rows left", "", lambda gpu: fact(gpu, "spare rows", "low") + fact(gpu, "spare rows", "none") > 0
)
WARNINGS: tuple[MemorySign, ...] = (
    FEW_ROWS,
    MemorySign("ECC is off", "", lambda gpu: gpu.facts.get("ECC mode", {}).get("current") == 0),
)
# The numbers that faults rest on: a GPU must tell them or say that it has no such thing.
NEEDED = {
    "uncorrected errors": {"volatile": "number"},
    "row remap": {"pending": "number", "failed": "number"},
    "SRAM": {"exceeded": "number"},
    "retired pages": {"single": "number", "double": "number", "pending": "number"},
}
SHAPES = {
    **NEEDED,
    "unrepairable memory": {"flag": "number"},
    "recovery action": {"action": "number"},
    "corrected errors": {"volatile": "number"},
    "spare rows": {"low": "number", "none": "number"},
    "ECC mode": {"current": "number"},
}


def odd(seen: GpuReadings) -> list[str]:
    """Return which answers make no sense though they are of the right shape: questions put wrongly, counts below 0."""
    return [
        f"{gpu.name} does not report its {question} in a way that makes sense"
        for gpu in seen.answering
        for question, names in NEEDED.items()
        if gpu.refused.get(question) == INVALID_ARGUMENT or any(fact(gpu, question, name) < 0 for name in names)
    ]


def told(
    signs: Sequence[MemorySign], seen: GpuReadings, name: Callable[[NvmlGpu], str] = lambda gpu: gpu.name
) -> list[str]:
    """Return a text for each sign that some GPU shows, naming those GPUs."""
    shown = [(sign, [name(gpu) for gpu in seen.gpus if sign.shows(gpu)]) for sign in signs]
    return [f"{_title(sign)}: {', '.join(names)}" for sign, names in shown if names]


def _title(sign: MemorySign) -> str:
    return f"{sign.words} ({sign.remedy})" if sign.remedy else sign.words


def faulty(faults: Sequence[MemorySign], gpus: Sequence[NvmlGpu]) -> list[dict[str, Any]]:
    """Return who the faulty GPUs are and each counter that is not 0; of many GPUs the last ones without counters."""
    bad = [gpu for gpu in gpus if any(sign.shows(gpu) for sign in faults)]
    rows = []
    for gpu in bad:
        facts = {question: gpu.facts[question] for question in QUESTIONS if question in gpu.facts}
        counters = {f"{question}: {name}": n for question, counts in facts.items() for name, n in counts.items() if n}
        rows.append({**gpu.who, "counters": counters} if len(str(rows)) < COUNTER_CHARS else gpu.who)
    return rows

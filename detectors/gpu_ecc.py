#!/usr/bin/env -S python3 -E -s -S -B
"""Condition GpuEccFault: a GPU has lost data in its memory, or waits for a reset to put bad memory out of use.

Faults, and what cures them:

  uncorrected memory errors since the driver loaded   reset the GPU (its memory's contents are not to be trusted)
  row remap pending, page retirement pending          reset the GPU; the jobs on it are safe, so wait until it is idle
  row remap failed                                    replace the GPU: spare rows have run out
  SRAM error threshold exceeded                       replace the GPU
  too many retired pages                              replace the GPU: 60 of the 64 that it can retire

A reset or a reboot clears the first two kinds. The third comes back: run the maker's field diagnostic and have the GPU
replaced; serial number, UUID and counters as they were at first sight are in <state>/evidence/gpu_ecc.json.

Few spare rows left, and ECC switched off, are only told by --explain and a run by hand. A GPU that has no such counters
(GeForce, MIG, ECC off) has no fault that could be seen here. A GPU that is lost and an NVML that does not answer are
"cannot tell": GpuLost tells of them.

Exit codes: 0 no fault, 1 fault, 2 cannot tell.
"""

from argparse import Namespace
from collections.abc import Callable
from typing import Any, NamedTuple

from _asking import main, parser
from _detector import explain, keep_evidence
from _ecc import QUESTIONS, Gpu, read_gpus
from _gpus import Card, Driven, known, ours, read_driver, read_pci
from _nvml import child
from _probe import Answer, ask
from _verdict import Verdict

NAME = "gpu_ecc"
MOST_PAGES = 60  # a card has room for 64 retired pages (NVIDIA, GPU memory error management: row remapping)
COUNTER_CHARS = 800  # evidence must fit into the 4096 characters that collect-diagnostics has for all that it finds

# NVML codes that say that a GPU or its driver has no such thing: not supported, no such function, ECC of a virtual GPU,
# a structure that is newer than the driver, a function that is no more.
NOT_THERE = {3, 13, 22, 25, 26}
HINTS = {4: "no permission, run as root", 16: "requires reset", 15: "lost"}
RESET, REPLACE = "reset", "replace"


class Sign(NamedTuple):
    """Something that a GPU's counters show. `remedy`: what to do with the GPU, "" for nothing."""

    words: str
    remedy: str
    shows: Callable[[Gpu], bool]


# In the order of the line: what cannot be cured on the node comes first.
FAULTS: tuple[Sign, ...] = (
    Sign("row remap failed", REPLACE, lambda gpu: gpu.fact("row remap", "failed") > 0),
    Sign("SRAM error threshold exceeded", REPLACE, lambda gpu: gpu.fact("SRAM", "exceeded") > 0),
    Sign("too many retired pages", REPLACE, lambda gpu: _pages(gpu) >= MOST_PAGES),
    Sign(
        "uncorrected memory errors since the driver loaded",
        RESET,
        lambda gpu: gpu.fact("uncorrected errors", "volatile") > 0,
    ),
    Sign("row remap pending", RESET, lambda gpu: gpu.fact("row remap", "pending") > 0),
    Sign("page retirement pending", RESET, lambda gpu: gpu.fact("retired pages", "pending") > 0),
)
WARNINGS: tuple[Sign, ...] = (
    Sign("few spare rows left", "", lambda gpu: gpu.fact("spare rows", "low") + gpu.fact("spare rows", "none") > 0),
    Sign("ECC is off", "", lambda gpu: gpu.facts.get("ECC mode", {}).get("current") == 0),
)
# The numbers that faults rest on: a GPU must tell them or say that it has no such thing.
NEEDED = {
    "uncorrected errors": {"volatile"},
    "row remap": {"pending", "failed"},
    "SRAM": {"exceeded"},
    "retired pages": {"single", "double", "pending"},
}


def _pages(gpu: Gpu) -> int:
    return gpu.fact("retired pages", "single") + gpu.fact("retired pages", "double")


class Seen(NamedTuple):
    """All that was read in one run. None means that a view could not be had."""

    cards: tuple[Card, ...] | None
    driven: dict[str, Driven] | None
    nvml: Answer

    @property
    def gpus(self) -> tuple[Gpu, ...]:
        """The GPUs that NVML told of, by name; () where it did not tell all it was asked or that makes no sense."""
        try:
            return read_gpus(self.nvml.said)
        except ValueError:
            return ()


def judge(seen: Seen) -> tuple[Verdict, str]:
    """Turn what was read into a verdict and its line: any fault outranks any doubt, any doubt outranks health."""
    for verdict, found in ((Verdict.FAULT, told(FAULTS, seen)), (Verdict.UNKNOWN, doubts(seen))):
        if found:
            return verdict, "; ".join(found)
    return Verdict.OK, "; ".join(["no GPU has a memory fault", *told(WARNINGS, seen)])


def told(signs: tuple[Sign, ...], seen: Seen) -> list[str]:
    """Return a text for each sign that some GPU shows, naming those GPUs."""
    shown = [(sign, [gpu.name for gpu in seen.gpus if sign.shows(gpu)]) for sign in signs]
    return [f"{_title(sign)}: {', '.join(names)}" for sign, names in shown if names]


def _title(sign: Sign) -> str:
    return f"{sign.words} ({sign.remedy})" if sign.remedy else sign.words


def doubts(seen: Seen) -> list[str]:
    """Return why nothing can be said of some GPU."""
    return sorted({text for doubt in DOUBTS for text in doubt(seen)})


def _no_answer(seen: Seen) -> list[str]:
    nvml, code = seen.nvml, seen.nvml.said.get("init")
    if nvml.hung:
        return [f"NVML has not answered since {nvml.hung} at {nvml.said.get('at', 'start')} (see GpuLost)"]
    if not _wanted(seen):
        return []
    if code:
        return [f"NVML does not start (code {code}; see GpuLost)"]
    why = nvml.said.get("failed", nvml.why)
    return [f"NVML cannot be asked: {why}"] if why else _no_sense(seen)


def _no_sense(seen: Seen) -> list[str]:
    try:
        return [] if read_gpus(seen.nvml.said) else ["NVML lists no GPU"]
    except ValueError as error:
        return [f"NVML's answer makes no sense: {error}"]


def _silent(seen: Seen) -> list[str]:
    lost = [gpu for gpu in seen.gpus if gpu.error]
    return [f"GPU index {gpu.index} does not answer ({_code(gpu.error)}; see GpuLost)" for gpu in lost]


def _refusing(seen: Seen) -> list[str]:
    answering = [gpu for gpu in seen.gpus if not gpu.error]
    return [
        f"{gpu.name} does not tell its {question} ({_code(gpu.refused.get(question))})"
        for gpu in answering
        for question, names in NEEDED.items()
        if gpu.refused.get(question) not in NOT_THERE and not names <= set(gpu.facts.get(question, {}))
    ]


def _code(code: int | None) -> str:
    return "no answer" if code is None else f"code {code}" + (f", {HINTS[code]}" if code in HINTS else "")


def _not_in_nvml(seen: Seen) -> list[str]:
    listed = len(seen.gpus)
    return ["NVML lists fewer GPUs than PCI (see GpuLost)"] if 0 < listed < len(ours(seen.cards, seen.driven)) else []


def _not_present(seen: Seen) -> list[str]:
    lost = [card for card in seen.cards or () if card.state != "present"]
    return [f"PCI function {card.address} is {card.state} (see GpuLost)" for card in lost]


def _wanted(seen: Seen) -> bool:
    """Whether NVML should show anything: not where every GPU is given to another driver."""
    return bool(ours(seen.cards, seen.driven)) or not known(seen.cards)


DOUBTS: tuple[Callable[[Seen], list[str]], ...] = (_no_answer, _silent, _refusing, _not_in_nvml, _not_present)


def faulty(gpus: tuple[Gpu, ...]) -> list[dict[str, Any]]:
    """Return who the faulty GPUs are and each counter that is not 0; of many GPUs the last ones without counters."""
    bad = [gpu for gpu in gpus if any(sign.shows(gpu) for sign in FAULTS)]
    found = []
    for gpu in bad:
        who = {"address": gpu.address, "uuid": gpu.uuid, "serial": gpu.serial}
        counters = {f"{question}: {name}": n for question, facts in gpu.facts.items() for name, n in facts.items() if n}
        found.append({**who, "counters": counters} if len(str(found)) < COUNTER_CHARS else who)
    return found


def check(options: Namespace) -> tuple[Verdict, str]:
    """One run: look, judge, keep the evidence."""
    seen = Seen(
        cards=read_pci(options.sys),
        driven=read_driver(options.proc),
        nvml=ask(child(__file__, options.pynvml), options.state, NAME, options.deadline),
    )
    verdict, line = judge(seen)
    found = {"condition": "GpuEccFault", "line": line, "gpus": faulty(seen.gpus)}
    keep_evidence(options.state, NAME, verdict, found)
    if options.explain:
        explain(views(seen), checks(seen), verdict)
    return verdict, line


def views(seen: Seen) -> dict[str, Any]:
    """Return what was read, a line for each GPU."""
    bare = {name: value for name, value in seen.nvml.said.items() if name != "gpus"}
    gpus = {gpu.name: f"code {gpu.error}, facts {gpu.facts}, refused {gpu.refused}" for gpu in seen.gpus}
    return {"cards": seen.cards, "driven": seen.driven, "nvml": seen.nvml._replace(said=bare), **gpus}


def checks(seen: Seen) -> dict[str, str]:
    """Return what each sign and each doubt says, by its name."""
    signs = {sign.words: ", ".join(gpu.name for gpu in seen.gpus if sign.shows(gpu)) for sign in (*FAULTS, *WARNINGS)}
    return {**signs, **{f"doubt {doubt.__name__.strip('_')}": "; ".join(doubt(seen)) for doubt in DOUBTS}}


if __name__ == "__main__":
    main(parser(__doc__).parse_args(), NAME, QUESTIONS, check)

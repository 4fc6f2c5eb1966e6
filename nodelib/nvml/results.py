"""What NVML said, read back for a detector: its GPUs, and the doubts that leave it nothing to judge.

A detector declares the shape of the answers that it reads. A GPU answers a question with facts or with a refusal; one
that says that it has no such thing (PCIe cards know no NVLink, GeForce little of all) leaves nothing to be doubted.
"""

import argparse
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from nodelib.host.child_process import ChildAnswer
from nodelib.host.gpus import Card, Driven, ours, read_driver, read_pci, unreadable
from nodelib.nvml.client import nvml
from nodelib.nvml.fields import NOT_THERE

HINTS = {4: "no permission, run as root", 15: "lost", 16: "requires reset"}

# By question, what each fact of its answer is: "number", "numbers", "texts"; with ? where not every GPU tells it. The
# lists of one answer are parallel.
Shapes = Mapping[str, Mapping[str, str]]
CHECKS = {
    "number": lambda one: type(one) is int,
    "texts": lambda one: _all(one, str),
    "numbers": lambda o: _all(o, int),
}


class NvmlGpu(NamedTuple):
    """One GPU as NVML told of it. `error`: code, 0 for fine; `facts` by question; `refused`: code by question."""

    index: int
    error: int
    address: str = ""
    uuid: str = ""
    serial: str = ""
    facts: Mapping[str, Mapping[str, Any]] = {}
    refused: Mapping[str, int] = {}

    @property
    def name(self) -> str:
        """PCI address and the start of the UUID.

        >>> NvmlGpu(3, 0, "0000:3b:00.0", "GPU-9f3c01ab-77aa-1234-5678-0123456789ab").name
        '0000:3b:00.0 (GPU-9f3c01ab)'
        """
        uuid = "-".join(self.uuid.split("-")[:2])
        return f"{self.address} ({uuid})" if uuid else self.address or f"GPU index {self.index}"

    @property
    def board(self) -> str:
        """The same with the serial number of its board, for a line that nobody looks into evidence for.

        >>> NvmlGpu(3, 0, "0000:3b:00.0", "GPU-9f3c01ab-77aa-1234-5678-0123456789ab", "1563521020414").board
        '0000:3b:00.0 (GPU-9f3c01ab, serial 1563521020414)'
        """
        return f"{self.name[:-1]}, serial {self.serial})" if self.serial and self.uuid else self.name

    @property
    def who(self) -> dict[str, str]:
        """What a person or the maker asks for first."""
        return {"address": self.address, "uuid": self.uuid, "serial": self.serial}


class GpuReadings(NamedTuple):
    """All that was read in one run. None: a view could not be had. `gpus`: by name, () where `why` says what failed."""

    cards: tuple[Card, ...] | None
    driven: Mapping[str, Driven] | None
    nvml: ChildAnswer
    gpus: tuple[NvmlGpu, ...] = ()
    why: str = ""

    @property
    def driver(self) -> str:
        """The driver's version, "" for not known."""
        return str(self.nvml.answers.get("driver", ""))

    @property
    def answering(self) -> tuple[NvmlGpu, ...]:
        """The GPUs that answer."""
        return tuple(gpu for gpu in self.gpus if not gpu.error)


def look(options: argparse.Namespace, shapes: Shapes) -> GpuReadings:
    """Read what there is to read, and ask NVML."""
    return see(read_pci(options.sys), read_driver(options.proc), nvml(options), shapes)


def see(
    cards: tuple[Card, ...] | None, driven: Mapping[str, Driven] | None, answer: ChildAnswer, shapes: Shapes
) -> GpuReadings:
    """Return what was read, with the GPUs of the answer."""
    try:
        return GpuReadings(cards, driven, answer, gpus=read_gpus(answer.answers, shapes))
    except ValueError as error:
        return GpuReadings(cards, driven, answer, why=str(error))


def read_gpus(answers: Mapping[str, Any], shapes: Shapes) -> tuple[NvmlGpu, ...]:
    """Return the GPUs of an answer by name. Raises ValueError where it is not complete or not of these shapes."""
    listed = answers.get("gpus")
    if answers.get("init") != 0 or answers.get("done") is not True or not isinstance(listed, list):
        raise ValueError("not every GPU was asked")
    if len(listed) != answers.get("count"):
        raise ValueError("not every GPU was asked")
    return tuple(sorted((_read(row, shapes) for row in listed), key=lambda gpu: (gpu.name, gpu.index)))


def _read(row: Any, shapes: Shapes) -> NvmlGpu:
    try:
        gpu = NvmlGpu(**row)
        sound = all(type(text) is str for text in (gpu.address, gpu.uuid, gpu.serial)) and all(
            type(number) is int for number in (gpu.index, gpu.error, *gpu.refused.values())
        )
        odd = [question for question in shapes if not _fits(gpu.facts.get(question), shapes[question])]
    except (TypeError, AttributeError) as error:
        raise ValueError("a GPU is not described as it should be") from error
    if not sound or odd:
        raise ValueError(f"{odd[0]} is not told as it should be" if odd else "a GPU is not described as it should be")
    return gpu


def _fits(facts: Mapping[str, Any] | None, shape: Mapping[str, str]) -> bool:
    if facts is None:
        return True
    lists = [facts.get(name) for name, kind in shape.items() if kind in ("numbers", "texts")]
    sound = all(
        CHECKS[kind.rstrip("?")](facts.get(name))
        for name, kind in shape.items()
        if name in facts or not kind.endswith("?")
    )
    return sound and len({len(column) for column in lists if column is not None}) <= 1


def _all(values: Any, kind: type) -> bool:
    return isinstance(values, list) and all(type(value) is kind for value in values)


def absent(seen: GpuReadings) -> str:
    """Return why there is nothing to look at on this node, "" where there is or nobody can tell."""
    if seen.cards is None or unreadable(seen.cards) or seen.nvml.answers.get("count"):
        return ""
    if not seen.cards:
        return "there is no NVIDIA GPU on this node"
    return "" if ours(seen.cards, seen.driven) else "no GPU of this node belongs to the NVIDIA driver"


def doubts(seen: GpuReadings, needed: Collection[str]) -> list[str]:
    """Return why nothing can be said of some GPU; `needed`: the questions that a GPU must answer if it can."""
    texts = [] if absent(seen) else [*_no_answer(seen), *_silent(seen), *_refusing(seen, needed), *_not_shown(seen)]
    return sorted(set(texts))


def _no_answer(seen: GpuReadings) -> list[str]:
    answer, code = seen.nvml, seen.nvml.answers.get("init")
    if answer.silent_since:
        return [
            f"NVML has not answered since {answer.silent_since} at {answer.answers.get('at', 'start')} (see GpuLost)"
        ]
    if code:
        return [f"NVML does not start (code {code}; see GpuLost)"]
    why = answer.answers.get("failed", answer.why)
    if why:
        return [f"NVML cannot be asked: {why}"]
    if seen.why:
        return [f"NVML's answer makes no sense: {seen.why}"]
    return [] if seen.gpus else ["NVML lists no GPU (see GpuLost)"]


def _silent(seen: GpuReadings) -> list[str]:
    lost = [gpu for gpu in seen.gpus if gpu.error]
    return [f"GPU index {gpu.index} does not answer ({_code(gpu.error)}; see GpuLost)" for gpu in lost]


def _refusing(seen: GpuReadings, needed: Collection[str]) -> list[str]:
    return [
        f"{gpu.name} does not report its {question} ({_code(gpu.refused.get(question))})"
        for gpu in seen.answering
        for question in needed
        if question not in gpu.facts and gpu.refused.get(question) not in NOT_THERE
    ]


def _code(code: int | None) -> str:
    return "no answer" if code is None else f"code {code}" + (f", {HINTS[code]}" if code in HINTS else "")


def _not_shown(seen: GpuReadings) -> list[str]:
    odd = [
        f"PCI function {card.address} is {card.state} (see GpuLost)"
        for card in seen.cards or ()
        if card.state != "present"
    ]
    fewer = 0 < len(seen.gpus) < len(ours(seen.cards, seen.driven))
    return [*odd, *(["NVML lists fewer GPUs than PCI (see GpuLost)"] if fewer else [])]


def views(seen: GpuReadings) -> dict[str, Any]:
    """Return what was read, a line for each GPU, for --explain."""
    bare = {name: value for name, value in seen.nvml.answers.items() if name != "gpus"}
    gpus = {gpu.name: f"code {gpu.error}, facts {gpu.facts}, refused {gpu.refused}" for gpu in seen.gpus}
    return {"cards": seen.cards, "driven": seen.driven, "nvml": seen.nvml._replace(answers=bare), **gpus}

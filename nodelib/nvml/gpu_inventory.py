"""Whether every GPU that should be on a node is there: what its views, held against each other, say.

Pure: a run's reading goes in, a verdict and its line come out.
"""

from collections.abc import Callable
from typing import NamedTuple

from nodelib.contract.npd import Verdict
from nodelib.host.child_process import ChildAnswer
from nodelib.host.gpus import Card, Driven, Offered, known, ours, unreadable
from nodelib.nvml.queries import answering

DRIVER_PATIENCE = 900.0  # seconds that a node may be without driver: one is being installed or upgraded
ROLLOUT_PATIENCE = 7200.0  # while the Pod of a driver in a container works on it: it may compile for a new kernel

# NVML codes that blame a GPU or the driver; any other code says only that we could not ask.
INIT_FAULTS = {9: "the driver is not loaded", 999: "unknown error"}
GPU_FAULTS = {
    6: "not found",
    15: "GPU is lost",
    16: "GPU requires reset",
    28: "GPU not found",
    999: "unknown error",
}


MISMATCH = 18  # an upgrade, or a library of our own that is older than the driver: no GPU is lost
WITHOUT_DRIVER = (9, 12)  # what NVML says where there is none: it is not loaded, or has not even left a library


class GpuViews(NamedTuple):
    """All that was read in one run. None means that a view could not be had.

    `expected`: GPUs that should be on the bus, None when neither declared nor learned; `without_driver`: seconds that
    the driver has been missing so far; `installing`: whether the Pod of a driver in a container works on it.
    """

    cards: tuple[Card, ...] | None
    driven: dict[str, Driven] | None
    nodes: frozenset[int] | None
    nvml: ChildAnswer
    expected: int | None = None
    offered: Offered | None = None
    without_driver: float = 0.0
    installing: bool = False

    @property
    def total(self) -> int | None:
        """How many GPUs there are: those on PCI, or NVML's where PCI shows none; None when nobody can tell."""
        if known(self.cards) or (self.cards is not None and "count" not in self.nvml.answers):
            return len(known(self.cards))
        return self.nvml.answers.get("count")

    @property
    def wanted(self) -> bool:
        """Whether NVML should show anything."""
        return bool(ours(self.cards, self.driven)) or (not known(self.cards) and self.expected != 0)

    @property
    def awaits_driver(self) -> bool:
        """Whether NVML cannot be asked because the driver is missing, which has a patience of its own."""
        missing = self.driven is None and self.nvml.answers.get("init") in WITHOUT_DRIVER
        return missing and bool(ours(self.cards, self.driven))


def judge(seen: GpuViews) -> tuple[Verdict, str]:
    """Turn what was read into a verdict and its line: any fault outranks any doubt, any doubt outranks health.

    What the kubelet offers is told where all is well, and never decides.
    """
    for verdict, views in ((Verdict.FAULT, FAULTS), (Verdict.UNKNOWN, DOUBTS)):
        texts = sorted({text for view in views for text in view(seen)})
        if texts:
            return verdict, "; ".join(texts)
    return Verdict.OK, "; ".join(["every GPU answers", *_not_offered(seen)])


def _not_offered(seen: GpuViews) -> list[str]:
    """A device plugin that has once found a device unhealthy does not take that back until it is started again."""
    if seen.offered is None or seen.offered.why:
        return []
    listed = {gpu.get("uuid", ""): gpu.get("address", "") for gpu in answering(seen.nvml.answers)}
    kept = sorted(address for uuid, address in listed.items() if uuid not in seen.offered.uuids)
    return [f"kubelet offers fewer GPUs than NVML lists: restart the device plugin: {', '.join(kept)}"] if kept else []


def _fallen_off_the_bus(seen: GpuViews) -> list[str]:
    return [f"{card.address} has fallen off the bus" for card in known(seen.cards).values() if card.state == "fallen"]


def _patience(seen: GpuViews) -> float:
    return ROLLOUT_PATIENCE if seen.installing else DRIVER_PATIENCE


def _without_driver(seen: GpuViews) -> list[str]:
    if seen.driven is None:
        return (
            ["the driver is not loaded"]
            if ours(seen.cards, seen.driven) and seen.without_driver >= _patience(seen)
            else []
        )
    lost = [card.address for card in known(seen.cards).values() if not card.driver and card.address not in seen.driven]
    return [f"{address} has no driver: its probe failed" for address in lost]


def _gone_from_pci(seen: GpuViews) -> list[str]:
    gone = set(seen.driven or {}) - set(known(seen.cards)) - set(unreadable(seen.cards)) if known(seen.cards) else set()
    return [f"{address} has left PCI" for address in gone]


def _without_node(seen: GpuViews) -> list[str]:
    if seen.nodes is None:
        return []
    minors = {gpu.minor for gpu in (seen.driven or {}).values() if not gpu.excluded} - {None}
    return [f"/dev/nvidia{minor} is missing" for minor in minors - seen.nodes]


def _nvml_init(seen: GpuViews) -> list[str]:
    code = seen.nvml.answers.get("init")
    if not seen.wanted or code not in INIT_FAULTS or (code == 9 and seen.driven is None):
        return []  # NVML says 9 when there is no driver, and that has a patience of its own
    return [f"NVML does not start: {INIT_FAULTS[code]} (code {code})"]


def _nvml_gpus(seen: GpuViews) -> list[str]:
    errors = [(gpu.get("index"), gpu.get("error")) for gpu in seen.nvml.answers.get("gpus", [])]
    return [
        f"NVML at GPU index {index}: {GPU_FAULTS[code]} (code {code})" for index, code in errors if code in GPU_FAULTS
    ]


def _not_in_nvml(seen: GpuViews) -> list[str]:
    """GPUs that NVML does not list though it was asked for all; those that answer with an error are told elsewhere."""
    answers = seen.nvml.answers
    listed = {gpu.get("address") for gpu in answering(seen.nvml.answers)}
    if (
        not answers.get("done")
        or "count" not in answers
        or answers["count"] >= len(ours(seen.cards, seen.driven))
        or None in listed
    ):
        return []
    errors = answers["count"] - len(answering(seen.nvml.answers))
    absent = [f"{address} is missing in NVML" for address in ours(seen.cards, seen.driven) - listed]
    return absent if not errors else ["NVML lists fewer GPUs than PCI"]


def _too_few(seen: GpuViews) -> list[str]:
    if seen.expected is None or seen.total is None or seen.total + len(unreadable(seen.cards)) >= seen.expected:
        return []
    return [f"{seen.expected} GPUs expected, {seen.total} present"]


def _nvml_hung(seen: GpuViews) -> list[str]:
    return (
        [f"NvmlHung: no answer since {seen.nvml.silent_since} at {seen.nvml.answers.get('at', 'start')}"]
        if seen.nvml.silent_since
        else []
    )


def _pci_unreadable(seen: GpuViews) -> list[str]:
    return [f"PCI function {address} cannot be read" for address in unreadable(seen.cards)]


def _no_nvml(seen: GpuViews) -> list[str]:
    answers, why = seen.nvml.answers, seen.nvml.why
    code = answers.get("init")
    if not seen.wanted or seen.awaits_driver:
        return []
    if code == MISMATCH:
        return [f"NVML cannot be asked: driver and library version mismatch (code {code}; see DriverMismatch)"]
    if code:
        return [f"NVML cannot be asked (code {code})"]
    if seen.nvml.silent_since or (answers.get("done") is True and "failed" not in answers and not why):
        return []
    return [f"NVML cannot be asked: {answers.get('failed', why or 'no full answer')}"]


def _odd_gpus(seen: GpuViews) -> list[str]:
    errors = [(gpu.get("index"), gpu.get("error")) for gpu in seen.nvml.answers.get("gpus", [])]
    return [f"NVML at GPU index {index}: code {code}" for index, code in errors if code and code not in GPU_FAULTS]


def _driver_awaited(seen: GpuViews) -> list[str]:
    by = ": its Pod is at work" if seen.installing else ""
    return [f"the driver is not loaded (yet){by}"] if seen.awaits_driver else []


def _nothing_seen(seen: GpuViews) -> list[str]:
    if seen.total is None:
        return ["neither PCI nor NVML can be read"]
    return (
        ["no GPU seen and none declared (--expected 0 where that is right)"]
        if not seen.total and seen.expected is None
        else []
    )


View = Callable[[GpuViews], list[str]]
FAULTS: tuple[View, ...] = (
    _fallen_off_the_bus,
    _without_driver,
    _gone_from_pci,
    _without_node,
    _nvml_init,
    _nvml_gpus,
    _not_in_nvml,
    _too_few,
)
NOTES: tuple[View, ...] = (_not_offered,)
DOUBTS: tuple[View, ...] = (_nvml_hung, _pci_unreadable, _no_nvml, _odd_gpus, _driver_awaited, _nothing_seen)

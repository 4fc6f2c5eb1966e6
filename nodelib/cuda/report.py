"""What GPUs did, held against what they should do: what is wrong, or the sentence that says how well each did. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from nodelib.cuda import expected
from nodelib.cuda.expected import Speed

Facts = Mapping[str, Any]
Figures = dict[str, tuple[str, Speed]]  # what was measured, by its name: the kind that judges it, and the speed


class Report:
    """`gpus`: what NVML says of each, by UUID; `done`: what each did, by UUID; `speeds`: those of all links."""

    def __init__(self, gpus: Mapping[str, Facts], done: Mapping[str, Facts], speeds: Sequence[Facts]):
        self._gpus, self._done, self._speeds = gpus, done, speeds

    def new_errors(self, after: Mapping[str, Facts]) -> Iterator[str]:
        """Yield each GPU that has counted uncorrected memory errors meanwhile, or that NVML lists no more."""
        for uuid, gpu in self._gpus.items():
            if uuid not in after:
                yield f"driver: {name(gpu)} is not in NVML's list any more: reboot the node"
                continue
            counts = gpu["uncorrected"], after[uuid]["uncorrected"]
            if None not in counts and counts[1] > counts[0]:
                yield f"memory: {name(gpu)}: {counts[1] - counts[0]} uncorrected errors while it worked"

    def slow(self, percent: Mapping[str, float]) -> Iterator[str]:
        """Yield what is slower than so much of what is possible, by kind."""
        parts = [(name(gpu), self._figures(gpu)) for gpu in self._gpus.values()]
        for who, figures in (*parts, ("NVLink", self.pairs)):
            for what, (kind, speed) in figures.items():
                if speed.is_below(percent[kind]):
                    yield f"{'memory' if kind == 'memory' else 'link'}: {who}: {what} reaches only {speed}"

    def text(self, path: Sequence[str]) -> str:
        """Return what a person reads: that all is well, by which path it was reached, and each GPU with its figures."""
        head = f"all {len(self._gpus)} GPUs work: memory kept what was written, every product was right"
        if self.pairs:
            slowest = min(self.pairs, key=lambda pair: self.pairs[pair][1].measured)
            path = [*path, f"{len(self.pairs)} ways between GPUs, the slowest {slowest} {self.pairs[slowest][1]}"]
        return ". ".join([head, "; ".join(path), *map(self._line, self._gpus.values())])

    @cached_property
    def pairs(self) -> Figures:
        """What was measured between each two GPUs; nothing where no two reach each other: so the node was set up."""
        by_address = {gpu["address"]: gpu for gpu in self._gpus.values()}
        pairs = {}
        for line in self._speeds:
            if "source" in line:
                ends = line["source"], line["target"]
                source, target = (by_address[end] for end in ends)
                model = self._done[source["uuid"]]["name"]
                possible = expected.nvlink(model, source["nvlinks"], target["nvlinks"], ends)
                pairs[" to ".join(ends)] = "nvlink", Speed(line["speed"], possible or None)
        return pairs if any(speed.measured for _, speed in pairs.values()) else {}

    def _figures(self, gpu: Facts) -> Figures:
        own, possible = self._done[gpu["uuid"]], expected.pcie(gpu["pcie"])
        memory = {"memory": ("memory", Speed(own["read"], own["nominal"] if gpu["mig"] is None else None))}
        host = next((line for line in self._speeds if line.get("address") == gpu["address"]), {})
        ways = {"PCIe to it": "to", "PCIe from it": "out"}
        return memory | {what: ("pcie", Speed(host[way], possible)) for what, way in ways.items() if way in host}

    def _line(self, gpu: Facts) -> str:
        own = self._done[gpu["uuid"]]
        amount = f"{name(gpu)} {own['name']}: {own['megabytes']} MiB in {own['rounds']} rounds"
        tensor = [f"tensor cores right ({own['teraflops']:.0f} TFLOP/s)"] if "teraflops" in own else []
        speeds = [f"{what} {speed}" for what, (_, speed) in self._figures(gpu).items()]
        link = gpu["pcie"]
        lanes = [f"generation {link[0]} x{link[2]} of x{link[1]}"] if link else []
        return ", ".join([amount, f"{own['products']} products right", *tensor, *speeds, *lanes])


def name(gpu: Facts) -> str:
    """Return who a GPU is, for a person and for its maker."""
    serial = f"serial {gpu['serial']}, " if gpu["serial"] else ""
    return f"{gpu['address']} ({serial}{gpu['uuid']})"

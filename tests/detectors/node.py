"""A node made of files: PCI functions, the driver's list, device nodes and a scripted NVML."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from tests.harness import node_programs
from tests.native import Script

DETECTORS = Path(__file__).resolve().parents[2] / "detectors"


def program_of(rule):
    """The detector of a rule of node-problem-detector."""
    return DETECTORS / f"{rule['args'][0]}.py"


ALIVE = bytes.fromhex("de10222506041000") + bytes(56)
DRIVER = "615.71.05"
FALLEN = b"\xff" * 64


class Ran(NamedTuple):
    code: int
    line: str
    err: str


def run_detector(program: str, *options: str, env: Mapping[str, str] | None = None, forked: bool = True) -> Ran:
    """Run a detector as node-problem-detector would, without the start of an interpreter unless not `forked`.

    `env`: ours if None.
    """
    finished = node_programs.run([str(DETECTORS / f"{program}.py"), *options], env, forked=forked)
    return Ran(finished.code, finished.out.strip(), finished.err)


def address(index: int) -> str:
    """Return the PCI address that the stub gives to GPU `index`."""
    return f"0000:1{index}:00.0"


def uuid(index: int) -> str:
    """Return the UUID that the stub gives to GPU `index`."""
    return f"GPU-00000000-0000-0000-0000-{index:012d}"


class Node:
    """The files of one node; every path is below `root`. `detector`: the program that asks NVML and is run."""

    def __init__(self, root: Path, library: Path | None = None, gpus: int = 0, detector: str = "gpu_lost"):
        self.root, self.library, self.detector = root, library, detector
        self.sys, self.proc, self.dev, self.state = (root / name for name in ("sys", "proc", "dev", "state"))
        self.nvml = Script(root / "nvml.txt").write(f"count {gpus}", f"log {root / 'calls'}")
        for folder in (self.sys / "bus/pci/devices", self.proc / "driver/nvidia/gpus", self.dev):
            folder.mkdir(parents=True)
        (self.proc / "driver/nvidia/version").write_text(f"NVRM version: NVIDIA UNIX x86_64 Kernel Module  {DRIVER}\n")
        for index in range(gpus):
            self.add_gpu(index)

    def add_gpu(self, index: int) -> None:
        self.add_function(address(index))
        information = self.proc / "driver/nvidia/gpus" / address(index) / "information"
        information.parent.mkdir()
        information.write_text(
            f"Model: \t\t NVIDIA H100\nGPU UUID: \t GPU-{index}\nDevice Minor: \t {index}\nGPU Excluded:\t No\n"
        )
        (self.dev / f"nvidia{index}").touch()

    def add_function(self, name: str, vendor: str = "0x10de", kind: str = "0x030200", config: bytes = ALIVE) -> Path:
        folder = self.sys / "bus/pci/devices" / name
        folder.mkdir()
        (folder / "vendor").write_text(f"{vendor}\n")
        (folder / "class").write_text(f"{kind}\n")
        (folder / "config").write_bytes(config)
        return folder

    def orders(self, *orders: str, gpus: int = 8) -> None:
        """Script NVML; every call stays logged."""
        self.nvml.write(f"count {gpus}", *orders, f"log {self.root / 'calls'}")

    def calls(self) -> list[str]:
        """Return the NVML calls so far."""
        log = self.root / "calls"
        return log.read_text().splitlines() if log.exists() else []

    def arguments(self, *options: str) -> list[str]:
        more = ("dev", "kubelet") if self.detector == "gpu_lost" else ()
        return [*(f"--{name}={self.root / name}" for name in ("sys", "proc", "state", *more)), "--fresh=0", *options]

    def command(self, *options: str) -> list[str]:
        program = str(DETECTORS / f"{self.detector}.py")
        return [sys.executable, "-E", "-s", "-B", program, *self.arguments(*options)]

    def environment(self) -> dict[str, str]:
        named = {"NVML_STUB": str(self.nvml.path)}
        return {**os.environ, **(self.nvml.environment(self.library) if self.library else named)}

    def run(self, *options: str) -> Ran:
        """Run the detector as node-problem-detector would."""
        return run_detector(self.detector, *self.arguments(*options), env=self.environment())

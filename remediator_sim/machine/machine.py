"""The hardware and kernel of a simulated node: what it shows, what breaks, what mends it."""

from collections.abc import Mapping, Sequence
from importlib.machinery import SourceFileLoader
from pathlib import Path

from remediator_sim.kubelet.host import SimulatedHost
from remediator_sim.machine import commands, parts, statfs, tree
from remediator_sim.machine.faults import Cure, FaultKind, MachineFault, cured
from remediator_sim.machine.nfs import NfsServer
from remediator_sim.machine.parts import OWN, Gpu, Mount, Process

STAND_IN = Path(__file__).resolve().parents[1] / "nvml"  # holds the module pynvml
STATE = "run/remediator/detectors"
FRESH = 0  # seconds for which an answer of NVML to another detector is taken: none, for it may be of another time

# What the kernel says when a fault begins; {gpu} is its address without function.
LINES: Mapping[FaultKind, str] = {
    FaultKind.GPU_LOST: "NVRM: Xid (PCI:{gpu}): 79, GPU has fallen off the bus.",
    FaultKind.GPU_ECC: "NVRM: Xid (PCI:{gpu}): 63, Row Remapper: New row marked for remapping, reset gpu to activate.",
    FaultKind.GPU_WORN: "NVRM: Xid (PCI:{gpu}): 64, Row Remapper Error: All reserved rows for bank are remapped",
    FaultKind.MOUNT_STUCK: "nfs: server 127.0.0.1 not responding, still trying",
    FaultKind.UNKILLABLE: "INFO: task python3 blocked for more than 120 seconds.",
}

# Which of the machine's parts each detector is pointed at.
GPU_OPTIONS, NFS_OPTIONS = ("proc", "sys", "state", "pynvml", "fresh"), ("proc", "state")
OPTIONS: Mapping[str, Sequence[str]] = {
    "gpu_lost": (*GPU_OPTIONS, "dev", "kubelet"),
    "gpu_ecc": GPU_OPTIONS,
    "gpu_worn": GPU_OPTIONS,
    "nfs_server": NFS_OPTIONS,
    "nfs_mount": (*NFS_OPTIONS, "statfs"),
    "unkillable_process": ("proc", "state"),
    "detector_stale": ("proc", "state"),
}


class Machine:
    """Fills the tree of `host` and gives it the programs that operations run there.

    `mounts`: what is mounted where from the start; a server that is down makes its mounts hang. Faults begin with
    `break_` and end by what cures them, at once; all else that is shown follows from them.
    """

    def __init__(self, host: SimulatedHost, *, gpus: int = 8, mounts: Mapping[str, NfsServer] | None = None) -> None:
        self.host, self.faults = host, tuple[MachineFault, ...]()
        self._gpus, self._servers = gpus, dict(mounts or {})
        self._up, self._pods, self._log = set(self._servers), tuple[Process, ...](), list[str]()
        self._last_pid = parts.FIRST_POD_PID
        self._shown: tree.Files = {}
        self._ended = dict.fromkeys(self._servers, 1000)  # operations on mounts; they go on while a mount answers
        tree.clear(host.root)
        self._install_statfs()
        SourceFileLoader("pynvml", str(STAND_IN / "pynvml.py")).get_code("pynvml")  # compiled once, not by each program
        host.commands.update(commands.commands(self))
        host.on_reboot.append(self._booted)
        for server in self._servers.values():
            server.on_change.append(self.show)
        self.show()

    @property
    def gpus(self) -> tuple[Gpu, ...]:
        """All GPUs."""
        return parts.gpus(self.host.name, self._gpus, self.faults, self.processes)

    @property
    def mounts(self) -> tuple[Mount, ...]:
        """What is mounted now."""
        return tuple(
            parts.mount(point, number, server, self.faults, self._ended[point])
            for number, (point, server) in enumerate(self._servers.items())
            if point in self._up
        )

    @property
    def processes(self) -> tuple[Process, ...]:
        """What runs now."""
        return (*OWN, *self._pods, *parts.stuck(self.faults))

    @property
    def environment(self) -> dict[str, str]:
        """The variables without which the stand-in for NVML does not know this machine."""
        return {"NVML_STUB": str(self._nvml)}

    def detector_options(self, name: str) -> list[str]:
        """The options that point the detector `name` at this machine; it also needs `environment`."""
        root = self.host.root
        places = {name: root / name for name in ("proc", "sys", "dev")}
        places |= {"state": root / STATE, "pynvml": STAND_IN, "statfs": self.host.bin / "statfs"}
        given = {**places, "kubelet": root / "var/lib/kubelet", "fresh": FRESH}
        return [f"--{option}={given[option]}" for option in OPTIONS[name]]

    def break_(self, fault: MachineFault) -> None:
        """Let a fault begin; harmless while it is there."""
        if fault not in self.faults:
            self.faults = (*self.faults, fault)
            self._say(fault)
            self.show()

    def mend(self, fault: MachineFault) -> None:
        """End a fault as a person with spare parts would, one that returns too."""
        self.faults = tuple(present for present in self.faults if present != fault)
        self.show()

    def cure(self, cure: Cure, where: int | str | None = None) -> None:
        """Do what an operation does to the hardware; faults that return say so again."""
        self.faults = cured(self.faults, cure, where)
        for fault in self.faults:
            if fault.returns and where in (None, fault.where):
                self._say(fault)
        self.show()

    def start_pod(self, uid: str, *, gpus: Sequence[int] = (), mounts: Sequence[str] = ()) -> None:
        """Let a Pod run one process, which computes on GPUs and holds mounts of its own."""
        self._last_pid += 10
        self._pods = (*self._pods, Process(self._last_pid, "python3", uid, tuple(gpus), tuple(mounts)))
        self.show()

    def end_pod(self, uid: str) -> None:
        """End a Pod's process; one that cannot be killed stays."""
        self._pods = tuple(process for process in self._pods if process.pod != uid)
        self.show()

    def unmount(self, point: str) -> None:
        """Take a mount down, lazily: who uses it is not asked."""
        self._up.discard(point)
        self.show()

    def mount(self, point: str) -> str:
        """Mount what belongs at `point`; why not, "" when it is mounted."""
        server = self._servers.get(point)
        if server is None or not server.running:
            return f"mount point {point} does not exist" if server is None else "Connection refused"
        self._up.add(point)
        self.cure(Cure.REMOUNT, point)
        return ""

    def show(self) -> None:
        """Bring the tree in line with what is so."""
        self._ended |= {mount.point: mount.ended + 1 for mount in self.mounts if mount.statfs == 0}
        after = tree.files(self.gpus, self.mounts, self.processes, self._log)
        tree.write(self.host.root, self._shown, after)
        self._shown = after
        tree.put(self._nvml, tree.nvml(self.gpus).encode())
        answers = statfs.answers({mount.point: mount.statfs for mount in self.mounts})
        tree.put(self._statfs, answers.encode())

    @property
    def _nvml(self) -> Path:
        return self.host.directory / "nvml.txt"

    @property
    def _statfs(self) -> Path:
        return self.host.directory / "statfs.txt"

    def _booted(self) -> None:
        """A boot: no Pod runs yet, the kernel's log is empty, all is mounted."""
        self._pods, self._log, self._up = (), [], set(self._servers)
        self.cure(Cure.REBOOT)

    def _say(self, fault: MachineFault) -> None:
        line = LINES.get(fault.kind, "")
        gpu = self.gpus[fault.where].address[:-2] if isinstance(fault.where, int) else ""
        self._log += [f"kernel: {line.format(gpu=gpu)}"] if line else []

    def _install_statfs(self) -> None:
        program = self.host.bin / "statfs"
        program.write_text(statfs.program(self._statfs))
        program.chmod(0o755)

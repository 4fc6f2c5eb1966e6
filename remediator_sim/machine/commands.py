"""The programs of a simulated machine: nvidia-smi, umount, mount and stat, as far as operations use them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

from remediator_sim.kubelet.host import Command, CommandResult
from remediator_sim.machine.faults import Cure
from remediator_sim.machine.parts import ESTALE, Gpu, Mount, Process


class Hardware(Protocol):
    """What the programs need of the machine that they run on."""

    @property
    def gpus(self) -> tuple[Gpu, ...]:
        """All GPUs."""
        ...

    @property
    def mounts(self) -> tuple[Mount, ...]:
        """What is mounted now."""
        ...

    @property
    def processes(self) -> tuple[Process, ...]:
        """What runs now."""
        ...

    def cure(self, cure: Cure, where: int | str | None = None) -> None:
        """Mend what `cure` mends."""
        ...

    def unmount(self, point: str) -> None:
        """Take a mount down."""
        ...

    def mount(self, point: str) -> str:
        """Mount what belongs at `point`; why not, "" when it is mounted."""
        ...


def commands(machine: Hardware) -> dict[str, Command]:
    """The programs of `machine` by name."""
    table: Mapping[str, Callable[[Hardware, Sequence[str]], CommandResult | None]] = {
        "nvidia-smi": nvidia_smi,
        "umount": umount,
        "mount": mount,
        "stat": stat,
    }
    return {name: lambda words, run=run: run(machine, words) for name, run in table.items()}  # type: ignore[misc]


# Fields of --query-gpu and --query-remapped-rows, as nvidia-smi prints them with nounits.
FIELDS: Mapping[str, Callable[[Gpu], str]] = {
    "pci.bus_id": lambda gpu: gpu.bus_id,
    "gpu_bus_id": lambda gpu: gpu.bus_id,
    "index": lambda gpu: str(gpu.number),
    "uuid": lambda gpu: gpu.uuid,
    "serial": lambda gpu: gpu.serial,
    "persistence_mode": lambda gpu: "Enabled",
    "ecc.errors.uncorrected.volatile.total": lambda gpu: str(gpu.uncorrected),
    "remapped_rows.pending": lambda gpu: "Yes" if gpu.pending else "No",
    "remapped_rows.failure": lambda gpu: "Yes" if gpu.worn else "No",
    "gpu_recovery_action": lambda gpu: "Reset" if gpu.uncorrected else "None",
}


def nvidia_smi(machine: Hardware, words: Sequence[str]) -> CommandResult:
    """NVIDIA's tool; any question meets a lost GPU."""
    option, _, fields = words[0].partition("=") if words else ("", "", "")
    match option:
        case "--query-gpu" | "--query-remapped-rows":
            return _query(machine.gpus, fields.split(","))
        case "--query-compute-apps":
            return _lines(_holders(machine))
        case "topo":
            return _lines(_topology(len(machine.gpus)))
        case "-pm":
            return CommandResult(0, "All done.\n")
        case "--gpu-reset" | "-r":
            return _reset(machine, words[words.index("-i") + 1].split(",") if "-i" in words else [])
    return CommandResult(2, f"Invalid combination of input arguments: {' '.join(words)}\n")


def _lost(gpu: Gpu) -> str:
    return (
        f"Unable to determine the device handle for GPU{gpu.number}: {gpu.address}: GPU is lost.  "
        "Reboot the system to recover this GPU"
    )


def _query(gpus: Sequence[Gpu], fields: Sequence[str]) -> CommandResult:
    unknown = next((field for field in fields if field not in FIELDS), None)
    if unknown:
        return CommandResult(2, f'Field "{unknown}" is not a valid field to query.\n')
    if not gpus:
        return CommandResult(6, "No devices were found\n")
    rows = [_lost(gpu) if gpu.lost else ", ".join(FIELDS[field](gpu) for field in fields) for gpu in gpus]
    return _lines(rows, 15 if any(gpu.lost for gpu in gpus) else 0)


def _holders(machine: Hardware) -> Iterator[str]:
    names = {process.pid: process.name for process in machine.processes}
    for gpu in machine.gpus:
        yield from (f"{gpu.bus_id}, {pid}, {names[pid]}" for pid in gpu.held)


def _topology(count: int) -> Iterator[str]:
    """All GPUs are joined by NVLink, as on an HGX board."""
    names = [f"GPU{index}" for index in range(count)]
    yield "\t" + "\t".join(names)
    for row in names:
        yield row + "\t" + "\t".join(" X " if row == column else "NV18" for column in names)


def _reset(machine: Hardware, wanted: Sequence[str]) -> CommandResult:
    chosen = [gpu for gpu in machine.gpus if not wanted or gpu.bus_id in wanted]
    held = [gpu for gpu in chosen if gpu.held]
    if any(gpu.lost for gpu in chosen):
        return _lines([_lost(gpu) for gpu in chosen if gpu.lost], 15)
    if held:
        refused = [f"  GPU {gpu.bus_id}: In use by another client" for gpu in held]
        return _lines(["The following GPUs could not be reset:", *refused], 255)
    for gpu in chosen:
        machine.cure(Cure.RESET_GPU, gpu.number)
    return _lines([*(f"GPU {gpu.bus_id} was successfully reset." for gpu in chosen), "All done."])


def umount(machine: Hardware, words: Sequence[str]) -> CommandResult:
    """Forced and lazy, or it would hang."""
    point = words[-1]
    if point not in {mount.point for mount in machine.mounts}:
        return CommandResult(32, f"umount: {point}: not mounted.\n")
    machine.unmount(point)
    return CommandResult(0)


def mount(machine: Hardware, words: Sequence[str]) -> CommandResult:
    """`mount -t TYPE -o OPTIONS SOURCE POINT`, of what belongs there only."""
    why = machine.mount(words[-1])
    return CommandResult(32, f"mount.nfs4: {why}\n") if why else CommandResult(0)


def stat(machine: Hardware, words: Sequence[str]) -> CommandResult | None:
    """`stat -f -c FORMAT PATH`: hangs on a mount that is stuck."""
    mounted = next((mount for mount in machine.mounts if mount.point == words[-1]), None)
    if mounted is None:
        return CommandResult(0, "ext2/ext3\n")
    if mounted.statfs == ESTALE:
        return CommandResult(1, f"stat: cannot read file system information for '{words[-1]}': Stale file handle\n")
    return CommandResult(0, "nfs\n") if mounted.statfs == 0 else None


def _lines(lines: Sequence[str] | Iterator[str], code: int = 0) -> CommandResult:
    return CommandResult(code, "".join(f"{line}\n" for line in lines))

"""What a simulated machine shows below its root: files as detectors and operations read them. Pure, but for `write`."""

import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from remediator_sim.machine.parts import Gpu, Mount, Process

DRIVER = "sys/bus/pci/drivers/nvidia"
ALIVE = bytes.fromhex("de10302306041000") + bytes(56)  # the configuration space of an H100, its head
FALLEN = b"\xff" * 64
STACK = b"[<0>] rpc_wait_bit_killable+0x11/0x70 [sunrpc]\n[<0>] nfs_wb_all+0x2c/0x190 [nfs]\n"
SIGKILL_PENDING = "0000000000000100"

Files = dict[str, bytes | Path]  # by path below the root; a Path is a symbolic link


def files(gpus: Iterable[Gpu], mounts: Iterable[Mount], processes: Iterable[Process], log: Iterable[str]) -> Files:
    """Everything that the machine shows."""
    tree: Files = {"var/log/kern.log": _text(log)}
    listed = list(gpus)
    for gpu in listed:
        tree |= _gpu(gpu)
    if listed:
        tree |= {
            "proc/driver/nvidia/version": b"NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.82.07\n",
            "dev/nvidiactl": b"",
            "dev/nvidia-uvm": b"",
            f"{DRIVER}/module": b"",
        }
    shown = list(mounts)
    tree["proc/1/mountstats"] = _text(line for mount in shown for line in _statistics(mount))
    for process in processes:
        tree |= _process(process, shown)
    return tree


def nvml(gpus: Iterable[Gpu]) -> str:
    """What NVML says, as orders to its stand-in (tests/native/nvml_stub.c)."""
    listed = list(gpus)
    orders = [f"count {len(listed)}"]
    for gpu in listed:
        say = f"gpu {gpu.number}"
        orders += [f"{say} pci {gpu.bus_id}", f"{say} uuid {gpu.uuid}", f"{say} serial {gpu.serial}"]
        orders += [f"{say} error 15"] if gpu.lost else []
        orders += [f"{say} uncorrected {gpu.uncorrected}"] if gpu.uncorrected else []
        orders += [f"{say} remapped 0,1,{int(gpu.pending)},{int(gpu.worn)}"] if gpu.pending or gpu.worn else []
        orders += [f"{say} field-230 1"] if gpu.uncorrected else []
    return "".join(f"{order}\n" for order in orders)


def _gpu(gpu: Gpu) -> Files:
    pci, driver = f"sys/bus/pci/devices/{gpu.address}", f"proc/driver/nvidia/gpus/{gpu.address}/information"
    return {
        f"{pci}/vendor": b"0x10de\n",
        f"{pci}/class": b"0x030200\n",
        f"{pci}/config": FALLEN if gpu.lost else ALIVE,
        f"{pci}/driver": Path("../../drivers/nvidia"),
        f"dev/nvidia{gpu.number}": b"",
        driver: (
            f"Model: \t\t NVIDIA H100 80GB HBM3\nIRQ:   \t\t {100 + gpu.number}\nGPU UUID: \t {gpu.uuid}\n"
            f"Video BIOS: \t 96.00.74.00.01\nBus Type: \t PCIe\nDMA Size: \t 52 bits\nDMA Mask: \t 0xfffffffffffff\n"
            f"Bus Location: \t {gpu.address}\nDevice Minor: \t {gpu.number}\nGPU Firmware: \t 580.82.07\n"
            "GPU Excluded:\t No\n"
        ).encode(),
    }


def _statistics(mount: Mount) -> Iterator[str]:
    """One mount in mountstats; while it hangs its operations time out and none ends."""
    late = int(mount.statfs is None)
    yield f"device {mount.source} mounted on {mount.point} with fstype nfs4 statvers=1.1"
    yield f"\topts:\t{mount.options}"
    yield "\tage:\t3600"
    yield f"\txprt:\ttcp 0 1 1 0 0 {mount.ended + late} {mount.ended} 0 {mount.ended} 0 2 0 0"
    yield "\tper-op statistics"
    for name in ("NULL", "READ", "WRITE", "GETATTR", "STATFS"):
        sent = mount.ended + late
        yield f"\t{name}: {mount.ended} {sent} {late} {sent * 200} {mount.ended * 160} 0 {mount.ended} {mount.ended} 0"
    yield ""


def _process(process: Process, mounts: list[Mount]) -> Files:
    home = f"proc/{process.pid}"
    other = process.pid + 1  # programs that use GPUs have threads; the stuck one is seldom the first
    threads = (process.pid, other) if process.pod else (process.pid,)
    leader = _thread(process, process.pid, len(threads), "Z" if process.stuck else "S")
    texts: Files = {f"{home}/{name}": text for name, text in leader.items()}
    for tid in threads:
        state = "S" if not process.stuck else "D" if tid == other else "Z"
        task = _thread(process, tid, len(threads), state)
        task |= {"stack": STACK} if state == "D" else {}
        texts |= {f"{home}/task/{tid}/{name}": text for name, text in task.items()}
    own = mounts if not process.pod else [mount for mount in mounts if mount.point in process.mounts]
    texts[f"{home}/mountinfo"] = _text(_mountinfo(own, shared=not process.pod))
    return texts


def _thread(process: Process, tid: int, threads: int, state: str) -> dict[str, bytes]:
    words = {"S": "sleeping", "D": "disk sleep", "Z": "zombie"}
    killed = SIGKILL_PENDING if process.stuck else "0" * 16
    start = process.pid * 10
    # Fields of stat from the fourth on (proc_pid_stat(5)): ours is the parent, no terminal, the start time is the 22nd.
    rest = f"1 {process.pid} {process.pid} 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 {threads} 0 {start} 0 0" + " 0" * 28
    status = [
        f"Name:\t{process.name}",
        f"State:\t{state} ({words[state]})",
        f"Tgid:\t{process.pid}",
        f"Pid:\t{tid}",
        "PPid:\t1",
        f"Threads:\t{threads}",
        f"SigPnd:\t{killed}",
        f"ShdPnd:\t{killed}",
        "voluntary_ctxt_switches:\t150",
        "nonvoluntary_ctxt_switches:\t7",
    ]
    return {
        "stat": f"{tid} ({process.name}) {state} {rest}\n".encode(),
        "status": _text(status),
        "comm": f"{process.name}\n".encode(),
        "cgroup": f"0::{_group(process)}\n".encode(),
        "wchan": b"rpc_wait_bit_killable" if state == "D" else b"0",
    }


def _group(process: Process) -> str:
    if not process.pod:
        return "/init.scope" if process.pid == 1 else f"/system.slice/{process.name}.service"
    name = process.pod.replace("-", "_")
    container = f"{process.pid:064x}"
    return (
        f"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{name}.slice/cri-containerd-{container}.scope"
    )


def _mountinfo(mounts: Iterable[Mount], *, shared: bool) -> Iterator[str]:
    yield f"25 1 8:1 / / rw,relatime{' shared:1' if shared else ''} - ext4 /dev/sda1 rw"
    for number, mount in enumerate(mounts):
        peers = f" shared:{40 + number}" if shared else ""
        yield (
            f"{100 + number} 25 {mount.device} / {mount.point} rw,relatime{peers} - nfs4 {mount.source} {mount.options}"
        )


def _text(lines: Iterable[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


def write(root: Path, before: Mapping[str, bytes | Path], after: Mapping[str, bytes | Path]) -> None:
    """Bring the files below `root` from one state to another, each in one step for a reader."""
    for path in before.keys() - after.keys():
        (root / path).unlink(missing_ok=True)
    for path in sorted({str(Path(path).parent) for path in before.keys() - after.keys()}, reverse=True):
        _tidy(root, root / path)
    for path, content in after.items():
        if before.get(path) != content:
            put(root / path, content)


def put(path: Path, content: bytes | Path) -> None:
    """Replace one file, or link, in one step."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.parent / f".{path.name}.new"
    draft.unlink(missing_ok=True)
    if isinstance(content, Path):
        draft.symlink_to(content)
    else:
        draft.write_bytes(content)
    draft.replace(path)


def _tidy(root: Path, folder: Path) -> None:
    """Remove folders that became empty."""
    while folder != root and folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
        folder = folder.parent


def clear(root: Path) -> None:
    """Remove what a machine of an earlier life showed below `root`."""
    for path in ("sys/bus", "proc/driver", "var/log"):
        shutil.rmtree(root / path, ignore_errors=True)
    for folder in (root / "proc").iterdir():
        if folder.name.isdecimal():
            shutil.rmtree(folder)
    for node in (root / "dev").glob("nvidia*"):
        node.unlink()

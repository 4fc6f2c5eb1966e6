"""Whether a node has NVSwitches on PCI, and whether its fabric manager runs. Only reads, no judging.

Since Hopper NVML tells of the fabric; of older systems with switches (HGX A100) only the process of the manager does.
"""

from pathlib import Path

from nodelib.host.attributes import text
from nodelib.host.gpus import NVIDIA
from nodelib.host.proc_files import ENDED, pid_folders, read_stat

SWITCH_CLASS = "0x0680"  # NVIDIA's bridges of this class are NVSwitches
COMM = "nv-fabricmanager"[:15]  # as much as the kernel keeps of a name
KERNEL = "kthreadd"  # process 2 of the node's own process ids


def has_switches(sys_root: Path) -> bool:
    """Tell whether PCI shows an NVSwitch."""
    try:
        devices = list((sys_root / "bus/pci/devices").iterdir())
    except OSError:
        return False
    return any(
        text(device / "vendor") == NVIDIA and (text(device / "class") or "").startswith(SWITCH_CLASS)
        for device in devices
    )


def manager(proc: Path, last: int) -> int | None:
    """Return the pid of the fabric manager, 0 where none runs, None where nobody can tell. `last`: what it was."""
    try:
        if last and _is_manager(proc / str(last)):
            return last
        if read_stat(proc / "2").comm != KERNEL:
            return None  # these are not the node's process ids
        return next((int(folder.name) for folder in pid_folders(proc) if _is_manager(folder)), 0)
    except (OSError, ValueError):
        return None


def _is_manager(folder: Path) -> bool:
    try:
        stat = read_stat(folder)
    except (OSError, ValueError):
        return False
    return stat.comm == COMM and stat.state not in ENDED

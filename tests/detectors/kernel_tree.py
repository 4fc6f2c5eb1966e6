"""A node's kernel made of files: mounts, block devices, memory controllers, the PCI bus and the kernel's log."""

from pathlib import Path

from tests.detectors.fixtures import Case
from tests.detectors.node import Ran, run_detector

BTIME = 1_700_000_000  # seconds since 1970 at which the node booted
ZEROS = "Undefined 0\nDLP 0\nTLP 0\nTOTAL_ERR_{} {}\n"


class KernelTree:
    """The files of one node; every path is below `root`. Its root folder is an ext4 on sda1."""

    def __init__(self, root: Path):
        self.root = root
        self.proc, self.sys, self.dev, self.state = (root / name for name in ("proc", "sys", "dev", "state"))
        self.lines = 0
        self.write("proc/sys/kernel/random/boot_id", "one\n")
        self.write("proc/stat", f"cpu 1 2 3\nintr {'0 ' * 40_000}\nctxt 5\nbtime {BTIME}\nprocesses 9\n")
        self.mountinfo: list[str] = []
        self.mount("/", "8:1", "sda1")
        self.ext4("sda1")
        self.write("sys/block/loop0/size", "0\n")
        (self.sys / "bus/platform/devices").mkdir(parents=True, exist_ok=True)
        self.log("Linux version 6.18.44")

    def write(self, path: str, text: str) -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def log(self, *texts: str, at: float = 900.0, priority: int = 3) -> None:
        """Add records to the kernel's log, all of the same moment, in seconds since boot; from 8 on of a program."""
        with (self.dev_folder() / "kmsg").open("a") as file:
            for text in texts:
                file.write(f"{priority},{self.lines},{at * 1e6:.0f},-;{text}\n")
                self.lines += 1

    def dev_folder(self) -> Path:
        self.dev.mkdir(parents=True, exist_ok=True)
        return self.dev

    def mount(
        self, point: str, number: str, device: str, kind: str = "ext4", options: str = "rw", source: str = ""
    ) -> None:
        """Mount a file system, or mount it once more; `options`: of the super block."""
        (self.proc / f"1/root{point}").mkdir(parents=True, exist_ok=True)
        place = f"{30 + len(self.mountinfo)} 22 {number} / {point} rw,relatime shared:1"
        self.mountinfo.append(f"{place} - {kind} {source or f'/dev/{device}'} {options}")
        self._write_mounts()

    def remount(self, device: str, options: str) -> None:
        """Change the options of a mounted file system."""
        self.mountinfo = [
            f"{line.rpartition(' ')[0]} {options}" if f" /dev/{device} " in line else line for line in self.mountinfo
        ]
        self._write_mounts()

    def unmount(self, device: str) -> None:
        self.mountinfo = [line for line in self.mountinfo if f" /dev/{device} " not in line]
        self._write_mounts()

    def _write_mounts(self) -> None:
        self.write("proc/1/mountinfo", "\n".join(self.mountinfo) + "\n")

    def ext4(self, device: str, errors: int = 0, last: int = 0) -> None:
        """Say what ext4 has counted; `last`: seconds since 1970."""
        for name, value in (("errors_count", errors), ("last_error_time", last), ("last_error_line", 129)):
            self.write(f"sys/fs/ext4/{device}/{name}", f"{value}\n")
        self.write(f"sys/fs/ext4/{device}/last_error_func", "ext4_find_entry\n" if errors else "\n")

    def btrfs(self, device: str, errors: int = 0) -> None:
        """Say what btrfs has counted on its only disk."""
        folder = "sys/fs/btrfs/0f1e2d3c-1111-2222-3333-444455556666"
        self.write(f"{folder}/devices/{device}/size", "1\n")
        counts = "".join(f"{name}_errs 0\n" for name in ("read", "flush", "corruption", "generation"))
        self.write(f"{folder}/devinfo/1/error_stats", f"write_errs {errors}\n{counts}")

    def nvme(
        self, name: str, state: str = "live", serial: str = "", model: str = "SAMSUNG MZQL21T9", **more: str
    ) -> None:
        told = {"state": state, "serial": serial or f"S-{name}", "model": model, "transport": "pcie", **more}
        for key, value in told.items():
            self.write(f"sys/class/nvme/{name}/{key}", f"{value}\n")

    def scsi(
        self, name: str, state: str = "running", where: str = "pci0000:00/ata1/host0", removable: str = "0"
    ) -> None:
        """Add a SCSI disk at its place among the devices."""
        self.write(f"sys/devices/{where}/block/{name}/removable", f"{removable}\n")
        self.write(f"sys/devices/{where}/block/{name}/device/state", f"{state}\n")
        self.write(f"sys/devices/{where}/block/{name}/device/wwid", f"naa.{name}\n")
        (self.sys / "block" / name).symlink_to(self.sys / "devices" / where / "block" / name)

    def array(self, name: str, state: str = "clean", degraded: str = "0", action: str = "idle") -> None:
        for key, value in (("array_state", state), ("degraded", degraded), ("sync_action", action)):
            self.write(f"sys/block/{name}/md/{key}", f"{value}\n")

    def memory(
        self, controller: str = "mc0", corrected: int = 0, uncorrected: int = 0, **dimms: tuple[int, int, str]
    ) -> None:
        """Add a memory controller with its totals, and DIMMs: corrected and uncorrected errors, label."""
        folder = f"sys/devices/system/edac/mc/{controller}"
        self.write(f"{folder}/ce_count", f"{corrected}\n")
        self.write(f"{folder}/ue_count", f"{uncorrected}\n")
        for name, (ce, ue, label) in dimms.items():
            for key, value in (("dimm_ce_count", ce), ("dimm_ue_count", ue), ("dimm_label", label)):
                self.write(f"{folder}/{name}/{key}", f"{value}\n")

    def function(self, place: str, kind: str = "0x060400", vendor: str = "0x8086", width: str = "16", most: str = "16",
                 speed: str = "32.0 GT/s PCIe", fatal: int = 0, nonfatal: int = 0) -> Path:  # fmt: skip
        """Add a PCI function below others: "0000:00:01.0/0000:3b:00.0". Return its folder."""
        address = place.rpartition("/")[2]
        folder = f"sys/devices/pci0000:00/{place}"
        told = {
            "class": kind, "vendor": vendor, "device": "0x2330", "current_link_width": width, "max_link_width": most,
            "current_link_speed": speed, "max_link_speed": "32.0 GT/s PCIe",
            "aer_dev_fatal": ZEROS.format("FATAL", fatal), "aer_dev_nonfatal": ZEROS.format("NONFATAL", nonfatal),
        }  # fmt: skip
        for key, value in told.items():
            self.write(f"{folder}/{key}", value if value.endswith("\n") else f"{value}\n")
        link = self.sys / "bus/pci/devices" / address
        link.parent.mkdir(parents=True, exist_ok=True)
        if not link.is_symlink():
            link.symlink_to(self.root / folder)
        return self.root / folder

    def run(self, program: str, now: float = 1000, *options: str) -> Ran:
        """Run a detector as node-problem-detector would."""
        return run_case(program, Case("", lambda root: None, 0, "", options), self.root, now)


def run_case(program: str, case: Case, root: Path, now: float) -> Ran:
    """Run a detector over the files of a case."""
    return run_detector(program, *case.arguments(root, now), env={})

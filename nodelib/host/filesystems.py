"""File systems on disks as process 1 has them mounted, and what the kernel shows of their errors. Judges nothing.

None of it touches a file system: mounts come from `mountinfo`, counters from /sys/fs, shutdowns from the kernel's log.
"""

import os
import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from nodelib.host import mountinfo
from nodelib.host.attributes import folders, number, text
from nodelib.kernel.kmsg import Line

KINDS = ("ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs")
# Where volumes of Pods are mounted, whatever the kubelet's folder is called; a disk that is pods/ itself is the node's.
VOLUME = re.compile(r"/pods/[0-9a-f-]{32,36}/volume|/plugins/kubernetes\.io/|/kubelet/(?:pods|plugins)/.")
STORY = re.compile(  # what a person wants to read of the log
    r"EXT4-fs (error|\([^)]*\): .*(read-only|I/O error))|Aborting journal|XFS \(|BTRFS.*(error|forced|aborted)"
    r"|I/O error, dev|attempt to access beyond end of device"
)
# Lines after which a file system of XFS or btrfs is broken, and lines after which it is not (the same name, mounted
# anew): device, words.
BREAKS = re.compile(
    r"(?:XFS|BTRFS[a-z ]*) \((?:device )?(?P<device>[^) ]+)[^)]*\): .*"
    r"(?:Shutting down filesystem|has been shut down|xfs_do_force_shutdown|Please unmount the filesystem|"
    r"forced readonly)"
)
MENDS = re.compile(
    r"(?:XFS|BTRFS[a-z ]*) \((?:device )?(?P<device>[^) ]+)[^)]*\): "
    r"(?:Mounting V|Unmounting [Ff]ilesystem|first mount of|last unmount of)"
)


class Filesystem(NamedTuple):
    """One super block. `device`: the kernel's name of it (sda1, dm-0); `points`: where process 1 has it, sorted;
    `top`: those of them that no later mount on the same path hides; `options`: of the super block.
    """

    device: str
    kind: str
    source: str
    points: tuple[str, ...]
    top: tuple[str, ...]
    options: frozenset[str]

    @property
    def key(self) -> str:
        """Who it is, between runs: names are used again, so the source is part of it."""
        return f"{self.device} {self.source}"

    @property
    def volume(self) -> bool:
        """Whether only Pods have it: it came with one and may bring old errors, and read-only may be its wish."""
        return all(VOLUME.search(point) for point in self.points)

    @property
    def name(self) -> str:
        """What it is called in a line."""
        own = [point for point in self.points if not VOLUME.search(point)]
        return f"{self.kind} on {self.device} ({min(own, key=len) if own else 'a volume of a Pod'})"


class Errors(NamedTuple):
    """What ext4 has counted in the super block, over reboots. `last`: seconds since 1970, 0 for never."""

    total: int
    last: int


class FileSystems(NamedTuple):
    """The file systems by device; `garbled`: how many lines made no sense."""

    found: tuple[Filesystem, ...]
    garbled: int

    def of(self, volumes: bool, kinds: Collection[str] = KINDS) -> "FileSystems":
        """Those of these kinds that are volumes of Pods, or those that are not."""
        ours = (filesystem for filesystem in self.found if filesystem.volume is volumes and filesystem.kind in kinds)
        return self._replace(found=tuple(ours))


def read_mounts(proc: Path, sys_root: Path) -> FileSystems:
    """Return the file systems on disks that process 1 has mounted. Raises OSError when they cannot be read."""
    return parse_mounts(os.fsdecode((proc / "1/mountinfo").read_bytes()), sys_root)


def parse_mounts(content: str, sys_root: Path) -> FileSystems:
    """Read mountinfo; `sys_root` tells the kernel's names of devices."""
    points: dict[tuple[str, ...], list[str]] = {}
    options: dict[tuple[str, ...], frozenset[str]] = {}
    top: dict[str, tuple[str, ...]] = {}
    mounts, garbled = mountinfo.parse(content)
    for mount in mounts:
        who = top[mount.point] = (mount.device, mount.kind, mount.source)
        if mount.kind in KINDS and mount.source.startswith("/dev/"):
            points.setdefault(who, []).append(mount.point)
            options[who] = frozenset(mount.super_options.split(","))
    filesystems = [
        Filesystem(
            _kernels_name(sys_root, device, source), kind, source, tuple(sorted(set(where))),
            tuple(sorted({point for point in where if top[point] == (device, kind, source)})),
            options[device, kind, source],
        )
        for (device, kind, source), where in points.items()
    ]  # fmt: skip
    return FileSystems(tuple(sorted(filesystems)), garbled)


def _kernels_name(sys_root: Path, device: str, source: str) -> str:
    """The kernel calls /dev/mapper/vg-root dm-0. btrfs has no device of its own, there the source's name will do."""
    link = sys_root / "dev/block" / device
    return link.resolve().name if link.exists() else source.rpartition("/")[2]


def read_ext4(sys_root: Path, filesystem: Filesystem) -> Errors | None:
    """Return ext4's counters; None where it has none (an ext2 driver's). Raises ValueError when they make no sense."""
    folder = sys_root / "fs/ext4" / filesystem.device
    count, last = number(folder / "errors_count"), number(folder / "last_error_time")
    if filesystem.kind == "ext2" and count is None:
        return None
    if count is None or last is None:
        raise ValueError(f"{folder.name}/errors_count")
    return Errors(count, last)


def story_of_ext4(sys_root: Path, device: str) -> str:
    """Return where ext4 met its last error, as it names places itself."""
    names = ("last_error_func", "last_error_line", "last_error_errcode", "last_error_ino", "last_error_block")
    values = ((name.removeprefix("last_error_"), text(sys_root / "fs/ext4" / device / name)) for name in names)
    return " ".join(f"{name}={value}" for name, value in values if value and value != "0")


def read_btrfs(sys_root: Path, filesystem: Filesystem) -> int | None:
    """Return the sum of the errors that btrfs has counted on its disks, over reboots; None where it does not report.

    Raises ValueError when the counters make no sense.
    """
    for folder in folders(sys_root / "fs/btrfs", r"[0-9a-f-]{36}"):
        if (folder / "devices" / filesystem.device).exists():
            tables = [text(disk / "error_stats") for disk in folders(folder / "devinfo", r"[0-9]+")]
            return _sum(folder.name, [table for table in tables if table is not None])
    return None


def _sum(name: str, texts: list[str]) -> int | None:
    if not all(re.fullmatch(r"([a-z_]+ [0-9]{1,20}\n?)+", text) for text in texts):
        raise ValueError(f"{name}/error_stats")
    return sum(int(count) for text in texts for count in re.findall(r" ([0-9]+)", text)) if texts else None


def broken(lines: Iterable[Line], before: Mapping[str, str]) -> dict[str, str]:
    """Return, by device, the line that says that XFS or btrfs has given up, and was not mounted anew since."""
    gave_up = dict(before)
    for line in lines:
        if mended := MENDS.match(line.text):
            gave_up.pop(mended["device"], None)
        elif breaks := BREAKS.match(line.text):
            gave_up.setdefault(breaks["device"], line.text[:160])
    return gave_up


def boot_time(proc: Path) -> int | None:
    """Return when the node booted, in seconds since 1970; None when nobody can tell."""
    try:
        content = (proc / "stat").read_bytes()  # of any size: it has a number for each interrupt
    except OSError:
        return None
    match = re.search(rb"^btime ([0-9]{1,12})$", content, re.MULTILINE)
    return int(match[1]) if match else None

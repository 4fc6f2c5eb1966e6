"""NFS mounts of the node as its first process sees them, who else holds them, and whether a server answers.

Read from /proc alone and from plain sockets: nothing here touches a mount, so nothing here can hang on one.
"""

import contextlib
import ipaddress
import os
import re
import socket
import struct
import time
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from nodelib.host import mountinfo
from nodelib.host.cgroups import any_pod, bare
from nodelib.host.crictl import KUBELET
from nodelib.host.declared_mounts import Declared
from nodelib.host.proc_files import living, pid_folders, read_cgroup
from nodelib.net.nfs import KINDS, PORT, call_null

# What the kernel found out when it mounted; given back it would pin the mount to a server's former address.
FOUND_OUT = ("addr", "clientaddr", "mountaddr", "mountport", "mountproto", "mountvers", "namlen")
AT_BOOT = re.compile(r"|defaults|auto|_netdev|nofail|bg|(x-|comment=).*")


class Mount(NamedTuple):
    """One mount. `device`: major:minor, the same for all that share a connection and its trouble; `source` as given."""

    point: str
    device: str
    root: str
    kind: str
    source: str
    options: str
    follows: bool  # this row came, and goes, with a mount of another namespace
    pod: str = ""  # the uid of the Pod whose volume this is, without dashes; "" for a mount of the node's own

    @property
    def origin(self) -> str:
        """What to mount: the source, and the folder in it where only that was mounted."""
        return self.source.rstrip("/") + self.root if self.root != "/" else self.source

    @property
    def wanted(self) -> str:
        """The options to mount with: all that the kernel did not find out by itself."""
        parts = dict.fromkeys(self.options.split(","))
        if "ro" in parts:  # the mount and what it shows may differ; the stricter one holds
            parts.pop("rw", None)
        return ",".join(part for part in parts if part.partition("=")[0] not in FOUND_OUT)

    def option(self, name: str) -> str:
        """The value of one option; "" when it is not there."""
        options = dict(part.partition("=")[::2] for part in self.options.split(","))
        return options.get(name, "")


def read_mounts(path: Path, kubelet: str = KUBELET) -> list[Mount]:
    """Return the NFS mounts of one mountinfo file in its order; `kubelet` is its --root-dir. Raises OSError."""
    lines, _ = mountinfo.parse(path.read_text(errors="replace"))
    return [_mount(line, kubelet) for line in lines if line.kind in KINDS]


def _mount(line: mountinfo.MountLine, kubelet: str) -> Mount:
    volume = re.match(rf"{re.escape(kubelet)}/pods/([0-9a-f-]{{32,36}})/", line.point)
    options = f"{line.options},{line.super_options}"
    pod = bare(volume[1]) if volume else ""
    return Mount(line.point, line.device, line.root, line.kind, line.source, options, line.follows, pod)


def pods_of(proc: Path) -> Iterator[tuple[str, Path]]:
    """Yield (uid of its Pod, folder of a thread) for each process of a Pod. Reads only files that nothing can block."""
    for folder in pid_folders(proc):
        with contextlib.suppress(OSError):
            thread = living(folder)
            if thread and (pod := any_pod(read_cgroup(thread))):
                yield pod, thread


def users_of(proc: Path, mounts: list[Mount]) -> list[str]:
    """Return in words which Pods hold one of `mounts`: their own volume, or a copy in their namespace that would stay.

    A copy that follows the node's mount goes with it and is no hold.
    """
    devices, owned = {mount.device for mount in mounts}, {mount.pod: mount.point for mount in mounts if mount.pod}
    users = set()
    for uid, folder in pods_of(proc):
        if uid in owned:
            users.add(f"Pod {uid} still runs and owns {owned[uid]}")
        with contextlib.suppress(OSError):
            kept = [
                mount for mount in read_mounts(folder / "mountinfo") if mount.device in devices and not mount.follows
            ]
            users.update(f"Pod {uid} has {mount.source} at {mount.point}" for mount in kept)
    return sorted(users)


def server_of(mount: Mount) -> tuple[str, int, int]:
    """Return address, port and version of NFS of the server behind a mount."""
    address = mount.option("addr") or mount.source.rpartition(":/")[0].strip("[]")
    tcp = (mount.option("proto") or "tcp").startswith("tcp")  # RDMA has a port of its own
    port = mount.option("port") if tcp else ""
    version = mount.option("vers")[:1] or ("4" if mount.kind == "nfs4" else "3")
    return address, int(port) if port.isdecimal() and int(port) else PORT, int(version)


def absent(mounts: Iterable[Declared], there: Collection[str]) -> list[Mount]:
    """The NFS mounts of these that are not at their points, which are not among `there`."""
    return [
        Mount(mount.point, "", "/", mount.kind, mount.source, _asked(mount.options), follows=False)
        for mount in mounts
        if mount.kind in KINDS and mount.source and mount.point not in there
    ]


def _asked(options: str) -> str:
    """Options to mount with at once: none that speaks of the boot, nor of trying in the background."""
    parts = (part.replace("nfsvers=", "vers=") for part in options.split(",") if not AT_BOOT.fullmatch(part))
    return ",".join(parts) or "rw"


def why_silent(server: tuple[str, int, int], seconds: float) -> str:
    """Ask a server for nothing (RPC NULL over TCP) and return why it is not fit to mount from; "" when it is."""
    address, port, version = server
    xid, until = os.urandom(4), time.monotonic() + seconds
    try:
        with socket.create_connection((address, port), timeout=seconds) as connection:
            reply = call_null(connection, xid, version, until)
    except TimeoutError:
        return "timed out"
    except OSError as error:
        return error.strerror or str(error) or type(error).__name__
    kind, state, _, _, accepted = struct.unpack(">5I", reply[4:24]) if len(reply) >= 24 else (0,) * 5
    serves = (reply[:4], kind, state, accepted) == (xid, 1, 0, 0)
    return "" if serves else f"it does not serve NFS version {version}"


def shown(server: tuple[str, int, int]) -> str:
    """A server's address for people."""
    with contextlib.suppress(ValueError):
        if ipaddress.ip_address(server[0]).version == 6:
            return f"[{server[0]}]:{server[1]}"
    return f"{server[0]}:{server[1]}"

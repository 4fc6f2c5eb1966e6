"""The parts of a simulated machine as its faults make them look. Pure."""

import uuid
from collections.abc import Collection, Iterator
from typing import NamedTuple

from remediator_sim.machine.faults import FaultKind, MachineFault
from remediator_sim.machine.nfs import NfsServer

ESTALE = 116
STUCK_PIDS = range(2000, 82_000, 2)  # the odd ones are second threads
FIRST_POD_PID = 100_000


class Gpu(NamedTuple):
    """One GPU. `address` as sysfs spells it; `held`: pids of the processes that compute on it."""

    number: int
    address: str
    uuid: str
    serial: str
    lost: bool = False
    uncorrected: int = 0
    pending: bool = False
    worn: bool = False
    held: tuple[int, ...] = ()

    @property
    def bus_id(self) -> str:
        """The address as NVML spells it."""
        return f"0000{self.address.upper()}"


class Mount(NamedTuple):
    """One NFS mount. `statfs`: the errno that it answers, 0 for none, None while it hangs."""

    point: str
    device: str
    source: str
    options: str
    statfs: int | None
    ended: int = 0  # operations so far


class Process(NamedTuple):
    """One process. `pod`: uid, "" for the node's own; `stuck`: one of its threads is; `mounts`: its copies of them."""

    pid: int
    name: str
    pod: str = ""
    gpus: tuple[int, ...] = ()
    mounts: tuple[str, ...] = ()
    stuck: bool = False


OWN = (Process(1, "systemd"), Process(800, "containerd"), Process(900, "kubelet"))


def gpus(node: str, count: int, faults: Collection[MachineFault], processes: Collection[Process]) -> tuple[Gpu, ...]:
    """The GPUs of a node; their identities come from its name."""
    return tuple(_gpu(node, index, faults, processes) for index in range(count))


def _gpu(node: str, index: int, faults: Collection[MachineFault], processes: Collection[Process]) -> Gpu:
    kinds = {fault.kind for fault in faults if fault.where == index}
    identity = uuid.uuid5(uuid.NAMESPACE_DNS, f"{index}.{node}")
    return Gpu(
        number=index,
        address=f"0000:{0x10 + index:02x}:00.0",
        uuid=f"GPU-{identity}",
        serial=f"{identity.int % 10**13:013d}",
        lost=FaultKind.GPU_LOST in kinds,
        uncorrected=2 if FaultKind.GPU_ECC in kinds else 0,
        pending=FaultKind.GPU_ECC in kinds,
        worn=FaultKind.GPU_WORN in kinds,
        held=tuple(process.pid for process in processes if index in process.gpus),
    )


def mount(point: str, number: int, server: NfsServer, faults: Collection[MachineFault], ended: int) -> Mount:
    """The mount of `server` at `point`, the `number`th of its machine."""
    kinds = {fault.kind for fault in faults if fault.where == point}
    hangs = FaultKind.MOUNT_STUCK in kinds or not server.running
    options = (
        "rw,vers=4.2,rsize=1048576,wsize=1048576,namlen=255,hard,proto=tcp,timeo=600,retrans=2,sec=sys,"
        f"port={server.port},clientaddr=127.0.0.1,local_lock=none,addr={server.address}"
    )
    return Mount(
        point=point,
        device=f"0:{60 + number}",
        source=f"{server.address}:/export{point}",
        options=options,
        statfs=None if hangs else ESTALE if FaultKind.MOUNT_STALE in kinds else 0,
        ended=ended,
    )


def stuck(faults: Collection[MachineFault]) -> Iterator[Process]:
    """The processes that cannot be killed: one for each fault, its pid made from the Pod's uid."""
    for fault in faults:
        if fault.kind is FaultKind.UNKILLABLE:
            uid = str(fault.where)
            pid = STUCK_PIDS[uuid.uuid5(uuid.NAMESPACE_DNS, uid).int % len(STUCK_PIDS)]
            yield Process(pid, "python3", uid, stuck=True)

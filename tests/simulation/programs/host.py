"""Scenarios of programs that work on their own node: for the program a node made of files, for the model its facts."""

import asyncio
import copy
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from remediator_sim.machine.nfs import NfsServer
from remediator_sim.simulation import facts, loop
from remediator_sim.simulation.fault import Fault
from tests.operations import test_clear_disk as disk
from tests.operations import test_kill_orphaned_processes as orphans
from tests.operations import test_reload_driver as driver
from tests.operations import test_remount_nfs as nfs
from tests.operations import test_reset_gpu as reset
from tests.operations import test_restart_service as service
from tests.operations.scripted import Node, answer
from tests.simulation.programs.scenario import ATTEMPT, BOOT, Outcome, Scenario, model_node, run_model, run_program

QUICK = {
    "reset-gpu": {"busySeconds": 0},
    "reload-driver": {"busySeconds": 0},
    "remount-nfs": {"probeSeconds": 3, "mountSeconds": 5},
    "restart-service": {"service": "chronyd", "settleSeconds": 0.05, "restartSeconds": 2},
    "kill-orphaned-processes": {"graceSeconds": 0.2, "killSeconds": 0.2},
}
FENCED = ("reboot", "reset-gpu", "reload-driver", "remount-nfs", "restart-service", "kill-orphaned-processes")


def scene(
    template: str, name: str, real: Callable[[Any], object] = lambda node: None, *so: str, **more: Any
) -> Scenario:
    """A scenario; `so` are its facts."""
    parameters = more.pop("parameters", {})
    if isinstance(parameters, dict):
        parameters = QUICK.get(template, {}) | parameters
    return Scenario(template, name, real, so, parameters=parameters, **more)


def says(*answers: Any) -> Callable[[Node], object]:
    """A node whose commands answer so."""
    return lambda node: node.answers(*answers)


def marked(node: Node) -> None:
    """The attempt was started before."""
    marker = node.root / "run/remediator" / ATTEMPT
    marker.parent.mkdir(parents=True, exist_ok=True)
    marker.touch()


def _also_marked(real: Callable[[Any], object]) -> Callable[[Any], object]:
    return lambda node: (real(node), marked(node))


FENCES = tuple(
    scenario
    for template in FENCED
    for scenario in (
        scene(template, "another boot", variables={"EXPECTED_BOOT_ID": "another-boot"}),
        scene(template, "its marker is there", marked, markers=(ATTEMPT,)),
        scene(template, "no boot is expected", variables={"EXPECTED_BOOT_ID": ""}),
    )
)

SICK = {"fault": Fault("GpuEccFault", ("reset-gpu",))}
INCURABLE = {"fault": Fault("GpuEccFault")}
REFUSED_RESET = answer("--gpu-reset", "GPU 00000000:12:00.0: Unknown Error", code=255)
GPUS = (
    scene("reset-gpu", "a GPU needs it", **SICK),
    scene("reset-gpu", "no GPU needs it", says(*reset.HEALTHY)),
    scene(
        "reset-gpu",
        "all GPUs are named",
        says(answer("--gpu-reset", "done"), *reset.HEALTHY),
        parameters={"gpus": "all"},
    ),
    scene("reset-gpu", "the driver lists none", says(answer("", "No devices were found", code=6)), facts.DRIVER_SILENT),
    scene(
        "reset-gpu",
        "a GPU is lost",
        says(reset.table(reset.ACTION, "None", _1="Reboot"), *reset.SICK, *reset.HEALTHY),
        fault=Fault("GpuLost"),
    ),
    scene(
        "reset-gpu",
        "somebody computes on it",
        says(*reset.SICK, answer("--query-compute-apps", f"{reset.BUS[2]}, 4711, python3"), *reset.HEALTHY),
        facts.GPU_COMPUTES,
        **INCURABLE,
    ),
    scene(
        "reset-gpu",
        "the driver says in use",
        says(*reset.SICK, answer("--gpu-reset", reset.IN_USE, code=255), *reset.HEALTHY),
        facts.RESET_BUSY,
        **INCURABLE,
    ),
    scene(
        "reset-gpu",
        "the reset hangs",
        says(*reset.SICK, answer("--gpu-reset", hangs=1), *reset.HEALTHY),
        facts.RESET_HANGS,
        parameters={"resetSeconds": 0.2},
        **INCURABLE,
    ),
    scene(
        "reset-gpu",
        "the reset is turned down",
        says(*reset.SICK, REFUSED_RESET, *reset.HEALTHY),
        facts.RESET_BREAKS,
        **INCURABLE,
    ),
    scene(
        "reset-gpu",
        "the GPU is away after it",
        says(
            *reset.SICK,
            answer("--gpu-reset", "done", then=[answer("pci.bus_id,uuid", f"{reset.BUS[0]}, GPU-0")]),
            *reset.HEALTHY,
        ),
        facts.GPU_AWAY,
        **SICK,
    ),
    scene("reset-gpu", "the need stays", says(*reset.SICK, answer("--gpu-reset", "done"), *reset.HEALTHY), **INCURABLE),
)


def _modules(text: str) -> Callable[[Any], object]:
    return lambda node: node.modules.write_text(text)


DRIVER = (
    scene("reload-driver", "nothing holds it"),
    scene(
        "reload-driver",
        "a container has it",
        lambda node: node.mounted("/", "/run/nvidia/driver"),
        facts.DRIVER_CONTAINED,
    ),
    scene("reload-driver", "none is loaded", _modules("ext4 1 1 - Live 0x0\n"), facts.NO_DRIVER),
    scene("reload-driver", "another module uses it", _modules("nvidia 1 1 strange, Live 0x0\n"), facts.DRIVER_USED),
    scene(
        "reload-driver",
        "a process of no Pod holds a GPU",
        lambda node: node.process(7, "python3", "0::/user.slice", "/dev/nvidia0"),
        facts.GPU_HELD,
    ),
    scene(
        "reload-driver",
        "a service does not stop",
        lambda node: node.says(answer("systemctl stop nvidia-fabricmanager", code=1)),
        facts.SERVICE_STAYS,
    ),
    scene(
        "reload-driver",
        "a module stays",
        lambda node: node.says(answer("modprobe -r", code=1)),
        facts.MODULE_STAYS,
    ),
    scene(
        "reload-driver",
        "a module does not come back",
        lambda node: node.says(answer("modprobe nvidia", code=1)),
        facts.MODULE_LOST,
    ),
    scene("reload-driver", "a GPU is away", lambda node: node.says(answer("nvidia-smi -L", "")), facts.GPU_AWAY),
)

STALE = answer("stat -f", nfs.STALE, code=1)
STALE_MOUNT = {"fault": Fault("NfsStale")}
ABSENT = {"fault": Fault("DevicesMissing")}
DENIED = answer("mount", "denied", code=32)


def _absent(mount: Any = None, port: int = 0) -> Callable[[Any], object]:
    """A node that declares a mount which is not there; `mount`: what the mount command does, else it mounts."""

    def real(node: nfs.NfsNode) -> None:
        nfs.declare(node, f"127.0.0.1:/home /mnt/home nfs port={port or node.port} 0 0\n")
        node.answers(nfs.FINE, mount or nfs.mounting(node, "/mnt/home"))

    return real


MOUNTS = (
    scene("remount-nfs", "a mount is stale", fault=Fault("NfsStale", ("remount-nfs",))),
    scene("remount-nfs", "all answer", says(nfs.FINE)),
    scene(
        "remount-nfs",
        "a Pod holds it",
        lambda node: node.process(7, nfs.GROUP, nfs.row("/mnt/data", node.port, fields="")),
        facts.MOUNT_USED,
        **STALE_MOUNT,
    ),
    scene(
        "remount-nfs",
        "the server is silent",
        lambda node: node.process(1, "0::/init.scope\n", nfs.row("/mnt/data", 1)),
        facts.SERVER_SILENT,
        **STALE_MOUNT,
    ),
    scene(
        "remount-nfs", "umount fails", says(STALE, answer("umount", "busy", code=32)), facts.UMOUNT_FAILS, **STALE_MOUNT
    ),
    scene(
        "remount-nfs",
        "mount fails",
        says(STALE, answer("umount"), DENIED),
        facts.MOUNT_FAILS,
        **STALE_MOUNT,
    ),
    scene("remount-nfs", "a declared mount is absent", _absent(), fault=Fault("DevicesMissing", ("remount-nfs",))),
    scene("remount-nfs", "a declared mount stays absent", _absent(answer("mount")), **ABSENT),
    scene("remount-nfs", "a declared mount is denied", _absent(DENIED), facts.MOUNT_FAILS, **ABSENT),
    scene("remount-nfs", "a declared mount has a silent server", _absent(port=1), facts.SERVER_SILENT, **ABSENT),
    scene("remount-nfs", "it is stale again", says(STALE, answer("umount"), answer("mount")), **STALE_MOUNT),
)

DOWN = service.unit("failed", 0)
SERVICES = (
    scene("restart-service", "it is down and comes up"),
    scene("restart-service", "the kubelet", parameters={"service": "kubelet"}),
    scene("restart-service", "it is not in the list", parameters={"service": "sshd"}),
    scene("restart-service", "there is none", says(service.unit("inactive", 0, "not-found")), facts.NO_UNIT),
    scene(
        "restart-service",
        "its containers would end",
        says(service.unit(kill_mode="control-group")),
        facts.SHIMS_END,
        parameters={"service": "containerd"},
    ),
    scene(
        "restart-service",
        "it does not start",
        says(answer("reset-failed"), answer("systemctl restart", "no", code=1), DOWN),
        facts.RESTART_FAILS,
    ),
    scene(
        "restart-service",
        "it dies again",
        says(answer("reset-failed"), answer("systemctl restart"), DOWN),
        facts.SERVICE_DIES,
        parameters={"restartSeconds": 0.3},
    ),
    scene(
        "restart-service",
        "its healthz is not ok",
        says(answer("reset-failed"), answer("systemctl restart", then=[service.UP]), answer("curl", code=22), DOWN),
        facts.UNHEALTHY,
        parameters={"service": "kubelet", "restartSeconds": 0.3},
    ),
)

PROCESSES = (
    scene(
        "kill-orphaned-processes",
        "one of a Pod that is gone",
        lambda node: node.start(orphans.GONE),
        fault=Fault("GpuBusyWithoutPod", ("kill-orphaned-processes",)),
    ),
    scene("kill-orphaned-processes", "all of a Pod that lives", lambda node: node.start(orphans.ALIVE)),
    scene(
        "kill-orphaned-processes",
        "nobody knows which Pods live",
        lambda node: (node.start(orphans.GONE), node.answers(answer("ls -1A", "denied", code=2))),
        facts.PODS_UNKNOWN,
        fault=Fault("GpuBusyWithoutPod"),
    ),
    scene(
        "kill-orphaned-processes",
        "one stays after SIGKILL",
        lambda node: node.linger(),
        fault=Fault("GpuBusyWithoutPod"),
    ),
)

LIVING = answer("ls -1A /var/lib/kubelet/pods", disk.ALIVE)
DISKS = (
    scene("clear-disk", "it meets the goal", says(disk.df(700))),
    scene(
        "clear-disk",
        "the journal was too long",
        says(disk.df(950), LIVING, answer("journalctl", then=[disk.df(700)]), disk.NO_CRICTL),
        fault=Fault("DiskPressure", ("clear-disk",)),
    ),
    scene("clear-disk", "something else fills it", fault=Fault("DiskPressure")),
    scene("clear-disk", "df does not answer", says(answer("df", "no", code=1)), facts.DISK_UNKNOWN),
)

LOOKS = (
    scene("collect-diagnostics", "what there is"),
    scene("collect-diagnostics", "much cannot be read", lambda node: node.rmdir()),
    scene("collect-diagnostics", "PARAMETERS are no JSON", parameters="["),
)

REBOOTS = (
    scene("reboot", "the node goes down", lambda node: node.dies()),
    scene("reboot", "it is turned down", says(answer("systemctl reboot", code=1)), facts.REBOOT_REFUSED),
    scene(
        "reboot",
        "nobody answers",
        says(answer("systemctl reboot", hangs=1)),
        facts.REBOOT_SILENT,
        parameters={"waitSeconds": 0.3},
    ),
    scene(
        "reboot",
        "it does not go down",
        says(answer("systemctl reboot")),
        facts.STAYS_UP,
        parameters={"waitSeconds": 0.3},
    ),
    scene(
        "reboot",
        "it goes down late",
        says(answer("systemctl reboot")),
        facts.GOES_DOWN_LATE,
        parameters={"waitSeconds": 0.3},
    ),
    scene("reboot", "a last resort that there is not", parameters={"lastResort": "kexec"}),
)

NONSENSE = tuple(
    scene(template, "a number that is none", parameters={name: "soon"})
    for template, name in (
        ("reboot", "waitSeconds"),
        ("reset-gpu", "resetSeconds"),
        ("reload-driver", "moduleSeconds"),
        ("restart-service", "restartSeconds"),
        ("clear-disk", "targetPercent"),
    )
)

ALL = (*FENCES, *NONSENSE, *GPUS, *DRIVER, *MOUNTS, *SERVICES, *PROCESSES, *DISKS, *LOOKS, *REBOOTS)
OTHER_BOOT = {"EXPECTED_BOOT_ID": "another-boot"}
# Whatever else is so: in another boot, and after its marker, nothing is done.
FENCED_OFF = tuple(
    replace(scenario, name=f"{scenario.name}, and {text}", **change)
    for scenario in (*GPUS, *DRIVER, *MOUNTS, *SERVICES, *PROCESSES, *REBOOTS)
    for text, change in (
        ("another boot", {"variables": OTHER_BOOT}),
        ("its marker is there", {"real": _also_marked(scenario.real), "markers": (ATTEMPT,)}),
    )
)


class Rebooting(Node):
    """A node whose reboot kills the program, and one that lacks files."""

    def dies(self) -> None:
        """A reboot that is asked for takes the program with it."""
        script = self.folder / "bin/nsenter"
        script.write_text("#!/bin/sh\nkill -9 $PPID\n")


class Bare(Node):
    """A node of which hardly anything can be read."""

    def rmdir(self) -> None:
        """Its proc has only the boot id."""
        (self.root / "proc/sys/kernel/osrelease").unlink()


class Lingering(orphans.OrphanNode):
    """A node with a process that seems to outlive every signal."""

    def linger(self) -> None:
        """What is told of it does not go with it."""
        pid = str(self.start(orphans.GONE).pid)
        folder = self.root / "proc" / pid
        for name in ("stat", "task"):
            (folder / name).unlink()
        (folder / "stat").write_text(Path(f"/proc/{pid}/stat").read_text())
        (folder / "task" / pid).mkdir(parents=True)
        (folder / "task" / pid / "stat").write_text(Path(f"/proc/{pid}/stat").read_text())


def _bare(folder: Path) -> Bare:
    node = Bare(folder, "collect_diagnostics")
    node.answers(answer("nvidia-smi", "no", code=9))
    (node.root / "proc/sys/kernel/osrelease").write_text("6.1.0\n")
    return node


def _scripted(name: str, *answers: Any) -> Callable[[Path], Node]:
    def make(folder: Path) -> Node:
        node = Node(folder, name)
        node.answers(*answers)
        return node

    return make


def _disk(folder: Path) -> disk.DiskNode:
    node = disk.DiskNode(folder)
    node.answers(disk.df(950), LIVING, answer("journalctl"), disk.NO_CRICTL)
    return node


PLACES: dict[str, Callable[[Path], Node]] = {
    "collect-diagnostics": _bare,
    "reboot": lambda folder: Rebooting(folder, "reboot"),
    "reset-gpu": _scripted("reset_gpu", *reset.SICK, reset.WORKS, *reset.HEALTHY),
    "reload-driver": driver.DriverNode,
    "restart-service": _scripted("restart_service", *service.WORKS, DOWN),
    "kill-orphaned-processes": Lingering,
    "clear-disk": _disk,
}


def outcome_of_program(scenario: Scenario, folder: Path) -> Outcome:
    """Run the program."""
    if scenario.template == "remount-nfs":
        return asyncio.run(_remounted(scenario, folder))
    return _ran(scenario, PLACES[scenario.template](folder))


async def _remounted(scenario: Scenario, folder: Path) -> Outcome:
    async with NfsServer() as server:
        node = nfs.NfsNode(folder, server.port)
        node.answers(STALE, answer("umount"), answer("mount", then=[nfs.FINE]))
        return await asyncio.to_thread(_ran, scenario, node)


def _ran(scenario: Scenario, node: Node) -> Outcome:
    (node.root / "proc/sys/kernel/random/boot_id").write_text(f"{BOOT}\n")
    try:
        scenario.real(node)
        ended = run_program(scenario, node.program)
    finally:
        getattr(node, "end", lambda: None)()
    code = 137 if ended.code == -9 else ended.code
    return Outcome(code, ended.message, {"marker": (node.root / "run/remediator" / ATTEMPT).exists()})


def outcome_of_model(scenario: Scenario) -> Outcome:
    """Run the model."""

    async def whole() -> Outcome:
        node = model_node(copy.deepcopy(scenario))
        program = asyncio.ensure_future(run_model(scenario, node, node._client))
        died = asyncio.ensure_future(node.died.wait())
        await asyncio.wait([program, died], return_when=asyncio.FIRST_COMPLETED)
        marker = ATTEMPT in node.markers
        if not program.done():
            return Outcome(137, "", {"marker": marker})
        return Outcome(*program.result(), {"marker": marker})

    return loop.run(whole())

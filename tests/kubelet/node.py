"""One real node on this machine: containerd and kubelet in namespaces of their own."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from deploy.images.programs import binary
from tests.cluster.processes import Child
from tests.kubelet.cgroups import Cgroup
from tests.kubelet.plane import PORT, SERVICE, NodePlane
from tests.kubelet.relay import Relay

HERE = Path(__file__).parent
PAUSE = "docker.io/remediator/pause:dev"
SOCKET = "/run/containerd/containerd.sock"  # the node has a /run of its own
SECONDS = 60.0
CTR = ("ctr", f"--address={SOCKET}", "--namespace=k8s.io")
NAMESPACES = ("mount", "net", "uts", "ipc", "pid")
UNSHARE = ("unshare", *(f"--{kind}" for kind in NAMESPACES), "--fork", "--kill-child", "--propagation=private")
PLAYED = ("systemctl", "nvidia-smi")  # of these no real one may answer

KUBELET = {
    "apiVersion": "kubelet.config.k8s.io/v1beta1",
    "kind": "KubeletConfiguration",
    "containerRuntimeEndpoint": f"unix://{SOCKET}",
    "cgroupDriver": "cgroupfs",
    "failCgroupV1": False,  # either version will do
    "failSwapOn": False,
    "enforceNodeAllocatable": [],
    "makeIPTablesUtilChains": False,
    "resolvConf": "",
    "registerNode": True,
    "address": "127.0.0.1",  # the node's own loopback, as the ports are its own
    "authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": False}},
    "authorization": {"mode": "AlwaysAllow"},  # and nobody is authenticated
    "readOnlyPort": 0,
    "oomScoreAdj": 0,
    "evictionHard": {"memory.available": "1Mi", "nodefs.available": "0%", "imagefs.available": "0%"},
    "imageGCHighThresholdPercent": 100,
    "nodeStatusUpdateFrequency": "1s",
    "nodeStatusReportFrequency": "10s",
    "syncFrequency": "10s",
    "logging": {"verbosity": 2},
}

CONTAINERD = """\
version = 2
root = "{folder}/containerd"
state = "/run/containerd"
[grpc]
address = "{socket}"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{pause}"
restrict_oom_score_adj = true
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "{folder}/cni/bin"
conf_dir = "{folder}/cni/conf"
"""


class Node:
    """`with Node(...)`: up, and registered at the API server; Ready follows.

    `number` tells the nodes of one machine apart, `path` is a PATH with the programs that run containers, `images` are
    tars that the node is given. Its first process is the leader of a PID namespace: whoever ends it ends all of the
    node, and its mounts and its network go with it. The node sees the files of this machine and has a /proc, a /run and
    a /var of its own; its systemctl and its nvidia-smi are played. Nothing that runs in its Pods reaches another
    process of this machine; a reboot in there is only noted, until `reboot` plays it, and sysrq does nothing.
    """

    def __init__(
        self, name: str, number: int, folder: Path, plane: NodePlane, path: str, images: Sequence[Path]
    ) -> None:
        self.name, self.folder = name, folder
        self.cgroup = f"remediator-{name}-{os.getpid()}"
        self.address = f"192.0.2.{number}"  # of a range that is for examples; nobody else can reach it
        self._number, self._plane, self._path, self._images = number, plane, path, images
        self._cgroup = Cgroup(self.cgroup)
        self._daemons: dict[str, Child] = {}
        self._ends, self._boot_ends = ExitStack(), ExitStack()

    def __enter__(self) -> "Node":
        try:
            self._start()
        except BaseException:
            self._ends.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.close()

    def reboot(self) -> str:
        """End all that runs on the node, and start it anew as it was kept on its disk; its new boot id.

        Not from a thread that ends: the kernel ends children of a thread with the thread.
        """
        self._boot_ends.close()
        self._cgroup.remove()
        self._cgroup.make()
        self._up()
        return (self.folder / "boot_id").read_text().strip()

    @contextmanager
    def hanging(self) -> Iterator[Callable[[], list[str]]]:
        """While this lasts its kubelet and its containerd do nothing; its containers run on. Gives both states."""
        pids = [only_child(self._daemons[name].running.pid) for name in ("kubelet", "containerd")]
        try:
            for pid in pids:
                os.kill(pid, signal.SIGSTOP)
            yield lambda: [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] for pid in pids]
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGCONT)

    def asked(self) -> list[str]:
        """What its systemctl was told, oldest first."""
        path = self.folder / "asked"
        return path.read_text().splitlines() if path.exists() else []

    def logs(self, pod: dict[str, Any]) -> str:
        """What the first container of a Pod has said so far."""
        meta, container = pod["metadata"], pod["spec"]["containers"][0]["name"]
        path = f"var/log/pods/{meta['namespace']}_{meta['name']}_{meta['uid']}/{container}/0.log"
        lines = (self.folder / path).read_text(errors="replace").splitlines()
        return "\n".join(line.split(" ", 3)[3] for line in lines)

    def run(self, *command: str) -> str:
        """Run one command on the node, to its end; what it said. Raises RuntimeError where it fails."""
        done = subprocess.run(self._inside(command), capture_output=True, text=True, timeout=SECONDS, check=False)
        if done.returncode:
            raise RuntimeError(f"`{' '.join(command)}` ended with {done.returncode}: {done.stderr.strip()}")
        return done.stdout

    def write(self, path: str, text: str) -> None:
        """Write a file as the node sees it, in a folder that is made where it is missing."""
        self.run("sh", "-c", 'mkdir -p "$(dirname "$1")" && printf %s "$2" >"$1"', "sh", path, text)

    def import_images(self, tar: Path) -> None:
        """Give the node all images of one tar."""
        self.run(*CTR, "images", "import", str(tar))

    def _start(self) -> None:
        self.folder.mkdir(parents=True)
        self._ends.callback(self._forget)
        self._ends.callback(self._cgroup.remove)
        self._cgroup.make()
        self._ends.push(self._boot_ends)
        self._containerd = self._write_containerd()
        self._kubelet = self._write_kubelet()
        self._kubeconfig = self._plane.kubelet_kubeconfig(self.name)
        self._up(self._images)

    def _up(self, images: Sequence[Path] = ()) -> None:
        """Boot, and start what a node runs."""
        self.boot()
        self._boot_ends.enter_context(Relay(self.pid, (SERVICE, PORT), self._plane.target))
        self._spawn("containerd", f"--config={self._containerd}").wait_until(self._containerd_answers, SECONDS)
        for tar in images:
            self.import_images(tar)
        self._spawn(
            str(binary("kubelet")),
            f"--config={self._kubelet}",
            f"--kubeconfig={self._kubeconfig}",
            f"--hostname-override={self.name}",
            f"--node-ip={self.address}",
            f"--cert-dir={self.folder}/kubelet",
        )

    def boot(self) -> int:
        """Start the first process of the node, in namespaces that are new; its id."""
        (self.folder / "bin").mkdir(exist_ok=True)
        for name in PLAYED:
            program = self.folder / "bin" / name
            program.write_text((HERE / f"{name}.sh").read_text().replace("FOLDER", str(self.folder)))
            program.chmod(0o755)
        words = [sys.executable, "-I", "-S", HERE / "init.py", self.folder, self.name, SERVICE, self.address]
        up = self.folder / "up"
        up.unlink(missing_ok=True)
        shell = Child([*UNSHARE, *words], self.folder / "init.log")
        self._boot_ends.callback(shell.stop)
        shell.wait_until(up.exists, SECONDS)
        self.pid = int(up.read_text())
        require_first(self.pid)
        self._boot_ends.callback(end, self.pid)
        return self.pid

    def _spawn(self, *command: str) -> Child:
        child = Child(self._inside(command), self.folder / f"{Path(command[0]).name}.log")
        self._boot_ends.callback(child.stop)
        self._daemons[Path(command[0]).name] = child
        return child

    def _inside(self, command: Sequence[str]) -> list[str]:
        enter = ["nsenter", f"--target={self.pid}", *(f"--{kind}" for kind in NAMESPACES)]
        return [*enter, "--", "env", f"PATH={self._path}", *command]

    def _write_containerd(self) -> Path:
        """Write what containerd reads."""
        plugins, networks = self.folder / "cni" / "bin", self.folder / "cni" / "conf"
        for path in (plugins, networks):
            path.mkdir(parents=True)
        for name in ("loopback", "node"):
            (plugins / name).write_text(f'#!/bin/sh\nexec {sys.executable} -I -S {HERE / "cni.py"} "$@"\n')
            (plugins / name).chmod(0o755)
        plugin = {"type": "node", "pods": f"10.244.{self._number}", "counter": str(self.folder / "cni" / "counter")}
        network = {"cniVersion": "0.4.0", "name": "pods", "plugins": [plugin]}
        (networks / "10-node.conflist").write_text(json.dumps(network))
        config = self.folder / "containerd.toml"
        config.write_text(CONTAINERD.format(folder=self.folder, socket=SOCKET, pause=PAUSE))
        return config

    def _containerd_answers(self) -> bool:
        try:
            self.run(*CTR, "version")
        except RuntimeError:
            return False
        return True

    def _write_kubelet(self) -> Path:
        """Write what the kubelet reads."""
        config = self.folder / "kubelet.json"
        config.write_text(json.dumps({**KUBELET, "cgroupRoot": f"/{self.cgroup}"}))
        return config

    def _forget(self) -> None:
        """Leave the logs, and nothing large."""
        for part in ("containerd", "work", "kubelet"):
            shutil.rmtree(self.folder / part, ignore_errors=True)


def only_child(pid: int) -> int:
    """The process that nsenter has entered with."""
    (child,) = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return int(child)


def end(pid: int) -> None:
    """Kill a process, if it has not ended by itself."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def require_first(pid: int) -> None:
    """Raise RuntimeError unless this is the first process of a PID namespace that is another one than ours."""
    status = Path(f"/proc/{pid}/status").read_text()
    inner = next(line.split()[1:] for line in status.splitlines() if line.startswith("NSpid:"))
    ours, its = (Path(f"/proc/{one}/ns/pid").readlink() for one in ("self", pid))
    if pid == 1 or len(inner) < 2 or inner[-1] != "1" or ours == its:
        raise RuntimeError(f"process {pid} is not the first of a node: nothing that ends it will be run")

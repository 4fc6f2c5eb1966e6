"""The first process of a node: `init.py FOLDER NAME SERVICE ADDRESS`, run in new namespaces. Standard library only.

It gives the node a /proc, a /run, a /var, a boot id and addresses of its own, and the programs in FOLDER/bin before all
others, writes its process id to FOLDER/up, and from then on buries the processes that others leave behind. When it
ends, the kernel ends all of the node and takes its mounts away; of what it kept, /var alone is there in the next boot.
"""

import signal
import socket
import subprocess
import sys
import uuid
from pathlib import Path

SYSRQ = Path("/proc/sysrq-trigger")  # the kernel's own, with which a node would take the whole machine along
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
BIN = "/usr/local/bin"  # found before /usr/bin


def main(folder: Path, name: str, addresses: list[str]) -> None:
    """Set the node up, and stay."""
    pid = str(Path("/proc/self").readlink())  # as those outside know us: this is their /proc still
    socket.sethostname(name)
    layers = {part: folder / part for part in ("var", "work")}
    for path in layers.values():
        path.mkdir(exist_ok=True)
    over = f"lowerdir=/var,upperdir={layers['var']},workdir={layers['work']}"
    run("mount", "-t", "proc", "proc", "/proc")
    if SYSRQ.exists():
        run("mount", "--bind", "/dev/null", str(SYSRQ))
    (folder / "boot_id").write_text(f"{uuid.uuid4()}\n")
    run("mount", "--bind", str(folder / "boot_id"), str(BOOT_ID))
    run("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", "/run")
    Path("/run/systemd/system").mkdir(parents=True)  # as where systemd is the first process: its systemctl is played
    run("mount", "-t", "overlay", "-o", over, "overlay", "/var")
    run("mount", "-t", "overlay", "-o", f"lowerdir={folder / 'bin'}:{BIN}", "overlay", BIN)
    run("mount", "--make-rshared", "/")  # among ourselves: what a kubelet mounts, containers are to see
    run("ip", "link", "set", "lo", "up")
    for address in addresses:
        run("ip", "address", "add", f"{address}/32", "dev", "lo")
    (folder / "starting").write_text(pid)
    (folder / "starting").rename(folder / "up")
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # from now on the kernel buries the children of this process
    while True:
        signal.pause()


def run(*command: str) -> None:
    """One command, which must succeed."""
    subprocess.run(command, check=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:])

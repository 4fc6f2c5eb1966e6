"""The harness of real nodes: what a node takes with it when it ends, however that comes about."""

import asyncio
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

import pytest

from tests.harness.waiting import gone, until
from tests.kubelet import programs
from tests.kubelet.cgroups import ROOT
from tests.kubelet.cluster import Cluster
from tests.kubelet.pods import sleeper

BOOT = """
import sys
from pathlib import Path
from tests.kubelet.node import Node
node = Node("orphan", 9, Path(sys.argv[1]), None, "", [])
node.folder.mkdir()
print(node.boot(), flush=True)
sys.stdin.read()
"""
STATE = ("/var/lib/kubelet", "/run/containerd", "/var/log/pods", "/run/remediator")


def there() -> set[str]:
    """What a node could have left on this machine."""
    folders = {path for path in STATE if Path(path).exists()}
    links = {path.name for path in Path("/sys/class/net").iterdir()}
    return folders | links | {line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()}


@pytest.mark.cluster
@pytest.mark.timeout(240)
def test_a_node_that_ends_leaves_no_process_no_cgroup_no_mount_and_no_network(cluster: Cluster, tmp_path: Path) -> None:
    before = there()
    with cluster.another("real-3", tmp_path / "node") as node:
        cluster.ready("real-3")
        cluster.apply([sleeper("sleeper", "real-3")])
        cluster.kubectl("wait", "pod", "sleeper", "--for=condition=Ready", "--timeout=60s")
        assert list(ROOT.glob(f"*/{node.cgroup}/**/cgroup.procs")) or list(ROOT.glob(f"{node.cgroup}/**/cgroup.procs"))
        pid = node.pid
    assert gone(pid)
    assert there() == before
    assert list(ROOT.glob(f"**/{node.cgroup}")) == []
    assert not (tmp_path / "node" / "containerd").exists()
    cluster.kubectl("delete", "node", "real-3")
    cluster.kubectl("delete", "pod", "sleeper", "--force", "--grace-period=0")


@pytest.mark.cluster
async def test_a_node_ends_with_a_harness_that_is_killed(tmp_path: Path) -> None:
    try:
        programs.path()
    except programs.Missing as missing:
        pytest.skip(str(missing))
    command = [sys.executable, "-c", BOOT, str(tmp_path / "node")]
    harness = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE)
    assert harness.stdout
    pid = int(await harness.stdout.readline())
    assert not gone(pid)
    harness.kill()
    await harness.wait()
    await until(lambda: gone(pid), 20)


def test_without_root_it_is_said_that_root_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(programs.Missing, match="needs root"):
        programs.path()


def test_a_tool_that_is_missing_is_named_with_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr("shutil.which", lambda name, path=None: None)
    with pytest.raises(programs.Missing, match=r"needs ip on PATH \(iproute2"):
        programs.path()


def test_without_containerd_and_apt_it_is_said_that_both_are_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr("shutil.which", lambda name, path=None: name if name in programs.TOOLS else None)
    with pytest.raises(programs.Missing, match="no apt-get"):
        programs.path()
    assert not (tmp_path / "remediator").exists()


def test_a_fetch_that_fails_says_what_apt_said_and_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "apt-get").write_text("#!/bin/sh\necho E: no such package >&2\nexit 100\n")
    (tmp_path / "bin" / "apt-get").chmod(0o755)
    for tool in programs.TOOLS:
        (tmp_path / "bin" / tool).symlink_to("/bin/true")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr("os.geteuid", lambda: 0)
    with pytest.raises(programs.Missing, match=r"apt-get update.*no such package"):
        programs.path()
    assert list((tmp_path / "cache" / "remediator").iterdir()) == []

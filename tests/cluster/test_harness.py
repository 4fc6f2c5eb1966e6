"""The harness itself: what it builds, and that it leaves no process behind."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from deploy.images import programs as build
from tests.cluster import record
from tests.cluster.processes import Child, Running, end
from tests.harness.waiting import wait_for

SLEEPER = [sys.executable, "-c", "import time; print('started', flush=True); time.sleep(600)"]
STUBBORN = [
    sys.executable,
    "-c",
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('started', flush=True); time.sleep(600)",
]
PARENT = """
import os, sys
from pathlib import Path
from tests.cluster.processes import Child
child = Child([sys.executable, "-c", "import time; time.sleep(600)"], Path(sys.argv[1]))
print(child.running.pid, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "remediator"


def started(child: Child) -> Child:
    child.wait_until(lambda: "started" in child.tail(), seconds=20)
    return child


def test_without_go_building_fails_with_one_sentence_that_says_where_to_get_it(cache, monkeypatch, capsys):
    monkeypatch.setenv("PATH", "")
    assert build.main() == 1
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "needs Go" in said
    assert "https://go.dev/dl/" in said
    assert "kube-apiserver" in said


def test_what_is_built_needs_no_go(cache, monkeypatch, capsys):
    for program in build.PROGRAMS.values():
        program.folder.mkdir(parents=True)
        (program.folder / program.name).touch()
    monkeypatch.setenv("PATH", "")
    assert build.main() == 0
    assert capsys.readouterr().err == ""
    assert build.binary("kubectl").parent.parent == cache


def test_a_program_that_is_not_built_is_named_with_the_remedy(cache):
    with pytest.raises(build.NotBuilt, match=r"kubectl is not built: run .*deploy\.images\.programs"):
        build.binary("kubectl")


def test_what_only_long_tests_need_is_built_only_when_it_is_asked_for(cache):
    assert [program.name for program in build.missing(long=True) if program not in build.missing()] == ["kueue"]
    with pytest.raises(build.NotBuilt, match=r"kueue is not built: run .*programs --long.*make test-long"):
        build.binary("kueue")


def test_other_modules_or_flags_are_built_into_another_folder(cache, tmp_path, monkeypatch):
    program = build.PROGRAMS["etcd"]
    assert program._replace(ldflags="-s").folder != program.folder
    for name in ("go.mod", "go.sum"):
        monkeypatch.setattr(build, "MODULES", _changed_modules(tmp_path / name, name))
        changed = program.folder
        monkeypatch.undo()
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        assert changed.name != program.folder.name


def _changed_modules(folder: Path, changed: str) -> Path:
    (folder / "etcd").mkdir(parents=True)
    for name in ("go.mod", "go.sum"):
        text = (build.MODULES / "etcd" / name).read_text()
        (folder / "etcd" / name).write_text(text + ("\n" if name == changed else ""))
    return folder


def test_a_build_that_fails_leaves_nothing_and_says_so(cache, tmp_path, monkeypatch, capsys):
    go = tmp_path / "bin" / "go"
    go.parent.mkdir()
    go.write_text("#!/bin/sh\nexit 2\n")
    go.chmod(0o755)
    monkeypatch.setenv("PATH", f"{go.parent}:/bin:/usr/bin")
    assert build.main() == 1
    assert "Building etcd failed" in capsys.readouterr().err
    assert list(cache.iterdir()) == []


def test_a_program_that_ends_early_is_told_with_its_log(tmp_path):
    child = Child([sys.executable, "-c", "print('no such flag'); raise SystemExit(3)"], tmp_path / "log")
    with pytest.raises(RuntimeError, match=r"(?s)ended with 3.*no such flag"):
        child.wait_until(lambda: False, seconds=20)


def test_a_program_that_is_never_ready_is_told_with_its_log(tmp_path):
    child = started(Child(SLEEPER, tmp_path / "log"))
    with pytest.raises(TimeoutError, match=r"(?s)not ready after.*started"):
        child.wait_until(lambda: False, seconds=0.2)
    child.stop()


@pytest.mark.parametrize("command", [SLEEPER, STUBBORN], ids=["willing", "stubborn"])
def test_stopping_ends_a_program_whether_it_wants_or_not(tmp_path, command):
    child = started(Child(command, tmp_path / "log"))
    assert child.running.alive()
    child.stop(seconds=0.5)
    assert not child.running.alive()


def test_a_child_dies_with_a_parent_that_is_killed(tmp_path):
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tmp_path / "log")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    pid = int(parent.stdout.readline())
    parent.kill()
    parent.communicate()
    wait_for(lambda: not _runs(pid))


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_ending_spares_a_process_that_has_taken_over_an_id(tmp_path):
    child = started(Child(SLEEPER, tmp_path / "log"))
    end([child.running._replace(started="1")], seconds=0.2)
    assert child.running.alive()
    child.stop()


def test_ending_insists_with_a_stubborn_process(tmp_path):
    child = started(Child(STUBBORN, tmp_path / "log"))
    end([child.running], seconds=0.5)
    assert not child.running.alive()
    child.stop()


def test_a_process_that_never_ran_is_not_alive():
    assert not Running("x", os.getpid(), "").alive()
    assert not Running("x", os.getpid(), "1").alive()


def test_what_was_started_is_remembered(cache):
    assert record.load() is None
    record.folder().mkdir(parents=True)
    kept = record.Record("/x/kubeconfig", [Running("etcd", 1, "2")])
    record.save(kept)
    assert record.load() == kept
    assert not kept.alive()


def _module(name: str, *arguments: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", f"tests.cluster.{name}", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=180)


@pytest.fixture
def built(tmp_path, monkeypatch):
    """A cache of our own that has the built programs of the user's."""
    user = build.cache()
    own = tmp_path / "cache" / "remediator"
    own.mkdir(parents=True)
    for program in build.PROGRAMS.values():
        (own / program.folder.name).symlink_to(user / program.folder.name)
    monkeypatch.setenv("XDG_CACHE_HOME", str(own.parent))


@pytest.fixture
def kubectl(tmp_path):
    """Run kubectl with a kubeconfig; what came of it. Its cache goes with the test."""
    env = {**os.environ, "HOME": str(tmp_path)}

    def run(kubeconfig: str | Path, *arguments: str) -> subprocess.CompletedProcess:
        command = [build.binary("kubectl"), "--kubeconfig", kubeconfig, *arguments]
        return subprocess.run(command, env=env, capture_output=True, text=True)

    return run


@pytest.mark.cluster
def test_up_starts_a_control_plane_with_nodes_and_down_ends_it(built, kubectl):
    first = _module("up", "--nodes", "3")
    try:
        assert first.returncode == 0, first.stderr
        kubeconfig = first.stdout.strip().removeprefix("export KUBECONFIG=")
        ready = kubectl(kubeconfig, "wait", "node", "--all", "--for=condition=Ready", "--timeout=60s")
        assert ready.stdout.count("condition met") == 3
        assert "noderemediations.remediator.dev" in kubectl(kubeconfig, "get", "crd", "-o", "name").stdout
        second = _module("up")
        assert "already up" in second.stderr
        assert second.stdout == first.stdout
        processes = record.load().processes
        assert [process.name for process in processes][-2:] == ["kube-apiserver", "etcd"]
        assert all(process.alive() for process in processes)
    finally:
        assert _module("down").returncode == 0
    assert not any(process.alive() for process in processes)
    assert record.load() is None
    assert "no control plane is up" in _module("down").stdout


@pytest.mark.cluster
def test_up_that_is_terminated_leaves_nothing_running(built):
    command = [sys.executable, "-m", "tests.cluster.up", "--nodes", "1000"]
    up = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    log = record.folder() / "kube-apiserver.log"
    wait_for(log.exists)
    up.send_signal(signal.SIGTERM)
    up.communicate(timeout=60)
    assert _mentioning(str(record.folder())) == []


def _mentioning(text: str) -> list[int]:
    """The processes whose command line has `text` in it."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = path.read_bytes().decode(errors="replace")
        except OSError:
            continue
        if text in command:
            found.append(int(path.parent.name))
    return found


@pytest.mark.cluster
def test_a_client_certificate_names_a_user_and_groups_without_rights(control_plane, kubectl):
    kubeconfig = control_plane.kubeconfig_for("jane", ["operators", "night-shift"])
    info = json.loads(kubectl(kubeconfig, "auth", "whoami", "-o", "json").stdout)["status"]["userInfo"]
    assert info["username"] == "jane"
    assert set(info["groups"]) == {"operators", "night-shift", "system:authenticated"}
    assert 'User "jane" cannot list resource "nodes"' in kubectl(kubeconfig, "get", "nodes").stderr

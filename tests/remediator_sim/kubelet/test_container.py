"""Containers as processes: what is run, what it sees, and that nothing of it is left."""

import asyncio
import os
import signal
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from remediator_sim.kubelet.container import (
    RealProcess,
    Unstartable,
    environment,
    expand,
    is_ours,
    on_this_machine,
    surroundings,
    termination_message,
)
from remediator_sim.kubelet.host import SimulatedHost
from remediator_sim.kubelet.runtime import Record, Runtime, Terminated
from tests.harness.waiting import gone, until

NOW = datetime(2026, 1, 2, tzinfo=UTC)


def a_pod(*command, env=()):
    container = {"name": "main", "image": "x", "command": list(command), "env": list(env)}
    meta = {"name": "p", "namespace": "space", "uid": "u1"}
    return {"metadata": meta, "spec": {"nodeName": "gpu-17", "containers": [container]}}


def test_the_images_paths_and_python_become_ours(tmp_path):
    words = ["python3", "-I", "-S", "/opt/remediator/operations/reboot.py", "--dry-run"]
    program = str(tmp_path / "operations/reboot.py")
    assert on_this_machine(words, tmp_path, {}) == [sys.executable, "-I", "-S", program, "--dry-run"]


def test_only_pods_with_a_program_of_the_image_are_ours():
    assert is_ours(a_pod("python3", "/opt/remediator/detectors/gpu_lost.py"))
    assert not is_ours(a_pod("/pause"))
    assert not is_ours({"spec": {"containers": [{"name": "a"}]}})


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("$(A)/x", "one/x"),
        ("$$(A)", "$(A)"),
        ("$$$$A", "$$A"),
        ("$$$(A)", "$one"),
        ("$(B)", "$(B)"),
        ("$(A", "$(A"),
        ("$A", "$A"),
        ('{"k": "$(A)"}', '{"k": "one"}'),
    ],
)
def test_names_in_brackets_are_filled_in(text, filled):
    assert expand(text, {"A": "one"}) == filled


def test_the_environment_holds_values_and_fields_of_the_pod():
    def field(name, path):
        return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}

    env = [
        {"name": "A", "value": "1"},
        {"name": "B", "value": "$(A)2"},
        field("NAME", "metadata.name"),
        field("SPACE", "metadata.namespace"),
        field("NODE", "spec.nodeName"),
    ]
    expected = {"A": "1", "B": "12", "NAME": "p", "SPACE": "space", "NODE": "gpu-17"}
    assert environment(a_pod("x", env=env)) == expected


def test_a_source_that_is_not_simulated_is_named():
    secret = {"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}
    with pytest.raises(Unstartable, match="variable A"):
        environment(a_pod("x", env=[secret]))


async def test_a_container_finds_the_recording_nsenter_first(tmp_path):
    host = SimulatedHost(tmp_path, "gpu-17")
    env = surroundings(host, tmp_path, ("127.0.0.1", 6443))
    process = await RealProcess.start(["sh", "-c", "command -v nsenter"], env, tmp_path)
    assert await process.ended() == 0
    assert (tmp_path / "log").read_text().strip() == str(host.bin / "nsenter")


async def test_the_exit_code_is_the_programs_own(tmp_path):
    process = await RealProcess.start(["sh", "-c", "exit 2"], os.environ, tmp_path)
    assert await process.ended() == 2


async def test_death_by_a_signal_is_told_as_a_shell_does(tmp_path):
    process = await RealProcess.start(["sh", "-c", "kill -9 $$"], os.environ, tmp_path)
    assert await process.ended() == 137


async def test_stop_asks_before_it_kills(tmp_path):
    polite = "trap 'exit 3' TERM; touch ready; while :; do sleep 0.01; done"
    process = await RealProcess.start(["sh", "-c", polite], os.environ, tmp_path)
    await until((tmp_path / "ready").exists)
    assert await process.stop(10) == 3


async def test_stop_kills_a_program_that_does_not_listen(tmp_path):
    deaf = "trap '' TERM; touch ready; while :; do sleep 0.01; done"
    process = await RealProcess.start(["sh", "-c", deaf], os.environ, tmp_path)
    await until((tmp_path / "ready").exists)
    assert await process.stop(0.1) == 137


async def test_children_left_behind_end_with_their_program(tmp_path):
    process = await RealProcess.start(["sh", "-c", "sleep 300 & echo $! > child"], os.environ, tmp_path)
    await process.ended()
    child = int((tmp_path / "child").read_text())
    await until(lambda: gone(child))


async def test_a_program_that_is_not_there_cannot_be_started(tmp_path):
    with pytest.raises(Unstartable, match="no-such-program"):
        await RealProcess.start(["/no-such-program"], os.environ, tmp_path)


async def test_a_container_dies_with_a_kubelet_that_is_killed(tmp_path):
    kubelet = (
        "import asyncio, os, pathlib\n"
        "from remediator_sim.kubelet.container import RealProcess\n"
        "async def main():\n"
        "    await RealProcess.start(['sh', '-c', 'echo $$ > pid; exec sleep 300'], os.environ, pathlib.Path('.'))\n"
        "    await asyncio.sleep(300)\n"
        "asyncio.run(main())\n"
    )
    parent = await asyncio.create_subprocess_exec(
        sys.executable, "-c", kubelet, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(Path.cwd())}
    )
    pid = tmp_path / "pid"
    await until(lambda: pid.exists() and pid.read_text().strip())
    parent.send_signal(signal.SIGKILL)
    await parent.wait()
    await until(lambda: gone(int(pid.read_text())))


def test_a_long_termination_message_keeps_its_end(tmp_path):
    log = tmp_path / "log"
    log.write_text("a" * 5000 + "the end")
    assert len(termination_message(log)) == 4096
    assert termination_message(log).endswith("the end")


def test_no_termination_message_is_an_empty_one(tmp_path):
    assert termination_message(tmp_path / "none") == ""


def test_the_runtime_remembers_across_kubelets(tmp_path):
    record = Record("boot", NOW, 2, Terminated(1, "Error", "no", NOW, NOW))
    Runtime(tmp_path).save("u1", record)
    again = Runtime(tmp_path)
    assert (again.load("u1"), again.load("u2"), again.known()) == (record, None, {"u1"})
    again.forget("u1")
    assert again.load("u1") is None

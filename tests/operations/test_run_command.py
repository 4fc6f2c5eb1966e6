"""The program that runs what an administrator wrote into its template."""

import json
import os
import shlex
import signal
import subprocess
import time
from pathlib import Path

import pytest
import run_command
import yaml

from nodelib.contract.operation import Stopped
from tests.harness.waiting import gone
from tests.operations.conftest import OPERATIONS
from tests.operations.scripted import BOOT, Node


@pytest.fixture
def node(tmp_path):
    return Node(tmp_path, "run_command")


def run(node, script, *options, **variables):
    return node.program(*options, COMMAND=json.dumps(["sh", "-c", script]), **variables)


def wait_for(condition):
    until = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < until, "not in time"
        time.sleep(0.01)


def test_as_it_is_shipped_it_refuses(node):
    template = yaml.safe_load((OPERATIONS / "run_command.yaml").read_text())
    [container] = template["spec"]["podTemplate"]["spec"]["containers"]
    [command] = container["env"]
    ran = node.program(**{command["name"]: command["value"]})
    assert (ran.code, ran.message) == (2, "refused: this template runs nothing yet: write its image and its COMMAND")
    assert node.program().code == 2


@pytest.mark.parametrize(
    ("code", "outcome", "message"),
    [
        (0, 0, "mended 3 links"),
        (1, 1, "failed: exit 1: mended 3 links"),
        (2, 2, "refused: mended 3 links"),
        (7, 1, "failed: exit 7: mended 3 links"),
    ],
)
def test_its_exit_code_and_its_last_line_are_the_outcome(node, code, outcome, message):
    ran = run(node, f"echo looking; echo 'mended 3 links' >&2; echo; exit {code}")
    assert (ran.code, ran.message) == (outcome, message)
    assert ran.out.startswith("looking\nmended 3 links\n")


def test_it_gets_the_environment_of_the_contract(node):
    ran = run(node, 'echo "$NODE_NAME $ATTEMPT_ID $PARAMETERS"', parameters={"depth": 2})
    assert ran.message == 'gpu-1 op-uid.1 {"depth": 2}'


def test_parameters_cannot_name_a_program(node, tmp_path):
    touch = ["touch", str(tmp_path / "there")]
    ran = node.program(parameters={"COMMAND": touch, "command": touch})
    assert (ran.code, (tmp_path / "there").exists()) == (2, False)


def test_one_that_does_not_end_is_ended_with_what_it_started(node, tmp_path):
    begun = time.monotonic()
    script = f"echo so far; sleep 60 & echo $! > {shlex.quote(str(tmp_path))}/pid; wait"
    ran = run(node, script, parameters={"timeoutSeconds": 2})
    assert (ran.code, ran.message) == (1, "failed: it did not end within 2 s; its last line: so far")
    assert time.monotonic() - begun < 20
    wait_for(lambda: gone(int((tmp_path / "pid").read_text())))


def test_one_that_leaves_a_child_with_its_output_is_not_waited_for(node):
    begun = time.monotonic()
    assert run(node, "sleep 60 & echo done").message == "done"
    assert time.monotonic() - begun < 20


def test_one_that_says_its_last_early_is_waited_for(node, tmp_path):
    ran = run(node, f"echo soon; exec >&- 2>&-; sleep 0.3; touch {shlex.quote(str(tmp_path))}/there")
    assert (ran.code, ran.message, (tmp_path / "there").exists()) == (0, "soon", True)


def test_being_stopped_ends_it(node, tmp_path):
    script = f"echo $$ > {shlex.quote(str(tmp_path))}/draft; mv {tmp_path}/draft {tmp_path}/pid; exec sleep 60"
    process = node.program.start(COMMAND=json.dumps(["sh", "-c", script]))
    wait_for((tmp_path / "pid").exists)
    process.terminate()
    ran = node.program.finish(process)
    assert (ran.code, ran.message) == (143, "stopped by SIGTERM")
    wait_for(lambda: gone(int((tmp_path / "pid").read_text())))


def test_being_stopped_while_it_is_being_started_ends_it_too(monkeypatch):
    made = []

    def start(*arguments, **options):
        made.append(popen(*arguments, **options))
        signal.raise_signal(signal.SIGTERM)
        return made[0]

    def stop(*_):
        raise Stopped

    popen = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", start)
    before = signal.signal(signal.SIGTERM, stop)
    try:
        with pytest.raises(Stopped):
            run_command.run(["sleep", "60"], 60.0)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert [child.wait(10) for child in made] == [-signal.SIGTERM]


@pytest.mark.parametrize("command", ["/repair --now", '"x"', "[1]", "{}"])
def test_a_command_that_is_no_list_of_words_is_refused_with_an_example(node, command):
    ran = node.program(COMMAND=command)
    assert (ran.code, '["/repair", "--now"]' in ran.message) == (2, True)


def test_a_program_that_is_not_there_is_a_failure_by_its_name(node):
    ran = node.program(COMMAND='["/no/such/program"]')
    assert (ran.code, ran.message) == (1, "failed: /no/such/program cannot be started: No such file or directory")


def test_another_boot_and_a_second_start_are_refused(node, tmp_path):
    script = f"echo once >> {shlex.quote(str(tmp_path))}/ran"
    assert run(node, script, EXPECTED_BOOT_ID="another").message.startswith(f"refused: boot id is {BOOT}")
    run(node, script)
    assert run(node, script).message == "refused: attempt op-uid.1 was started before in this boot"
    assert (tmp_path / "ran").read_text() == "once\n"


def test_a_dry_run_says_what_it_would_run_and_does_not(node, tmp_path):
    before = node.files()
    ran = run(node, f"touch {tmp_path}/there", "--dry-run")
    assert (ran.code, ran.message, node.files()) == (0, "", before)
    assert f"run sh -c 'touch {tmp_path}/there' for at most 600 s" in ran.out
    assert not (tmp_path / "there").exists()


def test_the_pod_that_is_shipped_has_no_capability_and_sees_of_the_node_only_what_it_needs():
    spec = yaml.safe_load((OPERATIONS / "run_command.yaml").read_text())["spec"]["podTemplate"]["spec"]
    [container] = spec["containers"]
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert not any(spec.get(name) for name in ("hostPID", "hostNetwork", "hostIPC"))
    assert {volume["hostPath"]["path"] for volume in spec["volumes"]} == {"/proc", "/run/remediator"}
    assert os.access(OPERATIONS / Path(container["command"][-1]).name, os.X_OK)

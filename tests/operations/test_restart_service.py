"""The program that restarts a service of the node, with a systemctl that answers by a script."""

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest
import yaml
from restart_service import ALLOWED, WHOLE

from tests.operations.conftest import OPERATIONS
from tests.operations.scripted import BOOT, ENTER, Node, answer

pytestmark = pytest.mark.sampled("restart service")


def unit(active="active", pid=7, load="loaded", kill_mode="process"):
    text = f"MainPID={pid}\nLoadState={load}\nActiveState={active}\nKillMode={kill_mode}\n"
    return answer("systemctl show", text)


UP = unit(pid=9)
WORKS = [answer("reset-failed"), answer("systemctl restart", then=[UP]), answer("curl", "ok")]


@pytest.fixture
def node(tmp_path):
    """A node whose services are down and come up when they are restarted."""
    node = Node(tmp_path, "restart_service")
    node.answers(*WORKS, unit("failed", 0))
    return node


def run(node, *options, service="kubelet", **given):
    quick = {"settleSeconds": 0.2, "restartSeconds": 5}
    return node.program(*options, parameters={"service": service, **quick, **given})


def test_a_service_is_restarted_and_stays_up_and_the_kubelet_is_healthy(node):
    ran = run(node)
    assert (ran.code, ran.message) == (0, "restarted kubelet, which was failed; it is active and healthy"), ran.out
    changes = [call for call in node.calls() if "show" not in call]
    assert changes == [
        "systemctl reset-failed kubelet.service",
        "systemctl restart kubelet.service",
        "curl -fsS --noproxy * --max-time 5 http://127.0.0.1:10248/healthz",
    ]
    assert (node.root / "run/remediator/op-uid.1").exists()


def test_another_service_is_not_asked_for_its_health(node):
    ran = run(node, service="chronyd.service")
    assert (ran.code, ran.message) == (0, "restarted chronyd, which was failed; it is active")
    assert node.calls("curl") == []


@pytest.mark.parametrize("service", ["sshd", "kubelet --force", "", None, ["kubelet"], "dockerd"])
def test_a_service_that_is_not_in_the_list_is_refused(node, service):
    ran = run(node, service=service)
    assert (ran.code, node.calls()) == (2, [])
    assert "not one of kubelet, containerd" in ran.message


@pytest.mark.parametrize("load", ["not-found", "masked"])
def test_a_unit_that_cannot_be_started_is_refused(node, load):
    node.answers(unit("inactive", 0, load))
    ran = run(node)
    assert (ran.code, ran.message) == (2, f"refused: kubelet.service is {load} on this node")
    assert node.calls("restart") == []


@pytest.mark.parametrize(("mode", "code"), [("process", 0), ("control-group", 2), ("mixed", 2)])
def test_containerd_is_restarted_only_where_that_leaves_its_containers(node, mode, code):
    node.answers(*WORKS, unit(kill_mode=mode))
    ran = run(node, service="containerd")
    assert (ran.code, len(node.calls("restart"))) == (code, code == 0)
    assert code == 0 or f"would end every container (its KillMode is {mode})" in ran.message


def test_fabric_manager_is_not_taken_from_work_on_gpus(node):
    for pid, name, group in (
        (41, "nv-fabricmanage", "0::/system.slice/nvidia-fabricmanager.service"),
        (42, "nvidia-persiste", "0::/system.slice/nvidia-persistenced.service"),
    ):
        folder = node.root / "proc" / str(pid)
        (folder / "fd").mkdir(parents=True)
        (folder / "comm").write_text(name)
        (folder / "cgroup").write_text(group)
        (folder / "fd/3").symlink_to("/dev/nvidia0")
    node.answers(*WORKS, unit())
    assert run(node, service="nvidia-fabricmanager").code == 0
    (node.root / "proc/42/cgroup").write_text("0::/user.slice/user-1000.slice")
    ran = run(node, service="nvidia-fabricmanager")
    assert ran.code == 2
    ran = node.program(parameters={"service": "nvidia-fabricmanager"}, ATTEMPT_ID="op-uid.2")
    assert ran.message.startswith(
        "refused: nvidia-persiste (pid 42) holds /dev/nvidia0, and would lose it with nvidia-"
    )


def test_a_service_that_does_not_stay_up_is_a_failure(node):
    node.answers(answer("reset-failed"), answer("systemctl restart"), unit("activating", 0))
    ran = run(node, restartSeconds=2)
    assert ran.code == 1
    assert ran.message == (
        "failed: kubelet was restarted and does not stay up: it is activating; see journalctl -u kubelet"
    )


def test_one_that_runs_as_another_process_each_time_is_not_up(node):
    """Each answer is given once: the pid changes at every look."""
    shows = unit(pid=1)
    for pid in range(2, 40):
        shows = [shows[0], {**unit(pid=pid)[1], "then": [shows]}]
    node.answers(answer("reset-failed"), answer("systemctl restart"), shows)
    ran = run(node, restartSeconds=2, settleSeconds=0.3)
    assert (ran.code, "does not stay up: it is active" in ran.message) == (1, True)


def test_a_restart_that_systemd_does_not_do_is_a_failure_with_its_words(node):
    node.answers(answer("reset-failed"), answer("systemctl restart", "Job for kubelet.service failed.", code=1), unit())
    ran = run(node)
    assert (ran.code, ran.message) == (
        1,
        "failed: kubelet could not be restarted: exit 1: Job for kubelet.service failed.",
    )
    node.answers(answer("reset-failed"), answer("systemctl restart", hangs=30), unit())
    ran = node.program(parameters={"service": "kubelet", "restartSeconds": 0.3}, ATTEMPT_ID="op-uid.2")
    assert ran.message == "failed: kubelet could not be restarted: no answer within 0.3 s"


def test_a_kubelet_that_is_up_and_not_healthy_is_a_failure(node):
    node.answers(answer("curl", "curl: (22) error: 500", code=22), *WORKS, unit())
    ran = run(node, restartSeconds=2)
    assert (ran.code, ran.message) == (
        1,
        "failed: kubelet is active and its healthz is not ok: exit 22: curl: (22) error: 500",
    )


def test_without_curl_that_is_said_and_without_a_port_it_is_not_asked(node):
    node.answers(answer("curl", "nsenter: failed to execute curl: No such file or directory", code=127), *WORKS, unit())
    assert run(node).message.endswith("its healthz could not be asked, the node has no curl")
    ran = node.program(parameters={"service": "kubelet", "settleSeconds": 0, "healthzPort": 0}, ATTEMPT_ID="op-uid.2")
    assert (ran.code, ran.message) == (0, "restarted kubelet, which was active; it is active")
    assert len(node.calls("curl")) == 1


def test_a_systemd_that_does_not_answer_is_refused(node):
    node.answers(answer("systemctl show", "Failed to connect to bus", code=1))
    ran = run(node)
    assert (ran.code, node.calls("restart")) == (2, [])
    assert "systemd does not report kubelet: exit 1: Failed to connect to bus" in ran.message


def test_another_boot_and_a_second_start_are_refused(node):
    ran = node.program(parameters={"service": "kubelet"}, EXPECTED_BOOT_ID="another")
    assert (ran.code, ran.message) == (2, f"refused: boot id is {BOOT}, not another: it was rebooted since")
    run(node)
    assert run(node).message == "refused: attempt op-uid.1 was started before in this boot"
    assert len(node.calls("systemctl restart")) == 1


def test_a_dry_run_says_what_it_would_run_and_changes_nothing(node):
    before = node.files()
    ran = run(node, "--dry-run")
    assert (ran.code, ran.message, node.files()) == (0, "", before)
    assert ran.out.splitlines()[1:] == [
        f"would run nsenter {ENTER} systemctl reset-failed kubelet.service",
        f"would run nsenter {ENTER} systemctl restart kubelet.service",
        "would restart kubelet, which is failed",
    ]
    assert node.calls("systemctl restart") == []


def test_services_in_whose_units_containers_live_are_known():
    assert [name for name, care in ALLOWED.items() if care.shims] == ["containerd", *reversed(WHOLE)]
    assert [name for name, care in ALLOWED.items() if care.daemon] == ["docker"]


@pytest.mark.parametrize(("live", "code"), [("true", 0), ("false", 2), ("Cannot connect to the Docker daemon", 2)])
def test_docker_is_restarted_only_where_its_containers_live_on(node, live, code):
    node.answers(answer("LiveRestoreEnabled", live), *WORKS, unit())
    ran = run(node, service="docker")
    assert (ran.code, len(node.calls("restart docker"))) == (code, code == 0), ran.out
    assert code == 0 or "a restart of docker would end every container (its live-restore is not on)" in ran.message


def named(name, active):
    text = f"MainPID=9\nLoadState=loaded\nActiveState={active}\nKillMode=process\n"
    return answer(f"KillMode {name}.service", text)


NONE = unit("inactive", 0, "not-found")
ON_THE_NODE = {
    "containerd": ("runtime", [named("containerd", "active")], "containerd"),
    "CRI-O, which has failed, and containerd, which nobody uses": (
        "runtime",
        [named("containerd", "inactive"), named("crio", "failed")],
        "crio",
    ),
    "cri-docker": ("runtime", [named("cri-docker", "active"), named("containerd", "active")], "cri-docker"),
    "RKE2 has the runtime": ("runtime", [named("rke2-agent", "active")], "rke2-agent"),
    "k3s has the kubelet": ("kubelet", [named("k3s-agent", "failed")], "k3s-agent"),
    "one that is down": ("runtime", [named("containerd", "inactive")], "containerd"),
}


@pytest.mark.parametrize(("word", "units", "name"), ON_THE_NODE.values(), ids=ON_THE_NODE.keys())
def test_runtime_and_kubelet_stand_for_what_the_node_has(node, word, units, name):
    works = [answer("reset-failed"), answer("systemctl restart", then=[named(name, "active")]), answer("curl", "ok")]
    node.answers(*works, *units, NONE)
    ran = run(node, service=word)
    assert (ran.code, ran.message.split(",")[0]) == (0, f"restarted {name}"), ran.out
    assert node.calls("systemctl restart") == [f"systemctl restart {name}.service"]


def test_a_node_without_any_runtime_is_refused(node):
    node.answers(NONE)
    ran = run(node, service="runtime")
    assert (ran.code, ran.message) == (2, "refused: rke2-agent.service is not-found on this node")


def capabilities(template):
    spec = yaml.safe_load((OPERATIONS / template).read_text())["spec"]["podTemplate"]["spec"]
    return [name.lower() for name in spec["containers"][0]["securityContext"]["capabilities"]["add"]]


def with_only(names, *words):
    """The exit code of a command that has these capabilities and no other."""
    bounds = ",".join(["-all", *(f"+{name}" for name in names)])
    limited = ["setpriv", f"--bounding-set={bounds}", "--inh-caps=-all", "--", *words]
    return subprocess.run(limited, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode


@pytest.fixture
def other():
    """A process of another user in namespaces of its own that holds a file open."""
    script = ["unshare", "-m", "-u", "-i", "-n", "setpriv", "--reuid", "65534", "--clear-groups", "sleep", "60"]
    process = subprocess.Popen(script, stdin=subprocess.DEVNULL)
    until = time.monotonic() + 10
    while Path(f"/proc/{process.pid}/comm").read_text() != "sleep\n":
        assert time.monotonic() < until, "it did not start"
        time.sleep(0.01)
    yield process
    process.kill()
    process.wait()


@pytest.mark.cluster
@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv"), reason="enters namespaces, which needs root")
@pytest.mark.parametrize(
    "template", ["restart_service.yaml", "kill_orphaned_processes.yaml", "clear_disk.yaml", "reboot.yaml"]
)
def test_the_capabilities_of_a_template_enter_a_nodes_namespaces_and_one_less_does_not(template, other):
    enter = ["nsenter", "--target", str(other.pid), *ENTER.split()[2:], "true"]
    names = capabilities(template)
    assert with_only(names, *enter) == 0
    for one in ("sys_admin", "sys_chroot", "sys_ptrace"):
        assert with_only([name for name in names if name != one], *enter) != 0, one


@pytest.mark.cluster
@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv"), reason="gives rights up, which needs root")
def test_the_capabilities_show_what_another_users_process_holds_and_one_less_does_not(other):
    look = ["readlink", f"/proc/{other.pid}/fd/0"]
    names = capabilities("restart_service.yaml")
    assert with_only(names, *look) == 0
    for one in ("dac_read_search", "sys_ptrace"):
        assert with_only([name for name in names if name != one], *look) != 0, one

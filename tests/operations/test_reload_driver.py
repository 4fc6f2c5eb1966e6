"""The program that reloads the driver, on a node whose modules are lines of /proc/modules."""

import json
import shutil
import signal
import subprocess
import sys
from shlex import quote

import pytest
from reload_driver import unload_order

from nodelib.host import device_users
from nodelib.host.device_users import users
from tests.operations.holders import Holders
from tests.operations.scripted import BOOT, ENTER, Node, answer

pytestmark = pytest.mark.sampled("reload driver")

POD = "8f3c2a10-1111-2222-3333-444455556666"
USES = {
    "nvidia_uvm": "-",
    "nvidia_drm": "-",
    "nvidia_modeset": "nvidia_drm,",
    "nvidia": "nvidia_uvm,nvidia_modeset,",
}
ORDER = ["nvidia_uvm", "nvidia_drm", "nvidia_modeset", "nvidia"]
EIGHT = "".join(f"GPU {n}: NVIDIA H100 (UUID: GPU-{n})\n" for n in range(8))

# Loads and unloads modules in the node's /proc/modules, as modprobe does; all else is answered by the script.
MODPROBE = """#!/bin/sh
{inner} "$@"
code=$?
while [ "$1" != -- ]; do shift; done
shift
if [ "$1" = modprobe ] && [ $code = 0 ]; then
    for name; do :; done
    case "$2" in {uses} esac
    {{ grep -v "^$name " {modules}; [ "$2" = -r ] || echo "$name 1 0 $uses Live 0x0"; }} > {modules}.new
    mv {modules}.new {modules}
fi
exit $code
"""


class DriverNode(Node):
    """A node with eight GPUs, persistenced and fabric manager active."""

    def __init__(self, folder):
        super().__init__(folder, "reload_driver")
        self.program.parameters = {"busySeconds": "0"}
        self.modules = self.root / "proc/modules"
        self.modules.write_text("ext4 1 1 - Live 0x0\n" + "".join(f"{n} 1 0 {u} Live 0x0\n" for n, u in USES.items()))
        self.process(1, "systemd", "0::/init.scope")
        self.mounted("/", "/run")
        for number in range(8):
            (self.root / f"proc/driver/nvidia/gpus/0000:1{number}:00.0").mkdir(parents=True)
        inner = folder / "bin/scripted"
        (folder / "bin/nsenter").rename(inner)
        uses = " ".join(f"{name}) uses={by};;" for name, by in USES.items())
        script = MODPROBE.format(modules=quote(str(self.modules)), inner=quote(str(inner)), uses=uses)
        (folder / "bin/nsenter").write_text(script)
        (folder / "bin/nsenter").chmod(0o755)
        self.says()

    def says(self, *first):
        up = "LoadState=loaded\nActiveState=active\nMainPID=9\nKillMode=control-group"
        down = "LoadState=not-found\nActiveState=inactive\nMainPID=0\n"
        self.answers(
            *first,
            *(answer(f"show --property=LoadState,ActiveState,MainPID,KillMode {name}.service", up) for name in ACTIVE),
            answer("systemctl show", down),
            answer("systemctl stop"),
            answer("systemctl start"),
            answer("modprobe"),
            answer("nvidia-smi -L", EIGHT),
        )

    def mounted(self, *points):
        lines = [f"{n} 1 0:{n} / {point} rw - tmpfs tmpfs rw\n" for n, point in enumerate(points)]
        (self.root / "proc/1/mountinfo").write_text("".join(lines))

    def process(self, pid, name, group, *devices):
        folder = self.root / "proc" / str(pid)
        (folder / "fd").mkdir(parents=True)
        (folder / "task").mkdir()
        (folder / "comm").write_text(f"{name}\n")
        (folder / "cgroup").write_text(f"{group}\n")
        for number, device in enumerate(devices, start=3):
            (folder / "fd" / str(number)).symlink_to(device)

    def changes(self):
        return [call for call in self.calls() if " show " not in call]


ACTIVE = ("nvidia-fabricmanager", "nvidia-persistenced")
STOPS = [f"systemctl stop {name}.service" for name in ACTIVE]
STARTS = [f"systemctl start {name}.service" for name in reversed(ACTIVE)]


@pytest.fixture
def node(tmp_path):
    return DriverNode(tmp_path)


def test_services_stop_modules_go_and_come_and_services_start_again(node):
    node.process(9, "nvidia-persiste", "0::/system.slice/nvidia-persistenced.service")
    ran = node.program()
    assert ran.code == 0, ran.out
    assert ran.message == "reloaded nvidia_uvm, nvidia_drm, nvidia_modeset, nvidia: 8 GPUs answer"
    assert node.changes() == [
        *STOPS,
        *(f"modprobe -r {name}" for name in ORDER),
        *(f"modprobe {name}" for name in reversed(ORDER)),
        "nvidia-modprobe -u -c0",
        *STARTS,
        "nvidia-smi -L",
    ]


def test_a_process_that_holds_a_gpu_is_named_with_its_pod_and_nothing_is_touched(node):
    pod = f"0::/kubepods.slice/kubepods-pod{POD.replace('-', '_')}.slice/cri-containerd-{'4f' * 32}.scope"
    node.process(77, "python3", pod, "/dev/null", "/dev/nvidia-uvm", "/tmp/dev/nvidia0")
    ran = node.program()
    assert (ran.code, node.changes()) == (2, [])
    assert ran.message == (
        f"refused: python3 (pid 77 of Pod {POD.replace('-', '')}) holds /dev/nvidia-uvm: "
        "end it, or reboot the node; the driver was left alone"
    )


@pytest.fixture
def holders(node):
    """Real processes that have devices of the driver open."""
    holders = Holders(node)
    yield holders
    holders.end()


IN_POD = f"0::/kubepods/pod{POD}/{'4f' * 32}\n"
ENDED = ["modprobe -r nvidia_uvm", "modprobe -r nvidia_drm", "modprobe -r nvidia_modeset", "modprobe -r nvidia"]


def test_on_a_drained_node_processes_of_pods_are_ended_once_the_services_are_down(node, holders):
    plugin = holders.start(IN_POD, "/dev/nvidiactl", "/dev/nvidia0")
    rehearsed = node.program("--dry-run", DRAINED="true")
    said = f"sleep (pid {plugin.pid} of Pod {POD.replace('-', '')}) holds /dev/nvidia0, /dev/nvidiactl"
    assert f"would send SIGTERM, and after 90 s SIGKILL, to what holds a GPU: {said}\n" in rehearsed.out
    assert plugin.poll() is None
    ran = node.program(DRAINED="true", parameters={"busySeconds": "1"})
    assert (ran.code, plugin.wait(10)) == (0, -signal.SIGTERM), ran.out
    assert node.changes()[:6] == [*STOPS, *ENDED]
    assert f"ending what holds a GPU: {said}\n" in ran.out


def test_one_that_asks_the_driver_in_another_pod_is_waited_for_and_not_ended(node, holders, tmp_path):
    """Though others are given no time: here it ends after two seconds."""
    (tmp_path / "nvidia-smi").symlink_to(shutil.which("sleep"))
    asks = holders.start(IN_POD, "/dev/nvidia0", words=(str(tmp_path / "nvidia-smi"), "2"))
    ran = node.program(DRAINED="true", parameters={"busySeconds": "0"})
    assert (ran.code, asks.wait(10)) == (0, 0), ran.out


def test_one_that_the_kubelet_starts_again_is_ended_again_and_what_is_unloaded_stays_so(node, holders):
    holders.start(IN_POD, "/dev/nvidia0", again=1)
    busy = answer("modprobe -r nvidia", "modprobe: FATAL: Module nvidia is in use.", code=1, then=[answer("modprobe")])
    node.says(answer("modprobe -r nvidia_"), busy)
    ran = node.program(DRAINED="true", parameters={"busySeconds": "8"})
    assert (ran.code, [child.wait(10) for child in holders.started]) == (0, [-signal.SIGTERM] * 2), ran.out
    assert [call for call in node.changes() if "-r" in call] == [*ENDED, ENDED[-1]]


def test_one_that_asks_the_driver_for_a_moment_only_is_waited_for(node, holders):
    asks = holders.start("0::/user.slice/user-1000.slice\n", "/dev/nvidia0", words=("sleep", "1"))
    ran = node.program(parameters={"busySeconds": "20"})
    assert (ran.code, asks.wait(10)) == (0, 0), ran.out


def test_what_a_service_holds_that_will_be_stopped_is_no_hold_unless_it_is_not_declared(node):
    node.process(9, "nv-fabricmanage", "0::/system.slice/nvidia-fabricmanager.service", "/dev/nvidia-nvswitch0")
    assert node.program("--dry-run").code == 0
    ran = node.program(parameters={"services": ["nvidia-persistenced"]})
    assert (ran.code, node.changes()) == (2, [])
    assert "nv-fabricmanage (pid 9) holds /dev/nvidia-nvswitch0" in ran.message


def test_a_holder_that_stays_after_its_service_was_stopped_ends_it_and_the_services_start_again(node):
    node.process(9, "nv-fabricmanage", "0::/system.slice/nvidia-fabricmanager.service", "/dev/nvidiactl")
    ran = node.program()
    assert (ran.code, node.changes()) == (2, [*STOPS, *STARTS])
    assert "holds /dev/nvidiactl" in ran.message


def test_a_thread_that_outlives_its_leader_holds_what_it_has_open(node):
    node.process(88, "python3", "4:pids:/")  # all that version 1 shows of the cgroup of one that has ended
    thread = node.root / "proc/88/task/89"
    (thread / "fd").mkdir(parents=True)
    (thread / "fd/5").symlink_to("/dev/nvidia3")
    for folder, state in ((node.root / "proc/88", "Z"), (thread, "D")):
        (folder / "stat").write_text(f"88 (python3) {state} {'0 ' * 18}42 0\n")
    (thread / "cgroup").write_text(f"4:pids:/kubepods/pod{POD}/5e\n")
    found = users(node.root / "proc")
    assert [(one.pid, one.device, one.pod) for one in found] == [(88, "/dev/nvidia3", POD.replace("-", ""))]


def test_a_look_that_may_not_see_all_is_refused(node):
    (node.root / "proc/66").mkdir()
    (node.root / "proc/66/fd").write_text("no folder")
    ran = node.program()
    assert (ran.code, node.changes()) == (2, [])
    assert "cannot determine who holds the GPUs: looking ended with 1 at pid 66" in ran.message


def test_a_driver_in_a_container_is_its_pods_to_restart(node):
    node.mounted("/", "/run", "/run/nvidia/driver")
    ran = node.program()
    assert (ran.code, node.calls()) == (2, [])
    assert "delete the driver's Pod of this node instead" in ran.message


@pytest.mark.parametrize(
    ("present", "why"),
    [({"ext4": ()}, "no driver is loaded"), ({"nvidia": ("vgpu_vfio",)}, "the driver is used by vgpu_vfio")],
)
def test_modules_that_make_no_sense_to_unload_are_refused(present, why):
    with pytest.raises(Exception, match=why):
        unload_order(present)


def test_what_uses_another_module_is_unloaded_before_it():
    users = dict.fromkeys(["nvidia", "nvidia_uvm", "nvidia_fs", "nvidia_peermem", "nvidia_drm", "nvidia_modeset"], ())
    order = unload_order({**users, "nvidia_uvm": ("nvidia_fs", "nvidia_peermem"), "nvidia_modeset": ("nvidia_drm",)})
    assert order == ["nvidia_fs", "nvidia_peermem", "nvidia_uvm", "nvidia_drm", "nvidia_modeset", "nvidia"]


def test_a_first_module_that_stays_leaves_the_node_as_it_was(node):
    node.says(answer("modprobe -r nvidia_uvm", "modprobe: FATAL: Module nvidia_uvm is in use.", code=1))
    ran = node.program()
    assert (ran.code, node.changes()[-2:]) == (2, STARTS)
    assert "nvidia_uvm could not be unloaded (exit 1: modprobe: FATAL: Module nvidia_uvm is in use.)" in ran.message
    assert "it was left as it was" in ran.message


@pytest.mark.parametrize(
    ("which", "state"),
    [
        ("modprobe -r nvidia", "loaded are nvidia, not loaded nvidia_uvm, nvidia_drm, nvidia_modeset: reboot the node"),
        (
            "modprobe nvidia",
            "loaded are none, not loaded nvidia_uvm, nvidia_drm, nvidia_modeset, nvidia: reboot the node",
        ),
        (
            "modprobe nvidia_drm",
            "loaded are nvidia_modeset, nvidia, not loaded nvidia_uvm, nvidia_drm: reboot the node",
        ),
    ],
)
def test_a_node_left_half_way_is_told_of_exactly(node, which, state):
    uvm = [answer("modprobe -r nvidia_"), answer("modprobe nvidia_modeset")]
    node.says(*(one for one in uvm if one[0] != which), answer(which, "Operation not permitted", code=1))
    ran = node.program()
    assert ran.code == 1
    assert ran.message.startswith("failed: nvidia")
    assert ran.message.endswith(state)


def test_an_unload_that_hangs_needs_a_reboot_whatever_it_did(node):
    node.says(answer("modprobe -r nvidia_uvm", hangs=30))
    ran = node.program(parameters={"moduleSeconds": 0.3})
    assert (ran.code, [call for call in node.changes() if "start" in call]) == (1, [])
    assert "no answer within 0.3 s" in ran.message
    assert ran.message.endswith("reboot the node")


def test_a_service_that_does_not_stop_leaves_the_driver_alone(node):
    node.says(answer("systemctl stop nvidia-persistenced", "Job failed", code=1))
    ran = node.program()
    assert (ran.code, node.changes()) == (1, [*STOPS, *STARTS])
    assert ran.message == (
        "failed: nvidia-persistenced could not be stopped (exit 1: Job failed); the driver was left alone"
    )


def test_a_service_that_does_not_start_again_is_a_failure(node):
    node.says(answer("systemctl start nvidia-fabricmanager", "Job failed", code=1))
    ran = node.program()
    assert ran.code == 1
    assert "do not start again: nvidia-fabricmanager (exit 1: Job failed): reboot the node" in ran.message


def test_fewer_gpus_than_before_are_a_failure(node):
    node.says(answer("nvidia-smi -L", EIGHT.partition("GPU 7")[0]))
    ran = node.program()
    assert ran.code == 1
    assert ran.message.startswith("failed: the driver was reloaded, and nvidia-smi lists 7 of 8 GPUs: reboot the node")
    assert node.program(parameters={"gpus": 7}, ATTEMPT_ID="op-uid.2").code == 0


def test_another_boot_a_second_start_and_an_unknown_service_are_refused(node):
    ran = node.program(EXPECTED_BOOT_ID="another")
    assert (ran.code, ran.message) == (2, f"refused: boot id is {BOOT}, not another: it was rebooted since")
    assert "may not name sshd" in node.program(parameters={"services": ["sshd"]}).message
    assert node.changes() == []
    node.program()
    assert node.program().message == "refused: attempt op-uid.1 was started before in this boot"


def test_a_dry_run_says_every_step_and_takes_none(node):
    before = node.files()
    ran = node.program("--dry-run")
    assert (ran.code, ran.message, node.files(), node.changes()) == (0, "", before, [])
    steps = [
        line.removeprefix(f"would run nsenter {ENTER} ") for line in ran.out.splitlines() if " run nsenter" in line
    ]
    modules = [*(f"modprobe -r {name}" for name in ORDER), *(f"modprobe {name}" for name in reversed(ORDER))]
    assert steps == [*STOPS, *modules, "nvidia-modprobe -u -c0", *STARTS]


def test_who_holds_a_gpu_is_looked_for_by_a_program_of_its_own(tmp_path):
    (tmp_path / "7/fd").mkdir(parents=True)
    (tmp_path / "7/task").mkdir()
    words = [sys.executable, "-I", "-S", device_users.__file__, tmp_path]
    said = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    assert [json.loads(line) for line in said.splitlines()] == [{"at": 7}]

"""The reset program on a node whose nvidia-smi answers by a script."""

import math
import shutil
import signal
import time
from pathlib import Path

import pytest

from nodelib.host import gpu_users
from nodelib.host.device_users import files_of
from nodelib.host.gpu_users import may_end
from nodelib.host.processes import Process
from nodelib.nvml.nvidia_smi import SmiGpu, judge, links, recovery_actions
from tests.harness import yaml_files
from tests.operations.conftest import OPERATIONS
from tests.operations.holders import Holders
from tests.operations.scripted import BOOT, ENTER, Node, answer

pytestmark = pytest.mark.sampled("reset gpu")

BUS = [f"00000000:1{index}:00.0" for index in range(4)]
LONE = "".join(f"GPU{row}\t" + "\t".join(" X " if row == col else "SYS" for col in range(4)) + "\n" for row in range(4))
LINKED = LONE.replace("SYS", "NV18")
ECC, REMAP, ACTION = (
    "--query-gpu=pci.bus_id,ecc.errors.uncorrected.volatile.total",
    "--query-remapped-rows=gpu_bus_id,remapped_rows.pending",
    "--query-gpu=pci.bus_id,gpu_recovery_action",
)
RESET = "nvidia-smi --gpu-reset -i"
PEERS = "The following GPUs could not be reset:\n  GPU {}: Not Supported"
IN_USE = """The following GPUs could not be reset:
  GPU 00000000:12:00.0: In use by another client

1 device is currently being used by one or more other processes (e.g., Fabric Manager, CUDA application)."""


def table(query, value, then=None, **others):
    """The answer to a query: `value` for every GPU but those named by others, as _2="5"."""
    rows = [f"{bus}, {others.get(f'_{index}', value)}" for index, bus in enumerate(BUS)]
    return answer(query, "\n".join(rows), **({} if then is None else {"then": then}))


HEALTHY = [
    table("--query-gpu=pci.bus_id,uuid", "GPU-x", **{f"_{index}": f"GPU-{index}" for index in range(4)}),
    table(ECC, "0"),
    table(REMAP, "No"),
    answer("reset_status", 'Field "reset_status.reset_required" is not a valid field to query.', code=2),
    table(ACTION, "None"),
    table("persistence_mode", "Disabled"),
    answer("--query-compute-apps"),
    answer("topo -m", LONE),
]
SICK = [table(ECC, "0", _2="3"), table(REMAP, "No", _2="Yes")]
WELL = [table(ECC, "0"), table(REMAP, "No")]
WORKS = answer("--gpu-reset", f"GPU {BUS[2]} was successfully reset.\nAll done.", then=WELL)


@pytest.fixture
def node(tmp_path):
    """A node with four GPUs, the third of which has uncorrected memory errors; a reset mends it."""
    node = Node(tmp_path, "reset_gpu")
    node.program.parameters = {"busySeconds": "0"}
    node.answers(*SICK, WORKS, *HEALTHY)
    return node


def resets(node):
    return [call.removeprefix(f"{RESET} ") for call in node.calls("--gpu-reset")]


def test_the_gpu_that_needs_it_is_reset_and_looked_at_again(node):
    ran = node.program()
    assert ran.code == 0, ran.out
    assert ran.message == f"reset {BUS[2]} (3 uncorrected memory errors, row remap pending); no need is left"
    assert resets(node) == [BUS[2]]
    assert node.calls("nvidia-smi")[-1] == f"{ACTION.join(('nvidia-smi ', ' --format=csv,noheader,nounits'))}"
    assert node.calls()[-1] == "sh -c echo '<6>remediator: GPU 0000:12:00.0 was reset' > /dev/kmsg"
    assert (node.root / "run/remediator/op-uid.1").exists()


def test_where_no_gpu_needs_it_nothing_is_done_and_that_is_a_success(node):
    node.answers(*HEALTHY)
    ran = node.program()
    assert (ran.code, ran.message) == (0, "nothing to reset: none of the 4 GPUs of gpu-1 needs it")
    assert (resets(node), (node.root / "run").exists()) == ([], False)


@pytest.mark.parametrize("name", ["0000:11:00.0", "00000000:11:00.0", "GPU-1", "gpu-1"])
def test_a_gpu_that_is_named_is_reset_though_it_shows_no_need(node, name):
    node.answers(answer("--gpu-reset", "done"), *HEALTHY)
    ran = node.program(parameters={"gpus": [name]})
    assert (ran.code, ran.message) == (0, f"reset {BUS[1]} (as told); no need is left")
    assert resets(node) == [BUS[1]]


@pytest.mark.parametrize("gpus", ["all", ["all"]])
def test_all_gpus_are_reset_though_none_shows_a_need_and_the_kernels_log_says_so_of_each(node, gpus):
    node.answers(answer("--gpu-reset", "done"), *HEALTHY)
    ran = node.program(parameters={"gpus": gpus})
    assert (ran.code, ran.message) == (0, f"reset {', '.join(BUS)} (as told); no need is left")
    assert resets(node) == [",".join(BUS)]
    assert len(node.calls("was reset' > /dev/kmsg")) == 4


def test_policies_on_faults_that_nvidia_smi_shows_no_need_for_reset_all_gpus():
    policies = [yaml_files.read(path) for path in (OPERATIONS.parent / "deploy/policies").glob("*.yaml")]
    rungs = {
        one["metadata"]["name"]: rung.get("parameters")
        for one in policies
        for rung in one["spec"].get("ladder", ())
        if rung["operation"] == "reset-gpu"
    }
    every = {name: {"gpus": "all"} for name in ("gpu-xid", "gpu-nvlink-fault", "gpu-busy-without-pod")}
    assert rungs == {"gpu-ecc": None, "gpu-recovery-required": None, **every}


def test_for_what_a_person_may_run_on_the_node_itself_no_work_is_drained():
    policy = yaml_files.read(OPERATIONS.parent / "deploy/policies/gpu-busy-without-pod.yaml")
    assert policy["spec"]["urgency"] == {"mode": "Never"}


@pytest.mark.parametrize("gpus", [["GPU-9"], "GPU-9", [3]])
def test_names_that_mean_no_gpu_are_refused_with_the_remedy(node, gpus):
    ran = node.program(parameters={"gpus": gpus})
    assert ran.code == 2
    assert BUS[0] in ran.message or "not a list of words" in ran.message
    assert resets(node) == []


def test_a_driver_in_a_folder_of_its_own_is_asked_there(node):
    node.program(parameters={"driverRoot": "/run/nvidia/driver"})
    assert {call.split(" nvidia-smi ")[0] for call in node.calls("nvidia-smi")} == {"chroot /run/nvidia/driver"}


@pytest.mark.parametrize(
    ("query", "value", "needs", "beyond"),
    [
        (ECC, "[N/A]", (), ()),
        (ECC, "[GPU requires reset]", ("GPU requires reset",), ()),
        (ECC, "[GPU is lost]", (), ("GPU is lost",)),
        (ECC, "[Unknown Error]", (), ()),
        (REMAP, "1", ("row remap pending",), ()),
        (REMAP, "[Insufficient Permissions]", (), ()),
        (REMAP, "a word of another driver", (), ()),
        (ACTION, "[Function Not Found]", (), ()),
        (ACTION, "Reset", ("the driver asks for: reset",), ()),
        (ACTION, "Drain and Reset", ("the driver asks for: drain and reset",), ()),
        (ACTION, "Reboot", (), ("the driver asks for: reboot",)),
        (ACTION, "Bus reset", (), ("the driver asks for: bus reset",)),
    ],
)
def test_what_the_driver_says_is_a_need_or_more_than_a_reset_can_do_or_nothing(query, value, needs, beyond):
    assert judge(SmiGpu(BUS[0], "GPU-0"), {query: value}) == SmiGpu(BUS[0], "GPU-0", needs, beyond)


def test_what_a_reset_cannot_help_is_refused(node):
    node.answers(table(ACTION, "None", _1="Reboot"), *SICK, *HEALTHY)
    ran = node.program()
    assert ran.code == 2
    assert ran.message == (f"refused: a reset cannot help, reboot the node: {BUS[1]}: the driver asks for: reboot")
    assert resets(node) == []


def test_what_the_driver_asks_for_around_a_gpu_and_of_other_nodes_is_neither_a_need_nor_more_than_a_reset_can_do():
    gpu = SmiGpu(BUS[0], "GPU-0")
    assert judge(gpu, {ACTION: "Drain P2P"}) == gpu._replace(asks=("the driver asks for: Drain P2P",))
    domain = ("the driver asks for: Recover IMEX Domain",)
    assert judge(gpu, {ACTION: "Recover IMEX Domain"}) == gpu._replace(elsewhere=domain)


SICK_ONE = "3 uncorrected memory errors, row remap pending"


def test_what_other_nodes_of_the_nvlink_domain_need_keeps_no_gpu_from_its_reset_and_is_told(node):
    node.answers(table(ACTION, "None", _2="Recover IMEX Domain"), *SICK, WORKS, *HEALTHY)
    ran = node.program()
    asked = f"{BUS[2]}: the driver asks for: Recover IMEX Domain"
    assert (ran.code, ran.message) == (0, f"reset {BUS[2]} ({SICK_ONE}); no need is left; but {asked}")
    assert resets(node) == [BUS[2]]


def test_a_reset_after_which_the_driver_still_asks_for_an_end_of_traffic_between_peers_did_not_help(node):
    wanted = table(ACTION, "None", _2="Drain P2P")
    node.answers(wanted, *SICK, WORKS, *HEALTHY)
    ran = node.program()
    said = f"failed: the reset did not help: {BUS[2]}: the driver asks for: Drain P2P"
    assert (ran.code, ran.message, resets(node)) == (1, said, [BUS[2]])


def test_a_reset_that_ends_the_traffic_between_peers_has_helped(node):
    over = answer("--gpu-reset", "All done.", then=[*WELL, table(ACTION, "None")])
    node.answers(table(ACTION, "None", _2="Drain P2P"), *SICK, over, *HEALTHY)
    ran = node.program()
    assert (ran.code, ran.message) == (0, f"reset {BUS[2]} ({SICK_ONE}); no need is left")


@pytest.mark.parametrize(("seconds", "code"), [("20", 0), ("0", 1)])
def test_the_driver_takes_back_a_moment_later_that_traffic_between_peers_is_to_end(node, seconds, code):
    """The first answer after the reset still has it, the second has it no more."""
    twice = table(ACTION, "None", _2="Drain P2P", then=[table(ACTION, "None")])
    over = answer("--gpu-reset", "All done.", then=[*WELL, twice])
    node.answers(table(ACTION, "None", _2="Drain P2P"), *SICK, over, *HEALTHY)
    ran = node.program(parameters={"busySeconds": seconds})
    assert (ran.code, resets(node)) == (code, [BUS[2]]), ran.out


def test_traffic_between_peers_that_is_to_end_for_as_long_as_others_have_to_let_go_is_a_failure(node):
    node.answers(table(ACTION, "None", _2="Drain P2P"), *SICK, WORKS, *HEALTHY)
    ran = node.program(parameters={"busySeconds": "1"})
    assert (ran.code, resets(node)) == (1, [BUS[2]]), ran.out
    assert ran.message == f"failed: the reset did not help: {BUS[2]}: the driver asks for: Drain P2P"


def test_a_gpu_that_was_not_reset_and_whose_traffic_with_peers_is_to_end_is_told_beside_those_that_were(node):
    node.answers(table(ACTION, "None", _0="Drain P2P"), *SICK, WORKS, *HEALTHY)
    ran = node.program()
    asked = f"{BUS[0]}: the driver asks for: Drain P2P"
    assert (ran.code, ran.message) == (0, f"reset {BUS[2]} ({SICK_ONE}); no need is left; but {asked}")
    node.answers(table(ACTION, "None", _0="Drain P2P"), *HEALTHY)
    ran = node.program(ATTEMPT_ID="op-uid.2")
    none = "nothing to reset: none of the 4 GPUs of gpu-1 needs it"
    assert (ran.code, ran.message) == (0, f"{none}; but {asked}")


def test_a_lost_gpu_is_refused_even_between_good_rows(node):
    lost = "Unable to determine the device handle for GPU1: 0000:11:00.0: GPU is lost.  Reboot the system"
    node.answers(answer("--query-gpu=pci.bus_id,uuid", f"{BUS[0]}, GPU-0\n{lost}\n{BUS[2]}, GPU-2", code=15))
    ran = node.program()
    assert ran.code == 2
    assert "reboot the node" in ran.message
    assert "GPU1: 0000:11:00.0" in ran.message


def test_a_gpu_that_is_told_of_only_as_waiting_for_a_reset_is_reset(node):
    said = "Unable to determine the device handle for GPU2: 0000:12:00.0: GPU requires reset"
    query, uuids = HEALTHY[0]
    without = answer(query, uuids["text"].replace(f"{BUS[2]}, GPU-2", said), code=16)
    node.answers(without, answer("--gpu-reset", "All done.", then=[HEALTHY[0]]), *HEALTHY)
    ran = node.program()
    assert (ran.code, ran.message) == (0, f"reset {BUS[2]} (GPU requires reset); no need is left"), ran.out


def test_a_driver_that_lists_no_gpu_is_refused_in_its_own_words(node):
    node.answers(answer("", "No devices were found", code=6))
    ran = node.program()
    assert (ran.code, ran.message) == (2, "refused: nvidia-smi lists no GPU (exit 6): No devices were found")


def test_a_process_on_the_gpu_is_named_and_nothing_is_reset(node):
    node.answers(*SICK, answer("--query-compute-apps", f"{BUS[2]}, 4711, python3, train.py"), *HEALTHY)
    ran = node.program()
    assert (ran.code, resets(node)) == (2, [])
    assert ran.message.startswith(f"refused: in use by python3, train.py (pid 4711) on {BUS[2]}: ")


def test_a_process_that_lets_go_of_the_gpu_in_time_is_waited_for(node):
    asks = "--query-compute-apps"
    busy = answer(asks)
    for _ in range(3):
        busy = answer(asks, f"{BUS[2]}, 4711, python3", then=[busy])
    node.answers(*SICK, busy, WORKS, *HEALTHY)
    ran = node.program(parameters={"busySeconds": "20"})
    assert (ran.code, resets(node)) == (0, [BUS[2]]), ran.out


def test_not_to_know_who_uses_the_gpus_starts_nothing(node):
    node.answers(*SICK, answer("--query-compute-apps", "Insufficient Permissions", code=4), *HEALTHY)
    ran = node.program()
    assert (ran.code, resets(node)) == (2, [])
    assert "cannot determine who uses the GPUs (exit 4): Insufficient Permissions" in ran.message


def test_gpus_that_nvlink_joins_are_reset_together_when_all_are_idle(node):
    node.answers(answer("topo -m", LINKED), *SICK, WORKS, *HEALTHY)
    ran = node.program()
    assert ran.code == 0, ran.out
    assert resets(node) == [",".join(BUS)]


def test_while_a_peer_computes_the_sick_gpu_is_tried_alone_and_the_driver_decides(node):
    busy = answer("--query-compute-apps", f"{BUS[0]}, 4711, python3")
    node.answers(answer("topo -m", LINKED), busy, *SICK, WORKS, *HEALTHY)
    assert node.program().code == 0
    refusal = answer("--gpu-reset", PEERS.format(BUS[2]), code=255)
    node.answers(answer("topo -m", LINKED), busy, *SICK, refusal, *HEALTHY)
    ran = node.program(ATTEMPT_ID="op-uid.2")
    assert resets(node) == [BUS[2], BUS[2]]
    assert ran.code == 2
    assert "NVLink peers" in ran.message


def test_a_driver_that_insists_on_peers_gets_all_gpus_when_the_topology_is_not_told(node):
    refusal = answer(f"{RESET} {BUS[2]}", PEERS.format(BUS[2]), code=255)
    node.answers(answer("topo -m", "", code=255), *SICK, refusal, WORKS, *HEALTHY)
    ran = node.program()
    assert ran.code == 0, ran.out
    assert resets(node) == [BUS[2], ",".join(BUS)]


def test_links_are_followed_from_gpu_to_gpu_only():
    head = "\t\x1b[4mGPU0\tGPU1\tGPU2\tNIC0\tCPU Affinity\x1b[0m\n"
    rows = "GPU0\t X \tNV4\tSYS\tPXB\t0-23\nGPU1\tNV4\t X \tSYS\tPIX\t0-23\nGPU2\tSYS\tSYS\t X \tSYS\t24-47\n"
    assert links(f"{head}{rows}NIC0\tPXB\tPIX\tSYS\t X \t\n\nLegend:\n  NV#  = Connection\n") == [{1}, {0}, set()]


def test_what_the_driver_says_is_in_use_is_tried_five_times_and_then_refused(node):
    node.answers(*SICK, answer("--gpu-reset", IN_USE, code=255), *HEALTHY)
    ran = node.program()
    assert ran.code == 2
    assert ran.message.startswith("refused: a GPU stays in use (by DCGM, a monitoring agent?), end that or reboot")
    assert "In use by another client" in ran.message
    assert len(resets(node)) == 5


def test_what_the_driver_says_is_in_use_for_a_moment_is_reset_after_it(node):
    node.answers(*SICK, answer("--gpu-reset", IN_USE, code=255, then=[WORKS]), *HEALTHY)
    ran = node.program(parameters={"busySeconds": "1"})
    assert (ran.code, len(resets(node))) == (0, 2), ran.out


UID = "8f3c2a10-1111-2222-3333-444455556666"
BARE = UID.replace("-", "")
IN_POD = f"0::/kubepods.slice/kubepods-pod{UID.replace('-', '_')}.slice/cri-containerd-{'4f' * 32}.scope\n"
BY_HAND = "0::/user.slice/user-1000.slice/session-3.scope\n"
SERVICE = "0::/system.slice/nvidia-fabricmanager.service\n"
DCGM = SERVICE.replace("nvidia-fabricmanager", "nvidia-dcgm")


@pytest.fixture
def holders(node):
    """Real processes that have GPUs of the node open; the driver tells the third GPU's file."""
    for index, bus in enumerate(BUS):
        folder = node.root / "proc/driver/nvidia/gpus" / bus[4:].lower()
        folder.mkdir(parents=True)
        (folder / "information").write_text(f"Model: \t\t NVIDIA H100\nDevice Minor: \t {index}\n")
    holders = Holders(node)
    yield holders
    holders.end()


def test_on_a_drained_node_processes_of_pods_that_hold_the_gpu_are_ended_and_no_others(node, holders):
    plugin = holders.start(IN_POD, "/dev/nvidiactl", "/dev/nvidia0", "/dev/nvidia2")
    other = holders.start(IN_POD, "/dev/nvidiactl", "/dev/nvidia1")
    fabric = holders.start(SERVICE, "/dev/nvidia2")
    ran = node.program(DRAINED="true", parameters={"busySeconds": "1"})
    assert ran.code == 0, ran.out
    assert resets(node) == [BUS[2]]
    assert f"ending what holds a GPU: sleep (pid {plugin.pid} of Pod {BARE}) holds /dev/nvidia2\n" in ran.out
    assert (plugin.wait(10), other.poll(), fabric.poll()) == (-signal.SIGTERM, None, None)


def test_one_that_computes_in_a_pod_that_the_drain_left_is_ended_too(node, holders):
    job = holders.start(IN_POD, "/dev/nvidia2")
    busy = answer("--query-compute-apps", f"{BUS[2]}, {job.pid}, sleep")
    node.answers(*SICK, busy, WORKS, *HEALTHY)
    ran = node.program(DRAINED="true", parameters={"busySeconds": "1"})
    assert (ran.code, job.wait(10)) == (0, -signal.SIGTERM), ran.out


def test_one_that_asks_the_driver_in_another_pod_is_waited_for_and_not_ended(node, holders, tmp_path):
    """As nvidia-smi of a collect-diagnostics that is being ended: here it ends after a second."""
    (tmp_path / "nvidia-smi").symlink_to(shutil.which("sleep"))
    asks = holders.start(IN_POD, "/dev/nvidia2", words=(str(tmp_path / "nvidia-smi"), "1"))
    ran = node.program(DRAINED="true", parameters={"busySeconds": "20"})
    assert (ran.code, asks.wait(10), resets(node)) == (0, 0, [BUS[2]]), ran.out


@pytest.mark.parametrize("since", [111, None], ids=["111 s", "nobody can tell"])
def test_one_that_has_asked_the_driver_for_longer_than_any_answer_takes_is_ended(node, holders, tmp_path, since):
    """As `nvidia-smi dmon` of a DaemonSet, which never ends by itself."""
    (tmp_path / "nvidia-smi").symlink_to(shutil.which("sleep"))
    asks = holders.start(IN_POD, "/dev/nvidia2", words=(str(tmp_path / "nvidia-smi"), "300"))
    uptime = node.root / "proc/uptime"
    uptime.unlink()
    if since:
        uptime.write_text(f"{float(Path('/proc/uptime').read_text().split()[0]) + since} 0.00\n")
    ran = node.program(DRAINED="true", parameters={"busySeconds": "1"})
    assert (ran.code, asks.wait(10), resets(node)) == (0, -signal.SIGTERM, [BUS[2]]), ran.out


def test_one_that_asks_the_driver_is_waited_for_until_it_is_older_than_any_answer_and_ended_then(
    node, holders, tmp_path, monkeypatch
):
    """However little time others are given: here the grace is 3 s, and they have none."""
    monkeypatch.setattr(gpu_users, "GRACE", 3)
    (tmp_path / "nvidia-smi").symlink_to(shutil.which("sleep"))
    before = time.monotonic()
    asks = holders.start(IN_POD, "/dev/nvidia2", words=(str(tmp_path / "nvidia-smi"), "300"))
    assert gpu_users.Clients(node.root / "proc", True, 0).free(lambda one: True) == ""
    assert (asks.wait(10), time.monotonic() - before > 2.9) == (-signal.SIGTERM, True)


def test_a_dry_run_tells_how_long_one_that_asks_the_driver_would_be_waited_for(node, holders, tmp_path):
    (tmp_path / "nvidia-smi").symlink_to(shutil.which("sleep"))
    asks = holders.start(IN_POD, "/dev/nvidia2", words=(str(tmp_path / "nvidia-smi"), "300"))
    ran = node.program("--dry-run", DRAINED="true")
    whom = f"nvidia-smi (pid {asks.pid} of Pod {BARE}) holds /dev/nvidia2"
    told = [line for line in ran.out.splitlines() if whom in line]
    assert told == [f"would wait up to 110 s for what asks the driver: {whom}"]


def test_the_time_to_answer_is_the_grace_that_collect_diagnostics_has():
    template = yaml_files.read(OPERATIONS / "collect_diagnostics.yaml")
    assert template["spec"]["podTemplate"]["spec"]["terminationGracePeriodSeconds"] == gpu_users.GRACE


@pytest.mark.parametrize("drained", ["", "false"])
def test_where_the_template_does_not_drain_no_process_is_ended(node, holders, drained):
    plugin = holders.start(IN_POD, "/dev/nvidia2")
    ran = node.program(DRAINED=drained)
    assert (ran.code, plugin.poll(), resets(node)) == (2, None, [])
    assert ran.message == (
        f"refused: in use: sleep (pid {plugin.pid} of Pod {BARE}) holds /dev/nvidia2: end it, or reboot the node"
    )


def test_a_process_of_no_pod_is_named_and_nobody_is_ended_for_nothing(node, holders):
    shell, plugin = holders.start(BY_HAND, "/dev/nvidia2"), holders.start(IN_POD, "/dev/nvidia2")
    ran = node.program(DRAINED="true")
    assert (ran.code, shell.poll(), plugin.poll(), resets(node)) == (2, None, None, [])
    assert ran.message.startswith(f"refused: in use: sleep (pid {shell.pid}) holds /dev/nvidia2: end it")


def test_one_that_the_kubelet_starts_again_is_ended_again(node, holders):
    holders.start(IN_POD, "/dev/nvidia2", again=2)
    refusal = answer("--gpu-reset", IN_USE, code=255)
    second = [[*refusal[:1], {**refusal[1], "then": [WORKS]}]]
    node.answers(*SICK, answer("--gpu-reset", IN_USE, code=255, then=second), *HEALTHY)
    ran = node.program(DRAINED="true", parameters={"busySeconds": "4"})
    assert (ran.code, len(resets(node))) == (0, 3), ran.out
    assert [child.poll() for child in holders.started].count(-signal.SIGTERM) >= 2


@pytest.mark.parametrize(
    ("name", "pod", "may"),
    [
        ("dcgm-exporter", BARE, True),
        ("nvidia-device-p", BARE, True),
        ("dcgm-exporter", "", False),  # of no Pod
        ("nvidia-smi", "0" * 32, False),  # of the Pod that asks
        ("kubelet", BARE, False),
        ("containerd", BARE, False),
        ("containerd-shim", BARE, False),
        ("nvidia-persiste", BARE, False),  # of the driver's own Pod, and not started again
        ("nv-fabricmanage", BARE, False),
    ],
)
def test_who_may_be_ended_is_of_another_pod_and_runs_neither_pods_nor_the_driver(name, pod, may):
    assert [may_end(Process(7, 1, name, pod), "0" * 32, age) for age in (0, math.inf)] == [may, may]


@pytest.mark.parametrize("name", ["nvidia-smi", "nvidia-debugdum", "nvidia-bug-repo"])
def test_one_that_asks_the_driver_may_be_ended_once_it_is_older_than_a_minute_and_50_seconds(name):
    """Before it may be of a collect-diagnostics that is being ended, or of a detector."""
    ages = {0: False, 109: False, 110: True, math.inf: True}
    assert {age: may_end(Process(7, 1, name, BARE), "0" * 32, age) for age in ages} == ages
    assert not may_end(Process(7, 1, name, ""), "0" * 32, math.inf)


def test_the_device_files_of_a_gpu_are_told_by_the_driver_and_are_all_of_them_otherwise(node, holders):
    files = files_of(node.root / "proc", ["0000:11:00.0", "0000:13:00.0"])
    paths = [f"/dev/nvidia{end}" for end in ("1", "2", "3", "13", "ctl", "-uvm")]
    assert [path for path in paths if files.fullmatch(path)] == ["/dev/nvidia1", "/dev/nvidia3"]
    files = files_of(node.root / "proc", ["0000:11:00.0", "0000:99:00.0"])
    assert [path for path in paths if files.fullmatch(path)] == [f"/dev/nvidia{end}" for end in (1, 2, 3, 13)]


def test_persistence_mode_is_taken_off_for_the_reset_and_put_back_even_when_it_fails(node):
    held = table("persistence_mode", "Disabled", _2="Enabled")
    node.answers(*SICK, held, answer("--gpu-reset", "Unknown Error", code=255), answer("-pm"), *HEALTHY)
    ran = node.program()
    assert (ran.code, ran.message) == (1, f"failed: {BUS[2]} could not be reset (exit 255): Unknown Error")
    changes = [call for call in node.calls() if "-pm" in call or "reset -i" in call]
    off, on = (f"nvidia-smi -pm {mode} -i {BUS[2]}" for mode in (0, 1))
    assert changes == [off, f"{RESET} {BUS[2]}", on]


def test_what_comes_of_persistence_mode_after_a_reset_that_hangs_hides_it_not(node):
    lost = "Unable to determine the device handle for GPU2: 0000:12:00.0: GPU is lost.  Reboot the system"
    held = table("persistence_mode", "Disabled", _2="Enabled")
    node.answers(*SICK, held, answer("--gpu-reset", hangs=30), answer("-pm 0"), answer("-pm 1", lost), *HEALTHY)
    ran = node.program(parameters={"resetSeconds": 0.3})
    assert (ran.code, ran.message) == (
        1,
        f"failed: the reset of {BUS[2]} did not end within 0.3 s: reboot the node",
    )


def test_a_need_that_shows_after_the_reset_is_a_failure(node):
    node.answers(*SICK, answer("--gpu-reset", "All done."), *HEALTHY)
    ran = node.program()
    assert ran.code == 1
    assert ran.message.startswith(f"failed: the reset did not help: {BUS[2]}: 3 uncorrected memory errors")


def test_a_gpu_that_does_not_come_back_is_a_failure(node):
    gone = [answer("--query-gpu=pci.bus_id,uuid", f"{BUS[0]}, GPU-0")]
    node.answers(*SICK, answer("--gpu-reset", "All done.", then=gone), *HEALTHY)
    ran = node.program()
    assert ran.code == 1
    assert f"does not list {BUS[2]}" in ran.message


def test_a_reset_that_hangs_is_left_behind(node):
    node.answers(*SICK, answer("--gpu-reset", hangs=30), *HEALTHY)
    begun = time.monotonic()
    ran = node.program(parameters={"resetSeconds": 0.3})
    assert time.monotonic() - begun < 20
    assert ran.code == 1
    assert ran.message == f"failed: the reset of {BUS[2]} did not end within 0.3 s: reboot the node"


def test_another_boot_and_a_second_start_are_refused(node):
    ran = node.program(EXPECTED_BOOT_ID="another")
    assert (ran.code, ran.message) == (2, f"refused: boot id is {BOOT}, not another: it was rebooted since")
    assert node.calls() == []
    node.program()
    ran = node.program()
    assert (ran.code, ran.message) == (2, "refused: attempt op-uid.1 was started before in this boot")
    assert len(resets(node)) == 1


def test_a_dry_run_prints_what_would_be_run_and_changes_nothing(node):
    before = node.files()
    ran = node.program("--dry-run")
    assert (ran.code, ran.message) == (0, "")
    assert f"nsenter {ENTER} {RESET} {BUS[2]}\n" in ran.out
    assert (resets(node), node.files()) == ([], before)


REPORT = """==============NVSMI LOG==============
Attached GPUs                             : 2
GPU 00000000:11:00.0
    Product Name                          : NVIDIA H100 80GB HBM3
    GPU Recovery Action                   : None
    Processes                             : None

GPU 00000000:12:00.0
    GPU Recovery Action                   : Reboot
"""


def test_the_recovery_action_is_read_from_the_report_where_it_cannot_be_queried(node):
    assert recovery_actions(REPORT) == {BUS[1]: "None", BUS[2]: "Reboot"}
    assert recovery_actions("GPU 00000000:11:00.0\n    Product Name : NVIDIA A100\n") == {}
    unknown = answer(ACTION, 'Field "gpu_recovery_action" is not a valid field to query.', code=2)
    node.answers(unknown, answer("nvidia-smi -q", REPORT), *SICK, *HEALTHY)
    ran = node.program()
    assert (ran.code, resets(node)) == (2, [])
    assert ran.message == f"refused: a reset cannot help, reboot the node: {BUS[2]}: the driver asks for: reboot"


def fabric(active):
    state = f"LoadState=loaded\nActiveState={active}\nMainPID=7\nKillMode=control-group"
    return [answer("systemctl show", state), answer("systemctl stop"), answer("systemctl start")]


def steps(node):
    """What was stopped, reset and started, without what systemd is told to do later."""
    calls = [call for call in node.calls() if call.startswith("systemctl st") or "--gpu-reset" in call]
    return [call for call in calls if "remediator-start" not in call]


STOP, START = (f"systemctl {verb} nvidia-fabricmanager.service" for verb in ("stop", "start"))


def test_switches_are_reset_with_all_gpus_while_fabric_manager_is_off(node):
    node.answers(*fabric("active"), answer("--gpu-reset", "All done."), *HEALTHY)
    ran = node.program(parameters={"nvSwitches": True})
    assert (ran.code, ran.message) == (0, f"reset {', '.join(BUS)} (as told); no need is left"), ran.out
    assert steps(node) == [STOP, "nvidia-smi --gpu-reset", START]


def test_fabric_manager_that_did_not_run_is_not_started_and_one_that_ran_is_even_after_a_failure(node):
    node.answers(*fabric("inactive"), answer("--gpu-reset", "All done."), *HEALTHY)
    node.program(parameters={"nvSwitches": True})
    assert steps(node) == ["nvidia-smi --gpu-reset"]
    node.answers(*fabric("active"), answer("--gpu-reset", "Unknown Error", code=255), *HEALTHY)
    assert node.program(parameters={"nvSwitches": True}, ATTEMPT_ID="op-uid.2").code == 1
    assert steps(node)[1:] == [STOP, "nvidia-smi --gpu-reset", START]


def test_fabric_manager_that_does_not_stop_or_start_is_told_of(node):
    stuck = answer("systemctl stop", "Job canceled", code=1)
    node.answers(stuck, *fabric("active"), *HEALTHY)
    ran = node.program(parameters={"nvSwitches": True})
    assert (ran.code, steps(node)) == (2, [STOP, START])
    assert "nvidia-fabricmanager does not stop (exit 1: Job canceled), nothing was reset" in ran.message
    down = answer("systemctl start", "Job failed", code=1)
    node.answers(down, *fabric("active"), answer("--gpu-reset", "All done."), *HEALTHY)
    ran = node.program(parameters={"nvSwitches": True}, ATTEMPT_ID="op-uid.2")
    assert (ran.code, "after the reset nvidia-fabricmanager does not start" in ran.message) == (1, True)


def test_systemd_itself_starts_what_was_put_aside_if_this_program_is_killed_meanwhile(node):
    node.answers(*fabric("active"), answer("systemd-run"), answer("--gpu-reset", "All done."), *HEALTHY)
    assert node.program(parameters={"nvSwitches": True}).code == 0
    net = "remediator-start-nvidia-fabricmanager"
    told = [call for call in node.calls() if net in call]
    assert told == [f"systemd-run --unit={net} --on-active=1800 {START}", f"systemctl stop {net}.timer"]
    assert node.calls().index(told[0]) < node.calls().index(STOP) < node.calls().index(START)


@pytest.mark.parametrize(("result", "code"), [("All done.", 0), ("Unknown Error", 255)])
def test_dcgm_as_a_service_of_the_node_lets_go_of_its_gpus_and_is_started_again_whatever_comes_of_the_reset(
    node, holders, result, code
):
    holders.start(DCGM, "/dev/nvidia2")
    node.answers(*SICK, answer("systemctl st"), answer("--gpu-reset", result, code=code, then=WELL), *HEALTHY)
    assert node.program().code == min(code, 1)
    stop, start = (f"systemctl {verb} nvidia-dcgm.service" for verb in ("stop", "start"))
    assert steps(node) == [stop, f"{RESET} {BUS[2]}", start]


SXID = "3,1,9000000,-;nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 20034, Fatal, Link 30 LTSSM Fault Up\n"
AFTER = "6,2,9000001,-;remediator: NVSwitch 0000:c1:00 was reset\n"
SWITCH_LOGS = {
    "a fatal error": (SXID, {}, "nvidia-smi --gpu-reset"),
    "one that is over": (SXID + AFTER, {}, f"{RESET} {','.join(BUS)}"),
    "one, and no switch is to be reset": (SXID, {"nvSwitches": "false"}, f"{RESET} {','.join(BUS)}"),
    "no error": ("6,2,9000001,-;hello\n", {}, f"{RESET} {','.join(BUS)}"),
}


@pytest.mark.parametrize(("log", "given", "command"), SWITCH_LOGS.values(), ids=SWITCH_LOGS.keys())
def test_after_a_fatal_error_of_a_switch_a_reset_of_all_gpus_takes_the_switches_with_it(node, log, given, command):
    (node.root / "dev").mkdir()
    (node.root / "dev/kmsg").write_text(log)
    node.answers(*fabric("inactive"), answer("--gpu-reset", "All done."), *HEALTHY)
    ran = node.program(parameters={"gpus": "all", **given})
    assert (ran.code, steps(node)) == (0, [command]), ran.out
    switches = node.calls("NVSwitch")
    noted = ["sh -c echo '<6>remediator: NVSwitch 0000:c1:00 was reset' > /dev/kmsg"]
    assert switches == (noted if command == "nvidia-smi --gpu-reset" else [])


def test_a_driver_in_a_container_is_found_as_the_detectors_find_it(node):
    folder = node.root / "proc/1/root/run/nvidia/driver/usr/lib/x86_64-linux-gnu"
    folder.mkdir(parents=True)
    (folder / "libnvidia-ml.so.1").touch()
    assert node.program().code == 0
    assert {call.split(" nvidia-smi ")[0] for call in node.calls("nvidia-smi")} == {"chroot /run/nvidia/driver"}
    ran = node.program(parameters={"nvSwitches": True}, ATTEMPT_ID="op-uid.2")
    assert (ran.code, "under a containerised driver" in ran.message) == (2, True)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"nvSwitches": "yes"}, "nvSwitches is 'yes': write true or false"),
        ({"nvSwitches": True, "driverRoot": "/run/nvidia/driver"}, "under a containerised driver"),
    ],
)
def test_switches_that_cannot_be_reset_are_refused(node, given, why):
    ran = node.program(parameters=given)
    assert (ran.code, why in ran.message, resets(node)) == (2, True, [])


def test_switches_are_not_taken_from_work_on_any_gpu(node):
    node.answers(*fabric("active"), answer("--query-compute-apps", f"{BUS[0]}, 4711, python3"), *HEALTHY)
    ran = node.program(parameters={"nvSwitches": True})
    assert (ran.code, steps(node)) == (2, [])
    assert f"in use by python3 (pid 4711) on {BUS[0]}" in ran.message


def test_a_dry_run_prints_every_command_that_the_run_itself_gives_in_its_order(node):
    held = table("persistence_mode", "Disabled", _2="Enabled")
    later = answer("systemd-run")
    others = (answer("-pm"), answer("--gpu-reset", "All done."), answer("sh -c"), *HEALTHY)
    node.answers(later, *fabric("active"), held, *others)
    rehearsed = node.program("--dry-run", parameters={"nvSwitches": True})
    assert steps(node) == []
    before = len(node.calls())
    assert node.program(parameters={"nvSwitches": True}).code == 0
    asked = ("--query", "topo", "systemctl show", "-q")
    done = [call for call in node.calls()[before:] if not any(word in call for word in asked)]
    assert len(done) == 11
    assert [line for line in rehearsed.out.splitlines() if line.startswith("would run")] == [
        f"would run nsenter {ENTER} {call}" for call in done
    ]


def test_a_dry_run_says_who_would_be_ended_and_ends_nobody(node, holders):
    plugin = holders.start(IN_POD, "/dev/nvidia2")
    ran = node.program("--dry-run", DRAINED="true")
    said = f"sleep (pid {plugin.pid} of Pod {BARE}) holds /dev/nvidia2"
    assert f"would send SIGTERM, and after 90 s SIGKILL, to what holds a GPU: {said}\n" in ran.out
    assert (ran.code, plugin.poll()) == (0, None)
    ran = node.program("--dry-run")
    assert f"would wait up to 0 s for what holds a GPU: {said}\n" in ran.out

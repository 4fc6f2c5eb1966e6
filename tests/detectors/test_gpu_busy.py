"""What gpu_busy makes of processes and memory on GPUs; the program over nodes made of files; garbage."""

import json
import os

import pytest
from gpu_busy import ASK_AGAIN, IDLE, SHAPES, Memory, Pods, Processes, find, judge, mark
from hypothesis import given, settings
from hypothesis import strategies as st

from nodelib.contract.memory import Stamp, recall
from nodelib.nvml.gpu_owners import Owner, is_allowed, read_owners, sees_host
from tests.detectors.fixtures.gpu_busy import HELD, SHELL, USED, process
from tests.detectors.node import run_detector
from tests.detectors.proc_tree import CONTAINER, UID, ProcTree, pod_cgroup
from tests.detectors.said import SECOND, garbage, gpu, memories, seen
from tests.harness.apiserver import ApiServer
from tests.harness.examples import examples
from tests.harness.objects import pod
from tests.native import Script

OK, FAULT, UNKNOWN = 0, 1, 2
POD = UID.replace("-", "")
TRAINER = Owner(42, 500, "python3", POD, CONTAINER)
SHELLS = Owner(43, 600, "python3")
LIVING, GONE = Pods(frozenset([POD]), 1000.0, ""), Pods(frozenset(), 1000.0, "")
MOUNT = "no API server to ask"


def facts(*pids, used=0, mig=0):
    return {
        "processes": {"pid": [*pids], "kind": ["compute"] * len(pids), "memory": [0] * len(pids)},
        "memory in use": {"used": used},
        "MIG": {"current": mig},
    }


def world(*owners, on_host=True, **more):
    return Processes({owner.pid: owner for owner in owners}, on_host, **more)


def twice(told, about, pods=GONE):
    """Judge a GPU that nobody uses and one with these facts, twice; return both verdicts and the last line."""
    view = seen(SHAPES, gpu(0, facts()), gpu(1, told))
    found = find(view, about, pods)
    marks = {mark(held) for held in found if held.key}
    first, (verdict, line) = judge(view, found, ()), judge(view, found, marks)
    return int(first[0]), int(verdict), line


JUDGED = {
    "nobody": (facts(), world(), GONE, OK, "no GPU is held without a pod"),
    "a Pod that lives": (facts(42, used=2**30), world(TRAINER), LIVING, OK, "no GPU is held without a pod"),
    "a Pod that is gone": (facts(42), world(TRAINER), GONE, FAULT,
                           f"held by python3 of pod {UID}, which is gone (kill-orphaned-processes): {SECOND}"),
    "no Pod": (facts(43), world(SHELLS), LIVING, FAULT, f"held by python3 of no pod (end it): {SECOND}"),
    "a service": (facts(44), world(Owner(44, 1, "nv-hostengine")), GONE, OK, "no GPU is held without a pod"),
    "a service whose name is cut by the kernel": (facts(44), world(Owner(44, 1, "nvidia-persiste")), GONE, OK, ""),
    "a service that is allowed": (facts(43), world(SHELLS, allowed=["python3"]), GONE, OK, ""),
    "a process that has ended": (facts(45), world(Owner(45)), GONE, FAULT,
                                 f"held by a process that has ended (reset-gpu): {SECOND}"),
    "memory of nobody": (facts(used=IDLE + 1), world(), GONE, FAULT,
                         f"memory in use by no process (reset-gpu): {SECOND}"),
    "memory of the driver": (facts(used=IDLE), world(), GONE, OK, ""),
    "memory of MIG": (facts(used=2**30, mig=1), world(), GONE, OK, ""),
    "memory of the node": (facts(used=2**30), world(shared=[gpu(1)["uuid"]]), GONE, OK, ""),
    "memory of a process": (facts(44, used=2**30), world(Owner(44, 1, "Xorg")), GONE, OK, ""),
}  # fmt: skip


@pytest.mark.parametrize(("told", "about", "pods", "verdict", "line"), JUDGED.values(), ids=JUDGED.keys())
def test_who_holds_a_gpu_decides(told, about, pods, verdict, line):
    first, last, text = twice(told, about, pods)
    assert (last, first) == (verdict, UNKNOWN if verdict == FAULT else OK)
    assert line in text


DOUBTS = {
    "nobody knows the Pods": (facts(42), world(TRAINER), Pods(why=MOUNT), f"nobody knows if the pod lives: {MOUNT}"),
    "a process that cannot be read": (facts(42), Processes({42: None}, True), LIVING, "cannot be read in /proc"),
    "a process that was not looked for": (facts(42), world(), LIVING, "cannot be read in /proc"),
    "processes in another namespace": (facts(42), world(TRAINER, on_host=False), LIVING, "run with hostPID"),
    "memory in another namespace": (facts(used=2**30), world(on_host=False), LIVING, "run with hostPID"),
}


@pytest.mark.parametrize(("told", "about", "pods", "words"), DOUBTS.values(), ids=DOUBTS.keys())
def test_what_nobody_knows_never_becomes_a_fault(told, about, pods, words):
    first, last, text = twice(told, about, pods)
    assert (first, last) == (UNKNOWN, UNKNOWN)
    assert words in text


def test_an_idle_gpu_is_fine_from_any_namespace():
    assert twice(facts(), world(on_host=False))[1] == OK


def test_another_process_with_the_same_name_is_not_the_second_sight():
    view = seen(SHAPES, gpu(0, facts(43)))
    first = find(view, world(SHELLS), GONE)
    later = find(view, world(SHELLS._replace(start=700)), GONE)
    assert judge(view, later, {mark(held) for held in first})[0] == UNKNOWN
    assert judge(view, first, {mark(held) for held in first})[0] == FAULT


def test_one_line_names_all_gpus_of_a_holder():
    view = seen(SHAPES, gpu(0, facts(43)), gpu(1, facts(43)))
    found = find(view, world(SHELLS), GONE)
    assert judge(view, found, {mark(held) for held in found})[1] == (
        f"held by python3 of no pod (end it): 0000:10:00.0 (GPU-0a2b3c4d), {SECOND}"
    )


@pytest.mark.parametrize(
    ("name", "comm", "allowed"),
    [
        ("nvidia-persistenced", "nvidia-persiste", True),
        ("Xorg", "Xorg", True),
        ("Xorg", "Xorg.wrap", False),
        ("my exporter", "my_exporter", True),
    ],
)
def test_a_name_is_allowed_as_far_as_the_kernel_keeps_it(name, comm, allowed):
    assert is_allowed(Owner(1, 1, comm), [name]) is allowed


def test_owners_are_read_from_both_kinds_of_cgroups(tmp_path):
    process(tmp_path, "python3", pod_cgroup())
    older = f"12:pids:/kubepods/burstable/pod{UID}/{CONTAINER}\n0::/\n"
    (tmp_path / "proc/4243").mkdir()
    (tmp_path / "proc/4243/stat").write_text((tmp_path / "proc/4242/stat").read_text().replace("4242", "4243"))
    (tmp_path / "proc/4243/cgroup").write_text(older)
    owners = read_owners(tmp_path / "proc", [4242, 4243, 9999])
    assert [(owners[pid].pod, owners[pid].container) for pid in (4242, 4243)] == [(POD, CONTAINER)] * 2
    assert owners[9999].ended
    assert sees_host(tmp_path / "proc")


def test_the_owner_of_a_process_is_read_from_a_thread_that_has_not_ended(tmp_path):
    tree = ProcTree(tmp_path)
    tree.process(4242, "python3", "Z", "0::/\n")
    tree.thread(4242, 4243, "python3", "Z", "0::/\n")
    assert read_owners(tree.proc, [4242])[4242].ended, "all its threads have"
    tree.thread(4242, 4244, "python3", "D", pod_cgroup())
    owner = read_owners(tree.proc, [4242])[4242]
    assert (owner.pod, owner.comm, owner.ended) == (POD, "python3", False)
    (tree.proc / "4242/task/4243/stat").unlink()
    assert read_owners(tree.proc, [4242])[4242] == owner


def test_where_other_users_processes_are_hidden_none_has_ended(tmp_path):
    process(tmp_path, "python3", SHELL)
    (tmp_path / "proc/1/stat").unlink()
    assert read_owners(tmp_path / "proc", [9999]) == {9999: None}


@settings(max_examples=examples(100))
@given(stat=st.binary(max_size=60), cgroup=st.binary(max_size=60) | st.just(SHELL.encode()))
def test_garbled_files_of_a_process_are_never_its_end_nor_its_owner(tmp_path_factory, stat, cgroup):
    root = tmp_path_factory.mktemp("garbled")
    for pid, content in ((1, b"x"), (7, stat)):
        (root / str(pid)).mkdir()
        (root / str(pid) / "stat").write_bytes(content)
    (root / "7/cgroup").write_bytes(cgroup)
    assert read_owners(root, [7]) == {7: None}


@pytest.mark.slow
@settings(max_examples=examples(150))
@given(garbage(SHAPES))
def test_garbage_of_nvml_is_never_health(told):
    view = seen(SHAPES, *(gpu(index, one) for index, one in enumerate(told)))
    verdict, _ = judge(view, find(view, world(), GONE), ())
    assert verdict == UNKNOWN or all(one["processes"]["pid"] == [] and "memory in use" in one for one in told)


@settings(max_examples=examples(100))
@given(memories("pods", "marks"))
def test_garbage_in_the_state_folder_is_overcome(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("state") / "gpu_busy.json"
    path.write_bytes(content)
    pods, marks = recall(path, Memory, Stamp("", 1000.0))
    assert isinstance(pods, Pods)
    assert all(isinstance(one, str) for one in (*marks, *pods.living))


class Machine:
    """A node on which process 4242 of a Pod uses GPU 1, and the API server that knows the Pod."""

    def __init__(self, root, library):
        process(root, "python3", pod_cgroup())
        self.root, self.library, self.api = root, library, ApiServer(root)
        self.api.put(pod("trainer", uid=UID))
        self.orders(*HELD)

    def orders(self, *orders):
        self.nvml = Script(self.root / "nvml.txt").write(*orders)

    def run(self, now, *options):
        roots = [f"--{name}={self.root / name}" for name in ("proc", "sys", "dev", "state")]
        env = {**os.environ, **self.nvml.environment(self.library), **self.api.environment(), "NODE_NAME": "gpu-1"}
        return run_detector("gpu_busy", *roots, "--fresh=0", f"--now={now}", *options, env=env)[:2]

    @property
    def asked(self):
        return len(self.api.requests)


@pytest.fixture
def machine(tmp_path, nvml_library):
    found = Machine(tmp_path, nvml_library)
    yield found
    found.api.close()


def test_the_api_server_is_asked_at_a_new_pod_and_then_every_five_minutes(machine):
    asked = []
    for now in (1000, 1060, 1000 + ASK_AGAIN - 1, 1000 + ASK_AGAIN, 1060 + ASK_AGAIN):
        assert machine.run(now) == (OK, "no GPU is held without a pod")
        asked.append(machine.asked)
    assert asked == [1, 1, 1, 2, 2]
    machine.orders("count 2")
    machine.run(2000)
    assert machine.asked == 2, "no GPU is in use"


def test_a_deleted_pod_is_seen_when_the_list_is_old_and_told_one_run_later(machine):
    assert machine.run(1000)[0] == OK
    machine.api.pods = []
    assert [machine.run(now)[0] for now in (1060, 1300, 1360)] == [OK, UNKNOWN, FAULT]
    kept = json.loads((machine.root / "state/evidence/gpu_busy.json").read_text())
    [held] = kept["held"]
    assert (held["pid"], held["comm"], held["container"], held["address"]) == (
        4242,
        "python3",
        CONTAINER,
        "0000:11:00.0",
    )
    assert held["serial"] == "1563521020401"


def test_a_pod_that_comes_back_into_the_list_ends_it_at_once(machine):
    known, machine.api.pods = machine.api.pods, []
    assert [machine.run(now)[0] for now in (1000, 1060)] == [UNKNOWN, FAULT]
    machine.api.pods = known
    assert machine.run(1120)[0] == OK


def test_an_api_server_that_does_not_answer_is_cannot_tell_once_the_list_is_old(machine):
    assert machine.run(1000)[0] == OK
    machine.api.refuse(500, 500)
    assert machine.run(1060)[0] == OK
    code, line = machine.run(1000 + ASK_AGAIN)
    assert code == UNKNOWN
    assert f"in use by python3 of pod {UID}, nobody knows if the pod lives" in line


def test_a_run_by_hand_is_not_the_first_of_two(machine):
    machine.api.pods = []
    assert machine.run(1000, "--explain")[0] == UNKNOWN
    assert machine.run(1060)[0] == UNKNOWN
    code, text = machine.run(1061, "--explain")
    assert code == FAULT
    assert "pid 4242" in text


def test_a_program_is_allowed_by_its_name(machine):
    (machine.root / "proc/4242/cgroup").write_text(SHELL)
    assert [machine.run(now)[0] for now in (1000, 1060)] == [UNKNOWN, FAULT]
    assert machine.run(1120, "--allow=other", "--allow=python3")[0] == OK


def test_a_driver_that_does_not_tell_reserved_memory_is_asked_the_old_way(machine):
    machine.orders(*USED, "gpu 1 memory-v2 error:13", "gpu 1 mps error:13")
    assert [machine.run(now)[0] for now in (1000, 1060)] == [UNKNOWN, FAULT]
    machine.orders(*USED, "gpu 1 compute error:4")
    assert "does not report its processes (code 4" in machine.run(1120)[1]


def test_memory_that_the_kernel_uses_as_its_own_is_nobodys(machine):
    machine.orders(*USED)
    path = machine.root / "proc/driver/nvidia/gpus/0000:11:00.0/numa_status"
    path.write_text("Node:   8\nStatus: online\n")
    assert [machine.run(now)[0] for now in (1000, 1060)] == [OK, OK]
    path.write_text("Status: offline\n")
    assert [machine.run(now)[0] for now in (1120, 1180)] == [UNKNOWN, FAULT]

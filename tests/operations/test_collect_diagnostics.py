"""collect_diagnostics on a node made of files."""

import hashlib
import json
import os
import signal
import sys
import tarfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import collect_diagnostics
import pytest
import reload_driver
from collect_diagnostics import fit
from gpu_check import HEALTH_SECONDS
from hypothesis import example, given
from hypothesis import strategies as st

from nodelib.contract import operation
from nodelib.contract.operation import read_environment
from nodelib.host.bundle import deliver, seconds_for, within
from nodelib.host.commands import CommandOutput
from nodelib.nvml.gpu_list import NVML_SECONDS, ask_nvml, in_use
from nodelib.nvml.nvidia_smi import ASK_SECONDS
from remediator.core.rma import TAKEN
from remediator.kube.api.decode.times import duration
from tests.harness import yaml_files
from tests.native import Script, build_stub
from tests.operations import scripted as scripted_node
from tests.operations.conftest import Program

TEMPLATE = Path(collect_diagnostics.__file__).with_suffix(".yaml")
pytestmark = pytest.mark.sampled("collect diagnostics")

XID = "NVRM: Xid (PCI:0000:2b:00): 79, GPU has fallen off the bus."


class Node:
    """The files that the program reads, and the program."""

    def __init__(self, folder):
        self.root = folder / "host"
        self.write("proc/sys/kernel/random/boot_id", "boot-1\n")
        self.write("proc/sys/kernel/osrelease", "6.8.0-gpu\n")
        self.write("dev/kmsg", f"6,1,10,-;usb 1-1: new device\n3,2,20,-;{XID}\n SUBSYSTEM=pci\n")
        self.write("sys/bus/pci/devices/0000:2b:00.0/vendor", "0x10de\n")
        self.write("sys/bus/pci/devices/0000:2b:00.0/class", "0x030200\n")
        self.write("sys/bus/pci/devices/0000:2b:00.0/config", b"\xff" * 64)
        self.write("proc/driver/nvidia/gpus/0000:2b:00.0/information", "Model: \t H100\nGPU UUID: \t GPU-abc\n")
        self.evidence = {"detector": "gpu_lost", "line": "lost", "lost": [{"serial": "1563521020403"}]}
        self.write("run/remediator/detectors/evidence/gpu_lost.json", json.dumps(self.evidence))
        self.program = Program(folder, "collect_diagnostics")
        self.program.variables["HOST_ROOT"] = str(self.root)

    def write(self, path, content):
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content if isinstance(content, bytes) else content.encode())

    def collect(self):
        ran = self.program()
        assert ran.code == 0, ran.out
        assert len(ran.message.encode()) <= 4096
        return json.loads(ran.message)


@pytest.fixture
def node(tmp_path):
    """A node that has lost a GPU."""
    return Node(tmp_path)


def test_it_keeps_what_a_reboot_destroys(node):
    found = node.collect()
    assert (found["bootID"], found["kernel"]) == ("boot-1", "6.8.0-gpu")
    assert found["detectors"] == [node.evidence]
    assert found["gpus"] == [{"address": "0000:2b:00.0", "fallen": True, "uuid": "GPU-abc"}]
    assert found["kernelLines"] == [XID]
    assert found["truncated"] is False


def test_the_machine_says_who_made_it_and_what_nobody_set_is_left_out(node):
    told = {"sys_vendor": "Supermicro", "product_serial": "S1 ", "board_serial": "To Be Filled By O.E.M."}
    for name, text in told.items():
        node.write(f"sys/class/dmi/id/{name}", f"{text}\n")
    assert node.collect()["machine"] == {"vendor": "Supermicro", "serial": "S1"}


def test_a_machine_without_dmi_is_no_failure(node):
    found = node.collect()
    assert (found["machine"], "machine" in found["unreadable"]) == ({}, False)


def test_a_board_has_part_number_and_inforom_version_where_it_tells_them(node, tmp_path):
    refused = ("gpu 1 part error:3", "gpu 1 inforom error:3")
    script = Script(tmp_path / "nvml.txt").write("count 2", "gpu 0 part 900-2G133-0000", *refused)
    node.program.variables |= script.environment(build_stub(tmp_path))
    boards = [(gpu.get("part"), gpu.get("inforom")) for gpu in node.collect()["gpus"] if "index" in gpu]
    assert boards == [("900-2G133-0000", "1010.0200.00.00"), (None, None)]


def test_without_the_kernels_buffer_it_reads_the_end_of_the_log_file(node):
    (node.root / "dev/kmsg").unlink()
    node.write("var/log/kern.log", "x" * 300_000 + f"\nNov 20 10:00:00 gpu-1 kernel: {XID}\n")
    assert node.collect()["kernelLines"] == [f"Nov 20 10:00:00 gpu-1 kernel: {XID}"]


def test_a_log_that_never_answers_does_not_hold_it_up(node):
    (node.root / "dev/kmsg").unlink()
    os.mkfifo(node.root / "dev/kmsg")
    assert node.collect()["kernelLines"] == []


def test_each_part_that_cannot_be_read_is_named_and_hides_no_other(node):
    (node.root / "proc/sys/kernel/osrelease").unlink()
    (node.root / "dev/kmsg").unlink()
    node.write("run/remediator/detectors/evidence/torn.json", "{")
    found = node.collect()
    assert {"kernel", "kernelLines", "torn.json"} <= set(found["unreadable"])
    assert found["detectors"] == [node.evidence]
    assert found["gpus"]


def test_a_node_of_which_nothing_can_be_read_still_gets_an_answer(node, tmp_path):
    node.program.variables["HOST_ROOT"] = str(tmp_path / "nowhere")
    found = node.collect()
    assert found["bootID"] is None
    assert {"bootID", "pci", "driver", "kernelLines"} <= set(found["unreadable"])


def test_a_talkative_kernel_does_not_push_out_serial_numbers(node):
    node.write("dev/kmsg", "".join(f"3,{n},20,-;NVRM: Xid {n} {'y' * 400}\n" for n in range(500)))
    found = node.collect()
    assert found["truncated"] is True
    assert found["detectors"] == [node.evidence]
    assert found["kernelLines"][-1].startswith("NVRM: Xid 499 "), "the newest line is kept"


def test_a_dry_run_prints_and_leaves_no_message(node):
    ran = node.program("--dry-run")
    assert (ran.code, ran.message) == (0, "")
    assert json.loads(ran.out)["bootID"] == "boot-1"


def read(path):
    with tarfile.open(path) as tar:
        return {one.name: tar.extractfile(one).read().decode() for one in tar.getmembers()}


@pytest.fixture
def tooled(tmp_path):
    """A node with the driver's tools; nsenter answers for them."""
    scripted = scripted_node.Node(tmp_path, "collect_diagnostics")
    scripted.answers(
        scripted_node.answer("nvidia-smi -q", "Attached GPUs : 8"),
        scripted_node.answer("command -v nvidia-bug-report.sh", "/usr/bin/nvidia-bug-report.sh"),
        scripted_node.answer("nvidia-bug-report.sh --safe-mode", "written"),
        scripted_node.answer("rm -f"),
        scripted_node.answer("ipmitool sel elist", "1 | 11/20/2026 | 10:00:00 | Critical Interrupt | Bus Fatal Error"),
    )
    report = scripted.root / "run/remediator/op-uid.1.report.gz"
    report.parent.mkdir(parents=True)
    report.write_bytes(b"the report")
    evidence = scripted.root / "run/remediator/detectors/evidence/gpu_lost.json"
    evidence.parent.mkdir(parents=True)
    evidence.write_text('{"detector": "gpu_lost"}')
    (scripted.root / "dev").mkdir()
    (scripted.root / "dev/kmsg").write_text(f"3,2,20,-;{XID}\n")
    return scripted


def test_everything_is_kept_whole_in_a_folder_of_the_node_and_the_answer_says_where(tooled):
    ran = tooled.program(BUNDLE="/var/lib/bundles")
    found = json.loads(ran.message)
    assert (ran.code, found["bundle"]) == (0, "/var/lib/bundles/op-uid.1.tar.gz")
    whole = read(tooled.root / found["bundle"].lstrip("/"))
    assert whole["nvidia-smi.txt"] == "Attached GPUs : 8\n"
    assert whole["nvidia-bug-report.log.gz"] == "the report"
    assert whole["run/remediator/detectors/evidence/gpu_lost.json"] == '{"detector": "gpu_lost"}'
    assert whole["kernel.log"] == XID
    assert whole["sel.txt"].endswith("| Bus Fatal Error\n")
    assert tooled.calls("rm -f") == ["rm -f /run/remediator/op-uid.1.report.gz"]


def test_a_bundle_has_every_file_that_a_vendor_is_sent(tooled):
    driver = tooled.root / "proc/driver/nvidia/version"
    driver.parent.mkdir(parents=True)
    driver.write_text("NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.95.05\n")
    tooled.program(BUNDLE="/bundles")
    assert read(tooled.root / "bundles/op-uid.1.tar.gz").keys() >= set(TAKEN)


def test_only_the_newest_five_bundles_of_a_node_are_kept(tooled):
    for number in range(7):
        assert tooled.program(BUNDLE="/bundles", ATTEMPT_ID=f"case-{number}").code == 0
    kept = sorted(path.name for path in (tooled.root / "bundles").iterdir())
    assert kept == [f"case-{number}.tar.gz" for number in range(2, 7)]


class Store(BaseHTTPRequestHandler):
    """An object store that keeps what it is sent, or refuses it."""

    def do_PUT(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.kept.append((self.path, body))
        answers = self.server.answers
        self.send_response(answers.pop(0) if answers else self.server.answer)
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture
def store():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Store)
    server.kept, server.answer, server.answers = [], 200, []
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def test_a_bundle_is_put_to_a_url_and_what_signs_it_is_told_to_nobody(tooled, store, tmp_path):
    url = f"http://127.0.0.1:{store.server_port}"
    ran = tooled.program(BUNDLE=f"{url}/{{node}}/{{name}}.tar.gz?signature=secret")
    assert json.loads(ran.message)["bundle"] == f"{url}/gpu-1/op-uid.1.tar.gz"
    assert "secret" not in ran.message + ran.out
    [(path, body)] = store.kept
    assert path == "/gpu-1/op-uid.1.tar.gz?signature=secret"
    (tmp_path / "got").write_bytes(body)
    assert "kernel.log" in read(tmp_path / "got")


def test_the_answer_has_the_hash_of_the_bundle_that_was_sent(tooled, store):
    found = json.loads(tooled.program(BUNDLE=f"http://127.0.0.1:{store.server_port}/b").message)
    [(_, body)] = store.kept
    assert found["bundleSha256"] == hashlib.sha256(body).hexdigest()


def test_a_store_that_is_busy_is_asked_again_and_three_times_at_most(store, monkeypatch, tmp_path):
    monkeypatch.setattr("nodelib.host.bundle.PAUSE", 0.01)
    url = f"http://127.0.0.1:{store.server_port}/b"
    store.answers = [503, 429]
    assert deliver(b"all", url, "op-1", "gpu-1", tmp_path) == url
    store.kept.clear()
    store.answer = 503
    with pytest.raises(OSError, match="answers 503 to PUT"):
        deliver(b"all", url, "op-1", "gpu-1", tmp_path)
    assert len(store.kept) == 3


def test_a_store_that_refuses_is_asked_once(store, tmp_path):
    store.answer = 403
    with pytest.raises(OSError, match="answers 403 to PUT"):
        deliver(b"all", f"http://127.0.0.1:{store.server_port}/b", "op-1", "gpu-1", tmp_path)
    assert len(store.kept) == 1


def test_no_redirect_is_followed_with_what_signs_the_url(store, tmp_path):
    store.answer = 307
    with pytest.raises(OSError, match="answers 307 to PUT"):
        deliver(b"all", f"http://127.0.0.1:{store.server_port}/b?signature=x", "op-1", "gpu-1", tmp_path)


def test_a_bundle_that_is_too_large_is_neither_kept_nor_sent(monkeypatch, tmp_path):
    monkeypatch.setattr("nodelib.host.bundle.LARGEST", 2)
    for target in ("/bundles", "http://127.0.0.1:1/b"):
        with pytest.raises(OSError, match="are neither kept nor sent"):
            deliver(b"all", target, "op-1", "gpu-1", tmp_path)
    assert not (tmp_path / "bundles").exists()


def test_a_signed_url_goes_before_the_folder_of_the_node(tooled, store):
    url = f"http://127.0.0.1:{store.server_port}/gpu-1/case.tar.gz"
    found = json.loads(tooled.program(BUNDLE_URL=f"{url}?X-Amz-Signature=secret", BUNDLE="/bundles").message)
    assert found["bundle"] == url
    assert not (tooled.root / "bundles").exists()


def test_where_the_store_refuses_the_bundle_stays_on_the_node_and_both_are_said(tooled, store):
    store.answer = 403
    url = f"http://127.0.0.1:{store.server_port}/b?X-Amz-Signature=secret"
    ran = tooled.program(BUNDLE_URL=url, BUNDLE="/bundles")
    found = json.loads(ran.message)
    assert (ran.code, found["bundle"]) == (0, "/bundles/op-uid.1.tar.gz")
    assert "answers 403 to PUT" in found["unreadable"]["bundle"]
    assert "secret" not in ran.message + ran.out
    dry = tooled.program("--dry-run", BUNDLE_URL=url)
    assert "secret" not in dry.out


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("http://127.0.0.1:{port}/denied", "answers 403 to PUT"),
        ("bundles", "give an absolute path on the node or a URL"),
        ("/dev/kmsg/bundles", "NotADirectoryError"),
    ],
)
def test_a_bundle_that_cannot_be_kept_is_named_and_hides_nothing(tooled, store, target, said):
    store.answer = 403
    ran = tooled.program(BUNDLE=target.format(port=store.server_port))
    found = json.loads(ran.message)
    assert (ran.code, said in found["unreadable"]["bundle"]) == (0, True), found["unreadable"]
    assert found["detectors"] == [{"detector": "gpu_lost"}]


STARTING = 5.0  # seconds of the template's time that the Pod takes to start
STORES = {"none": [], "the node": ["/b"], "a store": ["https://s/b"], "a store, then the node": ["https://s/b", "/b"]}


@pytest.mark.parametrize("targets", [*STORES.values(), ["https://s/b", "https://t/b"]], ids=[*STORES, "two stores"])
@given(waits=st.lists(st.floats(0, 1), min_size=6, max_size=6), used=st.sampled_from([False, None]))
@example(waits=[0.0, 0.99, 1, 1, 1, 1], used=False)
@example(waits=[0.0, 0.6, 0.99, 1, 1, 1], used=False)
@example(waits=[0.0, 0.0, 0.99, 1, 1, 1], used=None)
def test_however_long_programs_and_targets_take_it_ends_before_the_template_ends_it(targets, waits, used):
    """`waits`: how much each program takes of the time that it may; who takes all of it is then ended."""
    now, left = [0.0], iter([*waits, *[1.0] * len(waits)])

    def runs(_, seconds):
        wait = next(left)
        now[0] += seconds + collect_diagnostics.ENDING if wait == 1 else seconds * wait
        return CommandOutput(None if wait == 1 else 0, "")

    until = collect_diagnostics.reading_seconds(targets)
    answered = runs("nvml", NVML_SECONDS).code == 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(collect_diagnostics, "run", runs)
        patch.setattr(collect_diagnostics.time, "monotonic", lambda: now[0])
        if answered:
            collect_diagnostics.driver_reports(Path("/nowhere"), "", used, until)
        collect_diagnostics.event_log(until)
    spec = yaml_files.read(TEMPLATE)["spec"]
    assert now[0] + sum(map(seconds_for, targets)) <= duration(spec["timeout"]).total_seconds() - STARTING
    assert until > collect_diagnostics.SMI_SECONDS + collect_diagnostics.ENDING  # else nobody would ask nvidia-smi


@pytest.mark.parametrize(
    ("left", "said"),
    [
        (105.1, {"nvidia-smi.txt": "not asked: no time is left for it"}),
        (105.3, {"nvidia-smi.txt": "all", "nvidia-bug-report.txt": "not made: no time is left for it"}),
        (119.5, {"nvidia-smi.txt": "all", "nvidia-bug-report.txt": "not made: no time is left for it"}),
        (119.7, {"nvidia-smi.txt": "all", "nvidia-bug-report.txt": "made"}),
    ],
)
def test_what_is_not_begun_because_no_time_is_left_blames_no_program_that_ended_at_once(left, said, monkeypatch):
    """nvidia-smi has 100 s and 5.2 to end; the report here as long, 4 s around it, and three programs' 5.2 to end."""
    monkeypatch.setattr(collect_diagnostics, "run", lambda words, _: CommandOutput(0, "all"))
    monkeypatch.setattr(collect_diagnostics, "bug_report", lambda *_: {"nvidia-bug-report.txt": "made"})
    monkeypatch.setattr(collect_diagnostics.time, "monotonic", lambda: 0.0)
    assert collect_diagnostics.driver_reports(Path("/nowhere"), "op-1", None, left) == said
    assert collect_diagnostics.event_log(20.1) == {"sel.txt": "not read: no time is left for it"}


def test_after_an_nvidia_smi_that_does_not_end_the_driver_is_not_asked_again_and_it_is_named(monkeypatch):
    monkeypatch.setattr(collect_diagnostics, "run", lambda words, _: CommandOutput(None, "half"))
    said = collect_diagnostics.driver_reports(Path("/nowhere"), "op-1", False, time.monotonic() + 1000)
    stuck = "not made: nvidia-smi did not end within 100 s"
    assert said == {"nvidia-smi.txt": "half", "nvidia-bug-report.txt": stuck}


def test_a_target_that_hangs_is_given_up_in_time():
    started = time.monotonic()
    with pytest.raises(OSError, match=r"not done within 0\.2 s"):
        within(0.2, lambda: time.sleep(60))
    assert time.monotonic() - started < 5


def test_a_node_without_the_drivers_tools_has_a_bundle_without_them(tooled):
    tooled.answers(scripted_node.answer("nvidia-smi", "not found", code=127), scripted_node.answer("sh -c", code=1))
    whole = read(tooled.root / json.loads(tooled.program(BUNDLE="/b").message)["bundle"].lstrip("/"))
    assert "kernel.log" in whole
    assert whole["sel.txt"].startswith("not read: ")
    assert not [name for name in whole if "bug-report" in name]


@pytest.mark.parametrize("detector", ["disk_fault", "filesystem_damage", "filesystem_error"])
def test_no_bundle_goes_to_a_disk_with_a_fault_and_one_goes_to_a_url_all_the_same(tooled, store, detector):
    evidence = tooled.root / f"run/remediator/detectors/evidence/{detector}.json"
    evidence.write_text(json.dumps({"detector": detector}))
    found = json.loads(tooled.program(BUNDLE="/bundles").message)
    assert f"not kept on this node, whose disk has a fault ({detector})" in found["unreadable"]["bundle"]
    assert not (tooled.root / "bundles").exists()
    url = f"http://127.0.0.1:{store.server_port}/{{name}}"
    assert json.loads(tooled.program(BUNDLE=url).message)["bundle"].endswith("/op-uid.1")


def test_a_disk_that_is_nearly_full_keeps_no_bundle(tmp_path, monkeypatch):
    monkeypatch.setattr("nodelib.host.bundle.LEFT", 1 << 60)
    with pytest.raises(OSError, match="the disk of /bundles is nearly full: set BUNDLE to a URL"):
        deliver(b"all", "/bundles", "op-1", "gpu-1", tmp_path)


GSP_SECONDS = 45  # after which the driver gives up a call to the processor of a GPU


def test_no_client_of_the_driver_is_killed_before_two_calls_to_the_processor_of_a_gpu_are_given_up() -> None:
    given = (collect_diagnostics.SMI_SECONDS, NVML_SECONDS, ASK_SECONDS, HEALTH_SECONDS, reload_driver.SMI_SECONDS)
    assert min(given) > 2 * GSP_SECONDS


def test_a_pod_that_is_stopped_has_as_long_as_any_client_of_the_driver_may_take_to_end() -> None:
    grace = yaml_files.read(TEMPLATE)["spec"]["podTemplate"]["spec"]["terminationGracePeriodSeconds"]
    longest = max(collect_diagnostics.SMI_SECONDS, collect_diagnostics.REPORT_SECONDS, NVML_SECONDS)
    assert grace >= longest + collect_diagnostics.ENDING + 1


@pytest.fixture
def stoppable():
    """SIGTERM is answered as a program of ours answers it."""
    before = signal.signal(signal.SIGTERM, operation._stop)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.mark.usefixtures("stoppable")
@pytest.mark.parametrize(
    ("stopped", "ended"),
    [
        ("nvml", ["nvml"]),
        ("nvidia-smi", ["nvml", "nvidia-smi"]),
        ("nvidia-bug-report.sh", ["nvml", "nvidia-smi", "sh", "nvidia-bug-report.sh", "rm"]),
    ],
)
def test_who_is_stopped_while_it_asks_the_driver_lets_that_end_and_asks_nothing_more(node, monkeypatch, stopped, ended):
    """`ended`: in their order, what came to its end."""
    done = []

    def ask(name):
        if name == stopped:
            os.kill(os.getpid(), signal.SIGTERM)
        done.append(name)

    def run(words, _):
        ask(words[0])
        return CommandOutput(0, "all")

    def nvml():
        ask("nvml")
        return [], True

    monkeypatch.setattr(collect_diagnostics, "ask_nvml", nvml)
    monkeypatch.setattr(collect_diagnostics, "run", run)
    monkeypatch.setattr(collect_diagnostics, "smi_of_node", lambda _: ("nvidia-smi",))
    for name, value in {"HOST_ROOT": str(node.root), "BUNDLE": "/bundles", "TERMINATION_LOG": "/dev/null"}.items():
        monkeypatch.setenv(name, value)
    assert operation.outcome(collect_diagnostics.collect, False) == (operation.STOPPED, "stopped by SIGTERM")
    assert done == ended
    assert not (node.root / "bundles").exists()


def test_who_is_stopped_after_it_has_left_its_evidence_leaves_it_there(node, monkeypatch, stoppable, tmp_path):
    """While nvidia-smi makes the reports for the bundle; before there was evidence it says that it was stopped."""

    def run(words, _):
        os.kill(os.getpid(), signal.SIGTERM)
        return CommandOutput(0, "all")

    log = tmp_path / "termination-log"
    monkeypatch.setattr(collect_diagnostics, "run", run)
    monkeypatch.setattr(collect_diagnostics, "smi_of_node", lambda _: ("nvidia-smi",))
    monkeypatch.setattr(sys, "argv", ["collect_diagnostics.py"])
    for name, value in {"HOST_ROOT": str(node.root), "BUNDLE": "/bundles", "TERMINATION_LOG": str(log)}.items():
        monkeypatch.setenv(name, value)
    for ask, kept in ((lambda: ([], True), True), (lambda: os.kill(os.getpid(), signal.SIGTERM), False)):
        log.write_text("")  # as a kubelet makes it
        monkeypatch.setattr(collect_diagnostics, "ask_nvml", ask)
        signal.signal(signal.SIGTERM, operation._stop)
        with pytest.raises(SystemExit) as ended:
            operation.main(collect_diagnostics.collect, "", 4096)
        assert ended.value.code == operation.STOPPED
        assert log.read_text().startswith('{"bootID":' if kept else "stopped by SIGTERM")


def test_while_somebody_computes_no_bug_report_is_made(tooled, tmp_path):
    busy = ["count 2", "gpu 1 compute 4242:1048576"]
    script = Script(tmp_path / "nvml.txt").write(*busy)
    variables = script.environment(build_stub(tmp_path))
    whole = read(tooled.root / json.loads(tooled.program(BUNDLE="/b", **variables).message)["bundle"].lstrip("/"))
    assert whole["nvidia-bug-report.txt"] == "not made: somebody computes on a GPU"
    assert (whole["nvidia-smi.txt"], tooled.calls("nvidia-bug-report")) == ("Attached GPUs : 8\n", [])
    script.write("count 2")
    ran = tooled.program(BUNDLE="/b", **variables)
    assert read(tooled.root / json.loads(ran.message)["bundle"].lstrip("/"))["nvidia-bug-report.log.gz"] == "the report"


@pytest.mark.parametrize(
    ("gpus", "seconds"),
    [
        ([], 100.0),
        (
            [{"address": "0000:1c:00.0", "more": {"ComputeRunningProcesses": "NVMLError_NotSupported: Not Supported"}}],
            100.0,
        ),
        ([{"address": "0000:1c:00.0", "more": {"ComputeRunningProcesses": "[]"}}, {"index": 1, "error": 15}], 60.0),
    ],
    ids=["NVML lists no GPU", "a GPU does not tell its processes", "all that answer are idle, and one is lost"],
)
def test_where_nobody_knows_whether_a_gpu_is_in_use_the_report_has_as_long_as_all_clients_of_the_driver(
    gpus, seconds, monkeypatch
):
    ran = {}

    def run(words, seconds):
        ran[words[0]] = seconds
        return CommandOutput(0, "")

    monkeypatch.setattr(collect_diagnostics, "run", run)
    collect_diagnostics.driver_reports(Path("/nowhere"), "op-1", in_use(gpus), time.monotonic() + 150)
    assert ran[collect_diagnostics.REPORT] == seconds


def test_where_nvml_does_not_answer_the_driver_is_not_asked_again_and_the_gpus_that_it_named_are_told(
    node, tmp_path, monkeypatch
):
    monkeypatch.setattr(collect_diagnostics, "ask_nvml", lambda: ([{"index": 0, "serial": "1563"}], False))
    monkeypatch.setattr(collect_diagnostics, "driver_reports", lambda *_: pytest.fail("the driver was asked again"))
    monkeypatch.setenv("BUNDLE", "/bundles")
    variables = {"HOST_ROOT": str(node.root), "TERMINATION_LOG": str(tmp_path / "log")}
    found = json.loads(collect_diagnostics.collect(read_environment(variables), False))
    assert found["unreadable"]["nvml"] == "it has not answered within 100 s"
    assert {"index": 0, "serial": "1563"} in found["gpus"]
    assert "kernel.log" in read(node.root / found["bundle"].lstrip("/"))


def test_nvml_that_hangs_is_left_behind_and_said_to(tmp_path, monkeypatch):
    monkeypatch.setattr("nodelib.nvml.gpu_list.NVML_SECONDS", 0.5)
    script = Script(tmp_path / "nvml.txt").write("count 2", "hang init")
    for name, value in script.environment(build_stub(tmp_path)).items():
        monkeypatch.setenv(name, value)
    assert ask_nvml() == ([], False)


def test_a_dry_run_keeps_no_bundle_and_says_where_it_would_be(tooled):
    ran = tooled.program("--dry-run", BUNDLE="/bundles")
    assert json.loads(ran.out)["bundle"] == "would be kept or sent: /bundles"
    assert not (tooled.root / "bundles").exists()


def test_the_newest_evidence_outranks_older_ones(node):
    for index in range(8):
        kept = {"detector": f"d{index}", "first_seen": f"2026-11-0{9 - index}T00:00:00Z", "line": "x" * 900}
        node.write(f"run/remediator/detectors/evidence/d{index}.json", json.dumps(kept))
    (node.root / "run/remediator/detectors/evidence/gpu_lost.json").unlink()
    found = node.collect()
    assert [one["detector"] for one in found["detectors"]][-1] == "d0"
    assert found["truncated"] is True


@given(st.lists(st.text(max_size=400), max_size=40), st.lists(st.text(max_size=400), max_size=40))
def test_whatever_was_read_becomes_valid_json_that_fits(first, second):
    text = fit({"bootID": "x"}, [("first", first), ("second", second)], limit=4096)
    found = json.loads(text)
    assert len(text.encode()) <= 4096
    kept = (len(found["first"]), len(found["second"]))
    assert found["first"] == first[len(first) - kept[0] :]
    assert found["second"] == second[len(second) - kept[1] :]
    assert found["truncated"] is (kept != (len(first), len(second)))

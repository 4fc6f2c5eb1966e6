"""gpu_check on a scripted NVML and a scripted CUDA driver: what works, what does not, and what nobody can tell."""

import json
import os
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from nodelib.contract.operation import Environment, Failed, Refused
from nodelib.cuda import expected
from nodelib.cuda.report import Report
from nodelib.host.commands import CommandOutput
from nodelib.host.gpu_tools import Result, failures
from nodelib.host.port_speed import judge
from nodelib.net.links import Port
from tests.harness import node_programs
from tests.native import Script, build_stub
from tests.operations.conftest import OPERATIONS
from tests.operations.test_neighbours import TOOL, free_port, serving

pytestmark = pytest.mark.sampled("gpu check")

SOURCE = Path(__file__).parents[1] / "native/cuda_stub.c"
ONE, OTHER = "0000:10:00.0", "0000:11:00.0"
UUIDS = ("GPU-00000000-0000-0000-0000-000000000000", "GPU-00000000-0000-0000-0000-000000000001")
NAMES = (f"{ONE} (serial 1563521020400, {UUIDS[0]})", f"{OTHER} (serial 1563521020401, {UUIDS[1]})")


@pytest.fixture(scope="session")
def libraries(tmp_path_factory):
    """A folder with libnvidia-ml.so.1 and libcuda.so.1."""
    folder = tmp_path_factory.mktemp("driver")
    library = folder / "libcuda.so.1"
    nvml = build_stub(folder)
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    subprocess.run([compiler, "-shared", "-fPIC", "-O3", "-march=native", "-o", str(library), str(SOURCE)], check=True)
    return nvml


class Gpus:
    """Two GPUs. `check` runs the program; `tools` are programs of its container."""

    def __init__(self, folder, nvml):
        self.folder, self.nvml = folder, nvml
        self.listed, self.orders = ["count 2", f"gpu 0 pci 0000{ONE}", f"gpu 1 pci 0000{OTHER}"], ["count 2"]
        self.tools = folder / "tools"
        self.tools.mkdir(exist_ok=True)
        self.variables = {}
        self.tool("nsenter", "exit 1")  # the node has nothing of its own

    def tool(self, name, script):
        (self.tools / name).write_text(f"#!/bin/sh\n{script}\n")
        (self.tools / name).chmod(0o755)

    def check(self, *options, parameters='{"megabytes": "2", "loadSeconds": 0}', libraries=True, forked=True):
        (self.folder / "cuda.txt").write_text("".join(f"{order}\n" for order in self.orders))
        script = Script(self.folder / "nvml.txt").write(*self.listed)
        environment = {
            "PATH": os.pathsep.join([str(self.tools), str(Path(sys.executable).parent), os.environ["PATH"]]),
            "PARAMETERS": parameters,
            "HOST_ROOT": str(self.folder / "host"),
            "TERMINATION_LOG": str(self.folder / "log"),
            "CUDA_STUB": str(self.folder / "cuda.txt"),
            **(script.environment(self.nvml) if libraries else {}),
            **self.variables,
        }
        done = node_programs.run([str(OPERATIONS / "gpu_check.py"), *options], environment, forked=forked)
        return done.code, done.out.strip()


@pytest.fixture
def gpus(tmp_path, libraries):
    return Gpus(tmp_path, libraries)


RIGHT = "all 2 GPUs work: memory kept what was written, every product was right"
FIGURES = (
    "NVIDIA H100 80GB HBM3: 2 MiB in 1 rounds, 50 products right, tensor cores right (18 TFLOP/s), memory 2500 of 3352 "
    "GB/s, PCIe to it 50 of 63 GB/s, PCIe from it 50 of 63 GB/s, generation 5 x16 of x16"
)
PATH_OF_ALL = (
    "libraries from the runtime; device plugin: the kubelet's list of devices is not here; dcgm: not here; "
    f"nccl: not here; 2 ways between GPUs, the slowest {ONE} to {OTHER} 380 of 450 GB/s"
)


def test_gpus_that_do_their_work_are_said_to_with_serial_numbers_and_figures(gpus):
    whole = f"{RIGHT}. {PATH_OF_ALL}. {NAMES[0]} {FIGURES}. {NAMES[1]} {FIGURES}"
    assert gpus.check(forked=False) == (0, whole)
    assert (gpus.folder / "log").read_text() == whole


def test_a_driver_that_reads_only_newer_kernels_is_given_one(gpus):
    gpus.orders += ["reads 7.8", "major 7"]
    code, sentence = gpus.check()
    assert (code, sentence.startswith(RIGHT), "tensor" in sentence) == (0, True, False), sentence


FAULTS = {
    "a bit of memory is lost": (
        "forgets 1",
        f"memory: {NAMES[1]}: its memory does not hold what was written (0xa5a5a5a5a5a5a5a5): 1 of 131072 places, the "
        "first at byte 0x1ffff0, bits 0x80",
    ),
    "a product is wrong": ("miscalculates 0", f"arithmetic: {NAMES[0]}: it multiplies wrongly"),
    "a later product is wrong": ("wavers 0", "it multiplies wrongly: 1 numbers of 50 products changed"),
    "the tensor cores are wrong": ("tensor-wrong 1", f"arithmetic: {NAMES[1]}: its tensor cores multiply wrongly: 10"),
    "the kernel ends in an error": ("refuses cuCtxSynchronize 700", "CUDA: 0000:10:00.0"),
    "memory errors end it": ("refuses cuCtxSynchronize 214", "memory: 0000:10:00.0"),
    "no memory": ("free 0", "only 0 MiB of its memory are free"),
    "the driver does not start": ("init 999", f"CUDA: {NAMES[1]}: cuInit answers 999 (CUDA_ERROR_STUB)"),
    "no kernel is read": ("reads 99.0", "cuModuleLoadData answers 218"),
    "CUDA shows fewer": ("count 1", f"CUDA: it does not show {NAMES[1]}, which NVML lists: reboot the node"),
    "what is sent to a GPU is lost": (
        "garbles 1",
        f"link: {OTHER}: what goes to it over PCIe does not come back as it",
    ),
    "what a GPU sends is lost": ("drops 1", f"link: what {OTHER} sends to {ONE} does not arrive as it was"),
    "slow memory": ("speed memory 1 1600", f"memory: {NAMES[1]}: memory reaches only 1600 of 3352 GB/s"),
    "a slow slot": ("speed pcie 0 30", f"link: {NAMES[0]}: PCIe to it reaches only 30 of 63 GB/s"),
    "a slow NVLink": ("speed peer 1 200", f"link: NVLink: {OTHER} to {ONE} reaches only 200 of 450 GB/s"),
}


@pytest.mark.parametrize(("order", "words"), FAULTS.values(), ids=FAULTS.keys())
def test_a_gpu_that_does_not_is_a_failure_that_names_layer_and_gpu(gpus, order, words):
    gpus.orders.append(order)
    code, sentence = gpus.check()
    assert (code, words in sentence) == (1, True), sentence


@pytest.mark.parametrize(
    ("order", "seconds", "at"),
    [
        pytest.param("hang cuInit", 1, f"CUDA: {NAMES[1]} has not answered within 1 s, at the start", id="its start"),
        pytest.param(  # the time must suffice for what comes before it
            "hang cuLaunchKernel",
            8,
            f"CUDA: {NAMES[0]} has not answered within 8 s, at memory",
            id="CUDA",
            marks=pytest.mark.long,
        ),
        pytest.param(
            "hang cuMemHostAlloc",
            20,
            f"link: CUDA has not answered within 20 s, at host and {ONE}",
            id="a link",
            marks=pytest.mark.long,
        ),
    ],
)
def test_a_hang_is_a_failure_in_time(gpus, order, seconds, at):
    gpus.orders.append(order)
    parameters = json.dumps({"megabytes": 1, "seconds": seconds, "loadSeconds": 0})
    code, sentence = gpus.check(parameters=parameters, forked=False)
    assert (code, at in sentence) == (1, True), sentence


def test_a_hang_in_a_test_of_an_idle_node_proves_nothing_for_others_may_have_had_the_processors(gpus):
    gpus.orders.append("hang cuInit")
    parameters = json.dumps({"megabytes": 1, "seconds": 1, "loadSeconds": 0, "idleTest": True})
    code, sentence = gpus.check(parameters=parameters, forked=False)
    words = f"CUDA: {NAMES[1]} has not answered within 1 s, at the start"
    assert (code, sentence.startswith("refused: cannot tell: "), words in sentence) == (2, True, True), sentence


def test_a_wrong_product_in_a_test_of_an_idle_node_is_a_failure(gpus):
    gpus.orders.append("miscalculates 0")
    parameters = json.dumps({"megabytes": 1, "loadSeconds": 0, "idleTest": True})
    code, sentence = gpus.check(parameters=parameters)
    assert (code, "it multiplies wrongly" in sentence) == (1, True), sentence


@pytest.mark.parametrize(("killed", "idle", "code"), [(9, True, 2), (15, True, 2), (9, False, 1), (11, True, 1)])
def test_a_child_that_somebody_has_killed_proves_nothing_of_an_idle_node(killed, idle, code):
    """SIGKILL is that of a kernel without memory, SIGTERM that of a preemption; SIGSEGV is its own doing."""
    program = runpy.run_path(str(OPERATIONS / "gpu_check.py"))
    child = SimpleNamespace(told=lambda until: CommandOutput(-killed, "Killed"))
    program["check"].__globals__["start"] = lambda *asked, **variables: child
    environment = Environment("gpu-1", "a", "b", {"idleTest": True} if idle else {}, "", "", "/host")
    with pytest.raises(Refused if code == 2 else Failed, match=f"its child ended with -{killed}"):
        program["check"](environment, dry_run=False)


@pytest.mark.parametrize(
    ("order", "words"),
    [
        ("gpu 1 error 15", "driver: GPU index 1: NVML answers 15"),
        ("gpu 1 serial error:15", "driver: GPU index 1: NVML answers 15"),
        ("init 999", "driver: NVML answers 999"),
    ],
)
def test_a_gpu_that_nvml_has_lost_is_a_failure(gpus, order, words):
    gpus.listed.append(order)
    code, sentence = gpus.check()
    assert (code, words in sentence) == (1, True), sentence


DOUBTS = {
    "in use": ("gpu 1 compute 4242:1048576", f"somebody computes on {OTHER}; drain the node first"),
    "cut into no instance": ("gpu 0 mig 1,1", f"MIG is on for {ONE}, without a MIG device"),
    "no GPU": ("count 0", "NVML lists no GPU"),
    "no driver": ("init 9", "NVML answers 9"),
}


@pytest.mark.parametrize(("order", "words"), DOUBTS.values(), ids=DOUBTS.keys())
def test_where_nothing_can_be_put_to_work_it_cannot_tell(gpus, order, words):
    gpus.listed.append(order)
    code, sentence = gpus.check()
    assert (code, sentence.startswith("refused: cannot tell: "), words in sentence) == (2, True, True), sentence


def test_without_a_cuda_driver_it_cannot_tell(gpus, tmp_path):
    bare = tmp_path / "bare"
    bare.mkdir()
    shutil.copy(gpus.nvml, bare)
    gpus.nvml = bare / gpus.nvml.name
    code, sentence = gpus.check()
    assert (code, "no CUDA driver library in this container" in sentence) == (2, True), sentence


@pytest.mark.parametrize(
    ("order", "words"),
    [
        ("init 100", "shows no GPU to this container"),
        (
            "refuses cuModuleLoadData 221",
            "the driver's compiler (libnvidia-ptxjitcompiler.so.1) is not in this container",
        ),
    ],
)
def test_a_container_that_is_not_given_all_cannot_tell(gpus, order, words):
    gpus.orders.append(order)
    code, sentence = gpus.check()
    assert (code, words in sentence) == (2, True), sentence


def test_without_nvml_it_cannot_tell_unless_the_runtime_was_to_give_it(gpus):
    code, sentence = gpus.check(libraries=False, forked=False)
    assert (code, sentence.startswith("refused: cannot tell: NVML answers 12")) == (2, True), sentence
    gpus.variables = {"DEFAULTS": '{"expect": "runtime"}'}
    code, sentence = gpus.check(libraries=False, forked=False)
    assert (code, sentence.startswith("failed: runtime: the container was given no driver libraries")) == (1, True)


def test_of_a_gpu_with_mig_its_devices_compute_and_no_link_is_measured(gpus):
    gpus.listed += ["gpu 1 mig 1,1", "gpu 1 mig-devices MIG-00000000-0000-0000-0000-000000000001"]
    code, sentence = gpus.check()
    assert (code, NAMES[1] in sentence, "ways between" in sentence) == (0, True, False), sentence
    assert sentence.endswith("tensor cores right (18 TFLOP/s), memory 2500 GB/s, generation 5 x16 of x16")
    gpus.orders.append("miscalculates 1")
    assert gpus.check() == (1, f"failed: arithmetic: {NAMES[1]}: it multiplies wrongly")


def checkpoint(gpus, *uuids):
    folder = gpus.folder / "host/proc/1/root/var/lib/kubelet/device-plugins"
    folder.mkdir(parents=True, exist_ok=True)
    devices = {"Data": {"RegisteredDevices": {"nvidia.com/gpu": list(uuids)}}}
    (folder / "kubelet_internal_checkpoint").write_text(json.dumps(devices))


def test_a_gpu_that_the_kubelet_does_not_offer_is_told_and_fails_only_where_it_is_expected(gpus):
    checkpoint(gpus, UUIDS[0])
    code, sentence = gpus.check()
    assert (code, f"device plugin: does not offer {OTHER}; " in sentence) == (0, True), sentence
    checkpoint(gpus, *UUIDS)
    gpus.variables = {"DEFAULTS": '{"expect": "runtime,device-plugin"}'}
    code, sentence = gpus.check()
    assert (code, "device plugin: offers every GPU" in sentence) == (0, True), sentence


def test_gpus_that_do_not_reach_each_other_and_links_of_an_unknown_speed_are_told_and_not_judged(gpus):
    gpus.orders += ["alone 1", "name NVIDIA X900"]
    gpus.listed.append("gpu 0 pcie error:3")
    code, sentence = gpus.check()
    assert (code, "PCIe to it 50 GB/s" in sentence, "ways between" in sentence) == (0, True, False), sentence
    gpus.orders[-2:] = ["name NVIDIA X900", "speed peer 0 1"]
    code, sentence = gpus.check()
    assert (code, f"the slowest {ONE} to {OTHER} 1 GB/s" in sentence) == (0, True), sentence


DIAG = '{"DCGM Diagnostic": {"test_categories": [{"category": "%s", "tests": [{"name": "%s", "results": [%s]}]}]}}'


def test_tools_of_nvidia_are_run_where_they_are_and_what_they_find_wrong_fails(gpus):
    gpus.tool("dcgmi", 'echo "$@" > "$0.asked"; echo \'{"DCGM Diagnostic": {"test_categories": []}}\'')
    gpus.tool("all_reduce_perf", 'echo "# Out of bounds values : 0 OK"; echo "# Avg bus bandwidth    : 371.5 "')
    code, sentence = gpus.check()
    assert (code, "dcgm: passed; nccl: all_reduce right, bus bandwidth 372 GB/s" in sentence) == (0, True), sentence
    assert (gpus.tools / "dcgmi.asked").read_text() == "diag -r 1 -j\n"
    failed = DIAG % ("Hardware", "memory", '{"entity_id": 3, "status": "Fail"}')
    gpus.tool("dcgmi", f"echo '{failed}'; exit 226")
    gpus.tool("all_reduce_perf", 'echo "# Out of bounds values : 7 FAILED"')
    assert gpus.check() == (1, "failed: dcgm: memory of GPU 3; nccl: all_reduce has 7 wrong values")


IN_ITS_PLACE = 'while [ "$1" != -- ]; do shift; done; shift; exec "$@"'  # of a program that enters another place
# One that sends prints what perftest does; the other end waits until it is ended.
SENDS = """case "$*" in *127.0.0.1) echo " #bytes #iterations BW peak[Gb/sec] BW average[Gb/sec] MsgRate[Mpps]"
echo " 65536 5000 0.00 $(cat "$0.$2") 0.74";; *) exec sleep 60;; esac"""


def infiniband_port(gpus, device, speed, link_layer="InfiniBand"):
    """A port of 400 Gb/s, up, that sends so fast."""
    folder = gpus.folder / f"host/proc/1/root/sys/class/infiniband/{device}"
    (folder / "device").mkdir(parents=True)
    (folder / "ports/1").mkdir(parents=True)
    files = {"state": "4: ACTIVE", "phys_state": "5: LinkUp", "rate": "400 Gb/sec (4X NDR)", "link_layer": link_layer}
    for name, words in files.items():
        (folder / f"ports/1/{name}").write_text(f"{words}\n")
    (gpus.tools / f"ib_write_bw.{device}").write_text(speed)


def test_each_infiniband_port_sends_to_the_next_where_that_is_asked_for_and_a_slow_one_fails(gpus):
    gpus.tool("nsenter", IN_ITS_PLACE)
    gpus.tool("unshare", IN_ITS_PLACE)
    gpus.tool("ip", "exit 0")
    gpus.tool("ib_write_bw", SENDS)
    for device in ("mlx5_0", "mlx5_1", "mlx5_2"):
        infiniband_port(gpus, device, "392.45")
    infiniband_port(gpus, "mlx5_3", "1.00", link_layer="Ethernet")
    asked = '{"megabytes": "2", "loadSeconds": 0, "infinibandPercent": "50"}'
    code, sentence = gpus.check(parameters=asked)
    ring = [f"mlx5_{sends}/1 to mlx5_{receives}/1 392 of 400 Gb/s" for sends, receives in ((0, 1), (1, 2), (2, 0))]
    assert (code, f"InfiniBand: {', '.join(ring)}; " in sentence) == (0, True), sentence
    (gpus.tools / "ib_write_bw.mlx5_1").write_text("187.00")
    assert gpus.check(parameters=asked) == (1, "failed: InfiniBand: slow: mlx5_1/1 to mlx5_2/1 187 of 400 Gb/s")
    code, sentence = gpus.check()
    assert (code, "InfiniBand" in sentence) == (0, False), "nobody has asked for it"


def test_ports_that_cannot_be_measured_are_told_and_judged_by_nobody(gpus):
    asked = '{"megabytes": "2", "loadSeconds": 0, "infinibandPercent": "50"}'
    infiniband_port(gpus, "mlx5_0", "")
    assert "InfiniBand: fewer than two ports are up, so none is tried" in gpus.check(parameters=asked)[1]
    infiniband_port(gpus, "mlx5_1", "")
    assert "InfiniBand: not here" in gpus.check(parameters=asked)[1]
    ports = {name: Port(True, "", 0, "", 400.0) for name in ("a/1", "b/1")}
    result = judge([(("a/1", "b/1"), CommandOutput(1, "Couldn't connect to 127.0.0.1:18515\n"))], ports, 50.0)
    assert result == Result("a/1 to b/1 cannot be measured (Couldn't connect to 127.0.0.1:18515)")


def test_without_a_neighbour_the_rest_is_tried_and_the_sentence_says_why(gpus):
    neighbours = {"why": "no idle node has rack=a"}
    code, sentence = gpus.check(parameters=json.dumps({"megabytes": 2, "loadSeconds": 0, "neighbours": neighbours}))
    told = f"{RIGHT}. InfiniBand to neighbours: not measured: no idle node has rack=a; libraries from"
    assert (code, sentence.startswith(told)) == (0, True), sentence


def test_a_port_that_is_slow_to_two_neighbours_fails_the_node_and_to_one_it_fails_nothing(gpus, monkeypatch):
    for name in ("nsenter", "unshare"):
        gpus.tool(name, IN_ITS_PLACE)
    gpus.tool("ip", "exit 0")
    infiniband_port(gpus, "mlx5_0", "120.00")
    (gpus.tools / "ib_write_bw").write_text(TOOL)
    (gpus.tools / "ib_write_bw").chmod(0o755)
    monkeypatch.setenv("PATH", f"{gpus.tools}{os.pathsep}{os.environ['PATH']}")
    node = SimpleNamespace(sys=gpus.folder / "host/proc/1/root/sys")
    port, told = free_port(), {"megabytes": 2, "loadSeconds": 0}
    addresses = {"gpu-2": "127.0.0.1", "gpu-3": "127.0.0.2"}
    nodes = [{"name": name, "address": address} for name, address in addresses.items()]
    with serving(node, port=port), serving(node, address="127.0.0.2", port=port):
        neighbours = {"port": port, "token": "uid-1", "nodes": nodes}
        code, sentence = gpus.check(parameters=json.dumps({**told, "neighbours": neighbours}))
    slow = [f"mlx5_0/1 to {name} 120 of 400 Gb/s" for name in addresses]
    assert (code, sentence) == (1, f"failed: InfiniBand to neighbours: slow: {', '.join(slow)}")
    with serving(node, port=port):
        neighbours = {"port": port, "token": "uid-1", "nodes": nodes[:1]}
        code, sentence = gpus.check(parameters=json.dumps({**told, "neighbours": neighbours}))
    assert (code, f"{slow[0]} (cannot tell which of the two ports is slow)" in sentence) == (0, True), sentence


REPORTS = {
    "a GPU fails": (DIAG % ("Integration", "PCIe", '{"gpu_ids": "1", "status": "Fail"}'), ["PCIe of GPU 1"]),
    "how the node is set up fails": (DIAG % ("Deployment", "Persistence Mode", '{"status": "Fail"}'), []),
    "all is well": (DIAG % ("Hardware", "GPU Memory", '{"gpu_ids": "0", "status": "Pass"}'), []),
    "no JSON": ("Error: unable to connect to the host engine", []),
    "another shape": ('{"a": {"test_categories": [3]}}', []),
}


@pytest.mark.parametrize(("text", "failed"), REPORTS.values(), ids=REPORTS.keys())
def test_of_dcgmis_report_only_failures_of_gpus_count(text, failed):
    assert list(failures(text)) == failed


def test_memory_errors_that_are_counted_while_a_gpu_works_and_a_gpu_that_is_gone_are_faults():
    gpus = {
        uuid: {"address": f"0000:1{index}:00.0", "uuid": uuid, "serial": "", "uncorrected": 1}
        for index, uuid in enumerate("ab")
    }
    report = Report(gpus, {}, [])
    after = {"a": gpus["a"] | {"uncorrected": 3}}
    assert list(report.new_errors(after)) == [
        "memory: 0000:10:00.0 (a): 2 uncorrected errors while it worked",
        "driver: 0000:11:00.0 (b) is not in NVML's list any more: reboot the node",
    ]
    assert list(report.new_errors({uuid: gpu | {"uncorrected": None} for uuid, gpu in gpus.items()})) == []


HOPPER, SWITCHED = "NVIDIA H100 80GB HBM3", {"switch": 18}
NVLINKS = {
    "all links go to switches": (HOPPER, SWITCHED, SWITCHED, 450.0),
    "one has fewer": ("NVIDIA B200", SWITCHED, {"switch": 17}, 850.0),
    "a bridge": ("NVIDIA A100 80GB PCIe", {OTHER: 12}, {ONE: 12}, 300.0),
    "two of six links go to this one": ("Tesla V100-SXM2-32GB", {OTHER: 2, "x": 4}, {ONE: 2, "y": 4}, 50.0),
    "no NVLink": (HOPPER, {}, {}, 0.0),
    "an unknown model": ("NVIDIA X900", SWITCHED, SWITCHED, None),
}


@pytest.mark.parametrize(("model", "source", "target", "speed"), NVLINKS.values(), ids=NVLINKS.keys())
def test_what_nvlink_should_reach_goes_by_the_model_and_by_the_links_that_are_up(model, source, target, speed):
    assert expected.nvlink(model, source, target, (ONE, OTHER)) == speed


@pytest.mark.parametrize(
    ("link", "speed"),
    [([3, 16, 16], 15.8), ([5, 16, 8], 63.0), ([0, 16, 16], None), ([5, 255, 16], None), (None, None)],
)
def test_what_pcie_should_reach_goes_by_what_card_and_slot_could_have(link, speed):
    assert expected.pcie(link) == speed


@pytest.mark.parametrize("parameters", ['{"megabytes": "0"}', '{"megabytes": "many"}', '{"seconds": -1}'])
def test_a_parameter_that_is_no_number_is_refused_by_name(gpus, parameters):
    code, sentence = gpus.check(parameters=parameters)
    assert (code, "write a number from 1 to" in sentence) == (2, True), sentence


@pytest.mark.parametrize(("defaults", "words"), [("{", "is not JSON"), ("[]", "is not a JSON object")])
def test_defaults_of_a_template_that_make_no_sense_are_refused(gpus, defaults, words):
    gpus.variables = {"DEFAULTS": defaults}
    code, sentence = gpus.check()
    assert (code, f"refused: DEFAULTS of the template {words}" in sentence) == (2, True), sentence


def test_a_dry_run_says_what_it_would_do_and_asks_nobody(gpus):
    gpus.orders.append("init 999")
    code, sentence = gpus.check("--dry-run")
    assert (code, sentence) == (
        0,
        "would put every idle GPU to work for 0 s, with 2 MiB, and measure its links",
    )
    assert not (gpus.folder / "log").exists()


def test_a_dry_run_of_the_other_end_of_a_measurement_listens_nowhere_and_says_so(gpus):
    """192.0.2.1 is no address of this machine: to listen there would be refused."""
    serve = {"address": "192.0.2.1", "port": 18514, "client": "192.0.2.2", "token": "t", "seconds": 290}
    code, sentence = gpus.check("--dry-run", parameters=json.dumps({"serve": serve}))
    assert (code, sentence) == (0, "would answer 192.0.2.2 on 192.0.2.1:18514 for 290 s, and try no GPU")

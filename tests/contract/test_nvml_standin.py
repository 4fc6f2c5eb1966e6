"""Simulated nodes ask a stand-in for pynvml: call by call it answers as the real one does on the scripted library."""

import json
import os
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.detectors.node import Node
from tests.harness.examples import examples
from tests.native import Script, build_stub

pytestmark = pytest.mark.sampled("nvml standin")

STANDIN = Path(__file__).resolve().parents[2] / "remediator_sim/nvml"
PATIENCE = 20.0

# Puts every question to the module pynvml that it finds, each time a line comes in; a line out for each answer.
ASKER = """
import ctypes, json, sys
sys.path[:0] = sys.argv[1:]
import pynvml as n

def sram(gpu):
    status = n.c_nvmlEccSramErrorStatus_v1_t()
    done = n.nvmlDeviceGetSramEccErrorStatus(gpu, ctypes.byref(status))
    return [done, {name: getattr(status, name) for name, _ in status._fields_}]

VALUES = ("uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")

def fields(gpu, ids):
    found = n.nvmlDeviceGetFieldValues(gpu, ids)
    values = [one.nvmlReturn or [getattr(one.value, name) for name in VALUES] for one in found]
    return [[one.fieldId, one.scopeId, one.nvmlReturn, one.valueType, value] for one, value in zip(found, values)]

def fabric(call, info):
    return [call(ctypes.byref(info)), info.state, info.status, info.cliqueId, getattr(info, "healthMask", None)]

def processes(found):
    return [[one.pid, one.usedGpuMemory] for one in found]

def rates(found):
    return [found.gpu, found.memory]

def samples(kind, found):
    return [kind, [one.sampleValue.uiVal for one in found]]

def spare(gpu):
    found = n.nvmlDeviceGetRowRemapperHistogram(gpu)
    return [getattr(found, name) for name in ("max", "high", "partial", "low", "none")]

def everything():
    yield "init", n.nvmlInit
    yield "driver", n.nvmlSystemGetDriverVersion
    yield "count", n.nvmlDeviceGetCount
    for index in range(3):
        yield f"handle {index}", lambda: [n.nvmlDeviceGetHandleByIndex(index)] and None
        try:
            gpu = n.nvmlDeviceGetHandleByIndex(index)
        except n.NVMLError:
            continue
        yield f"pci {index}", lambda: n.nvmlDeviceGetPciInfo(gpu).busId
        yield f"uuid {index}", lambda: n.nvmlDeviceGetUUID(gpu)
        yield f"serial {index}", lambda: n.nvmlDeviceGetSerial(gpu)
        yield f"part {index}", lambda: n.nvmlDeviceGetBoardPartNumber(gpu)
        yield f"inforom {index}", lambda: n.nvmlDeviceGetInforomImageVersion(gpu)
        yield f"persistence {index}", lambda: n.nvmlDeviceGetPersistenceMode(gpu)
        yield f"power-limit {index}", lambda: n.nvmlDeviceGetPowerManagementLimit(gpu)
        for clock in (n.NVML_CLOCK_SM, n.NVML_CLOCK_MEM):
            yield f"max-clocks {clock} {index}", lambda: n.nvmlDeviceGetMaxClockInfo(gpu, clock)
            yield f"app-clocks {clock} {index}", lambda: n.nvmlDeviceGetApplicationsClock(gpu, clock)
        yield f"ecc-mode {index}", lambda: n.nvmlDeviceGetEccMode(gpu)
        for kind in range(3):
            for since in range(3):
                yield f"errors {kind} {since} {index}", lambda: n.nvmlDeviceGetTotalEccErrors(gpu, kind, since)
        yield f"remapped {index}", lambda: n.nvmlDeviceGetRemappedRows(gpu)
        yield f"spare-rows {index}", lambda: spare(gpu)
        yield f"sram {index}", lambda: sram(gpu)
        yield f"unrepairable {index}", lambda: n.nvmlDeviceGetUnrepairableMemoryFlag_v1(gpu)
        for cause in range(3):
            yield f"retired {cause} {index}", lambda: n.nvmlDeviceGetRetiredPages(gpu, cause)
        yield f"retirement-pending {index}", lambda: n.nvmlDeviceGetRetiredPagesPendingStatus(gpu)
        yield f"fields {index}", lambda: fields(gpu, [n.NVML_FI_DEV_GET_GPU_RECOVERY_ACTION, 144, 9999])
        scoped = [(161, 0), (161, 1), (214, 17), 38, 45, 52, 59, 162, 163, 194, 270, 271]
        yield f"NVLink fields {index}", lambda: fields(gpu, scoped)
        yield f"clocks {index}", lambda: n.nvmlDeviceGetCurrentClocksEventReasons(gpu)
        yield f"clocks of old {index}", lambda: n.nvmlDeviceGetCurrentClocksThrottleReasons(gpu)
        yield f"margin {index}", lambda: n.nvmlDeviceGetMarginTemperature(gpu)
        for link in (0, 1, 17, n.NVML_NVLINK_MAX_LINKS - 1):
            yield f"link {link} {index}", lambda: n.nvmlDeviceGetNvLinkState(gpu, link)
            yield f"remote {link} {index}", lambda: n.nvmlDeviceGetNvLinkRemoteDeviceType(gpu, link)
        new, old = n.c_nvmlGpuFabricInfo_v2_t, n.c_nvmlGpuFabricInfo_t
        yield f"fabric {index}", lambda: fabric(lambda into: n.nvmlDeviceGetGpuFabricInfoV(gpu, into), new())
        yield f"fabric of old {index}", lambda: fabric(lambda into: n.nvmlDeviceGetGpuFabricInfo(gpu, into), old())
        yield f"compute {index}", lambda: processes(n.nvmlDeviceGetComputeRunningProcesses_v3(gpu))
        yield f"graphics {index}", lambda: processes(n.nvmlDeviceGetGraphicsRunningProcesses_v3(gpu))
        yield f"MPS {index}", lambda: processes(n.nvmlDeviceGetMPSComputeRunningProcesses_v3(gpu))
        yield f"memory {index}", lambda: n.nvmlDeviceGetMemoryInfo(gpu, n.nvmlMemory_v2).used
        yield f"memory of old {index}", lambda: n.nvmlDeviceGetMemoryInfo(gpu).used
        yield f"rates {index}", lambda: rates(n.nvmlDeviceGetUtilizationRates(gpu))
        for kind in range(6):
            yield f"samples {kind} {index}", lambda: samples(*n.nvmlDeviceGetSamples(gpu, kind, 0))
        yield f"mig {index}", lambda: n.nvmlDeviceGetMigMode(gpu)
        yield f"no such function {index}", lambda: n.nvmlDeviceGetTemperature(gpu, 0)
    yield "shutdown", n.nvmlShutdown

def answer(call):
    try:
        return call()
    except n.NVMLError as error:
        same = isinstance(error, getattr(n, type(error).__name__))
        return {"class": type(error).__name__, "code": error.value, "text": str(error), "exported": same}

cold = {"before nvmlInit": answer(n.nvmlDeviceGetCount)}
print(json.dumps(cold), flush=True)
for line in sys.stdin:
    for name, call in everything():
        print(json.dumps({name: answer(call)}), flush=True)
"""


class Asker:
    """A process that asks one module for everything, again and again."""

    def __init__(self, *folder: Path, **environment: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-E", "-s", "-B", "-c", ASKER, *map(str, folder)],
            env={**os.environ, **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
        )
        self._rest = b""
        self.cold = self.line()

    def begin(self) -> None:
        self.process.stdin.write(b"\n")

    def line(self, patience: float = PATIENCE) -> dict | None:
        """Return the next answer; None when there is none in time."""
        until = time.monotonic() + patience
        while b"\n" not in self._rest:
            ready, _, _ = select.select([self.process.stdout], [], [], max(0.0, until - time.monotonic()))
            chunk = self.process.stdout.read(65536) if ready else b""
            if not chunk:
                return None
            self._rest += chunk
        line, _, self._rest = self._rest.partition(b"\n")
        return json.loads(line)

    def everything(self) -> dict:
        """Return each answer by its question."""
        self.begin()
        found: dict = {}
        while "shutdown" not in found:
            found |= self.line() or pytest.fail(f"no answer after {list(found)[-1:]}")
        return found

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """Return the path of a freshly compiled libnvidia-ml.so.1."""
    return build_stub(tmp_path_factory.mktemp("nvml"))


@pytest.fixture(scope="module")
def script(tmp_path_factory):
    """Return the orders that both obey."""
    return Script(tmp_path_factory.mktemp("script") / "nvml.txt")


def pair(library, script):
    """Return the real pynvml on the scripted library, and the stand-in."""
    return Asker(**script.environment(library)), Asker(STANDIN, NVML_STUB=str(script.path))


@pytest.fixture(scope="module")
def both(library, script):
    askers = pair(library, script.write("count 2"))
    yield askers
    for asker in askers:
        asker.end()


SCENARIOS = {
    "healthy": ["count 2"],
    "no GPU": [],
    "one GPU": ["count 1"],
    "lost": ["count 2", "gpu 1 error 15"],
    "reset required": ["count 2", "gpu 1 error 16"],
    "unknown error": ["count 2", "gpu 0 error 999"],
    "a code without a name": ["count 2", "gpu 0 error 77"],
    "each of the codes that pynvml has no text for": ["count 3", "gpu 0 error 19", "gpu 1 error 25", "gpu 2 error 28"],
    "lost after its handle was given": ["count 2", "gpu 1 uuid error:15"],
    "no driver": ["init 9", "count 2"],
    "version mismatch": ["init 18", "count 2"],
    "another driver": ["count 2", "driver 580.95.05"],
    "the driver's version refused": ["count 2", "driver error:999"],
    "no serial number": ["count 2", "gpu 0 serial error:3"],
    "lost outranks refused": ["count 2", "gpu 0 error 15", "gpu 0 handle error:3"],
    "names": ["count 2", "gpu 0 uuid GPU-abc", "gpu 0 serial 42", "gpu 1 pci 00000001:3B:00.0"],
    "errors since the driver loaded": ["count 2", "gpu 1 uncorrected 3", "gpu 1 corrected 18446744073709551615"],
    "errors ever": ["count 2", "gpu 1 uncorrected-ever 3", "gpu 0 corrected-ever 7"],
    "remap pending": ["count 2", "gpu 1 remapped 0,1,1,0", "gpu 1 field-230 1", "gpu 1 field-144 1"],
    "remap failed": ["count 2", "gpu 1 remapped 2,8,0,1", "gpu 1 spare-rows 600,20,10,9,1"],
    "SRAM over its threshold": ["count 2", "gpu 1 sram 1,5,3"],
    "memory that cannot be repaired": ["count 2", "gpu 0 unrepairable error:13", "gpu 1 unrepairable 1"],
    "retired pages": ["count 2", "gpu 1 retired 3,2", "gpu 1 retirement-pending 1", "gpu 0 retired 0,0"],
    "ECC off": ["count 2", "gpu 1 ecc-mode 0,1", "gpu 1 uncorrected error:3"],
    "not supported": [
        "count 2",
        *(f"gpu 1 {question} error:3" for question in ("ecc-mode", "remapped", "spare-rows", "sram", "fields")),
    ],
    "an old driver": ["count 2", "gpu 1 sram error:13", "gpu 1 spare-rows error:13"],
    "slowed down": [
        "count 2",
        "gpu 1 clocks 72",
        "gpu 1 field-270 90000000000",
        "gpu 1 margin -5",
        "gpu 0 field-194 -3",
    ],
    "an NVLink down": ["count 2", "gpu 0 nvlink 1011", "gpu 1 nvlink-remote 0200", "gpu 1 field-161.1 9000000000"],
    "no NVLink": ["count 2", "gpu 0 nvlink error:3", "gpu 0 fabric error:3", "gpu 0 field-38 error:3"],
    "no fabric yet": ["count 2", "gpu 1 fabric 2,0,1", "gpu 0 fabric 3,15,426"],
    "processes": ["count 2", "gpu 0 compute 41:1048576,42", "gpu 1 graphics 43:18446744073709551615", "gpu 1 mps 44:7"],
    "memory in use": ["count 2", "gpu 1 memory 85899345920", "gpu 0 mig 1,0"],
    "in use": ["count 2", "gpu 0 rates 30,5", "gpu 1 samples 100,0,7,1"],
    "use not told": ["count 2", "gpu 0 rates error:3", "gpu 1 samples error:6"],
    "newer calls unknown": [
        "count 2",
        *(f"gpu 1 {question} error:13" for question in ("clocks-event", "fabric-v", "memory-v2", "mps")),
    ],
    "later lines win": ["count 1", "count 2", "gpu 1 error 15", "gpu 1 error 0", "gpu 1 uuid A", "gpu 1 uuid B"],
    "comments and blanks": ["# count 5", "", "  count 2  # two", "gpu 1 uuid A # its name", "no such order"],
}


@pytest.mark.parametrize("orders", SCENARIOS.values(), ids=SCENARIOS.keys())
def test_the_stand_in_answers_as_the_real_one(both, script, orders):
    script.write(*orders)
    real, standin = (asker.everything() for asker in both)
    assert standin == real


def test_the_scenarios_are_not_all_the_same(both, script):
    answers = [json.dumps(both[0].everything()) for orders in SCENARIOS.values() if script.write(*orders)]
    assert len(set(answers)) == len(answers) == len(SCENARIOS)


def test_before_it_is_started_both_say_the_same(both):
    real, standin = (asker.cold for asker in both)
    assert standin == real
    assert real["before nvmlInit"]["class"] == "NVMLError_Uninitialized"


def test_without_a_script_both_say_that_there_is_no_driver(both, script):
    script.path.unlink()
    real, standin = (asker.everything() for asker in both)
    assert standin == real
    assert real["init"]["code"] == 9


QUESTIONS = (
    *("handle", "pci", "uuid", "serial", "part", "inforom", "ecc-mode"),
    *("uncorrected", "corrected", "uncorrected-ever", "corrected-ever"),
    *("remapped", "spare-rows", "sram", "retired", "retirement-pending", "fields", "field-230", "field-144"),
    *(
        "clocks",
        "clocks-event",
        "margin",
        "nvlink",
        "nvlink-remote",
        "fabric",
        "fabric-v",
        "compute",
        "graphics",
        "mps",
    ),
    *("memory", "memory-v2", "rates", "samples", "mig", "field-194", "field-270", "field-161.1", "field-38"),
)
gpus, errors = st.integers(0, 3), st.sampled_from([1, 2, 3, 4, 7, 9, 13, 15, 16, 19, 25, 28, 999])
codes = st.just(0) | errors  # but "error:0" is no word of a script
numbers = st.lists(st.integers(0, 40), min_size=1, max_size=6).map(lambda found: ",".join(map(str, found)))
orders = st.one_of(
    st.builds("count {}".format, gpus),
    st.builds("init {}".format, codes),
    st.builds("driver {}".format, st.sampled_from(["1.2", "580.95.05"]) | st.builds("error:{}".format, errors)),
    st.builds("gpu {} error {}".format, gpus, codes),
    st.builds("gpu {} {} {}".format, gpus, st.sampled_from(QUESTIONS), numbers),
    st.builds("gpu {} {} error:{}".format, gpus, st.sampled_from(QUESTIONS), errors),
)


@settings(max_examples=examples(60), deadline=None)
@given(drawn=st.lists(orders, max_size=12))
def test_whatever_is_ordered_both_answer_the_same(both, script, drawn):
    script.write("count 2", *drawn)
    real, standin = (asker.everything() for asker in both)
    assert standin == real


HANGS = {
    "hang init": "init -1",
    "hang driver": "driver -1",
    "hang count": "count -1",
    "hang handle 1": "handle 1",
    "hang remapped 1": "remapped 1",
    "hang sram": "sram 0",
}


@pytest.mark.parametrize(("order", "call"), HANGS.items(), ids=HANGS.keys())
def test_both_hang_at_the_same_question(library, tmp_path, order, call):
    script = Script(tmp_path / "nvml.txt")
    answered = []
    for asker in pair(library, script.write("count 2", f"log {tmp_path / 'calls'}")):
        calls = script.path.with_name("calls")
        calls.unlink(missing_ok=True)
        script.write("count 2", order, f"log {calls}")
        try:
            asker.begin()
            until = time.monotonic() + PATIENCE
            while time.monotonic() < until and not (calls.exists() and call in calls.read_text().splitlines()):
                select.select([], [], [], 0.01)
            assert calls.read_text().splitlines()[-1] == call
            answered.append(list(iter(lambda asker=asker: asker.line(patience=0.3), None)))
        finally:
            asker.end()
    real, standin = answered
    assert standin == real
    assert {"shutdown": None} not in real


RUNS = {
    "healthy": ["count 2"],
    "lost": ["count 2", "gpu 1 error 15"],
    "version mismatch": ["count 2", "init 18"],
    "slow, unlinked and busy": ["count 2", "gpu 0 clocks 64", "gpu 1 nvlink 1101", "gpu 1 compute 4194999:7"],
    "remap pending and errors": ["count 2", "gpu 0 remapped 0,1,1,0", "gpu 1 uncorrected 1"],
    "no serial number and an old driver": ["count 2", "gpu 0 serial error:3", "gpu 1 sram error:13"],
}


ASKING = ["gpu_lost", "gpu_ecc", "gpu_recovery", "gpu_throttled", "gpu_nvlink", "gpu_busy", "driver_mismatch"]


@pytest.mark.parametrize("detector", ASKING)
@pytest.mark.parametrize("orders", RUNS.values(), ids=RUNS.keys())
def test_detectors_come_to_the_same_verdict_with_either(library, tmp_path, detector, orders):
    node = Node(tmp_path, library, gpus=2, detector=detector)
    node.nvml.write(*orders)
    real = node.run()
    shutil.rmtree(node.state)  # what shows twice in a row is another verdict
    node.library = None
    standin = node.run(f"--pynvml={STANDIN}")
    assert standin == real


def test_the_stand_in_is_cheap_to_import():
    before = "import json, sys; sys.path.insert(0, sys.argv[1]); had = set(sys.modules); import pynvml; "
    code = before + "print(*{name.partition('.')[0] for name in set(sys.modules) - had})"
    command = [sys.executable, "-I", "-S", "-B", "-c", code, str(STANDIN)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    dear = {"asyncio", "dataclasses", "email", "inspect", "logging", "pathlib", "socket", "subprocess", "urllib"}
    assert "pynvml" in done.stdout.split()
    assert not dear & set(done.stdout.split())


def test_the_folder_of_the_stand_in_holds_nothing_else():
    assert [path.name for path in STANDIN.iterdir() if path.name != "__pycache__"] == ["pynvml.py"]

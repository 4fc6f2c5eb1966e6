"""gpu_check on a scripted NVML and a scripted CUDA driver: what works, what does not, and what nobody can tell."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness import warm
from tests.native import Script, build_stub
from tests.operations.conftest import OPERATIONS

pytestmark = pytest.mark.sampled("gpu check")

SOURCE = Path(__file__).parents[1] / "native/cuda_stub.c"


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
    """Two GPUs. `check` runs the program; a word of `without` leaves a library out."""

    def __init__(self, folder, nvml):
        self.folder, self.nvml = folder, nvml
        self.listed, self.orders = ["count 2", "gpu 0 pci 00000000:10:00.0", "gpu 1 pci 00000000:11:00.0"], ["count 2"]

    def check(self, *options, parameters='{"megabytes": "32"}', libraries=True, forked=True):
        (self.folder / "cuda.txt").write_text("".join(f"{order}\n" for order in self.orders))
        script = Script(self.folder / "nvml.txt").write(*self.listed)
        environment = {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "PARAMETERS": parameters,
            "TERMINATION_LOG": str(self.folder / "log"),
            "CUDA_STUB": str(self.folder / "cuda.txt"),
            **(script.environment(self.nvml) if libraries else {}),
        }
        done = warm.run([str(OPERATIONS / "gpu_check.py"), *options], environment, forked=forked)
        return done.code, done.out.strip()


@pytest.fixture
def gpus(tmp_path, libraries):
    return Gpus(tmp_path, libraries)


RIGHT = "all 2 GPUs work: 32 MiB each kept what was written, every product was right"


def test_gpus_that_do_their_work_are_said_to(gpus):
    assert gpus.check(forked=False) == (0, RIGHT)
    assert (gpus.folder / "log").read_text() == RIGHT


def test_a_driver_that_reads_only_newer_kernels_is_given_one(gpus):
    gpus.orders.append("reads 7.8")
    assert gpus.check() == (0, RIGHT)


FAULTS = {
    "a bit of memory is lost": ("forgets 1", "0000:11:00.0: its memory does not hold what was written (0xa5a5a5a5)"),
    "a product is wrong": ("miscalculates 0", "0000:10:00.0: it multiplies wrongly"),
    "the kernel ends in an error": ("refuses cuCtxSynchronize 700", "cuCtxSynchronize answers 700 (CUDA_ERROR_STUB)"),
    "no memory": ("free 8", "only 8 MiB of its memory are free"),
    "the driver does not start": ("init 999", "NVML: cuInit answers 999"),
    "no kernel is read": ("reads 99.0", "cuModuleLoadData answers 218"),
    "CUDA shows fewer": ("count 1", "CUDA does not show 0000:11:00.0, which NVML lists: reboot the node"),
}


@pytest.mark.parametrize(("order", "said"), FAULTS.values(), ids=FAULTS.keys())
def test_a_gpu_that_does_not_is_a_failure_that_names_it(gpus, order, said):
    gpus.orders.append(order)
    code, sentence = gpus.check()
    assert (code, said in sentence) == (1, True), sentence


@pytest.mark.parametrize(
    ("orders", "listed", "at"),
    [
        pytest.param(["hang cuLaunchKernel"], [], "a GPU has not answered within 1 s, at 0000:10:00.0", id="CUDA"),
        pytest.param(["hang cuInit"], [], "a GPU has not answered within 1 s, at the start", id="its start"),
    ],
)
def test_a_hang_is_a_failure_in_time(gpus, orders, listed, at):
    gpus.orders += orders
    gpus.listed += listed
    code, sentence = gpus.check(parameters='{"megabytes": 32, "seconds": 1}', forked=False)
    assert (code, at in sentence) == (1, True), sentence


@pytest.mark.parametrize(
    ("order", "said"),
    [
        ("gpu 1 error 15", "NVML: GPU index 1: NVML answers 15"),
        ("init 999", "NVML: NVML answers 999"),
    ],
)
def test_a_gpu_that_nvml_has_lost_is_a_failure(gpus, order, said):
    gpus.listed.append(order)
    code, sentence = gpus.check()
    assert (code, said in sentence) == (1, True), sentence


DOUBTS = {
    "in use": ("gpu 1 compute 4242:1048576", "somebody computes on 0000:11:00.0; drain the node first"),
    "cut into instances": ("gpu 0 mig 1,1", "MIG is on for 0000:10:00.0"),
    "no GPU": ("count 0", "NVML lists no GPU"),
    "no driver": ("init 9", "NVML answers 9"),
}


@pytest.mark.parametrize(("order", "said"), DOUBTS.values(), ids=DOUBTS.keys())
def test_where_nothing_can_be_put_to_work_it_cannot_tell(gpus, order, said):
    gpus.listed.append(order)
    code, sentence = gpus.check()
    assert (code, sentence.startswith("refused: cannot tell: "), said in sentence) == (2, True, True), sentence


def test_without_a_cuda_driver_it_cannot_tell(gpus, tmp_path):
    bare = tmp_path / "bare"
    bare.mkdir()
    shutil.copy(gpus.nvml, bare)
    gpus.nvml = bare / gpus.nvml.name
    code, sentence = gpus.check()
    assert (code, "no CUDA driver library in this container" in sentence) == (2, True), sentence
    gpus.orders.append("init 100")


def test_a_container_that_is_given_no_gpu_cannot_tell(gpus):
    gpus.orders.append("init 100")
    code, sentence = gpus.check()
    assert (code, "shows no GPU to this container" in sentence) == (2, True), sentence


def test_without_nvml_it_cannot_tell(gpus):
    code, sentence = gpus.check(libraries=False, forked=False)
    assert (code, sentence.startswith("refused: cannot tell: NVML answers 12")) == (2, True), sentence


@pytest.mark.parametrize("parameters", ['{"megabytes": "0"}', '{"megabytes": "many"}', '{"seconds": -1}'])
def test_a_parameter_that_is_no_number_is_refused_by_name(gpus, parameters):
    code, sentence = gpus.check(parameters=parameters)
    assert (code, "write a number from 1 to" in sentence) == (2, True), sentence


def test_a_dry_run_says_what_it_would_do_and_asks_nobody(gpus):
    gpus.orders.append("init 999")
    code, sentence = gpus.check("--dry-run")
    assert (code, sentence) == (
        0,
        "would write, read and multiply on every idle GPU: 32 MiB each, 120 s in all",
    )
    assert not (gpus.folder / "log").exists()

"""The simulated machine: the shipped detectors see its faults, and see them go by what mends them."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from remediator_sim.kubelet.host import SimulatedHost
from remediator_sim.machine import CURES, Cure, FaultKind, Machine, MachineFault, NfsServer
from tests.harness.apiserver import ApiServer
from tests.harness.waiting import gone, until

DETECTORS = Path(__file__).resolve().parents[2] / "detectors"
POD = "8f3c2a10-1111-2222-3333-444455556666"
FINE, FAULTY, UNCLEAR = 0, 1, 2
# By kind: where it strikes, the detector, its options here, and how many runs it takes to be sure.
SEEN_BY = {
    FaultKind.GPU_LOST: (3, "gpu_lost", [], 1),
    FaultKind.GPU_ECC: (3, "gpu_ecc", [], 1),
    FaultKind.GPU_WORN: (3, "gpu_worn", [], 1),
    FaultKind.MOUNT_STUCK: ("/mnt/data", "nfs_mount", ["--deadline=0.3"], 2),
    FaultKind.MOUNT_STALE: ("/mnt/data", "nfs_mount", [], 1),
    FaultKind.UNKILLABLE: (POD, "unkillable_process", ["--apart=0"], 2),
}
ROWS = [(kind, cure) for kind in FaultKind for cure in sorted(CURES[kind])]


@pytest.fixture
async def server():
    async with NfsServer() as server:
        yield server


@pytest.fixture
def machine(tmp_path, server):
    """Eight GPUs and two mounts of one server."""
    host = SimulatedHost(tmp_path / "gpu-17", "gpu-17", down_time=0)
    return Machine(host, mounts={"/mnt/data": server, "/mnt/home": server})


@pytest.fixture
def api(tmp_path):
    """An API server that knows of no Pod on this node."""
    (tmp_path / "api").mkdir()
    server = ApiServer(tmp_path / "api")
    yield server
    server.close()


async def detect(machine, name, *options, **variables):
    """Exit code and line of one run of a detector."""
    command = [sys.executable, *("-E", "-s", "-S", "-B"), str(DETECTORS / f"{name}.py")]
    done = await asyncio.to_thread(
        subprocess.run,
        [*command, *machine.detector_options(name), *options],
        env={"PATH": os.environ["PATH"], "NODE_NAME": "gpu-17", **machine.environment, **variables},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stdout.strip()


async def mend_by(machine, cure, where):
    """Do to the machine what the operation of this name would."""
    run = machine.host.commands
    if cure is Cure.REBOOT:
        await machine.host.boot_again()
    elif cure is Cure.RESET_GPU:
        assert run["nvidia-smi"](["--gpu-reset", "-i", machine.gpus[where].bus_id]).code == 0
    else:
        assert run["umount"](["-f", "-l", where]).code == 0
        assert run["mount"](["-t", "nfs4", "-o", "rw", "127.0.0.1:/export/mnt/data", where]).code == 0


def test_every_kind_of_fault_has_a_detector_that_sees_it():
    assert set(SEEN_BY) == set(CURES) == set(FaultKind)


@pytest.mark.sampled
@pytest.mark.parametrize(("kind", "cure"), ROWS)
async def test_a_detector_sees_a_fault_until_it_is_cured(machine, api, kind, cure):
    where, detector, options, runs = SEEN_BY[kind]
    told = api.environment()

    async def looks():
        found = [await detect(machine, detector, *options, **told) for _ in range(runs)]
        return found[-1]

    before = await looks()
    assert before[0] == FINE, before
    machine.break_(MachineFault(kind, where))
    broken = await looks()
    assert broken[0] == FAULTY, broken
    await mend_by(machine, cure, where)
    after = await looks()
    assert after[0] == FINE, after
    assert machine.faults == ()


@pytest.mark.parametrize(
    ("kind", "cure"), [(kind, cure) for kind in FaultKind for cure in Cure if cure not in CURES[kind]]
)
def test_what_is_not_its_cure_leaves_a_fault(machine, kind, cure):
    fault = MachineFault(kind, SEEN_BY[kind][0])
    machine.break_(fault)
    machine.cure(cure)
    assert machine.faults == (fault,)


@pytest.mark.slow
async def test_worn_memory_is_seen_until_the_gpu_is_replaced(machine):
    worn = MachineFault(FaultKind.GPU_WORN, 3)
    machine.break_(worn)
    await machine.host.boot_again()
    code, line = await detect(machine, "gpu_worn")
    assert (code, line.split(":")[0]) == (FAULTY, "row remap failed (replace)")
    machine.mend(worn)
    assert (await detect(machine, "gpu_worn"))[0] == FINE


@pytest.mark.slow
async def test_a_fault_that_returns_is_there_after_every_cure(machine):
    lemon = MachineFault(FaultKind.GPU_LOST, 3, returns=True)
    machine.break_(lemon)
    await machine.host.boot_again()
    assert (await detect(machine, "gpu_lost"))[0] == FAULTY
    assert machine.host.root.joinpath("var/log/kern.log").read_text().count("Xid (PCI:0000:13:00): 79") == 1
    machine.mend(lemon)
    assert (await detect(machine, "gpu_lost"))[0] == FINE


@pytest.mark.slow
async def test_a_server_that_is_down_is_told_of_and_is_no_fault_of_the_mount(machine, server):
    assert (await detect(machine, "nfs_server"))[0] == FINE
    await server.stop()
    told = [await detect(machine, "nfs_server", "--deadline=2") for _ in range(2)]
    assert [code for code, _ in told] == [UNCLEAR, FAULTY]
    assert f"NFS server 127.0.0.1:{server.port} does not answer" in told[1][1]
    mounts = [await detect(machine, "nfs_mount", "--deadline=0.3") for _ in range(2)]
    assert [code for code, _ in mounts] == [UNCLEAR, UNCLEAR]
    await server.start()
    assert [(await detect(machine, name))[0] for name in ("nfs_server", "nfs_mount")] == [FINE, FINE]


async def test_a_mount_of_a_server_that_is_down_cannot_be_mounted_again(machine, server):
    machine.break_(MachineFault(FaultKind.MOUNT_STALE, "/mnt/data"))
    await server.stop()
    run = machine.host.commands
    assert run["umount"](["-f", "-l", "/mnt/data"]).code == 0
    assert run["mount"](["/mnt/data"]) == (32, "mount.nfs4: Connection refused\n")
    assert "/mnt/data " not in (machine.host.root / "proc/1/mountinfo").read_text()


async def test_a_stuck_statfs_ends_when_the_mount_answers_again(machine):
    machine.break_(MachineFault(FaultKind.MOUNT_STUCK, "/mnt/data"))
    process = await asyncio.create_subprocess_exec(str(machine.host.bin / "statfs"), "/mnt/data")
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(process.wait(), 0.3)
    machine.cure(Cure.REMOUNT, "/mnt/data")
    assert await asyncio.wait_for(process.wait(), 10) == 0
    await until(lambda: gone(process.pid))


def test_a_gpu_that_a_pod_uses_cannot_be_reset(machine):
    machine.break_(MachineFault(FaultKind.GPU_ECC, 3))
    machine.start_pod(POD, gpus=[3])
    smi = machine.host.commands["nvidia-smi"]
    assert smi(["--query-compute-apps=gpu_bus_id,pid,process_name"]).text.startswith("00000000:13:00.0, ")
    assert smi(["--gpu-reset", "-i", "00000000:13:00.0"]).code == 255
    machine.end_pod(POD)
    assert smi(["--gpu-reset", "-i", "00000000:13:00.0"]).code == 0


def test_a_lost_gpu_spoils_every_question_to_the_driver(machine):
    machine.break_(MachineFault(FaultKind.GPU_LOST, 3))
    answer = machine.host.commands["nvidia-smi"](["--query-gpu=pci.bus_id,uuid", "--format=csv"])
    assert answer.code == 15
    assert "GPU3: 0000:13:00.0: GPU is lost" in answer.text
    assert answer.text.count("GPU-") == 7


async def test_a_reboot_ends_what_ran_and_forgets_what_the_kernel_said(machine):
    machine.start_pod(POD, mounts=["/mnt/data"])
    machine.break_(MachineFault(FaultKind.UNKILLABLE, POD))
    processes = [folder for folder in (machine.host.root / "proc").iterdir() if folder.name.isdecimal()]
    assert len(processes) == 5
    assert machine.host.root.joinpath("var/log/kern.log").read_text()
    await machine.host.boot_again()
    left = [folder for folder in (machine.host.root / "proc").iterdir() if folder.name.isdecimal()]
    assert sorted(folder.name for folder in left) == ["1", "800", "900"]
    assert machine.host.root.joinpath("var/log/kern.log").read_text() == ""
    assert machine.host.root.joinpath("proc/sys/kernel/random/boot_id").exists()


def test_two_nodes_have_gpus_of_their_own_and_each_the_same_ones_again(tmp_path):
    def uuids(folder, name):
        return {gpu.uuid for gpu in Machine(SimulatedHost(tmp_path / folder, name)).gpus}

    assert uuids("a", "gpu-1") == uuids("a", "gpu-1")
    assert len(uuids("a", "gpu-1") | uuids("b", "gpu-2")) == 16


def test_a_machine_found_again_shows_nothing_of_its_former_faults(tmp_path):
    host = SimulatedHost(tmp_path, "gpu-1")
    Machine(host, gpus=8).break_(MachineFault(FaultKind.UNKILLABLE, POD))
    Machine(host, gpus=2)
    assert len(list((host.root / "sys/bus/pci/devices").iterdir())) == 2
    assert not [one for one in (host.root / "proc").iterdir() if one.name.isdecimal() and int(one.name) > 900]

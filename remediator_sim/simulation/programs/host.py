"""Models of the programs that work on their own node: a table row for each way in which one ends."""

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import NamedTuple

from remediator_sim.simulation import facts
from remediator_sim.simulation.node import ADDRESS
from remediator_sim.simulation.programs.run import Failed, Refused, Run, Work, leave_marker, require_fresh

UNTOLD = 1.3  # times its seconds at most: by then the other end of a measurement may not have been told that it is over
BOOT_DELAY = (300.0, 1800.0)  # seconds by which a reboot may come late: services that do not stop hold it up
Holds = Callable[[Run], bool]
SERVICES = ("kubelet", "containerd", "crio", "chronyd", "nvidia-persistenced", "nvidia-fabricmanager", "rpc-statd")
ROLES = {"runtime": "containerd"}  # what these words stand for on a simulated node


class EndRow(NamedTuple):
    """How a program ends where `holds` is so: it raises `end`, or is done where that is None.

    `{node}` and `{service}` are replaced in its words.
    """

    holds: Holds
    end: type[Exception] | None
    words: str


class About(NamedTuple):
    """A program: the seconds that it takes, what it finds before it changes anything, what comes of it, its success.

    `numbers`: those of PARAMETERS that it reads, each with the least that it takes. `once`: for one attempt in one
    boot; it leaves a marker before it changes something.
    """

    seconds: tuple[float, float]
    before: tuple[EndRow, ...]
    after: tuple[EndRow, ...]
    done: str
    numbers: Mapping[str, float]
    once: bool = True


def shows(fact: str) -> Holds:
    """Whether it is so of the node."""
    return lambda run: run.node.shows(fact)


def _is_left_alone(fact: str, word: str = "") -> Holds:
    """Whether the node shows no need, and PARAMETERS, by this word, do not ask for it all the same."""
    return lambda run: not run.node.shows(fact) and (not word or word not in run.parameters)


def _mounts_are_there(run: Run) -> bool:
    return _is_left_alone(facts.MOUNT_STALE, "mountPoints")(run) and not run.node.shows(facts.MOUNT_ABSENT)


def refused(fact: str, words: str) -> EndRow:
    """A row of that kind."""
    return EndRow(shows(fact), Refused, words)


def failed(fact: str, words: str) -> EndRow:
    """A row of that kind."""
    return EndRow(shows(fact), Failed, words)


def hosted(about: About) -> Work:
    """The model of a program."""

    async def work(run: Run) -> str:
        if about.once:
            require_fresh(run)
        for name, least in about.numbers.items():
            run.number(name, least, least)
        await run.take(*about.seconds)
        await run.node.look_at_operands()
        if (sentence := _end(run, about.before)) is not None:
            return sentence
        if about.once:
            leave_marker(run)
        run.node.treat(run.template)
        sentence = _end(run, about.after)
        return _said(run, about.done) if sentence is None else sentence

    return work


def _said(run: Run, words: str) -> str:
    return words.format(node=run.node.name, service=_service(run))


def _service(run: Run) -> object:
    word = run.parameters.get("service")
    return ROLES.get(str(word), word)


def _is_no_service(run: Run) -> bool:
    return _service(run) not in SERVICES


def _tests_idle(run: Run) -> bool:
    """A GPU that does not answer a test of an idle node may have been held up by others."""
    return bool(run.parameters.get("idleTest")) and run.node.shows(facts.GPU_HANGS)


def _ends_containers(run: Run) -> bool:
    return _service(run) == "containerd" and run.node.shows(facts.SHIMS_END)


def _is_unhealthy(run: Run) -> bool:
    return run.parameters.get("service") == "kubelet" and run.node.shows(facts.UNHEALTHY)


def _end(run: Run, rows: tuple[EndRow, ...]) -> str | None:
    """The sentence of the first row that holds; None where none does. Raises what the row says."""
    row = next((row for row in rows if row.holds(run)), None)
    if row is None:
        return None
    sentence = _said(run, row.words)
    if row.end is not None:
        raise row.end(sentence)
    return sentence


async def gpu_check(run: Run) -> str:
    """Put the GPUs to work; or be the other end of a measurement, which tries none."""
    if "serve" not in run.parameters:
        return await hosted(GPU_CHECK)(run)
    client, seconds = run.parameters["serve"]["client"], run.parameters["serve"]["seconds"]
    took = run.chance.uniform(10, UNTOLD * seconds)
    await run.take(min(took, seconds), min(took, seconds))
    if took > seconds:
        raise Refused(f"cannot tell: {client} has not said ")
    return f"measurements for {client}: "


async def collect_diagnostics(run: Run) -> str:
    """Look at the node; what cannot be read ends nothing."""
    await run.take(2, 20)
    gpu = {"address": ADDRESS, "uuid": f"GPU-{run.node.board}", "serial": run.node.board}
    evidence = {"bootID": run.node.boot_id} | ({"gpus": [gpu]} if run.node.board else {})
    return json.dumps(evidence, separators=(",", ":"))


async def reboot(run: Run) -> str:
    """Ask for the reboot, and be killed by it."""
    wait = run.number("waitSeconds", 780)
    if run.parameters.get("lastResort") not in (None, "sysrq"):
        raise Refused("PARAMETERS.lastResort knows only sysrq")
    require_fresh(run)
    await run.take(1, 10)
    leave_marker(run)
    run.sentence = f"reboot of {run.node.name} asked for by attempt {run.attempt}"
    try:
        await _ask_for_reboot(run, wait)
    except asyncio.CancelledError:
        if not run.stopped:
            raise
    return run.sentence


async def _ask_for_reboot(run: Run, wait: float) -> None:
    """Ask, and wait to be killed. Raises Failed when nothing comes of it."""
    if run.node.shows(facts.REBOOT_REFUSED):
        raise Failed("the node did not take the reboot")
    if run.node.shows(facts.REBOOT_SILENT):
        await run.take(wait, wait)
        raise Failed("the node's service manager did not answer")
    if not run.node.shows(facts.STAYS_UP):
        late = run.chance.uniform(*BOOT_DELAY) if run.node.shows(facts.GOES_DOWN_LATE) else 0.0
        run.node.begin_reboot(run.env["ATTEMPT_ID"], run.chance.uniform(60, 240), late)
    await run.take(wait, wait)
    raise Failed("the node was asked to reboot and still runs")


GPU_CHECK = About(
    (5, 60),
    (
        refused(facts.NVML_MISSING, "cannot tell: "),
        failed(facts.GPU_LOST, "driver: GPU index "),
        refused(facts.NO_GPU, "cannot tell: NVML lists no GPU"),
        refused(facts.GPU_BUSY, "cannot tell: somebody computes on "),
    ),
    (
        EndRow(_tests_idle, Refused, "cannot tell: CUDA: "),
        failed(facts.GPU_HANGS, "CUDA: 0000:"),
        failed(facts.GPU_WRONG, "arithmetic: 0000:"),
    ),
    "all ",
    {"megabytes": 1, "seconds": 1},
    once=False,
)
HOSTED: dict[str, About] = {
    "reset-gpu": About(
        (10, 60),
        (
            refused(facts.DRIVER_SILENT, "nvidia-smi lists no GPU"),
            refused(facts.GPU_LOST, "a reset cannot help, reboot the node"),
            EndRow(_is_left_alone(facts.GPU_NEEDS_RESET, "gpus"), None, "nothing to reset: none of the "),
            refused(facts.GPU_COMPUTES, "in use by "),
        ),
        (
            refused(facts.GPU_HELD, "in use: "),
            refused(facts.RESET_BUSY, "a GPU stays in use"),
            failed(facts.RESET_HANGS, "the reset of "),
            failed(facts.RESET_BREAKS, "00000000:"),
            failed(facts.GPU_AWAY, "after the reset nvidia-smi does not list "),
            failed(facts.GPU_NEEDS_RESET, "the reset did not help"),
        ),
        "reset ",
        {"busySeconds": 0, "resetSeconds": 0},
    ),
    "reload-driver": About(
        (20, 90),
        (
            refused(facts.DRIVER_CONTAINED, "the driver lives in a container"),
            refused(facts.NO_DRIVER, "no driver is loaded"),
            refused(facts.DRIVER_USED, "the driver is used by "),
            refused(facts.GPU_HELD, "python3 (pid 7) "),
        ),
        (
            failed(facts.SERVICE_STAYS, "nvidia-fabricmanager could not be stopped"),
            refused(facts.MODULE_STAYS, "nvidia_uvm could not be unloaded"),
            failed(facts.MODULE_LOST, "nvidia could not be loaded again"),
            failed(facts.GPU_AWAY, "the driver was reloaded, and nvidia-smi lists "),
        ),
        "reloaded nvidia_uvm",
        {"moduleSeconds": 0, "serviceSeconds": 0},
    ),
    "remount-nfs": About(
        (2, 30),
        (
            EndRow(_mounts_are_there, None, "nothing to remount: "),
            refused(facts.MOUNT_USED, "in use: "),
            refused(facts.SERVER_SILENT, "the server does not answer"),
        ),
        (
            failed(facts.UMOUNT_FAILS, "/mnt/data could not be taken down"),
            failed(facts.MOUNT_FAILS, "could not be mounted again"),
            failed(facts.MOUNT_ABSENT, "not mounted after all: "),
            failed(facts.MOUNT_STALE, "stuck as before"),
        ),
        "remounted ",
        {"probeSeconds": 0},
    ),
    "restart-service": About(
        (5, 30),
        (
            EndRow(_is_no_service, Refused, "PARAMETERS.service is "),
            refused(facts.NO_UNIT, "{service}.service is not-found on this node"),
            EndRow(_ends_containers, Refused, "a restart of containerd would end every container"),
        ),
        (
            failed(facts.RESTART_FAILS, "{service} could not be restarted"),
            failed(facts.SERVICE_DIES, "{service} was restarted and does not stay up"),
            EndRow(_is_unhealthy, Failed, "kubelet is active and its healthz is not ok"),
        ),
        "restarted {service}",
        {"restartSeconds": 0, "settleSeconds": 0},
    ),
    "kill-orphaned-processes": About(
        (1, 40),
        (
            refused(facts.PODS_UNKNOWN, "cannot determine which Pods live"),
            EndRow(
                _is_left_alone(facts.ORPHANS), None, "nothing to kill: no process of a Pod that is gone runs on {node}"
            ),
        ),
        (failed(facts.UNKILLABLE, "still there after SIGKILL"), failed(facts.ORPHANS, "still there after SIGKILL")),
        "killed ",
        {"graceSeconds": 0, "killSeconds": 0},
    ),
    "clear-disk": About(
        (5, 120),
        (
            refused(facts.DISK_UNKNOWN, "cannot determine how full the disks are"),
            EndRow(_is_left_alone(facts.DISK_FULL), None, "nothing to clear on {node}"),
        ),
        (failed(facts.DISK_FULL, "freed "),),
        "freed ",
        {"targetPercent": 0, "keepHours": 0},
        once=False,
    ),
}

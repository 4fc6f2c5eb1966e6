"""The story: which faults strike where, and how each must end. It changes only what a node would show."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from remediator_sim.machine import Fault, Kind
from remediator_sim.scenarios.ending import Ending, called, handed_over, recovered
from remediator_sim.scenarios.environment import HOME, Stage
from remediator_sim.scenarios.jobs import Job
from remediator_sim.scenarios.view import OPERATIONS, Line

SERVING = "serving"
RESET = ("reset-gpu", "restart-device-plugin")  # the second is what the template of the first names after it
ALERT = "NodeGpuXid"
# GPU nodes that the fleet must have for each fault: three racks share them.
FEWEST = {
    "lost-gpu": 3,
    "ecc-fault": 6,
    "unkillable-process": 3,
    "stuck-mount": 6,
    "returning-fault": 3,
    "blocked-drain": 9,
    "dead-nfs-server": 24,
}


async def _nothing(stage: Stage) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Chapter:
    """One fault.

    `tells` is how the story goes, for people; `strike` lets it happen; `step` is what people do meanwhile, asked again
    and again until it answers True; `ending` is None while the fault goes on.
    """

    name: str
    nodes: tuple[str, ...]
    tells: str
    strike: Callable[[Stage], Awaitable[None]]
    ending: Callable[[Stage], Ending | None]
    step: Callable[[Stage], Awaitable[bool]] = _nothing


def chapters(readers: tuple[str, ...]) -> list[Chapter]:
    """All of the story. A rack lets two nodes go at once, so in the first one somebody has to wait; `readers` mount the
    data sets, which the others do not.
    """
    lost, ecc, stuck = Fault(Kind.GPU_LOST, 1), Fault(Kind.GPU_ECC, 2), Fault(Kind.MOUNT_STUCK, HOME)
    return [
        cured("lost-gpu", "gpu-a1", "gpu-lost", ["reboot"], lost, "a GPU falls off the bus; drained, rebooted, back"),
        cured("ecc-fault", "gpu-a2", "gpu-ecc", RESET, ecc, "uncorrected memory errors; a reset cures them"),
        unkillable_process("gpu-b1"),
        cured(
            "stuck-mount", "gpu-b2", "nfs-stale", ["remount-nfs"], stuck, "an NFS mount hangs; mounted again, no reboot"
        ),
        returning_fault("gpu-c1"),
        blocked_drain("gpu-a3"),
        dead_server(readers),
    ]


def cured(name: str, node: str, policy: str, operations: Sequence[str], fault: Fault, tells: str) -> Chapter:
    """A fault that the first rung of its ladder cures, with what completes it, and nothing more is done."""

    async def strike(stage: Stage) -> None:
        stage.nodes[node].machine.break_(fault)

    def ending(stage: Stage) -> Ending | None:
        return recovered(stage.view, node, policy, operations, stage.hosts[node].reboots())

    return Chapter(name, (node,), tells, strike, ending)


def unkillable_process(node: str) -> Chapter:
    """The pod of a job is removed by force, but one of its processes hangs in the kernel: only a reboot ends it."""

    async def strike(stage: Stage) -> None:
        uid = await stage.jobs.add(Job("stuck", 1, node))
        stage.nodes[node].machine.break_(Fault(Kind.UNKILLABLE, uid))
        await stage.jobs.kill("stuck")

    return Chapter(
        "unkillable-process",
        (node,),
        "a deleted pod leaves a process that cannot be killed; rebooted",
        strike,
        lambda stage: recovered(stage.view, node, "unkillable-process", ["reboot"], stage.hosts[node].reboots()),
    )


def returning_fault(node: str) -> Chapter:
    """Whatever is done, the fault comes back: a person gets one issue with the evidence, an alert joins it."""

    async def strike(stage: Stage) -> None:
        stage.nodes[node].machine.break_(Fault(Kind.GPU_ECC, 0, returns=True))
        await stage.alert(ALERT, node)

    return Chapter(
        "returning-fault",
        (node,),
        "it returns after every rung: a ticket for a person, the node stays out",
        strike,
        lambda stage: handed_over(stage.view, node, "gpu-ecc", ["reset-gpu", "reboot"], stage.issues(node, ALERT)),
    )


def blocked_drain(node: str) -> Chapter:
    """A GPU is lost under the only replica of a service: the drain names its budget, waits for it, and goes on."""

    named: list[str] = []

    async def strike(stage: Stage) -> None:
        await stage.jobs.add(Job(SERVING, 0, node, app=SERVING))
        await stage.jobs.protect(SERVING, 1)
        stage.nodes[node].machine.break_(Fault(Kind.GPU_LOST, 3))

    async def step(stage: Stage) -> bool:
        blocked = [one for found in stage.view.of(OPERATIONS, node) for one in _blocked_pods(found)]
        if not blocked:
            return False
        named.append(blocked[0].get("pdb", ""))
        stage.tell(Line(node, "TeamActs", f"the owner of {blocked[0]['pod']} starts a second replica elsewhere"))
        await stage.jobs.add(Job(f"{SERVING}-second", 0, app=SERVING))
        return True

    def ending(stage: Stage) -> Ending | None:
        found = recovered(stage.view, node, "gpu-lost", ["reboot"], stage.hosts[node].reboots())
        return found and found.also(named == [SERVING], "no budget was named while the drain was blocked")

    return Chapter(
        "blocked-drain",
        (node,),
        "a PodDisruptionBudget blocks the drain; named, waited for, done",
        strike,
        ending,
        step,
    )


def dead_server(readers: tuple[str, ...]) -> Chapter:
    """A file server dies: many nodes say so, one issue is opened for all, no node is touched."""

    async def strike(stage: Stage) -> None:
        await stage.datasets.stop()

    async def step(stage: Stage) -> bool:
        cases = [stage.view.case(node, "nfs-unavailable") for node in readers]
        if not all(cases) or not any(issue.open for issue in stage.shared_issues()):
            return False
        stage.tell(Line("nfs", "StorageActs", f"{len(readers)} nodes are held; its owners start the file server"))
        await stage.datasets.start()
        return True

    return Chapter(
        "dead-nfs-server",
        readers,
        f"a file server dies under {len(readers)} nodes; one ticket, no node touched",
        strike,
        lambda stage: called(
            stage.view,
            readers,
            "nfs-unavailable",
            sum(len(stage.hosts[node].reboots()) for node in readers),
            [issue.title for issue in stage.shared_issues()],
            [issue.title for issue in stage.shared_issues() if issue.open],
        ),
        step,
    )


def _blocked_pods(operation: dict[str, dict[str, dict[str, list[dict[str, str]]]]]) -> list[dict[str, str]]:
    return list(operation.get("status", {}).get("drain", {}).get("blocked", ()))

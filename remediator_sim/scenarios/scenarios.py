"""Which faults are injected where, and how each must end. They change only what a node would show."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from remediator_sim.github import Issue
from remediator_sim.machine import FaultKind, MachineFault
from remediator_sim.scenarios.ending import FaultEnding, escalated, only_issue, recovered
from remediator_sim.scenarios.environment import FILE_SERVER_POLICY, HOME, Environment
from remediator_sim.scenarios.jobs import Job
from remediator_sim.scenarios.view import OPERATIONS, ViewLine, blocked_pods

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


async def _nothing(environment: Environment) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Scenario:
    """One fault.

    `text` says what happens, for people; `inject` lets the fault begin; `step` is what people do meanwhile, called
    again and again until it answers True; `ending` is None while the fault goes on.
    """

    name: str
    nodes: tuple[str, ...]
    text: str
    inject: Callable[[Environment], Awaitable[None]]
    ending: Callable[[Environment], FaultEnding | None]
    step: Callable[[Environment], Awaitable[bool]] = _nothing

    @property
    def subject(self) -> str:
        """What lines about its end name: its node, or the file server that its nodes share."""
        return self.nodes[0] if len(self.nodes) == 1 else "nfs"


def scenarios(readers: tuple[str, ...]) -> list[Scenario]:
    """All of the demo. A rack lets two nodes go at once, so in the first one some node has to wait; `readers` are the
    nodes that mount the data sets.
    """
    lost, ecc, stuck = (
        MachineFault(FaultKind.GPU_LOST, 1),
        MachineFault(FaultKind.GPU_ECC, 2),
        MachineFault(FaultKind.MOUNT_STUCK, HOME),
    )
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


def cured(name: str, node: str, policy: str, operations: Sequence[str], fault: MachineFault, text: str) -> Scenario:
    """A fault that the first rung of its ladder cures, with what completes it, and nothing more is done."""

    async def inject(environment: Environment) -> None:
        environment.nodes[node].machine.break_(fault)

    def ending(environment: Environment) -> FaultEnding | None:
        return recovered(environment.view, node, policy, operations, environment.reboots(node))

    return Scenario(name, (node,), text, inject, ending)


def unkillable_process(node: str) -> Scenario:
    """The pod of a job is removed by force, but one of its processes hangs in the kernel: only a reboot ends it."""

    async def inject(environment: Environment) -> None:
        uid = await environment.jobs.add(Job("stuck", 1, node))
        environment.nodes[node].machine.break_(MachineFault(FaultKind.UNKILLABLE, uid))
        await environment.jobs.kill("stuck")

    def ending(environment: Environment) -> FaultEnding | None:
        return recovered(environment.view, node, "unkillable-process", ["reboot"], environment.reboots(node))

    text = "a deleted pod leaves a process that cannot be killed; rebooted"
    return Scenario("unkillable-process", (node,), text, inject, ending)


def returning_fault(node: str) -> Scenario:
    """Whatever is done, the fault comes back: a person gets one issue with the evidence, an alert joins it."""

    async def inject(environment: Environment) -> None:
        environment.nodes[node].machine.break_(MachineFault(FaultKind.GPU_ECC, 0, returns=True))
        await environment.alert(ALERT, node)

    def ending(environment: Environment) -> FaultEnding | None:
        issues = [issue.title for issue in environment.issues() if issue.open and _says(issue, node, ALERT)]
        return escalated(environment.view, node, "gpu-ecc", ["reset-gpu", "reboot"], issues)

    text = "no rung cures it: an issue for a person, the node stays out"
    return Scenario("returning-fault", (node,), text, inject, ending)


def _says(issue: Issue, node: str, alert: str) -> bool:
    return issue.title.startswith(f"{node}:") and alert in issue.body


def blocked_drain(node: str) -> Scenario:
    """A GPU is lost under the only replica of a service: the drain names its budget, waits for it, and goes on."""

    named: list[str] = []

    async def inject(environment: Environment) -> None:
        await environment.jobs.add(Job(SERVING, 0, node, app=SERVING))
        await environment.jobs.protect(SERVING, 1)
        environment.nodes[node].machine.break_(MachineFault(FaultKind.GPU_LOST, 3))

    async def step(environment: Environment) -> bool:
        blocked = [pod for operation in environment.view.of(OPERATIONS, node) for pod in blocked_pods(operation)]
        if not blocked:
            return False
        named.append(blocked[0].get("pdb", ""))
        environment.report(
            ViewLine(node, "OwnerActs", f"{blocked[0]['pod']}: its owner starts a second replica elsewhere")
        )
        await environment.jobs.add(Job(f"{SERVING}-second", 0, app=SERVING))
        return True

    def ending(environment: Environment) -> FaultEnding | None:
        end = recovered(environment.view, node, "gpu-lost", ["reboot"], environment.reboots(node))
        return end and end.also(named == [SERVING], "no budget was named while the drain was blocked")

    text = "a PodDisruptionBudget blocks the drain; named, waited for, done"
    return Scenario("blocked-drain", (node,), text, inject, ending, step)


def dead_server(readers: tuple[str, ...]) -> Scenario:
    """A file server dies: many nodes report it, one issue is opened for all, no node is touched."""

    async def inject(environment: Environment) -> None:
        await environment.datasets.stop()

    async def step(environment: Environment) -> bool:
        cases = [environment.view.case(node, FILE_SERVER_POLICY) for node in readers]
        if not all(cases) or not any(issue.open for issue in environment.shared_issues()):
            return False
        text = f"{len(readers)} nodes report NfsUnavailable: one cause, and no node is touched"
        environment.report(ViewLine("nfs", "SharedCause", text))
        environment.report(ViewLine("nfs", "OwnerActs", "the file server is started again"))
        await environment.datasets.start()
        return True

    def ending(environment: Environment) -> FaultEnding | None:
        issues = environment.shared_issues()
        reboots = sum(len(environment.reboots(node)) for node in readers)
        opened, still_open = [issue.title for issue in issues], [issue.title for issue in issues if issue.open]
        return only_issue(environment.view, readers, FILE_SERVER_POLICY, reboots, opened, still_open)

    text = f"a file server dies under {len(readers)} nodes; one issue, no node touched"
    return Scenario("dead-nfs-server", readers, text, inject, ending, step)

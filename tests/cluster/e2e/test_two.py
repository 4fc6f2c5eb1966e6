"""Two controllers at once: one leads, and one that only believes it still leads does no harm."""

import asyncio
import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from remediator.core import names
from tests.cluster import REAL
from tests.cluster.e2e.case_run import made, request_lines
from tests.cluster.e2e.conftest import EMBEDDED
from tests.cluster.e2e.proxy import Cut, Mutation
from tests.cluster.e2e.stage import Replica, Stage
from tests.harness.kinds import CASES
from tests.harness.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]
NODES = ["gpu-17", "gpu-18"]
ASLEEP = pytest.param(*REAL.values, marks=[*REAL.marks, pytest.mark.sampled("asleep", on_server=True)])


def claims(mutation: Mutation) -> bool:
    """The entry of a case in the ledger."""
    return mutation.is_to("PATCH", "nodedisruptionbudgets") and bool(mutation.body["status"].get("claims"))


def marks(mutation: Mutation) -> bool:
    """The taint of a case."""
    return mutation.is_to("PATCH", "nodes") and names.CASE_TAINT in str(mutation.body)


def reboots(mutation: Mutation) -> bool:
    """The Pod that reboots."""
    labels = mutation.body["metadata"].get("labels", {}) if mutation.is_to("POST", "pods") else {}
    return labels.get(names.OPERATION_LABEL) == "reboot"


class Sleeper:
    """A leader that is stopped with a request under way, which arrives when the other has long gone on."""

    def __init__(self, stage: Stage) -> None:
        self.stage, self.wakes = stage, asyncio.Event()
        self.replica: Replica | None = None
        self.held: Mutation | None = None

    async def fall_asleep(self, request: Mutation) -> None:
        """Stop the leader, and hold its request until it is woken."""
        leader = await self.stage.leader()
        self.replica = next((one for one in self.stage.replicas if one.name == leader), None)
        self.held = request
        if self.replica is not None:
            self.replica.program.signal(signal.SIGSTOP)
            await self.wakes.wait()

    async def wake(self) -> None:
        """Its request arrives, and it goes on where it was."""
        self.wakes.set()
        assert self.replica
        assert self.held
        self.replica.program.signal(signal.SIGCONT)
        await until(lambda: self.held.status, 20)

    async def is_replaced(self) -> bool:
        """Whether another one leads."""
        assert self.replica or not self.held, f"nobody led any more when this was sent: {self.held}"
        return self.replica is not None and await self.stage.leader() not in ("", self.replica.name)

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Adds to a failure what was asked of the server until then, and the last lines of each replica."""
        try:
            yield
        except AssertionError as error:
            error.add_note(request_lines(self.stage.tape.mutations))
            for replica in self.stage.replicas:
                error.add_note(f"{replica.name}:\n{replica.program.written()[-3000:]}")
            raise

    def knows(self) -> bool:
        """Whether it has noticed that it no longer leads."""
        assert self.replica
        return self.replica.program.code is not None or "lease lost" in self.replica.program.written()


@pytest.mark.parametrize("stage", [EMBEDDED, ASLEEP], indirect=True, ids=["embedded", "real"])
@pytest.mark.parametrize("place", [claims, marks, reboots])
async def test_a_leader_that_slept_through_its_lease_does_nothing_twice(stage: Stage, place) -> None:
    stage.lease = 5.0  # which the other waits for
    for _ in range(2):
        await stage.start_controller()
    sleeper = Sleeper(stage)
    stage.tape.cuts = [Cut(place, sleeper.fall_asleep, before=True)]
    for machine in stage.machines.values():
        machine.lose_gpu()
    with sleeper.explained():
        await until(lambda: sleeper.held, 60)
        await until(sleeper.is_replaced, 60)
        await until(lambda: any(machine.reboots() for machine in stage.machines.values()), 60)
        await sleeper.wake()
        for node in NODES:
            await until(lambda node=node: stage.over(node), 120)
        await until(sleeper.knows, 20)
    reboots = {node: len(machine.reboots()) for node, machine in stage.machines.items()}
    assert reboots == dict.fromkeys(NODES, 1), request_lines(stage.tape.mutations)
    count = made(stage.tape)
    assert (count["cases"], count["operations"]) == (2, 2), request_lines(stage.tape.mutations)
    ledgers = [one.body["status"].get("claims") or [] for one in stage.tape.find("PATCH", "nodedisruptionbudgets")]
    assert max(map(len, ledgers)) == 1, request_lines(stage.tape.mutations)
    for node in NODES:
        assert (await stage.case(node, "Recovered"))["status"]["attempts"][0]["outcome"] == "Succeeded"


TOMORROW = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/tomorrow"


async def define(stage: Stage, change: dict[str, object]) -> None:
    """Change the definition of cases, as one of a newer version is changed."""
    patch = json.dumps([{"path": TOMORROW, **change}])
    await stage.kubectl("patch", "crd", "noderemediations.remediator.dev", "--type=json", "-p", patch)


async def has_what_only_the_newer_knows(stage: Stage, name: str) -> bool:
    """A field of the newer version, once the API server takes it."""
    written = await stage.client.patch(CASES, name, {"spec": {"tomorrow": "kept"}})
    return "tomorrow" in written["spec"]


async def replace_leader(stage: Stage, leader: Replica) -> Replica:
    """As a rollout does: another one is there before the one that leads is ended."""
    following = await stage.start_controller()
    await until(lambda: "synced" in following.program.written(), 60)
    leader.program.signal(signal.SIGTERM)
    assert await leader.program.ended(20) == 0
    await until(lambda: "caches_caught_up_in" in following.program.written(), 30)
    return following


async def test_an_upgrade_and_a_rollback_in_the_middle_of_a_drain_go_on_with_the_same_case_under_newer_definitions(
    stage: Stage,
) -> None:
    """One case, one reboot, and the field that only the newer one knows is there at the end.

    All three replicas are this version: what is newer is the definition, and a field that this version does not know.
    """
    node, workload = NODES[0], stage.workloads[NODES[0]]
    await workload.allow(0)
    older = await stage.start_controller()
    stage.machines[node].lose_gpu()
    case = await until(lambda: stage.case(node, "Draining"), 60)
    name = case["metadata"]["name"]
    await define(stage, {"op": "add", "value": {"type": "string"}})
    try:
        newer = await replace_leader(stage, older)
        await until(lambda: has_what_only_the_newer_knows(stage, name), 30)
        await replace_leader(stage, newer)
        await workload.allow(len(workload.apps))
        ended = await until(lambda: stage.over(node), 120)
    finally:
        await define(stage, {"op": "remove"})
    assert (ended["metadata"]["name"], ended["status"]["phase"], ended["spec"]["tomorrow"]) == (
        name,
        "Recovered",
        "kept",
    )
    assert len(stage.machines[node].reboots()) == 1

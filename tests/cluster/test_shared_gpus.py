"""Binding Pods to cards on a real API server, with the rights of deploy/shared-gpus: races, kills, and its time."""

import asyncio
import json
import multiprocessing
import signal
import subprocess
import time
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from random import Random

import msgspec
import pytest

from deploy.images.programs import binary
from remediator.clock import SYSTEM, Clock
from remediator.kube import api
from remediator.kube.wire import errors
from remediator.kube.wire.client import Client
from remediator.kube.wire.http import HttpTransport
from remediator.kube.wire.transport import Transport
from remediator.scheduler.shared.store import Store
from remediator_sim.accounts import token
from remediator_sim.kubeconfig import write_kubeconfig
from tests.cluster import binder
from tests.cluster.control_plane import ControlPlane
from tests.cluster.rights.granted import BY_PAGES, unused
from tests.harness.kinds import NODES, PODS, Object, plain
from tests.harness.replica import at_work
from tests.harness.waiting import PATIENCE, until
from tests.remediator.scheduler.shared.stand import Judge, Replica, node, pod

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT / "deploy" / "shared-gpus"
PATCH = ("-n", "remediator-system", "patch", "deployment", "remediator")
SEEDS, TOGETHER = 50, 10
LATER = timedelta(minutes=5)
pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    """An API server with everything of deploy/shared-gpus."""
    with ControlPlane(controllers=False, scheduler=False, kwok=False, audit=True) as plane:
        for step in (
            ("apply", "-k", str(ROOT / "deploy" / "crds")),
            ("wait", "--for=condition=Established", "crd", "-l", "app.kubernetes.io/name=remediator"),
            ("apply", "-k", str(ROOT / "deploy")),
            ("apply", "-k", str(SHARED)),
            (*PATCH, "--patch-file", str(SHARED / "deployment.yaml")),
            ("-n", "default", "create", "serviceaccount", "default"),
        ):
            command = [str(binary("kubectl")), "--kubeconfig", str(plane.kubeconfig), *step]
            done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
            assert (done.returncode, done.stderr) == (0, ""), step
        _until_policies_count(plane)
        yield plane


def _until_policies_count(plane: ControlPlane) -> None:
    """A new policy holds after a moment; this one is the last of its file."""
    tried, end = json.dumps(pod("tried", 8, at="n")), time.monotonic() + 60 * PATIENCE
    command = [str(binary("kubectl")), "--kubeconfig", str(plane.kubeconfig), "create", "--dry-run=server", "-f", "-"]
    while not subprocess.run(command, input=tried, capture_output=True, text=True, timeout=60, check=False).returncode:
        assert time.monotonic() < end
        time.sleep(0.2)


class Fleet:
    """What replicas stand on: the account of the controller, and a clock that a test may turn."""

    def __init__(self, admin: Client, transport: Transport, kubeconfig: Path) -> None:
        self.admin, self.transport, self.kubeconfig, self.ahead = admin, transport, kubeconfig, timedelta()
        self.clock = Clock(lambda: SYSTEM.wall() + self.ahead, SYSTEM.monotonic)
        self.judge = Judge({})

    def look(self) -> None:
        """The judge looks at what a watch has told, see `judged`."""

    async def node(self, *sizes: int) -> str:
        name = f"gpu-{uuid.uuid4().hex[:8]}"
        self.judge.sizes[name] = sizes
        await self.admin.create(NODES, node(name, *sizes))
        return name

    async def pod(self, memory: int) -> Object:
        return await self.admin.create(PODS, pod(f"p-{uuid.uuid4().hex[:8]}", memory), namespace="default")

    async def bound(self, on: set[str]) -> list[Object]:
        pods = await self.admin.list_all(PODS, namespace="default")
        return [each for each in pods if each["spec"].get("nodeName") in on]

    async def reserved(self, on: set[str]) -> list[str]:
        ledgers = await self.admin.list_all(plain(api.GPU_LEDGER))
        return [
            entry["name"]
            for ledger in ledgers
            if ledger["metadata"]["name"] in on
            for entry in ledger["spec"].get("reservations") or ()
        ]

    @asynccontextmanager
    async def replicas(self, count: int, chance: Random) -> AsyncIterator[list[Replica]]:
        made = [Replica(self, Random(chance.random()), self.transport) for _ in range(count)]
        async with at_work(*(replica.informers.run() for replica in made)):
            for replica in made:
                await replica.informers.synced()
            yield made


@pytest.fixture
async def fleet(plane: ControlPlane, tmp_path: Path) -> AsyncIterator[Fleet]:
    root = await HttpTransport.from_kubeconfig(plane.kubeconfig)
    admin = Client(root)
    ours = await token(admin, "remediator", "remediator-system")
    file = write_kubeconfig(tmp_path, "controller", plane.url, ours, plane.ca_file)
    transport = await HttpTransport.from_kubeconfig(file)
    try:
        yield Fleet(admin, transport, file)
    finally:
        await transport.close()
        await root.close()


@pytest.mark.sampled(on_server=True)
@pytest.mark.parametrize("first", range(0, SEEDS, TOGETHER))
async def test_no_card_is_sold_twice_and_no_reservation_is_left_whatever_goes_wrong(fleet: Fleet, first: int) -> None:
    """Ten seeds: eight Pods, two nodes, three replicas that lose answers, send twice, die and are stale, and sweep."""
    for seed in range(first, first + TOGETHER):
        chance = Random(seed)
        names = [await fleet.node(16), await fleet.node(16, 8)]
        async with fleet.replicas(3, chance) as replicas:
            for replica in replicas[:2]:
                replica.wire.trouble = chance.choice((0.0, 0.1, 0.3))
                replica.wire.dies_at = chance.choice((-1, chance.randrange(1, 60)))
            pods = [await fleet.pod(chance.choice((4, 8, 8, 16))) for _ in range(8)]
            await until(lambda: all(replica.informers.nodes.get(names[1]) for replica in replicas))  # noqa: B023
            stale = [replica for replica in replicas if chance.random() < 0.4]  # they hear nothing until all is over
            for replica in stale:
                replica.watches.arrives.clear()

            async def scheduler(made: Object) -> None:
                for _ in range(4):
                    replica = chance.choice(replicas)  # noqa: B023
                    if await replica.bind(made, chance.choice(names)) == "":  # noqa: B023
                        return

            async def sweep() -> None:
                await asyncio.sleep(chance.random() / 10)  # noqa: B023
                fleet.ahead += LATER
                await replicas[2].sweep.once(names)  # noqa: B023

            again = [scheduler(each) for each in pods if chance.random() < 0.3]
            await asyncio.gather(*(scheduler(each) for each in pods), *again, sweep())
            for each in pods[:2]:
                path = PODS.path(each["metadata"]["name"], "default")
                await fleet.admin.transport.request("DELETE", path, body=b'{"gracePeriodSeconds":0}')
            bound = await fleet.bound(set(names))
            fleet.judge.look(bound)
            for replica in stale:
                replica.watches.arrives.set()

            async def swept() -> bool:
                fleet.ahead += LATER
                await replicas[2].sweep.once(names)  # noqa: B023
                left = await fleet.reserved(set(names))  # noqa: B023
                return sorted(left) == sorted(each["metadata"]["name"] for each in bound)  # noqa: B023

            await until(swept, 20)
            fleet.judge.look(await fleet.bound(set(names)))


async def test_of_eight_binders_for_one_card_exactly_one_gets_it(fleet: Fleet) -> None:
    name = await fleet.node(16)
    async with fleet.replicas(8, Random(0)) as replicas:
        pods = [await fleet.pod(16) for _ in replicas]
        answers = await asyncio.gather(*(r.bind(each, name) for r, each in zip(replicas, pods, strict=True)))
        assert sorted(answer.partition(":")[0] for answer in answers) == ["", *["NoFreeGpuMemory"] * 7]
        (bound,) = await fleet.bound({name})
        assert json.loads(bound["metadata"]["annotations"]["scheduler.framework.gpushare.allocation"]) == {
            "0": {"0": 16}
        }


CARDS = {"ALIYUN_COM_GPU_MEM_IDX": "1", "ALIYUN_COM_GPU_MEM_POD": "999999999"}


async def test_which_cards_a_pod_has_only_its_binding_says(fleet: Fleet) -> None:
    """A user writes cards into a Pod that was bound, and makes one for a node, with cards and without."""
    name = await fleet.node(16, 16)
    async with fleet.replicas(1, Random(0)) as (replica,):
        await until(lambda: replica.informers.nodes.get(name) is not None)
        made = await fleet.pod(8)
        assert await replica.bind(made, name) == ""
        forged = {"metadata": {"annotations": CARDS}}
        with pytest.raises(errors.Invalid, match="come with its binding and never change"):
            await fleet.admin.patch(PODS, made["metadata"]["name"], forged, namespace="default")
        for notes in (CARDS, {}):
            mine = pod(f"p-{uuid.uuid4().hex[:8]}", 8)
            mine["metadata"]["annotations"] = notes
            mine["spec"]["nodeName"] = name
            with pytest.raises(errors.Invalid, match="is placed by the scheduler"):
                await fleet.admin.create(PODS, mine, namespace="default")
        other = {"metadata": {"annotations": {"ALIYUN_COM_GPU_MEM_ASSIGNED": "true"}}}  # as the device plugin does
        await fleet.admin.patch(PODS, made["metadata"]["name"], other, namespace="default")


FENCE = "remediator.dev/bind-fence"
CHANGES = [
    pytest.param({"annotations": {FENCE: "t", "example.com/a": "b"}}, "only the annotation", id="another annotation"),
    pytest.param({"annotations": CARDS}, "only the annotation|come with its binding", id="its cards"),
    pytest.param({"labels": {"a": "b"}}, "but an annotation before it has a node", id="a label"),
    pytest.param({"finalizers": ["example.com/a"]}, "but an annotation before it has a node", id="a finalizer"),
]


@pytest.mark.parametrize(("meta", "refusal"), CHANGES)
async def test_of_a_pod_without_a_node_the_controller_writes_its_fence_alone(fleet: Fleet, meta, refusal) -> None:
    name, ours = (await fleet.pod(8))["metadata"]["name"], Client(fleet.transport)
    with pytest.raises(errors.Invalid, match=refusal):
        await ours.patch(PODS, name, {"metadata": meta}, namespace="default")
    await ours.patch(PODS, name, {"metadata": {"annotations": {FENCE: "t"}}}, namespace="default")


async def test_of_a_pod_that_has_a_node_the_controller_writes_nothing(fleet: Fleet) -> None:
    made, ours = pod(f"p-{uuid.uuid4().hex[:8]}", at=await fleet.node(16)), Client(fleet.transport)
    await fleet.admin.create(PODS, made, namespace="default")
    with pytest.raises(errors.Invalid, match="before it has a node"):
        await ours.patch(
            PODS, made["metadata"]["name"], {"metadata": {"annotations": {FENCE: "t"}}}, namespace="default"
        )


async def test_no_right_is_given_that_binding_does_not_use(fleet: Fleet, plane: ControlPlane) -> None:
    """A Pod is bound, a bind is taken back, and a node goes with its ledger."""
    name = await fleet.node(16)
    async with fleet.replicas(1, Random(0)) as (replica,):
        await until(lambda: replica.informers.nodes.get(name) is not None)
        made, waits = await fleet.pod(8), await fleet.pod(8)
        assert await replica.bind(made, name) == ""
        store = Store(Client(fleet.transport), fleet.clock)
        read = await store.pod("default", waits["metadata"]["name"])
        assert read is not None
        await store.fence(read, "token")
        await store.write(name, (16,), lambda ledger: replace(ledger, reservations=()))
        await store.drop(await store.ledger(name))
        await until(lambda: unused("remediator", plane.audited(), SHARED / "rbac.yaml") <= set(BY_PAGES))


async def test_a_binding_of_the_controller_brings_cards_and_no_other_annotation(fleet: Fleet) -> None:
    name, made, ours = await fleet.node(16), await fleet.pod(8), Client(fleet.transport)
    path = PODS.path(made["metadata"]["name"], "default", "binding")

    def body(**meta: object) -> Object:
        named = {"name": made["metadata"]["name"], "namespace": "default", **meta}
        return {"apiVersion": "v1", "kind": "Binding", "metadata": named, "target": {"kind": "Node", "name": name}}

    for more in ({"annotations": {"example.com/a": "b"}}, {"annotations": CARDS, "labels": {"a": "b"}}):
        with pytest.raises(errors.Invalid, match="name their cards and no others"):
            await ours.send("POST", path, msgspec.Raw, body(**more))
    await ours.send("POST", path, msgspec.Raw, body(annotations=CARDS))


@pytest.mark.parametrize("runs", [6, pytest.param(50, marks=pytest.mark.long)])
async def test_a_process_that_is_killed_around_its_bind_sells_no_card_twice_and_leaves_no_reservation(
    fleet: Fleet, runs: int
) -> None:
    """SIGKILL, in turn: between the reservation and the bind, and when the bind is done and nobody has heard of it."""
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload(["tests.cluster.binder"])
    async with fleet.replicas(1, Random(0)) as (other,):
        for run in range(runs):
            name, sends = await fleet.node(16), bool(run % 2)
            first, second = await fleet.pod(16), await fleet.pod(16)
            await until(lambda: other.informers.nodes.get(name), 20)  # noqa: B023
            child = processes.Process(target=binder.main, args=(fleet.kubeconfig, first, name, sends))
            child.start()
            await until(lambda: fleet.bound({name}) if sends else fleet.reserved({name}), 20)  # noqa: B023
            child.kill()
            child.join()
            assert child.exitcode == -signal.SIGKILL
            assert (await other.bind(second, name)).startswith("NoFreeGpuMemory")
            fleet.ahead += LATER
            holder = [first["metadata"]["name"]] if sends else []

            async def swept() -> bool:
                await other.sweep.once([name])  # noqa: B023
                return await fleet.reserved({name}) == holder  # noqa: B023

            await until(swept, 20)
            assert [each["metadata"]["name"] for each in await fleet.bound({name})] == holder
            if not sends:
                assert await other.bind(second, name) == ""
            fleet.judge.look(await fleet.bound({name}))


async def test_fifty_binds_at_once_take_at_most_ten_times_as_long_as_those_of_pods_without_a_card(
    fleet: Fleet,
) -> None:
    """On ten nodes; the slowest of 50 counts, in the best of three rounds of each sort, side by side."""
    names = [await fleet.node(16, 16, 16, 16, 16, 16, 16, 16) for _ in range(10)]
    slowest: dict[int, list[float]] = {0: [], 8: []}
    async with fleet.replicas(1, Random(0)) as (replica,):
        await until(lambda: all(replica.informers.nodes.get(name) for name in names))
        for memory in (0, 8) * 3:
            pods = [await fleet.pod(memory) for _ in range(50)]

            async def timed(made: Object, name: str) -> float:
                began = time.perf_counter()
                assert await replica.bind(made, name) == ""
                return time.perf_counter() - began

            took = await asyncio.gather(*(timed(each, names[place % 10]) for place, each in enumerate(pods)))
            slowest[memory].append(max(took))
    assert min(slowest[8]) <= 10 * min(slowest[0]), slowest

"""The real kube-scheduler, with the configuration that is shipped, asks the extender where Pods may go."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from aiohttp import web

from deploy.images.programs import binary
from remediator.core import names
from remediator.kube import api
from remediator.kube.manifests import crd
from remediator.kube.wire import errors
from remediator.kube.wire.client import Client, Kind
from remediator.kube.wire.http import HttpTransport
from remediator.kube.wire.transport import STRATEGIC_PATCH, Query, Stream
from remediator.metrics import REGISTRY
from remediator.scheduler.extender import Extender
from remediator.scheduler.reasons import UNRESOLVABLE, VerdictReason
from remediator.web import certificates
from remediator.web import extender as page
from remediator.web.caller import Callers
from remediator.web.endpoints import EXTENDER, KUBE_SCHEDULER
from remediator.web.listener import Endpoint
from remediator_sim.ports import free_ports
from tests.cluster.control_plane import HOST, ControlPlane
from tests.cluster.nodes import gpu_node
from tests.cluster.processes import Child
from tests.cluster.rights.granted import SECOND, unused
from tests.harness import yaml_files
from tests.harness.endpoints import HOUR, NOW, authority, server_context
from tests.harness.kinds import ACCOUNTS, CASES, CRDS, NAMESPACES, NODES, PODS, POLICIES
from tests.harness.replica import an_extender, at_work, state_of, verdict_of
from tests.harness.scheduler import GPU
from tests.harness.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(180)]
CONFIG = Path(__file__).parents[2] / "deploy" / "scheduler" / "scheduler-config.yaml"
CONDITION = "GpuLost"
CORDON = "node.kubernetes.io/unschedulable"  # the taint that the cluster adds
SECONDS = 60.0
NO_TLS = {"endpoint": "extender", "why": "no-tls"}


class LateNews(HttpTransport):
    """Holds what a watch of nodes says while `arrives` is not set."""

    arrives: asyncio.Event

    @asynccontextmanager
    async def stream(self, path: str, *, query: Query = (), idle_timeout: float = 75.0) -> AsyncIterator[Stream]:
        async with super().stream(path, query=query, idle_timeout=idle_timeout) as found:
            yield _Held(found, self.arrives) if path == NODES.path() else found


class _Held:
    def __init__(self, stream: Stream, arrives: asyncio.Event) -> None:
        self.status, self.headers, self._stream, self._arrives = stream.status, stream.headers, stream, arrives

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._stream:
            await self._arrives.wait()
            yield chunk


class Setting(NamedTuple):
    """A control plane with nodes of this test's own, and an extender that answers on `port`."""

    plane: ControlPlane
    client: Client
    extender: Extender
    news: asyncio.Event
    port: int
    mark: str
    space: str

    def node(self, short: str) -> str:
        return f"{self.mark}-{short}"


@pytest.fixture
async def setting(control_plane: ControlPlane) -> AsyncIterator[Setting]:
    """Two GPU nodes, `sick` and `well`, both ready and free; a policy that only watches."""
    mark = f"s{uuid.uuid4().hex[:6]}"
    transport = await LateNews.from_kubeconfig(control_plane.kubeconfig)
    news = transport.arrives = asyncio.Event()
    news.set()
    client, (port,) = Client(transport), free_ports(1)
    await _define(client, api.POLICY, api.CASE)
    await client.create(POLICIES, _policy(mark))
    await client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": mark}})
    extender, informers = an_extender(client)
    found = Setting(control_plane, client, extender, news, port, mark, mark)
    try:
        async with answering(found), at_work(informers.run(), extender.run()):
            await until(extender.ready, SECONDS)
            for short in ("sick", "well"):
                await _add_node(found, short)
            await until(lambda: _has_account(found), SECONDS)
            yield found
    finally:
        await _clear(found)
        await transport.close()


@asynccontextmanager
async def answering(setting: Setting) -> AsyncIterator[None]:
    """The extender answers on the port of the setting until the block is left."""
    app, context = web.Application(), server_context()
    app.add_routes(page.routes(setting.extender, page.bodies(False)))
    endpoint = Endpoint("extender", app, EXTENDER, Callers(KUBE_SCHEDULER, None), lambda: context)
    async with endpoint.served(f"{HOST}:{setting.port}"):
        yield


async def _define(client: Client, *kinds: Kind[Any]) -> None:
    """Kinds of ours, if nobody has defined them yet."""
    for kind in kinds:
        with suppress(errors.AlreadyExists):
            await client.create(CRDS, crd.crd(kind))
        await until(lambda kind=kind: _serves(client, kind), SECONDS)


async def _serves(client: Client, kind: Kind[Any]) -> bool:
    try:
        await client.list_all(kind)
    except errors.NotFound:
        return False
    return True


def _policy(mark: str) -> dict[str, Any]:
    spec = {
        "mode": "Paused",
        "nodeSelector": {"matchLabels": {"mark": mark}},
        "when": [{"condition": CONDITION, "for": "1h"}],
        "ladder": [{"operation": "reboot"}],
    }
    return {"apiVersion": POLICIES.api_version, "kind": POLICIES.name, "metadata": {"name": mark}, "spec": spec}


async def _add_node(setting: Setting, short: str) -> None:
    name = setting.node(short)
    body = gpu_node(0)
    body["metadata"] |= {"name": name, "labels": {"kubernetes.io/hostname": name, "mark": setting.mark}}
    await setting.client.create(NODES, body)
    await _say(setting, short, "False")

    async def ready() -> bool:
        """Known to us, and free of the taint that every new node has until the cluster has seen that it is ready."""
        tainted = (await setting.client.get(NODES, name))["spec"].get("taints")
        return not tainted and verdict_of(setting.extender, name, {GPU: 1}) is VerdictReason.FIT

    await until(ready, SECONDS)


async def _say(setting: Setting, short: str, status: str) -> None:
    """What the detector of a node says from now on."""
    stamp = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    found = {"type": CONDITION, "status": status, "lastHeartbeatTime": stamp, "lastTransitionTime": stamp}
    body = {"status": {"conditions": [found]}}
    await setting.client.patch(NODES, setting.node(short), body, subresource="status", content_type=STRATEGIC_PATCH)


async def fall_sick(setting: Setting) -> None:
    """The node `sick` is, and the extender knows."""
    await _say(setting, "sick", "True")
    await until(lambda: verdict_of(setting.extender, setting.node("sick")) is VerdictReason.UNHEALTHY, SECONDS)


async def _has_account(setting: Setting) -> bool:
    try:
        await setting.client.get(ACCOUNTS, "default", namespace=setting.space)
    except errors.NotFound:
        return False
    return True


async def _clear(setting: Setting) -> None:
    """Other tests of the session use the same control plane."""
    client = setting.client
    for pod in await client.list_all(PODS, namespace=setting.space):
        path = PODS.path(pod["metadata"]["name"], setting.space)
        await client.transport.request("DELETE", path, body=b'{"gracePeriodSeconds":0}')
    for kind, name in (
        *((NODES, setting.node(short)) for short in ("sick", "well")),
        (POLICIES, setting.mark),
        (CASES, setting.mark),
        (NAMESPACES, setting.space),
    ):
        with suppress(errors.NotFound):
            await client.delete(kind, name)


@asynccontextmanager
async def scheduler(
    setting: Setting,
    folder: Path,
    *,
    extended: bool,
    shows: bool = True,
    program: str = "kube-scheduler",
    changes: Mapping[str, Any] | None = None,
) -> AsyncIterator[str]:
    """A kube-scheduler of its own name, with the shipped configuration; gives the name.

    `extended`: with extenders; `shows`: to whom it shows its certificate; `changes`: of the extender's entry.
    """
    name = f"{setting.mark}-{'extended' if extended else 'plain'}"
    path = folder / f"{name}.yaml"
    config = _config(setting, name, extended, folder)
    if not shows:
        del config["extenders"][0]["tlsConfig"]["certFile"], config["extenders"][0]["tlsConfig"]["keyFile"]
    if changes:
        config["extenders"][0] |= changes
    path.write_text(yaml.safe_dump(config))
    (port,) = free_ports(1)
    flags = [f"--config={path}", f"--bind-address={HOST}", f"--secure-port={port}"]
    child = Child([binary(program), *flags], folder / f"{name}.log")
    try:
        yield name
        child.check()
    finally:
        child.stop()


def _config(setting: Setting, name: str, extended: bool, folder: Path) -> dict[str, Any]:
    """The shipped file with what a site must fill in; what the scheduler shows lies in the folder."""
    config = yaml.safe_load(CONFIG.read_text())
    config["clientConnection"]["kubeconfig"] = str(setting.plane.kubeconfig)
    config["leaderElection"]["leaderElect"] = False
    config["profiles"] = [{"schedulerName": name}]
    _fill_in(config, setting, folder)
    if not extended:
        del config["extenders"]
    return config


def _fill_in(config: dict[str, Any], setting: Setting, folder: Path) -> None:
    """Where the extender is, and what is shown to it."""
    for file, text in certificates.for_caller(authority(), KUBE_SCHEDULER, HOUR, NOW).items():
        (folder / file).write_bytes(text)
    (extender,) = config["extenders"]
    extender["urlPrefix"] = f"https://{HOST}:{setting.port}/scheduler"
    for key in ("caFile", "certFile", "keyFile"):
        extender["tlsConfig"][key] = str(folder / Path(extender["tlsConfig"][key]).name)


async def start(
    setting: Setting, scheduler: str, name: str, at: list[str], gpus: int = 1, asks: str = "", priority: str = ""
) -> None:
    """A Pod for these nodes that tolerates everything that Remediator puts on a node."""
    hosts = {"key": "kubernetes.io/hostname", "operator": "In", "values": [setting.node(short) for short in at]}
    required = {"nodeSelectorTerms": [{"matchExpressions": [hosts]}]}
    tolerated = [{"key": key, "operator": "Exists"} for key in (names.CASE_TAINT, names.DEGRADED_TAINT, CORDON)]
    wants = {"requests": {"cpu": "10"}, "limits": {GPU: str(gpus)}} if gpus else {}
    spec = {
        "schedulerName": scheduler,
        **({"priorityClassName": priority} if priority else {}),
        "tolerations": tolerated,
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}},
        "containers": [{"name": "main", "image": "job:1", "resources": wants}],
    }
    meta = {"name": name, "annotations": {names.GPU: asks} if asks else {}}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}
    await setting.client.create(PODS, body, namespace=setting.space)


async def lands(setting: Setting, name: str) -> str:
    """The node that the Pod was bound to, without the mark."""

    async def bound() -> str:
        pod = await setting.client.get(PODS, name, namespace=setting.space)
        return pod["spec"].get("nodeName", "")

    return (await until(bound, SECONDS)).removeprefix(f"{setting.mark}-")


async def told(setting: Setting, name: str, text: str) -> None:
    """Wait until the Pod says that it waits, for this reason."""

    async def says() -> bool:
        pod = await setting.client.get(PODS, name, namespace=setting.space)
        assert not pod["spec"].get("nodeName")
        return any(text in found.get("message", "") for found in pod.get("status", {}).get("conditions", []))

    await until(says, SECONDS)


async def test_a_sick_node_gets_a_pod_that_tolerates_our_taints_only_without_the_extender(
    setting: Setting, tmp_path: Path
) -> None:
    await fall_sick(setting)
    async with scheduler(setting, tmp_path, extended=True) as name:
        await start(setting, name, "choice", ["sick", "well"])
        assert await lands(setting, "choice") == "well"
        await start(setting, name, "pinned", ["sick"])
        await told(setting, "pinned", UNRESOLVABLE[VerdictReason.UNHEALTHY])
        await start(setting, name, "without-gpu", ["sick"], gpus=0)
        assert await lands(setting, "without-gpu") == "sick", "only Pods that ask for GPUs are sent to the extender"
    async with scheduler(setting, tmp_path, extended=False) as name:
        await start(setting, name, "pinned-too", ["sick"])
        assert await lands(setting, "pinned-too") == "sick"


async def test_a_pod_gets_the_node_whose_gpus_are_what_it_asks_for(setting: Setting, tmp_path: Path) -> None:
    both = ["sick", "well"]
    for short, memory in (("sick", "40960"), ("well", "81559")):
        body = {"metadata": {"labels": {f"{GPU}.memory": memory}}}
        await setting.client.patch(NODES, setting.node(short), body)
    async with scheduler(setting, tmp_path, extended=True) as name:
        await start(setting, name, "large", both, asks="memory>=80G")
        assert await lands(setting, "large") == "well"
        await start(setting, name, "small", both, asks="memory<80G")
        assert await lands(setting, "small") == "sick"
        await start(setting, name, "none", both, asks="memory>90G")
        await told(setting, "none", f"2 {UNRESOLVABLE[VerdictReason.OTHER_ATTRIBUTES]}")
        await start(setting, name, "unknown", both, asks="ecc=true")
        await told(setting, "unknown", f"2 {UNRESOLVABLE[VerdictReason.ATTRIBUTES_UNKNOWN]}")
        await start(setting, name, "mistyped", both, asks="memory>=40Gx")
        words = UNRESOLVABLE[VerdictReason.ATTRIBUTES_MALFORMED]
        await told(setting, "mistyped", f"2 {words}: remediator.dev/gpu: at character 9: '40Gx' is no size")
        await setting.client.patch(NODES, setting.node("sick"), {"metadata": {"labels": {names.GPU_ECC: "true"}}})
        assert await lands(setting, "unknown") == "sick", "a label that is added wakes the Pod"


async def test_a_pod_that_waits_for_a_sick_node_gets_it_when_the_node_is_well(setting: Setting, tmp_path: Path) -> None:
    await fall_sick(setting)
    async with scheduler(setting, tmp_path, extended=True) as name:
        await start(setting, name, "patient", ["sick"])
        await told(setting, "patient", UNRESOLVABLE[VerdictReason.UNHEALTHY])
        await _say(setting, "sick", "False")
        assert await lands(setting, "patient") == "sick"


async def test_a_pod_that_was_tried_again_before_we_had_heard_that_the_node_is_well_is_woken(
    setting: Setting, tmp_path: Path
) -> None:
    await fall_sick(setting)
    async with scheduler(setting, tmp_path, extended=True) as name:
        await start(setting, name, "early", ["sick"])
        await told(setting, "early", UNRESOLVABLE[VerdictReason.UNHEALTHY])
        refused, woken = _counted("refused_nodes", list="unresolvable"), _counted("requeues")
        setting.news.clear()
        await _say(setting, "sick", "False")
        await until(lambda: _counted("refused_nodes", list="unresolvable") > refused, SECONDS)
        setting.news.set()
        assert await lands(setting, "early") == "sick", "not after the five minutes of the scheduler's own patience"
        assert _counted("requeues") == woken + 1
        assert (
            names.SCHEDULABLE_AGAIN_AT
            in (await setting.client.get(NODES, setting.node("sick")))["metadata"]["annotations"]
        )


def _counted(what: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(f"remediator_extender_{what}_total", labels) or 0.0


async def test_gpus_are_packed_with_the_extender_and_spread_without(setting: Setting, tmp_path: Path) -> None:
    both = ["sick", "well"]
    async with scheduler(setting, tmp_path, extended=False) as name:
        await start(setting, name, "first", ["well"], gpus=2)
        await lands(setting, "first")
        await start(setting, name, "spread", both, gpus=2)
        assert await lands(setting, "spread") == "sick"
    async with scheduler(setting, tmp_path, extended=True) as name:
        await start(setting, name, "third", ["well"], gpus=2)
        await lands(setting, "third")
        await until(lambda: dict(state_of(setting.extender, setting.node("well")).used) == {GPU: 4}, SECONDS)
        for index in range(2):
            await start(setting, name, f"packed-{index}", both, gpus=2)
            assert await lands(setting, f"packed-{index}") == "well"
        await start(setting, name, "next", both, gpus=2)
        assert await lands(setting, "next") == "sick"


async def test_a_scheduler_that_shows_nothing_is_not_let_in_and_schedules_without_us(
    setting: Setting, tmp_path: Path
) -> None:
    await fall_sick(setting)
    before = REGISTRY.get_sample_value("remediator_refused_calls_total", NO_TLS) or 0
    async with scheduler(setting, tmp_path, extended=True, shows=False) as name:
        await start(setting, name, "pinned", ["sick"])
        assert await lands(setting, "pinned") == "sick"
    assert REGISTRY.get_sample_value("remediator_refused_calls_total", NO_TLS) > before


async def test_pods_are_scheduled_when_the_extender_is_down(setting: Setting, tmp_path: Path) -> None:
    nobody = setting._replace(port=free_ports(1)[0])
    async with scheduler(nobody, tmp_path, extended=True) as name:
        await start(setting, name, "alone", ["well"])
        assert await lands(setting, "alone") == "well"


# --- with two versions of Kubernetes ---------------------------------------------------------------------------------

VERSIONS = ("kube-scheduler", "kube-scheduler-1.34")
BOTH = ["sick", "well"]


async def resize(setting: Setting, gpus: int) -> None:
    """Both nodes have so many GPUs from now on."""
    room = {GPU: str(gpus)}
    for short in BOTH:
        body = {"status": {"capacity": room, "allocatable": room}}
        await setting.client.patch(NODES, setting.node(short), body, subresource="status")
        await until(lambda short=short: dict(state_of(setting.extender, setting.node(short)).total) == room_of(gpus))


def room_of(gpus: int) -> dict[str, int]:
    return {GPU: gpus}


async def held(setting: Setting, gpus: int) -> None:
    """Wait until the extender knows that Pods hold so many GPUs of both nodes together."""
    await until(lambda: sum(dict(state_of(setting.extender, setting.node(n)).used).get(GPU, 0) for n in BOTH) == gpus)


async def rank(setting: Setting, name: str, value: int) -> str:
    """A priority of this test's own."""
    kind = Kind("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", dict)
    full = f"{setting.mark}-{name}"
    body = {"apiVersion": kind.api_version, "kind": kind.name, "metadata": {"name": full}, "value": value}
    await setting.client.create(kind, body)
    return full


# GPUs of each of two nodes, what Pods ask for one after the other, and whether the last one runs.
PACKED = [
    pytest.param(2, (1, 1, 2), True, True, id="two-of-two-packed"),
    pytest.param(2, (1, 1, 2), False, False, id="two-of-two-spread"),
    pytest.param(4, (2, 1, 2), True, True, id="two-of-four-packed"),
    pytest.param(4, (2, 1, 2), False, True, id="two-of-four-spread"),  # 2 and 3 GPUs are left: it fits either way
]


@pytest.mark.sampled
@pytest.mark.parametrize("program", VERSIONS)
@pytest.mark.parametrize(("gpus", "asked", "extended", "runs"), PACKED)
async def test_where_pods_are_packed_all_run_and_where_they_are_spread_the_last_may_wait(
    setting: Setting, tmp_path: Path, program: str, gpus: int, asked: tuple[int, ...], extended: bool, runs: bool
) -> None:
    await resize(setting, gpus)
    async with scheduler(setting, tmp_path, extended=extended, program=program) as name:
        for index, count in enumerate(asked[:-1]):
            await start(setting, name, f"pod-{index}", BOTH, gpus=count)
            await lands(setting, f"pod-{index}")
            await held(setting, sum(asked[: index + 1]))
        await start(setting, name, "last", BOTH, gpus=asked[-1])
        if runs:
            assert await lands(setting, "last") in BOTH
        else:
            await told(setting, "last", "2 Insufficient nvidia.com/gpu")


@pytest.mark.sampled
@pytest.mark.parametrize("program", VERSIONS)
@pytest.mark.parametrize(("changes", "emptied"), [({}, "well"), ({"preemptVerb": ""}, "sick")])
async def test_nobody_is_evicted_from_an_unhealthy_node_where_the_extender_is_asked_first(
    setting: Setting, tmp_path: Path, program: str, changes: dict[str, str], emptied: str
) -> None:
    least, low, high = [await rank(setting, name, value) for name, value in (("least", 1), ("low", 2), ("high", 9))]
    async with scheduler(setting, tmp_path, extended=True, program=program, changes=changes) as name:
        for short, priority in (("sick", least), ("well", low)):  # the scheduler prefers the victim on the sick node
            await start(setting, name, f"victim-{short}", [short], gpus=8, priority=priority)
            assert await lands(setting, f"victim-{short}") == short
        await held(setting, 16)
        await fall_sick(setting)
        await start(setting, name, "urgent", BOTH, gpus=8, priority=high)

        async def leaves() -> bool:
            with suppress(errors.NotFound):
                victim = await setting.client.get(PODS, f"victim-{emptied}", namespace=setting.space)
                return bool(victim["metadata"].get("deletionTimestamp"))
            return True

        await until(leaves, SECONDS)
        if emptied == "well":
            assert await lands(setting, "urgent") == "well"
            survivor = await setting.client.get(PODS, "victim-sick", namespace=setting.space)
            assert not survivor["metadata"].get("deletionTimestamp")


@pytest.mark.sampled
@pytest.mark.parametrize("program", VERSIONS)
@pytest.mark.parametrize("names_only", [True, False])
async def test_names_and_whole_nodes_are_answered_alike(
    setting: Setting, tmp_path: Path, program: str, names_only: bool
) -> None:
    await fall_sick(setting)
    changes = {"nodeCacheCapable": names_only}
    async with scheduler(setting, tmp_path, extended=True, program=program, changes=changes) as name:
        await start(setting, name, "choice", BOTH)
        assert await lands(setting, "choice") == "well"
        await start(setting, name, "pinned", ["sick"])
        await told(setting, "pinned", UNRESOLVABLE[VerdictReason.UNHEALTHY])


@pytest.mark.parametrize("program", VERSIONS)
async def test_where_the_extender_may_not_be_ignored_its_pods_wait_for_its_restart_and_all_others_go_on(
    setting: Setting, tmp_path: Path, program: str
) -> None:
    away = setting._replace(port=free_ports(1)[0])
    async with scheduler(away, tmp_path, extended=True, program=program, changes={"ignorable": False}) as name:
        await start(setting, name, "with-gpu", ["well"])
        await told(setting, "with-gpu", "connection refused")
        await start(setting, name, "without-gpu", ["well"], gpus=0)
        assert await lands(setting, "without-gpu") == "well"
        async with answering(away):
            assert await lands(setting, "with-gpu") == "well", "as soon as the extender is back"


async def claim(setting: Setting) -> None:
    """A case holds the node `sick`."""
    await _mark(setting, {"spec": {"taints": [{"key": names.CASE_TAINT, "value": "a-case", "effect": "NoSchedule"}]}})


async def cordon(setting: Setting) -> None:
    """A case has cordoned it."""
    await _mark(setting, {"metadata": {"annotations": {names.CORDONED_BY: "a-case"}}, "spec": {"unschedulable": True}})


async def quarantine(setting: Setting) -> None:
    """A case of it waits for a person."""
    node = (await setting.client.get(NODES, setting.node("sick")))["metadata"]
    spec = {"nodeName": node["name"], "nodeUID": node["uid"], "policyName": setting.mark}
    body = {"apiVersion": CASES.api_version, "kind": CASES.name, "metadata": {"name": setting.mark}, "spec": spec}
    await setting.client.create(CASES, body)
    await setting.client.patch(CASES, setting.mark, {"status": {"phase": "Escalated"}}, subresource="status")


async def _mark(setting: Setting, body: dict[str, Any]) -> None:
    await setting.client.patch(NODES, setting.node("sick"), body)


async def give_back(setting: Setting) -> None:
    """Nothing of all that any more."""
    with suppress(errors.NotFound):
        await setting.client.delete(CASES, setting.mark)
    none = {"metadata": {"annotations": {names.CORDONED_BY: None}}, "spec": {"taints": None, "unschedulable": None}}
    await _mark(setting, none)


@pytest.mark.parametrize("program", VERSIONS)
async def test_a_node_that_a_case_holds_is_refused_in_the_words_of_its_reason_and_given_back(
    setting: Setting, tmp_path: Path, program: str
) -> None:
    held_by = {claim: "CLAIMED", cordon: "CORDONED", quarantine: "QUARANTINED"}
    async with scheduler(setting, tmp_path, extended=True, program=program) as name:
        for hold, reason in held_by.items():
            verdict = VerdictReason[reason]
            await hold(setting)
            await until(lambda: verdict_of(setting.extender, setting.node("sick")) is verdict, SECONDS)  # noqa: B023
            await start(setting, name, reason.lower(), ["sick"])
            await told(setting, reason.lower(), UNRESOLVABLE[verdict])
            await give_back(setting)
            assert await lands(setting, reason.lower()) == "sick"


async def test_the_second_scheduler_that_is_shipped_has_the_rights_that_it_needs(
    setting: Setting, tmp_path: Path
) -> None:
    folder = CONFIG.parent / "second"
    for body in yaml_files.read_all(folder / "rbac.yaml"):
        if body["kind"] != "ServiceAccount":
            await _create(setting, body)
    account = "system:serviceaccount:remediator-system:remediator-scheduler"
    config = yaml_files.read(folder / "scheduler-config.yaml")
    told = setting.plane.kubeconfig_for(account, ["system:serviceaccounts:remediator-system"])
    config["clientConnection"] = {"kubeconfig": str(told)}
    _fill_in(config, setting, tmp_path)
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(config))
    (port,) = free_ports(1)
    flags = [f"--config={tmp_path}/config.yaml", f"--bind-address={HOST}", f"--secure-port={port}"]
    child = Child([binary("kube-scheduler"), *flags], tmp_path / "second.log")
    try:
        await fall_sick(setting)
        await start(setting, "gpu", "job", BOTH)
        assert await lands(setting, "job") == "well", child.tail()
        assert "forbidden" not in child.log.read_text()
        await until(lambda: not unused("remediator-scheduler", setting.plane.audited(), SECOND), SECONDS)
    finally:
        child.stop()


async def _create(setting: Setting, body: dict[str, Any]) -> None:
    """An object of RBAC or of admission, which other tests of the session may have made."""
    space, plural = body["metadata"].get("namespace", ""), f"{body['kind'].lower()}s".replace("ys", "ies")
    kind = Kind(body["apiVersion"].partition("/")[0], "v1", plural, body["kind"], dict, namespaced=bool(space))
    with suppress(errors.AlreadyExists):
        await setting.client.create(kind, body, namespace=space)

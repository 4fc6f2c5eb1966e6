"""A cluster in memory with Pods that have GPUs, and a Prometheus that says what a test wants of them."""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from datetime import timedelta
from typing import Any

from remediator.core.gpu_use import GPU_USE
from remediator.core.idle_policy import JanitorMode
from remediator.janitor.decide import JanitorReason
from remediator.janitor.idle.evidence import WITHIN
from remediator.janitor.idle.one_pass import IdlePass
from remediator.janitor.idle.policy_report import PolicyReport
from remediator.janitor.idle.sources import Sources
from remediator.janitor.outcome import JanitorOutcome
from remediator.janitor.settings import JanitorSettings
from remediator.kube import api
from remediator.kube.api.builtin import NODE
from remediator.kube.wire import errors
from remediator.kube.wire.client import Client, Kind
from remediator.kube.wire.times import stamp
from remediator.kube.wire.transport import MERGE_PATCH
from remediator.prometheus.alerts import Alertmanagers
from remediator.prometheus.reading import CannotTell, Reading, Sample
from remediator.prometheus.source import Source
from tests.harness.kinds import CRDS, PODS, Object, plain
from tests.remediator.janitor.place import NOW, Place

HOUR = timedelta(hours=1)
JOBS = Kind("batch", "v1", "jobs", "Job", Object, namespaced=True)
STATEFUL = Kind("apps", "v1", "statefulsets", "StatefulSet", Object, namespaced=True)
NODES = plain(NODE)
SETS = Kind("apps", "v1", "replicasets", "ReplicaSet", Object, namespaced=True)


class Asked:
    """A Prometheus that has what a test says of Pods: the highest value, the GPUs, and the steps with samples."""

    def __init__(self, namespace: str = "team") -> None:
        self.namespace = namespace
        self.pods: dict[str, tuple[float, float, float]] = {}
        self.doubt: CannotTell | None = None

    async def instant(self, query: str, within: timedelta) -> Reading:
        assert within == WITHIN
        index = ["max by", "count by", "min by"].index(query.partition(" (")[0])
        labels = {name: {"namespace": self.namespace, "pod": name} for name in self.pods}
        return self.doubt or tuple(Sample(row[index], labels[name]) for name, row in self.pods.items())


class Cluster(Place):
    """Pods with GPUs in the namespace `team`, and one IdlePolicy."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = Asked()
        self.prometheus: Source | None = self.asked
        self.alertmanagers: Alertmanagers | None = None
        self.before_get: Callable[[], Awaitable[None]] | None = None  # once, before something is read again

    async def serve(self, *kinds: Kind[Object]) -> None:
        """See `serve`."""
        await serve(self.admin, *kinds)

    async def policy(self, name: str = "gpus", **spec: Any) -> None:
        body = {"mode": "Enforce", "namespaces": ["team"], "actions": ["Suspend", "Scale", "Delete"], **spec}
        given = {"apiVersion": api.API_VERSION, "kind": "IdlePolicy", "metadata": {"name": name}, "spec": body}
        await self.admin.create(plain(api.IDLE_POLICY), given)

    async def change_policy(self, **spec: Any) -> None:
        """As an administrator would."""
        await self.admin.patch(plain(api.IDLE_POLICY), "gpus", {"spec": spec})

    async def gpus(
        self, name: str, gpus: int = 2, use: float = 0, owner: Object | None = None, *, node: str = "", **more: Any
    ) -> Object:
        """A Pod that has run for ten hours."""
        limits = {"nvidia.com/gpu": str(gpus)} if gpus else {}
        spec: Object = {"containers": [{"name": "main", "image": "x", "resources": {"limits": limits}}]}
        spec |= {"nodeName": node} if node else {}
        meta = {"ownerReferences": [reference(owner)]} if owner else {}
        made = await self.pod(name, spec=spec, metadata=meta, labels={"owner": "alice"}, **more)
        status = {"status": {"phase": "Running", "startTime": stamp(NOW - 10 * HOUR)}}
        await self.admin.patch(PODS, name, status, namespace="team", subresource="status")
        self.asked.pods[name] = (use, gpus, 120)
        return made

    async def tells(self, node: str, message: str, hours: float = 0, **others: str) -> None:
        """What GpuUse of a node says, with a heartbeat so many hours after NOW; `others`: its other Conditions."""
        at = stamp(NOW + hours * HOUR)
        said = [(GPU_USE, "True", message), *((name, status, "") for name, status in others.items())]
        conditions = [
            {"type": name, "status": status, "message": text, "lastHeartbeatTime": at, "lastTransitionTime": at}
            for name, status, text in said
        ]
        with suppress(errors.AlreadyExists):
            await self.make(NODES, node)
        await self.admin.patch(
            NODES, node, {"status": {"conditions": conditions}}, content_type=MERGE_PATCH, subresource="status"
        )

    async def idle(self, hours: float = 0, mode: JanitorMode = JanitorMode.ENFORCE) -> PolicyReport:
        """One pass so many hours after NOW, of a single policy."""
        (report,) = await self.reports(hours, mode)
        return report

    async def reports(self, hours: float = 0, mode: JanitorMode = JanitorMode.ENFORCE) -> list[PolicyReport]:
        """The same of several."""
        now = NOW + hours * HOUR
        self.transport.asked.clear()
        self.transport.before_get, self.before_get = self.before_get, None
        sources = Sources(self.prometheus, self.alertmanagers)
        return await IdlePass(self.client, JanitorSettings(mode), sources, self.writer, now).run()

    async def marks(self, kind: Kind[Object], name: str) -> Mapping[str, str]:
        live = await self.admin.get(kind, name, namespace="team")
        notes: Mapping[str, str] = live["metadata"].get("annotations", {})
        return notes


async def serve(admin: Client, *kinds: Kind[Object]) -> None:
    """Kinds that the embedded server has no types of."""
    for kind in kinds:
        schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
        named = {"kind": kind.name, "plural": kind.plural, "singular": kind.name.lower()}
        spec = {"group": kind.group, "scope": "Namespaced", "names": named, "versions": [version]}
        crd = {"apiVersion": CRDS.api_version, "kind": CRDS.name, "spec": spec}
        await admin.create(CRDS, {**crd, "metadata": {"name": f"{kind.plural}.{kind.group}"}})


def reference(owner: Object) -> Object:
    meta = owner["metadata"]
    return {
        "apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": meta["name"], "uid": meta["uid"],
        "controller": True,
    }  # fmt: skip


def became(report: PolicyReport) -> list[tuple[JanitorOutcome, str, JanitorReason]]:
    return [line[:3] for line in report.lines]

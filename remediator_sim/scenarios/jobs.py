"""The users of the fleet: pods that want GPUs, made again elsewhere when they are evicted, as a controller would."""

import asyncio
from contextlib import suppress
from itertools import count
from typing import Any, NamedTuple

from remediator.kube.runtime.reflector import Reflector
from remediator.kube.wire import errors
from remediator.kube.wire.client import Client
from remediator_sim.plain import ACCOUNTS, PDBS, PODS, SPACES, Object, patiently, whole

SPACE = "research"
GPU = "nvidia.com/gpu"
POOL_LABEL = "example.com/pool"  # also the key of the taint of the nodes that are kept for one


class Job(NamedTuple):
    """One pod that is always to run. `node` is where it first runs; `app` is what a PodDisruptionBudget asks for.

    `pool`: the only nodes that it may have, which are kept for such pods; "" for all others.
    """

    name: str
    gpus: int
    node: str = ""
    app: str = "training"
    pool: str = ""


class Jobs:
    """Keeps the pods of all jobs there. `run` it as a task."""

    def __init__(self, client: Client) -> None:
        self._client, self._jobs, self._tries = client, dict[str, Job](), count(2)
        self._gone: asyncio.Queue[str] = asyncio.Queue()

    async def run(self) -> None:
        """Make the pod of a job again whenever it has gone."""
        pods: Reflector[Object, Object] = Reflector(self._client, PODS, whole, self._hear, namespace=SPACE)
        async with asyncio.TaskGroup() as group:
            group.create_task(pods.run())
            while True:
                job = self._jobs.get(await self._gone.get())
                if job is not None:
                    await self._make(job._replace(node=""), f"{job.name}-{next(self._tries)}")

    async def open(self) -> None:
        """The namespace that jobs run in."""
        await self._client.create(SPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}})
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
        with suppress(errors.AlreadyExists):
            await self._client.create(ACCOUNTS, account, namespace=SPACE)

    async def add(self, job: Job) -> str:
        """A new job; the uid of its pod."""
        self._jobs[job.name] = job
        return await self._make(job, job.name)

    async def protect(self, app: str, least: int) -> None:
        """A PodDisruptionBudget: so many pods of the app must stay."""
        spec = {"minAvailable": least, "selector": {"matchLabels": {"app": app}}}
        body = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": app}, "spec": spec}
        await self._client.create(PDBS, body, namespace=SPACE)

    async def kill(self, name: str) -> None:
        """Its owner has given the job up, and removes its pod by force: nobody waits for the processes."""
        del self._jobs[name]
        path, body = PODS.path(name, SPACE), b'{"gracePeriodSeconds":0}'
        await patiently(lambda: self._client.transport.request("DELETE", path, body=body))

    def _hear(self, key: str, old: Object | None, new: Object | None) -> None:
        if new is None and old is not None:
            self._gone.put_nowait(old["metadata"]["labels"].get("job", ""))

    async def _make(self, job: Job, name: str) -> str:
        made = await patiently(lambda: self._client.create(PODS, pod(job, name), namespace=SPACE))
        return str(made["metadata"]["uid"])


def pod(job: Job, name: str) -> dict[str, Any]:
    """The pod of a job."""
    limits = {"limits": {GPU: str(job.gpus)}, "requests": {GPU: str(job.gpus)}} if job.gpus else {}
    container = {"name": "main", "image": "research/train:1", "command": ["sleep", "infinity"], "resources": limits}
    spec: dict[str, Any] = {"containers": [container], "terminationGracePeriodSeconds": 1}
    if job.node:
        spec["nodeName"] = job.node
    if job.pool:
        spec |= {"nodeSelector": {POOL_LABEL: job.pool}, "tolerations": [{"key": POOL_LABEL, "operator": "Exists"}]}
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": job.name, "uid": f"job-{job.name}", "controller": True}
    meta = {"name": name, "labels": {"app": job.app, "job": job.name}, "ownerReferences": [owner]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}

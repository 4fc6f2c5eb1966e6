"""The model of the program that drains a node: the same questions and the same waits, without a process."""

import asyncio
import json
from datetime import datetime
from typing import Any, NamedTuple

from remediator.core import names
from remediator.kube.wire.transport import MERGE_PATCH
from remediator_sim.plain import Object
from remediator_sim.simulation.clock import now, true_time
from remediator_sim.simulation.programs import api
from remediator_sim.simulation.programs.api import OPERATIONS, ServerError, Unreachable, ask, part
from remediator_sim.simulation.programs.run import Failed, Refused, Run

LOOK_AGAIN = 5.0  # seconds
RETRY_FIRST, RETRY_MOST = 1.0, 30.0
ROUND_FIRST, ROUND_MOST = 0.5, 5.0
LONGEST, LEAST = 366 * 86400.0, 0.01
WHERE = {
    "case": "/apis/remediator.dev/v1alpha1/noderemediations",
    "policy": "/apis/remediator.dev/v1alpha1/remediationpolicies",
    "namespace": "/api/v1/namespaces",
}
MIRROR = "kubernetes.io/config.mirror"
OURS = "remediator-operations"
ROLES = ("control-plane", "master", "etcd", "controlplane")


class Block(NamedTuple):
    """A Pod that was refused: the budgets over it, the refusal, when to ask again, and how long to wait after that."""

    budgets: str
    message: str
    due: float
    delay: float


async def drain(run: Run) -> str:
    """Evict in rounds until no Pod is left."""
    given, node = run.parameters, run.env["NODE_NAME"]
    missing = [name for name in ("operation", "operationUID", "caseUID") if not given.get(name)]
    if missing:
        raise Refused(f"PARAMETERS lacks {', '.join(missing)}")
    strategy = given.get("strategy", "Evict")
    if strategy not in ("Evict", "Delete", "None"):
        raise Refused(f"PARAMETERS.strategy is {strategy!r}")
    work = Drain(run, node, strategy)
    if strategy == "None":
        return f"nothing to drain on {node}: strategy None"
    return await work.work()


class Drain:
    """One drain, and what it has learnt."""

    def __init__(self, run: Run, node: str, strategy: str) -> None:
        self._run, self._node, self._strategy = run, node, strategy
        self._timeout = run.number("timeoutSeconds", 1800, LEAST)
        self._pause = 1 / run.number("perSecond", 5, LEAST)
        self._skip = run.number("skipWaitForDeleteSeconds", LONGEST, LEAST)
        self._deadline, self._turn, self._looked = now() + self._timeout, now() - 1.0, float("-inf")
        self._evicted: set[str] = set()
        self._blocks: dict[str, Block] = {}
        self._left: list[Object] = []
        self._stuck: list[Object] = []
        self._written: Object | None = None
        self._asked, self._others, self._stopped = float("-inf"), list[Object](), False

    async def work(self) -> str:
        """Rounds until no Pod is left. Raises Failed when the time is over, Refused when it is not ours."""
        pause = ROUND_FIRST
        while True:
            before, dues = self._progress(), [0.0][:0]
            try:
                await self._round()
                if not self._left and not self._stopped:
                    return f"drained {self._node}: {len(self._evicted)} pods evicted{self._not_waited_for()}"
                dues = [block.due for block in self._blocks.values()]
            except Unreachable:
                pass
            pause = ROUND_FIRST if self._progress() != before else min(pause * 1.5, ROUND_MOST)
            if self._stopped:
                await asyncio.sleep(pause)
                continue
            self._require_time()
            await asyncio.sleep(max(0.05, min([pause, self._deadline - now(), *(due - now() for due in dues)])))

    def _require_time(self) -> None:
        if now() >= self._deadline:
            raise Failed(f"{len(self._left)} pods left on {self._node} after {self._timeout:g} s: {self._names()}")

    async def _round(self) -> None:
        await self._look()
        if self._stopped:
            return
        where = (("fieldSelector", f"spec.nodeName={self._node}"),)
        listed = await api.items(self._run, "/api/v1/pods", f"pods of {self._node}", where)
        pods = sorted((pod for pod in listed if not _stays(pod)), key=_key)
        self._left = [pod for pod in pods if _overdue(pod) <= self._skip]
        self._stuck = [pod for pod in pods if _overdue(pod) > self._skip]
        staying = {pod["metadata"]["uid"] for pod in self._left}
        self._blocks = {uid: block for uid, block in self._blocks.items() if uid in staying}
        for pod in self._left:
            block = self._blocks.get(pod["metadata"]["uid"])
            if not _is_ending(pod) and (block is None or now() >= block.due):
                if not await self._wait_for_turn():
                    return
                await self._ask(pod)
        await self._write_progress()

    async def _wait_for_turn(self) -> bool:
        """A second's worth of evictions may come at once after a quiet second. Whether to go on."""
        burst = max(1.0, 1 / self._pause) - 1
        self._turn = max(self._turn + self._pause, now() - burst * self._pause)
        await asyncio.sleep(max(0.0, self._turn - now()))
        if now() - self._looked > LOOK_AGAIN:
            await self._look()
        if not self._stopped:
            self._require_time()
        return not self._stopped

    async def _look(self) -> None:
        given = self._run.parameters
        name = given["operation"]
        operation = await api.read(self._run, f"{OPERATIONS}/{name}")
        meta, spec = operation["metadata"], part(operation, "spec")
        if meta.get("uid") != given["operationUID"] or meta.get("deletionTimestamp"):
            raise Refused(f"operation {name} is gone")
        if (phase := part(operation, "status").get("phase")) in api.FINAL:
            raise Refused(f"operation {name} has ended: {phase}")
        node = await api.read(self._run, f"/api/v1/nodes/{self._node}")
        if spec.get("nodeUID") and node["metadata"].get("uid") != spec["nodeUID"]:
            raise Refused(f"node {self._node} is another one than was meant")
        api.require_claim(node, given["caseUID"])
        self._looked = now()
        if now() - self._asked > LOOK_AGAIN:
            self._others = [await self._other(word) for word in WHERE]
            self._asked = now()
        self._stopped = _stopped(node, *self._others)

    async def _other(self, word: str) -> Object:
        """The case, the policy or the namespace; {} where none is named, or there is none and it need not be."""
        name = self._run.parameters.get(word)
        return await api.read(self._run, f"{WHERE[word]}/{name}", {} if word != "case" else None) if name else {}

    async def _ask(self, pod: Object) -> None:
        meta = pod["metadata"]
        only = {"preconditions": {"uid": meta["uid"]}}
        path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}"
        eviction = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": meta["name"], "namespace": meta["namespace"]},
            "deleteOptions": only,
        }
        options = {"apiVersion": "v1", "kind": "DeleteOptions", **only}
        deletes = self._strategy == "Delete"
        asked = ("DELETE", path, options) if deletes else ("POST", f"{path}/eviction", eviction)
        try:
            reply = await ask(self._run, *asked)
        except ServerError:
            await self._block(pod, 0.0, "")
            return
        if reply.status < 300:
            self._evicted.add(meta["uid"])
            self._blocks.pop(meta["uid"], None)
        elif reply.status not in (404, 409):
            await self._block(pod, float(reply.headers.get("retry-after") or 0), json.loads(reply.body)["message"])

    async def _block(self, pod: Object, after: float, message: str) -> None:
        last = self._blocks.get(pod["metadata"]["uid"])
        delay = min(RETRY_MOST, last.delay * 2) if last else RETRY_FIRST
        due = now() + max(delay, min(after, RETRY_MOST))
        space = pod["metadata"]["namespace"]
        reply = await ask(self._run, "GET", f"/apis/policy/v1/namespaces/{space}/poddisruptionbudgets")
        budgets = json.loads(reply.body)["items"] if reply.status == 200 else []
        names = sorted(budget["metadata"]["name"] for budget in budgets if _selects(budget, pod))
        self._blocks[pod["metadata"]["uid"]] = Block(",".join(names), message, due, delay)

    def _progress(self) -> Object:
        keys = [_key(pod) for pod in self._left if pod["metadata"]["uid"] in self._blocks]
        return {"left": len(self._left), "evicted": len(self._evicted), "blocked": [*keys, *map(_key, self._stuck)]}

    async def _write_progress(self) -> None:
        progress = self._progress()
        if progress == self._written:
            return
        blocks = {_key(pod): self._blocks.get(pod["metadata"]["uid"]) for pod in self._left}
        budgets = {key: block.budgets for key, block in blocks.items() if block}
        blocked = [
            {"pod": key, "pdb": budgets.get(key, ""), "message": "" if key in budgets else "its end is overdue"}
            for key in progress["blocked"][:20]
        ]
        path = f"{OPERATIONS}/{self._run.parameters['operation']}/status"
        body = {"status": {"drain": progress | {"blocked": blocked}}}
        if (await ask(self._run, "PATCH", path, body, MERGE_PATCH)).status < 300:
            self._written = progress

    def _not_waited_for(self) -> str:
        names = ", ".join(map(_key, self._stuck))
        return f"; not waited for, their end is overdue: {names}" if names else ""

    def _names(self) -> str:
        return ", ".join(f"{_key(pod)} ({self._why(pod)})" for pod in self._left)

    def _why(self, pod: Object) -> str:
        if block := self._blocks.get(pod["metadata"]["uid"]):
            return block.budgets or block.message
        return "still ending" if _is_ending(pod) else "not asked in time"


def _stays(pod: Object) -> bool:
    meta = pod["metadata"]
    owners: list[dict[str, Any]] = meta.get("ownerReferences") or []
    return (
        meta["namespace"] == OURS
        or MIRROR in (meta.get("annotations") or {})
        or any(owner.get("controller") and owner.get("kind") == "DaemonSet" for owner in owners)
        or part(pod, "status").get("phase") in ("Succeeded", "Failed")
    )


def _key(pod: Object) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


def _is_ending(pod: Object) -> bool:
    return bool(pod["metadata"].get("deletionTimestamp"))


def _overdue(pod: Object) -> float:
    end = pod["metadata"].get("deletionTimestamp")
    return max(0.0, (true_time() - datetime.fromisoformat(end)).total_seconds()) if end else 0.0


def _stopped(node: Object, case: Object, policy: Object, namespace: Object) -> bool:
    """Whether a user stops the repair."""
    labels, spec = part(node, "metadata", "labels"), part(case, "spec")
    return bool(
        names.PAUSED in part(namespace, "metadata", "annotations")
        or part(policy, "spec").get("mode", "Enforce") != "Enforce"
        or part(case, "metadata").get("deletionTimestamp")
        or spec.get("hold")
        or spec.get("release")
        or labels.get(names.EXCLUDE, "false") != "false"
        or any(f"node-role.kubernetes.io/{role}" in labels for role in ROLES)
        or not part(node, "spec").get("unschedulable")
    )


def _selects(budget: Object, pod: Object) -> bool:
    """Models know matchLabels only."""
    wanted = part(budget, "spec", "selector").get("matchLabels") or {}
    labels = pod["metadata"].get("labels") or {}
    return all(labels.get(key) == value for key, value in wanted.items())

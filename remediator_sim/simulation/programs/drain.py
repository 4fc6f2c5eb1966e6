"""The model of the program that drains a node: the same questions and the same waits, without a process."""

import asyncio
import json
from collections import Counter
from datetime import datetime
from typing import NamedTuple

from remediator.core import names
from remediator.kube.wire.times import stamp
from remediator.kube.wire.transport import MERGE_PATCH
from remediator_sim.invariants.pod_words import static
from remediator_sim.plain import Object
from remediator_sim.simulation.clock import now, true_time
from remediator_sim.simulation.programs import api, drain_pods
from remediator_sim.simulation.programs.api import OPERATIONS, ServerError, Unreachable, ask, is_ending, key_of, part
from remediator_sim.simulation.programs.drain_pods import ASKED, stays
from remediator_sim.simulation.programs.run import Failed, Refused, Run

LOOK_AGAIN = 5.0  # seconds
RETRY_FIRST, RETRY_MOST = 1.0, 30.0
ROUND_FIRST, ROUND_MOST = 0.5, 5.0
LONGEST, LEAST = 366 * 86400.0, 0.01
STRATEGIES = ("Evict", "Delete", "ForceDelete", "EvictThenDelete", "WaitForCompletion", "None")
WHERE = {
    "case": "/apis/remediator.dev/v1alpha1/noderemediations",
    "policy": "/apis/remediator.dev/v1alpha1/remediationpolicies",
    "namespace": "/api/v1/namespaces",
}
ROLES = ("control-plane", "master", "etcd", "controlplane")


class Block(NamedTuple):
    """What keeps a Pod. Of one that was asked: with what, when to ask again, and how long to wait after that."""

    budgets: str
    message: str
    due: float = float("inf")
    delay: float = 0.0
    verb: str = ""


async def drain(run: Run, kind: "type[Drain] | None" = None) -> str:
    """Evict in rounds until no Pod is left."""
    given, node = run.parameters, run.env["NODE_NAME"]
    missing = [name for name in ("operation", "operationUID", "caseUID") if not given.get(name)]
    if missing:
        raise Refused(f"PARAMETERS lacks {', '.join(missing)}")
    work, strategies = (kind or Drain)(run, node), [_strategy(given, "PARAMETERS")]
    strategies += [_strategy(rule, "rule") for rule in given.get("rules", ())]
    if set(strategies) == {"None"}:
        return f"nothing to drain on {node}: strategy None"
    return await work.work()


def _strategy(given: Object, what: str) -> str:
    strategy: str = given.get("strategy", "Evict")
    if strategy not in STRATEGIES:
        raise Refused(f"{what}.strategy is {strategy!r}")
    return strategy


class Drain:
    """One drain, and what it has learnt."""

    def __init__(self, run: Run, node: str) -> None:
        self._run, self._node = run, node
        self._timeout = run.number("timeoutSeconds", 1800, LEAST)
        self._evict_for = run.number("evictForSeconds", self._timeout / 2, 0.0)
        self._override_after = run.number("overrideAnnotationsAfterSeconds", self._timeout, 0.0)
        self._returned = Counter[tuple[str, str, str]]()  # Pods that came after the operation was made, and were asked
        self._pause = 1 / run.number("perSecond", 5, LEAST)
        self._skip = run.number("skipWaitForDeleteSeconds", LONGEST, LEAST)
        self._deadline, self._turn, self._looked = now() + self._timeout, now() - 1.0, float("-inf")
        self._evicted: set[str] = set()
        self._blocks: dict[str, Block] = {}
        self._judged: set[str] = set()  # of which a budget has refused an eviction
        self._left: list[Object] = []
        self._stuck: list[Object] = []
        self._kept: list[Object] = []
        self._written: Object | None = None
        self._unwritten = ""
        self._since = true_time()  # when the operation was made
        self._asked, self._others, self._stopped, self._silent = float("-inf"), list[Object](), False, False
        self._serves = False  # whether a static Pod of the control plane is there
        self._mark, self._until = object(), 0.0  # of the last round, and until when another one sees no more

    async def work(self) -> str:
        """Rounds until no Pod is left. Raises Failed when the time is over, Refused when it is not ours."""
        pause = ROUND_FIRST
        while True:
            before, began, answered = self._progress(), now(), True
            try:
                await self._look_round()
                if not self._left and not self._waits:
                    return f"drained {self._node}: {len(self._evicted)} pods {self._done()}{self._not_waited_for()}"
            except Unreachable:
                answered = False
                self._deadline += now() - began
            pause = ROUND_FIRST if self._progress() != before else min(pause * 1.5, ROUND_MOST)
            if self._waits or not answered:
                await asyncio.sleep(pause)
                self._deadline += pause
                continue
            self._require_time()
            await asyncio.sleep(max(0.05, min(pause, self._deadline - now())))

    def _require_time(self) -> None:
        if now() >= self._deadline:
            raise Failed(f"{len(self._left)} pods left on {self._node} after {self._timeout:g} s: {self._names()}")

    async def _look_round(self) -> None:
        """A round, unless it would find what the last one found."""
        began, mark = now(), self._run.mark()
        if mark == self._mark and began < self._until:
            return
        self._mark, self._asked = object(), float("-inf")
        await self._round()
        self._mark, self._until = mark, self._settled_until()

    @property
    def _waits(self) -> bool:
        return self._stopped or self._serves

    def _settled_until(self) -> float:
        """When a round may find something else, though nothing was written."""
        if self._waits:
            return float("inf")
        evictions_end = self._deadline - (self._timeout - self._evict_for)
        return min([evictions_end if now() < evictions_end else self._deadline, *map(self._stays_until, self._left)])

    def _stays_until(self, pod: Object) -> float:
        if is_ending(pod):
            overdue = _since(pod["metadata"]["deletionTimestamp"])
            left = [late - overdue for late in (drain_pods.OVERDUE_SECONDS, self._skip) if late >= overdue]
            return now() + min(left, default=LONGEST)
        block = self._blocks.get(_uid(pod))
        return block.due if block and not drain_pods.is_timed(pod) else 0.0

    async def _round(self) -> None:
        await self._look()
        if self._stopped:
            return
        where = (("fieldSelector", f"spec.nodeName={self._node}"),)
        listed = await api.items(self._run, "/api/v1/pods", f"pods of {self._node}", where)
        self._serves = any(map(static, listed))
        if self._serves:
            return
        moves = [(pod, self._move(pod)) for pod in sorted((pod for pod in listed if not stays(pod)), key=key_of)]
        never = await self._never_going([(pod, verb) for pod, (verb, _) in moves])
        moves = [(pod, ("keep", "") if _uid(pod) in never else move) for pod, move in moves]
        self._kept = [pod for pod, (verb, _) in moves if verb == "keep"]
        self._left = self._kept + [pod for pod, (verb, _) in moves if verb not in ("keep", "skip", "leave")]
        self._stuck = [pod for pod, (verb, _) in moves if verb == "skip"]
        kept = {_uid(pod): Block("", why) for pod, (verb, why) in moves if verb in ("keep", "wait") and why} | never
        asked = {_uid(pod) for pod, (verb, _) in moves if verb in ASKED and not self._kept}
        self._blocks = {uid: block for uid, block in self._blocks.items() if uid in asked and block.verb} | kept
        if not await self._write_progress() and self._written is None:
            return
        for unit in [] if self._kept else await self._units([(pod, verb) for pod, (verb, _) in moves]):
            if not await self._ask_unit(unit):
                return
        if self._blocks:
            await self._write_progress()

    async def _never_going(self, steps: list[tuple[Object, str]]) -> dict[str, Block]:
        """What else keeps Pods for good: here nothing."""
        return {}

    async def _units(self, steps: list[tuple[Object, str]]) -> list[list[tuple[Object, str]]]:
        """The Pods, each with what is done with it, in the groups in which they go: here each for itself."""
        return [[step] for step in steps]

    async def _ask_unit(self, unit: list[tuple[Object, str]]) -> bool:
        """Ask the Pods of one unit that are due. Whether to go on."""
        for pod, verb in unit:
            if verb in ASKED and self._due(pod, verb):
                if not await self._wait_for_turn():
                    return False
                if verb != "force" or self._silent:
                    await self._ask(pod, verb)
        return True

    def _due(self, pod: Object, verb: str) -> bool:
        block = self._blocks.get(_uid(pod))
        return block is None or block.verb != verb or now() >= block.due

    def _move(self, pod: Object) -> tuple[str, str]:
        return drain_pods.move(pod, self._run.parameters, self._scene(pod))

    def _scene(self, pod: Object) -> drain_pods.Scene:
        overdue, left = _since(pod["metadata"].get("deletionTimestamp")), self._deadline - now()
        return drain_pods.Scene(
            overdue,
            _since(part(pod, "status").get("startTime")),
            overdue > self._skip,
            self._silent,
            left <= self._timeout - self._evict_for,
            left <= self._timeout - self._override_after > 0,
            frozenset(maker for maker, count in self._returned.items() if count >= drain_pods.MOST_RETURNS),
            _uid(pod) in self._judged,
        )

    def _done(self) -> str:
        given = self._run.parameters
        plain = given.get("strategy", "Evict") == "Evict" and not given.get("rules")
        return "evicted" if plain else "evicted or deleted"

    async def _wait_for_turn(self, count: int = 1) -> bool:
        """A second's worth of evictions may come at once after a quiet second. Whether to go on."""
        burst = max(1.0, 1 / self._pause) - 1
        self._turn = max(self._turn, now() - (burst + 1) * self._pause) + count * self._pause
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
        if meta.get("uid") != given["operationUID"] or is_ending(operation):
            raise Refused(f"operation {name} is gone")
        if (phase := part(operation, "status").get("phase")) in api.FINAL:
            raise Refused(f"operation {name} has ended: {phase}")
        node = await api.read(self._run, f"/api/v1/nodes/{self._node}")
        if spec.get("nodeUID") and node["metadata"].get("uid") != spec["nodeUID"]:
            raise Refused(f"node {self._node} is another one than was meant")
        api.require_claim(node, given["caseUID"])
        self._looked, self._silent = now(), _is_silent(node)
        self._since = datetime.fromisoformat(meta["creationTimestamp"])
        if now() - self._asked > LOOK_AGAIN:
            self._others = [await self._other(word) for word in WHERE]
            if is_ending(self._others[0]):
                raise Refused("the case is cancelled")
            self._asked = now()
        self._stopped = _stopped(node, *self._others)

    async def _other(self, word: str) -> Object:
        """The case, the policy or the namespace; {} where none is named, or there is none and it need not be."""
        name = self._run.parameters.get(word)
        return await api.read(self._run, f"{WHERE[word]}/{name}", {} if word != "case" else None) if name else {}

    async def _ask(self, pod: Object, verb: str) -> None:
        meta, path = pod["metadata"], path_of(pod)
        only = {"preconditions": {"uid": meta["uid"]}}
        options: Object = {"apiVersion": "v1", "kind": "DeleteOptions", **only}
        options |= {"gracePeriodSeconds": 0} if verb == "force" else {}
        asked = ("POST", f"{path}/eviction", eviction_of(pod)) if verb == "evict" else ("DELETE", path, options)
        try:
            reply = await ask(self._run, *asked)
        except ServerError:
            await self._block(pod, verb, 0.0, "")
            return
        if reply.status < 300:
            self._evicted.add(meta["uid"])
            self._returned[drain_pods.maker(pod)] += str(meta.get("creationTimestamp") or "") > stamp(self._since)
            self._blocks.pop(meta["uid"], None)
            return
        after, message = float(reply.headers.get("retry-after") or 0), json.loads(reply.body)["message"]
        if reply.status != 404 and not (reply.status == 409 and "the UID in the precondition" in message):
            await self._block(pod, verb, after, message)

    async def _block(self, pod: Object, verb: str, after: float, message: str) -> None:
        last = self._blocks.get(pod["metadata"]["uid"])
        delay = min(RETRY_MOST, last.delay * 2) if last and last.verb == verb else RETRY_FIRST
        due = now() + max(delay, min(after, RETRY_MOST))
        if verb != "evict":
            self._blocks[_uid(pod)] = Block("", message, due, delay, verb)
            return
        budgets = await self._budgets_over(pod)
        if is_judged(message, budgets):
            self._judged.add(_uid(pod))
        self._blocks[_uid(pod)] = Block(budgets, message, due, delay, verb)

    async def _budgets(self, space: str) -> list[Object]:
        reply = await ask(self._run, "GET", f"/apis/policy/v1/namespaces/{space}/poddisruptionbudgets")
        budgets: list[Object] = json.loads(reply.body)["items"] if reply.status == 200 else []
        return budgets

    async def _budgets_over(self, pod: Object) -> str:
        return names_over(pod, await self._budgets(pod["metadata"]["namespace"]))

    def _progress(self) -> Object:
        keys = [key_of(pod) for pod in self._left if pod["metadata"]["uid"] in self._blocks]
        return {"left": len(self._left), "evicted": len(self._evicted), "blocked": [*keys, *map(key_of, self._stuck)]}

    async def _write_progress(self) -> bool:
        """Whether it stands there now."""
        progress = self._progress()
        if progress == self._written:
            return True
        blocks = {key_of(pod): self._blocks.get(pod["metadata"]["uid"]) for pod in self._left}
        known = {key: block for key, block in blocks.items() if block}
        overdue = Block("", "its end is overdue: not waited for")
        blocked = [
            {"pod": key, "pdb": known.get(key, overdue).budgets, "message": known.get(key, overdue).message}
            for key in progress["blocked"][:20]
        ]
        path = f"{OPERATIONS}/{self._run.parameters['operation']}/status"
        body = {"status": {"drain": progress | {"blocked": blocked}}}
        try:
            reply = await ask(self._run, "PATCH", path, body, MERGE_PATCH)
        except ServerError as error:
            self._unwritten = str(error)
            return False
        if reply.status >= 300:
            self._unwritten = json.loads(reply.body)["message"]
            return False
        self._written = progress
        return True

    def _not_waited_for(self) -> str:
        names = ", ".join(map(key_of, self._stuck))
        return f"; not waited for, their end is overdue: {names}" if names else ""

    def _names(self) -> str:
        kept: dict[str, list[str]] = {}
        for pod in self._kept or self._left:
            kept.setdefault(self._why(pod), []).append(key_of(pod))
        rest = "; nobody else was asked" if self._kept and len(self._left) > len(self._kept) else ""
        return "; ".join(f"{', '.join(keys)} ({why})" for why, keys in kept.items()) + rest

    def _why(self, pod: Object) -> str:
        if block := self._blocks.get(pod["metadata"]["uid"]):
            return block.budgets or block.message
        if is_ending(pod):
            return "still ending"
        if self._written is None and self._unwritten:
            return f"not asked: progress cannot be written: {self._unwritten}"
        return "not asked in time"


def _uid(pod: Object) -> str:
    return str(pod["metadata"]["uid"])


def is_judged(message: str, budgets: str) -> bool:
    """Whether it is by budgets that a Pod was not evicted. Of several over one Pod the server says so by an error."""
    return "disruption budget" in message or "," in budgets


def path_of(pod: Object) -> str:
    return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"


def eviction_of(pod: Object) -> Object:
    meta = pod["metadata"]
    return {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": meta["name"], "namespace": meta["namespace"]},
        "deleteOptions": {"preconditions": {"uid": meta["uid"]}},
    }


def _since(moment: str | None) -> float:
    return max(0.0, (true_time() - datetime.fromisoformat(moment)).total_seconds()) if moment else 0.0


def _is_silent(node: Object) -> bool:
    conditions = part(node, "status").get("conditions") or ()
    return any(entry["type"] == "Ready" and entry.get("status") == "Unknown" for entry in conditions)


def _stopped(node: Object, case: Object, policy: Object, namespace: Object) -> bool:
    """Whether a user stops the repair."""
    labels, spec = part(node, "metadata", "labels"), part(case, "spec")
    return bool(
        names.PAUSED in part(namespace, "metadata", "annotations")
        or part(policy, "spec").get("mode", "Enforce") != "Enforce"
        or spec.get("hold")
        or spec.get("release")
        or (case and part(policy, "spec").get("approval") == "Required" and not spec.get("approved"))
        or labels.get(names.EXCLUDE, "false") != "false"
        or any(f"node-role.kubernetes.io/{role}" in labels for role in ROLES)
        or not part(node, "spec").get("unschedulable")
    )


def names_over(pod: Object, budgets: list[Object]) -> str:
    same = [budget for budget in budgets if budget["metadata"]["namespace"] == pod["metadata"]["namespace"]]
    return ",".join(sorted(budget["metadata"]["name"] for budget in same if selects(budget, pod)))


def selects(budget: Object, pod: Object) -> bool:
    """Models know matchLabels only."""
    wanted = part(budget, "spec", "selector").get("matchLabels") or {}
    labels = pod["metadata"].get("labels") or {}
    return all(labels.get(key) == value for key, value in wanted.items())

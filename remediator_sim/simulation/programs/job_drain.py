"""The model of a drain that knows jobs: what goes together, and who is asked for a checkpoint before."""

import json

from remediator.kube.wire.times import stamp
from remediator.kube.wire.transport import MERGE_PATCH
from remediator_sim.plain import Object
from remediator_sim.simulation.clock import now, true_time
from remediator_sim.simulation.programs import api, jobs
from remediator_sim.simulation.programs.api import ServerError, Unreachable, ask, is_ending, key_of, part
from remediator_sim.simulation.programs.drain import (
    RETRY_FIRST,
    RETRY_MOST,
    ROUND_MOST,
    Block,
    Drain,
    drain,
    eviction_of,
    is_judged,
    names_over,
    path_of,
    selects,
)
from remediator_sim.simulation.programs.drain_pods import ASKED, stays, strategy_of, why_owner_keeps
from remediator_sim.simulation.programs.run import Run

Step = tuple[Object, str]  # a Pod, and what is done with it


async def drain_jobs(run: Run) -> str:
    """Evict in rounds until no Pod is left."""
    return await drain(run, JobDrain)


class JobDrain(Drain):
    """A drain, and what it knows of gangs."""

    def __init__(self, run: Run, node: str) -> None:
        super().__init__(run, node)
        self._groups: dict[tuple[str, str], bool] = {}  # PodGroups: whether they go as a whole
        self._begun: set[tuple[str, ...]] = set()  # gangs of which a Pod has gone
        self._saved: dict[str, float] = {}  # by Pod: until when its checkpoint is waited for

    async def _never_going(self, steps: list[Step]) -> dict[str, Block]:
        """Pods whose gang is kept on another node, and those that two budgets select."""
        never: dict[str, Block] = {}
        if not any(self._due(pod, verb) for pod, verb in steps if verb in ASKED):
            return never
        for unit in await self._units(steps):
            gang, asks = await self._gang(unit[0][0]), [pod for pod, verb in unit if verb in ASKED]
            if asks and gang and gang not in self._begun and not any(is_ending(pod) for pod, _ in unit):
                why = await self._kept_elsewhere(asks[0], gang)
                kept = Block("", why, now() + RETRY_MOST)  # its time may end that, too
                never |= {pod["metadata"]["uid"]: kept for pod in asks if why}
        return never | await self._never_evicted([pod for pod, verb in steps if verb == "evict"])

    async def _never_evicted(self, pods: list[Object]) -> dict[str, Block]:
        """Pods that two budgets select, where they are not deleted later."""
        pods = [pod for pod in pods if strategy_of(pod, self._run.parameters) == "Evict"]
        pods = [pod for pod in pods if pod["metadata"].get("labels") and part(pod, "status").get("phase") != "Pending"]
        spaces = sorted({pod["metadata"]["namespace"] for pod in pods})
        budgets = [budget for space in spaces for budget in await self._budgets(space)]
        over = {pod["metadata"]["uid"]: names_over(pod, budgets) for pod in pods}
        return {uid: Block(names, "several budgets") for uid, names in over.items() if "," in names}

    async def _units(self, steps: list[Step]) -> list[list[Step]]:
        """The Pods in the groups in which they go."""
        units: dict[tuple[str, ...], list[Step]] = {}
        for pod, verb in steps:
            if verb not in ("skip", "leave"):
                units.setdefault(await self._gang(pod) or (pod["metadata"]["uid"],), []).append((pod, verb))
        return list(units.values())

    async def _gang(self, pod: Object) -> tuple[str, ...]:
        """The gang of a Pod; a PodGroup is asked for once whether it goes as a whole."""
        named, space, group = jobs.gang_of(pod), pod["metadata"]["namespace"], jobs.group_of(pod)
        if named or not group:
            return named
        if (space, group) not in self._groups:
            path = f"/apis/scheduling.k8s.io/v1beta1/namespaces/{space}/podgroups/{group}"
            reply = await ask(self._run, "GET", path)
            if reply.status in (410, 429):
                raise Unreachable(path)
            mode = part(json.loads(reply.body), "spec").get("disruptionMode") or {} if reply.status == 200 else {}
            self._groups[space, group] = "all" in mode if reply.status == 200 else reply.status != 404
        return (space, "PodGroup", group) if self._groups[space, group] else ()

    async def _ask_unit(self, unit: list[Step]) -> bool:
        """A gang goes as a whole, and who wants a checkpoint is asked before. Whether to go on."""
        staying, gang = [(pod, verb) for pod, verb in unit if not is_ending(pod)], await self._gang(unit[0][0])
        asks = [(pod, verb) for pod, verb in staying if verb in ASKED]
        wanted = [(pod, checkpoint) for pod, _ in asks if (checkpoint := jobs.checkpoint_of(pod))]
        intact = bool(gang) and len(staying) == len(unit) and gang not in self._begun
        whole = intact and len(unit) > 1
        if not asks or not (wanted or intact):
            return await super()._ask_unit(unit)
        if whole and len(asks) < len(staying):
            culprit = next(pod for pod, verb in staying if verb not in ASKED)
            for pod, _ in asks:
                self._blocks[pod["metadata"]["uid"]] = Block("", f"waits for {key_of(culprit)} of the same gang")
            return True
        if not (all if whole else any)(self._due(pod, verb) for pod, verb in asks):
            return True
        asked = all(checkpoint.asked(self._since) for _, checkpoint in wanted)
        if asked and not all(checkpoint.over() for _, checkpoint in wanted) and now() < self._last_call(asks):
            left = max(checkpoint.left() for _, checkpoint in wanted if not checkpoint.over())
            ends = min(self._last_call(asks), now() + left)
            self._saved |= {pod["metadata"]["uid"]: ends for pod, _ in asks}
            return self._keep(asks, wanted[0][0], "", "asked for a checkpoint", 0.0, self._soon(asks))
        if intact and (why := await self._kept_elsewhere(asks[0][0], gang)):
            return self._keep(asks, asks[0][0], "", why, 0.0, RETRY_MOST)
        if (whole or (wanted and len(unit) == 1)) and not await self._may_all_go(asks):
            return True
        if not asked:
            return await self._ask_for_checkpoints(asks, wanted)
        if not whole:
            return await super()._ask_unit(unit)
        if not await self._wait_for_turn(len(asks)):
            return False
        self._begun.add(gang)
        for pod, verb in asks:
            if verb != "force" or self._silent:
                await self._ask(pod, verb)
        return True

    def _last_call(self, asks: list[Step]) -> float:
        """From then on nobody of them is waited for: each must end within the drain's time."""
        graces: list[float] = [pod["spec"].get("terminationGracePeriodSeconds", 30) for pod, _ in asks]
        return self._deadline - min(max(60.0, max(graces) + 15.0), self._timeout / 2)

    def _stays_until(self, pod: Object) -> float:
        """A Pod that has been asked for a checkpoint answers in its annotations, or its time is over."""
        ends = self._saved.get(pod["metadata"]["uid"], 0.0)
        return ends if ends > now() and not is_ending(pod) else super()._stays_until(pod)

    def _soon(self, asks: list[Step]) -> float:
        return min(ROUND_MOST, max(0.1, self._last_call(asks) - now()))

    async def _ask_for_checkpoints(self, staying: list[Step], wanted: list[tuple[Object, jobs.Checkpoint]]) -> bool:
        if not await self._wait_for_turn(len(wanted)):
            return False
        for pod, checkpoint in wanted:
            if checkpoint.asked(self._since):
                continue
            meta = pod["metadata"]
            body = {"metadata": {"uid": meta["uid"], "annotations": {jobs.REQUESTED: stamp(true_time())}}}
            try:
                reply = await ask(self._run, "PATCH", path_of(pod), body, MERGE_PATCH)
                status = reply.status
            except ServerError:
                status = 500
            if status in (404, 409):
                return True
            if status >= 300:
                return self._keep(staying, pod, "", "cannot be asked for a checkpoint", 0.0, RETRY_MOST)
        return self._keep(staying, wanted[0][0], "", "asked for a checkpoint", 0.0, self._soon(staying))

    async def _kept_elsewhere(self, pod: Object, gang: tuple[str, ...]) -> str:
        """Why one of the gang on another node may not lose its work; "" where none says so, or it is lost already."""
        space = pod["metadata"]["namespace"]
        labels = (("labelSelector", "=".join(gang[1:])),) if gang[1] in jobs.LABELS else ()
        where = (("fieldSelector", f"spec.nodeName!={self._node}"), *labels)
        listed = await api.items(self._run, f"/api/v1/namespaces/{space}/pods", f"pods of {space}", where)
        members = [other for other in listed if not stays(other) and gang == await self._gang(other)]
        kept = {key_of(other): why_owner_keeps(other, self._scene(other)) for other in members}
        first = next((key for key in sorted(kept) if kept[key]), "")
        if not first or any(map(is_ending, members)):
            return ""
        return f"its gang goes as a whole, and {first} on another node may not: {kept[first]}"

    async def _may_all_go(self, asks: list[Step]) -> bool:
        """Whether each could be evicted, and the budgets let all go at once. Notes what does not."""
        evicts = [pod for pod, verb in asks if verb == "evict"]
        for pod in evicts:
            try:
                reply = await ask(self._run, "POST", f"{path_of(pod)}/eviction", eviction_of(pod), dry_run=True)
            except ServerError:
                names = await self._budgets_over(pod)
                self._note_judged(asks, is_judged("", names))
                return not self._keep(asks, pod, names, "", 0.0, RETRY_MOST)
            message = json.loads(reply.body).get("message", "")
            replaced = reply.status == 409 and "the UID in the precondition" in message
            if reply.status >= 300 and reply.status != 404 and not replaced:
                after = float(reply.headers.get("retry-after") or 0)
                names = await self._budgets_over(pod)
                self._note_judged(asks, is_judged(message, names))
                return not self._keep(asks, pod, names, message, after, RETRY_MOST)
        for budget in await self._budgets(evicts[0]["metadata"]["namespace"]) if len(evicts) > 1 else []:
            needed = sum(_is_ready(pod) and selects(budget, pod) for pod in evicts)
            if needed > part(budget, "status").get("disruptionsAllowed", 0):
                self._note_judged(asks, True)
                return not self._keep(asks, evicts[0], budget["metadata"]["name"], "", 0.0, RETRY_MOST)
        return True

    def _note_judged(self, asks: list[Step], judged: bool) -> None:
        """A unit goes as one, and is judged as one."""
        self._judged |= {pod["metadata"]["uid"] for pod, _ in asks if judged}

    def _keep(self, asks: list[Step], by: Object, names: str, message: str, after: float, most: float) -> bool:
        """Note what keeps a unit, and when to try again. True."""
        last = self._blocks.get(by["metadata"]["uid"])
        delay = min(most, last.delay * 2 if last and last.delay else RETRY_FIRST)
        due = now() + max(delay, min(after, RETRY_MOST))
        for pod, verb in asks:
            own = pod is by
            text = message if own else f"waits for {key_of(by)} of the same gang"
            self._blocks[pod["metadata"]["uid"]] = Block(names if own else "", text, due, delay, verb)
        return True


def _is_ready(pod: Object) -> bool:
    conditions = part(pod, "status").get("conditions") or []
    return any((condition["type"], condition["status"]) == ("Ready", "True") for condition in conditions)

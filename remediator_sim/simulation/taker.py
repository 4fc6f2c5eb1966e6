"""Somebody who takes nodes out and puts them back: what the commands `take-out` and `put-back` make and change.

A command that is not answered ends there, and whoever typed it may type it again.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

from remediator.kube import api
from remediator.kube.wire import errors
from remediator.kube.wire.client import Client
from remediator.kube.wire.times import stamp
from remediator_sim.invariants import contract, pod_words
from remediator_sim.invariants.contract import part
from remediator_sim.plain import NODES, PODS, SPACES, Object, of_node, plain

CASES, OPERATIONS = plain(api.CASE), plain(api.OPERATION)
TRIES = 5  # at a case that moves meanwhile


class Taker(NamedTuple):
    """One such user, whose commands reach the server by this client."""

    client: Client
    user: str

    async def take_out(self, node: str, until: datetime, reason: str = "") -> bool:
        """Ask for it, or for another time of what they have already; whether that did anything. Raises ApiError."""
        kept = [case for case in await self._cases(node) if _keeps(case)]
        if kept:
            return await self._keep_until(kept[0], until, reason)
        seen = await self.client.get(NODES, node)
        if await self._is_stopped(seen) or await self._is_asked_for(node):
            return False
        terms = {"until": stamp(until)} | ({"reason": reason} if reason else {})
        spec = {
            "nodeName": node,
            "nodeUID": seen["metadata"]["uid"],
            "templateName": contract.DRAINS,
            "requestedBy": self.user,
        }
        head = {"apiVersion": OPERATIONS.api_version, "kind": OPERATIONS.name}
        meta = {"generateName": f"take-out-{node[:30].rstrip('-.')}-"}
        await self.client.create(OPERATIONS, head | {"metadata": meta, "spec": spec | {"keepOut": terms}})
        return True

    async def put_back(self, node: str) -> bool:
        """End every take-out of a node, whoever has it; whether there was one to end. Raises ApiError."""
        ended = False
        for _ in range(TRIES):
            kept = [case for case in await self._cases(node) if _keeps(case) and not _ends(case)]
            try:
                for case in kept:
                    await self._end(case)
                    ended = True
                return ended
            except (errors.Conflict, errors.NotFound):
                continue
        return ended

    async def _cases(self, node: str) -> list[Object]:
        return of_node(await self.client.list_all(CASES), node)

    async def _keep_until(self, case: Object, until: datetime, reason: str) -> bool:
        name = contract.name(case)
        for _ in range(TRIES):
            terms = part(case, "spec", "keepOut")
            wanted = {"until": stamp(until), "reason": reason or terms.get("reason", "")}
            theirs = contract.asked_for(case).get("requestedBy", "") == self.user
            if not theirs or _ends(case) or wanted == terms | {"reason": terms.get("reason", "")}:
                return False
            meta = {"resourceVersion": case["metadata"]["resourceVersion"]}
            try:
                await self.client.patch(CASES, name, {"metadata": meta, "spec": {"keepOut": wanted}})
                return True
            except errors.Conflict:
                case = await self.client.get(CASES, name)
        return False

    async def _end(self, case: Object) -> None:
        """Give the node back; cancel what has not taken it yet."""
        meta = case["metadata"]
        if contract.phase(case) != "Escalated":
            await self.client.delete(CASES, meta["name"], uid=meta["uid"], version=meta["resourceVersion"])
            return
        spec = {"release": True, "releaseSetBy": self.user}
        version = {"resourceVersion": meta["resourceVersion"]}
        await self.client.patch(CASES, meta["name"], {"metadata": version, "spec": spec})

    async def _is_asked_for(self, node: str) -> bool:
        operations = of_node(await self.client.list_all(OPERATIONS), node)
        return any(
            each["spec"]["templateName"] == contract.DRAINS
            and "keepOut" in each["spec"]
            and not (each["spec"].get("caseUID") or contract.finished(each) or contract.deleted(each))
            for each in operations
        )

    async def _is_stopped(self, node: Object) -> bool:
        """Whether something would hold what is asked for until somebody takes that away."""
        space = await self.client.get(SPACES, contract.SYSTEM)
        paused = contract.PAUSED in part(space, "metadata", "annotations")
        return paused or any(_stops(node)) or await self._has_static_pods(contract.name(node))

    async def _has_static_pods(self, node: str) -> bool:
        pods = await self.client.list_all(PODS, namespace="kube-system")
        return any(map(pod_words.static, of_node(pods, node)))


def _stops(node: Object) -> Iterator[bool]:
    """What a user, another system or the node itself says against it."""
    notes, labels = (part(node, "metadata", word) for word in ("annotations", "labels"))
    yield labels.get(contract.EXCLUDE, "false") != "false"
    yield bool(part(node, "spec").get("unschedulable")) and contract.CORDONED_BY not in notes
    yield contract.of_control_plane(node)
    yield contract.maintained(node)


def _keeps(case: Object) -> bool:
    return bool(contract.kept_until(case)) and not contract.ended(case)


def _ends(case: Object) -> bool:
    """Whether somebody has given the node of it back, or cancelled it."""
    return contract.deleted(case) or part(case, "spec").get("release") is True

"""The model of the programs that restart the Pod of one DaemonSet on one node."""

import asyncio
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import NamedTuple

from remediator_sim.plain import Object, condition_status
from remediator_sim.simulation.clock import now
from remediator_sim.simulation.programs import api
from remediator_sim.simulation.programs.api import TAINT, Unreachable, ask, part
from remediator_sim.simulation.programs.run import Failed, NothingToDo, Refused, Run, Work

PATIENCE = 60.0  # seconds
PAUSE_FIRST, PAUSE_MOST = 0.3, 3.0
DAEMON_GENERATION, POD_GENERATION = "deprecated.daemonset.template.generation", "pod-template-generation"
GIVEN = {f"node.kubernetes.io/{name}" for name in ("not-ready", "unreachable", "disk-pressure", "memory-pressure")}
GIVEN |= {f"node.kubernetes.io/{name}" for name in ("pid-pressure", "unschedulable")}


class Meant(NamedTuple):
    """Which DaemonSet: in words, by patterns of its name. `needed`: the node does not become well without its Pod."""

    what: str
    names: tuple[str, ...]
    needed: bool


PLUGIN = Meant("device plugin", ("nvidia-device-plugin-daemonset", "nvidia-device-plugin"), needed=False)
AGENT = Meant("network agent", ("calico-node", "cilium", "kube-flannel"), needed=True)


def restart(meant: Meant) -> Work:
    """The model for one kind of DaemonSet."""

    async def work(run: Run) -> str:
        seconds = run.number("waitSeconds", 300, 1)
        until, sets = now() + PATIENCE, None
        while sets is None:
            try:
                await api.look(run)
                sets = await _find(run, meant)
            except Unreachable as error:
                if now() >= until:
                    raise Failed("the API server does not answer") from error
                await asyncio.sleep(1.0)
        return await Restart(run, meant, sets).work(seconds)

    return work


async def _find(run: Run, meant: Meant) -> dict[str, Object]:
    """The DaemonSets that are meant, by uid. Raises NothingToDo for none."""
    path = "/apis/apps/v1/daemonsets"
    wanted, space = run.parameters.get("daemonSet"), run.parameters.get("namespace", "")
    names = (wanted,) if wanted else meant.names
    listed = await api.items(run, path, path)
    fit = [each for each in listed if any(fnmatchcase(each["metadata"]["name"], name) for name in names)]
    fit = [each for each in fit if space in ("", each["metadata"]["namespace"])]
    if not fit:
        raise NothingToDo(f"no DaemonSet of {space or 'any namespace'} is a {meant.what} called ")
    return {each["metadata"]["uid"]: each for each in fit}


class Restart:
    """One restart on one node."""

    def __init__(self, run: Run, meant: Meant, sets: dict[str, Object]) -> None:
        self._run, self._meant, self._sets, self._node = run, meant, sets, run.env["NODE_NAME"]
        self._deleted: dict[str, str] = {}

    async def work(self, seconds: float) -> str:
        """Delete what is old and wait for what is new. Raises Failed when that takes longer."""
        until, pause = now() + seconds, PAUSE_FIRST
        while True:
            try:
                if sentence := await self._move():
                    return sentence
            except Unreachable:
                pass
            if now() >= until:
                raise Failed(f"{self._meant.what} of {self._node} after {seconds:g} s: ")
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, PAUSE_MOST)

    async def _move(self) -> str | None:
        """The sentence where it is over. Raises Refused, Unreachable."""
        operation, node = await api.look(self._run)
        if condition_status(node, "Ready") not in ("True", "False"):
            raise Refused(f"the kubelet of {self._node} does not report")
        pods = await self._pods()
        owners = sorted({_owner(pod) for pod in pods})
        if len(owners) > 1:
            raise Refused(f"several DaemonSets are a {self._meant.what} of this node")
        if owners:
            self._sets = {owners[0]: self._sets[owners[0]]}
        live = [pod for pod in pods if not pod["metadata"].get("deletionTimestamp")]
        since = operation["metadata"]["creationTimestamp"]
        old = [pod for pod in live if not self._deleted and pod["metadata"]["creationTimestamp"] < since]
        young = [pod for pod in live if pod["metadata"]["uid"] not in self._deleted]
        if old:
            await self._delete(min(old, key=lambda pod: str(pod["metadata"]["creationTimestamp"])), node)
            return None
        if ready := [pod for pod in young if condition_status(pod, "Ready") == "True"]:
            return self._done(ready[0])
        return None if young else self._foresee(node)

    def _done(self, pod: Object) -> str:
        if not self._deleted:
            return f"nothing to restart: Pod {_key(pod)} is Ready and younger than attempt {self._run.attempt}"
        return f"restarted the {self._meant.what} of {self._node}: Pod {_key(pod)} is Ready in place of "

    def _foresee(self, node: Object) -> str | None:
        """Heed the taints that keep a new Pod off: the sentence where it comes only later. Raises Refused."""
        off = _kept_off(node, self._sets.values())
        fatal = [key for key in off if self._meant.needed or key != TAINT]
        if fatal and not self._deleted:
            raise Refused(f"the DaemonSet does not tolerate {fatal[0]}:")
        if not off or fatal:
            return None
        gone = ", ".join(self._deleted.values())
        return f"Pod {gone} was deleted; " if gone else "nothing to delete, "

    async def _delete(self, pod: Object, node: Object) -> None:
        self._foresee(node)
        self._require_same_version(pod)
        meta = pod["metadata"]
        path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}"
        only = {part: meta[part] for part in ("uid", "resourceVersion")}
        reply = await ask(
            self._run, "DELETE", path, {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": only}
        )
        if reply.status < 300:
            self._deleted[meta["uid"]] = _key(pod)
        elif reply.status not in (404, 409, 429):
            raise Failed(f"Pod {_key(pod)} could not be deleted")

    def _require_same_version(self, pod: Object) -> None:
        daemon_set = self._sets[_owner(pod)]
        if part(daemon_set, "spec", "updateStrategy").get("type") != "OnDelete":
            return
        newest = part(daemon_set, "metadata", "annotations").get(DAEMON_GENERATION)
        if newest is None or newest != part(pod, "metadata", "labels").get(POD_GENERATION):
            raise Refused("the DaemonSet updates OnDelete and has another version by now")

    async def _pods(self) -> list[Object]:
        where = (("fieldSelector", f"spec.nodeName={self._node}"),)
        spaces = sorted({each["metadata"]["namespace"] for each in self._sets.values()})
        paths = [f"/api/v1/namespaces/{space}/pods" for space in spaces]
        return [
            pod for path in paths for pod in await api.items(self._run, path, path, where) if _owner(pod) in self._sets
        ]


def _key(obj: Object) -> str:
    return f"{obj['metadata']['namespace']}/{obj['metadata']['name']}"


def _owner(pod: Object) -> str:
    owners = [owner for owner in pod["metadata"].get("ownerReferences") or () if owner.get("controller")]
    return next((owner["uid"] for owner in owners if owner.get("kind") == "DaemonSet"), "")


def _kept_off(node: Object, sets: Iterable[Object]) -> list[str]:
    """The keys of the taints for which none of the DaemonSets gets a new Pod on the node."""
    accepted = [part(each, "spec", "template", "spec").get("tolerations") or () for each in sets]
    taints = [taint for taint in part(node, "spec").get("taints") or () if taint["key"] not in GIVEN]
    hard = [taint for taint in taints if taint.get("effect") in ("NoSchedule", "NoExecute")]
    return [
        taint["key"]
        for taint in hard
        if not any(_tolerates(toleration, taint) for tolerations in accepted for toleration in tolerations)
    ]


def _tolerates(toleration: Object, taint: Object) -> bool:
    same = toleration.get("operator", "Equal") == "Exists" or toleration.get("value", "") == taint.get("value", "")
    fits = toleration.get("effect") in (None, "", taint["effect"]) and toleration.get("key") in (None, "", taint["key"])
    return fits and same

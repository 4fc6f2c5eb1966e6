"""The model of the programs that restart the Pod of one DaemonSet on one node."""

import asyncio
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import NamedTuple

from remediator_sim.plain import Object, condition_status
from remediator_sim.simulation.clock import now
from remediator_sim.simulation.programs import api
from remediator_sim.simulation.programs.api import Unreachable, ask, is_ending, key_of, part
from remediator_sim.simulation.programs.run import Failed, NothingToDo, Refused, Run, Work

PATIENCE = 60.0  # seconds
HARD = ("NoSchedule", "NoExecute")
PAUSE_FIRST, PAUSE_MOST = 0.3, 3.0
DAEMON_GENERATION, POD_GENERATION = "deprecated.daemonset.template.generation", "pod-template-generation"
# What every Pod of a DaemonSet tolerates, as (name, effect); the last one only on the network of its node.
GIVEN = (
    ("not-ready", "NoExecute"),
    ("unreachable", "NoExecute"),
    ("disk-pressure", "NoSchedule"),
    ("memory-pressure", "NoSchedule"),
    ("pid-pressure", "NoSchedule"),
    ("unschedulable", "NoSchedule"),
    ("network-unavailable", "NoSchedule"),
)


class Meant(NamedTuple):
    """Which DaemonSet: in words, by patterns of its name."""

    what: str
    names: tuple[str, ...]


PLUGIN = Meant("device plugin", ("nvidia-device-plugin-daemonset", "nvidia-device-plugin"))
AGENT = Meant("network agent", ("calico-node", "cilium", "kube-flannel"))


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
        elif not self._deleted:
            self._foresee(node)  # no Pod there, and none is on its way
            return None
        live = [pod for pod in pods if not is_ending(pod)]
        since = operation["metadata"]["creationTimestamp"]
        old = [pod for pod in live if not self._deleted and pod["metadata"]["creationTimestamp"] < since]
        young = [pod for pod in live if pod["metadata"]["uid"] not in self._deleted]
        if old:
            self._foresee(node)
            await self._delete(min(old, key=lambda pod: str(pod["metadata"]["creationTimestamp"])))
        elif ready := [pod for pod in young if condition_status(pod, "Ready") == "True"]:
            return self._done(ready[0])
        elif not young:
            self._foresee(node)
        return None

    def _done(self, pod: Object) -> str:
        if not self._deleted:
            return f"nothing to restart: Pod {key_of(pod)} is Ready and younger than attempt {self._run.attempt}"
        return f"restarted the {self._meant.what} of {self._node}: Pod {key_of(pod)} is Ready in place of "

    def _foresee(self, node: Object) -> None:
        """Heed the taints that keep a new Pod off, as long as nothing is deleted. Raises Refused."""
        off = [] if self._deleted else _kept_off(node, self._sets.values())
        if off:
            taints = " and ".join(f"{taint['key']}:{taint['effect']}" for taint in off)
            raise Refused(f"the DaemonSet does not tolerate {taints}, so no new Pod would come: ")

    async def _delete(self, pod: Object) -> None:
        self._require_same_version(pod)
        meta = pod["metadata"]
        path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}"
        only = {part: meta[part] for part in ("uid", "resourceVersion")}
        reply = await ask(
            self._run, "DELETE", path, {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": only}
        )
        if reply.status < 300:
            self._deleted[meta["uid"]] = key_of(pod)
        elif reply.status not in (404, 409, 429):
            raise Failed(f"Pod {key_of(pod)} could not be deleted")

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


def _owner(pod: Object) -> str:
    owners = [owner for owner in pod["metadata"].get("ownerReferences") or () if owner.get("controller")]
    return next((owner["uid"] for owner in owners if owner.get("kind") == "DaemonSet"), "")


def _kept_off(node: Object, sets: Iterable[Object]) -> list[Object]:
    """The taints for which none of the DaemonSets gets a new Pod on the node."""
    accepted = [toleration for each in sets for toleration in _tolerations(part(each, "spec", "template", "spec"))]
    hard = [taint for taint in part(node, "spec").get("taints") or () if taint.get("effect") in HARD]
    return [taint for taint in hard if not any(_tolerates(toleration, taint) for toleration in accepted)]


def _tolerations(pod: Object) -> list[Object]:
    given = GIVEN if pod.get("hostNetwork") else GIVEN[:-1]
    always = [{"key": f"node.kubernetes.io/{name}", "operator": "Exists", "effect": effect} for name, effect in given]
    return [*(pod.get("tolerations") or ()), *always]


def _tolerates(toleration: Object, taint: Object) -> bool:
    operator = toleration.get("operator") or "Equal"
    same = operator == "Equal" and (toleration.get("value") or "") == (taint.get("value") or "")
    fits = toleration.get("effect") in (None, "", taint["effect"]) and toleration.get("key") in (None, "", taint["key"])
    return fits and (operator == "Exists" or same)

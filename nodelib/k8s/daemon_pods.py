"""The Pod of one DaemonSet on one node, taken away so that the DaemonSet makes another.

What is wanted is a state: a Ready Pod that is younger than this attempt, and no older one. So a second start finds what
the first one left and deletes nothing twice. Ages are compared by metadata.creationTimestamp alone, of the Pod and of
the NodeOperation: both are the API server's clock.
"""

import os
import time
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Any, NamedTuple
from urllib.parse import quote

from nodelib.contract.operation import Environment, Failed, NothingToDo, Refused
from nodelib.contract.parameters import number, text
from nodelib.k8s.api import Api, Unreachable
from nodelib.k8s.case import OperationAndNode, look, patiently
from nodelib.k8s.daemon_steps import Delete, Done, Object, Wait, foresee, key, move, owner
from nodelib.k8s.taints import kept_off

PAGE = 100
PATIENCE = 60.0  # seconds that the API server may take to answer before anything was done
PAUSE_FIRST, PAUSE_MOST = 0.3, 3.0
ON_DELETE = "the DaemonSet updates OnDelete and has another version by now"
# What the DaemonSet controller itself compares to tell whether a Pod is of the current version.
DAEMON_GENERATION, POD_GENERATION = "deprecated.daemonset.template.generation", "pod-template-generation"


class WantedDaemonSet(NamedTuple):
    """Which DaemonSet is meant: what it is, in words; patterns of its name; its namespace, "" for any, and labels.

    `otherwise`: what to do where there is none.
    """

    what: str
    names: Sequence[str]
    otherwise: str = ""
    namespace: str = ""
    labels: tuple[tuple[str, str], ...] = ()

    def fits(self, daemon_set: Object) -> bool:
        """Tell whether a DaemonSet is the one."""
        meta = daemon_set["metadata"]
        labels = meta.get("labels") or {}
        return (
            self.namespace in ("", meta["namespace"])
            and any(fnmatchcase(meta["name"], name) for name in self.names)
            and all(labels.get(key) == value for key, value in self.labels)
        )


def read_wanted(parameters: dict[str, Any], kind: WantedDaemonSet) -> WantedDaemonSet:
    """Return which DaemonSet is meant: `kind`, as PARAMETERS narrow it. Raises Refused for nonsense."""
    name, selector = text(parameters, "daemonSet"), text(parameters, "selector")
    pairs = [part.partition("=") for part in selector.split(",")] if selector else []
    if not all(key and sign for key, sign, _ in pairs):
        raise Refused(f"PARAMETERS.selector is {selector!r}: write label=value, with commas between several")
    labels = tuple((key.strip(), value.lstrip("=").strip()) for key, _, value in pairs)
    names = [name] if name else ["*"] if labels else kind.names
    return kind._replace(names=names, namespace=text(parameters, "namespace"), labels=labels)


def of_the_node(daemon_set: Object) -> bool:
    """Tell whether its Pods mount something of the node, as a device plugin and a CNI must.

    Whoever has a namespace may call a DaemonSet so; Pod Security lets them mount nothing.
    """
    pod = ((daemon_set.get("spec") or {}).get("template") or {}).get("spec") or {}
    return any("hostPath" in volume for volume in pod.get("volumes") or [])


def require_same_version(daemon_set: Object, pod: Object) -> None:
    """Raise Refused when deleting `pod` would bring another version up that nobody has rolled out here yet."""
    if ((daemon_set.get("spec") or {}).get("updateStrategy") or {}).get("type") != "OnDelete":
        return
    now = (daemon_set["metadata"].get("annotations") or {}).get(DAEMON_GENERATION)
    then = (pod["metadata"].get("labels") or {}).get(POD_GENERATION)
    if now is None or now != then:
        raise Refused(
            f"{ON_DELETE} ({now or 'unknown'}, Pod {key(pod)} has {then or 'unknown'}): a restart would change it; "
            "roll the DaemonSet out on this node first"
        )


def listed(api: Api, path: str, **query: str) -> Iterator[Object]:
    """Yield the objects of a list, page by page. Raises Unreachable, or Failed when not allowed."""
    query["limit"] = str(PAGE)
    while True:
        reply = api.get(path, **query)
        if reply.status != 200:
            raise Failed(f"{path} cannot be listed: {reply.message}")
        yield from reply.body.get("items") or []
        query["continue"] = (reply.body.get("metadata") or {}).get("continue") or ""
        if not query["continue"]:
            return


def find_sets(api: Api, wanted: WantedDaemonSet) -> dict[str, Object]:
    """Return the DaemonSets that are meant, by uid. Raises NothingToDo for none."""
    spaced = f"/namespaces/{quote(wanted.namespace)}" if wanted.namespace else ""
    sets = [daemon_set for daemon_set in listed(api, f"/apis/apps/v1{spaced}/daemonsets") if wanted.fits(daemon_set)]
    if not sets:
        asked = [*wanted.names, *(f"{label}={value}" for label, value in wanted.labels)]
        raise NothingToDo(
            f"no DaemonSet of {wanted.namespace or 'any namespace'} is a {wanted.what} called {', '.join(asked)}: "
            f"name yours in PARAMETERS.daemonSet and PARAMETERS.namespace{wanted.otherwise}"
        )
    return {daemon_set["metadata"]["uid"]: daemon_set for daemon_set in sets}


class Restart:
    """One restart on one node; `what` as in WantedDaemonSet."""

    def __init__(self, api: Api, environment: Environment, sets: dict[str, Object], what: str):
        self.api, self.environment, self.sets, self.what = api, environment, sets, what
        self.deleted: dict[str, str] = {}  # uid and key of each Pod that we deleted

    def run(self, seconds: float) -> str:
        """Delete what is old and wait for what is new. Raises Failed when that takes longer than `seconds`."""
        until, pause, why = time.monotonic() + seconds, PAUSE_FIRST, ""
        while True:
            try:
                step = self.next_move()
                if isinstance(step, Done):
                    return self.sentence(step)
                why = self.delete(step.pod) if isinstance(step, Delete) else step.why
            except Unreachable as error:
                why = f"the API server does not answer: {error}"
            if time.monotonic() >= until:
                raise Failed(f"{self.what} of {self.environment.node} after {seconds:g} s: {why}")
            time.sleep(pause)
            pause = min(pause * 1.5, PAUSE_MOST)

    def next_move(self) -> Delete | Wait | Done:
        """Look afresh at operation, node and Pods, and say what comes next. Raises Refused, Unreachable."""
        seen = look(self.api, self.environment)
        require_kubelet(seen)
        pods = self.pods()
        owners = sorted({owner(pod) for pod in pods}, key=lambda uid: key(self.sets[uid]))
        if len(owners) > 1:
            owners = [uid for uid in owners if of_the_node(self.sets[uid])] or owners
        if len(owners) > 1:
            names = ", ".join(key(self.sets[uid]) for uid in owners)
            raise Refused(f"several DaemonSets are a {self.what} of this node, name one in PARAMETERS: {names}")
        if owners:
            self.sets = {owners[0]: self.sets[owners[0]]}  # from now on only this one
            pods = [pod for pod in pods if owner(pod) in self.sets]
        elif not self.deleted:
            return self.foreseen(Wait(f"{self.named()} has no Pod there"), seen)
        step = move(pods, seen.operation["metadata"]["creationTimestamp"], self.deleted)
        return step if isinstance(step, Done) else self.foreseen(step, seen)

    def foreseen(self, step: Delete | Wait, seen: OperationAndNode) -> Delete | Wait:
        """Heed the node's taints. Raises Refused."""
        return foresee(step, kept_off(seen.node, self.sets.values()), bool(self.deleted))

    def named(self) -> str:
        """The DaemonSets that are meant."""
        return " and ".join(key(daemon_set) for daemon_set in self.sets.values())

    def pods(self) -> list[Object]:
        """Return the Pods of our DaemonSets on the node. Raises Unreachable."""
        spaces = sorted({daemon_set["metadata"]["namespace"] for daemon_set in self.sets.values()})
        here = f"spec.nodeName={self.environment.node}"
        return [
            pod
            for space in spaces
            for pod in listed(self.api, f"/api/v1/namespaces/{quote(space)}/pods", fieldSelector=here)
            if owner(pod) in self.sets
        ]

    def delete(self, pod: Object) -> str:
        """Delete exactly this Pod as it was read and say how that went. Raises Refused, Failed, Unreachable."""
        require_same_version(self.sets[owner(pod)], pod)
        reply = self.api.request("DELETE", path_of(pod), options_of(pod))
        if reply.status < 300:
            self.deleted[pod["metadata"]["uid"]] = key(pod)
            return f"Pod {key(pod)} is still ending"
        if reply.status not in (404, 409, 429):  # gone, or changed since it was read: the next list tells
            raise Failed(f"Pod {key(pod)} could not be deleted: {reply.message}")
        return f"Pod {key(pod)} could not be deleted: {reply.message}"

    def sentence(self, step: Done) -> str:
        """Say what was done."""
        gone = ", ".join(self.deleted.values())
        pod = key(step.pod)
        if not gone:
            return f"nothing to restart: Pod {pod} is Ready and younger than attempt {self.environment.attempt}"
        return f"restarted the {self.what} of {self.environment.node}: Pod {pod} is Ready in place of {gone}"

    def preview(self) -> str:
        """Print what would be done now and return the sentence. Raises Refused, Unreachable."""
        step = self.next_move()
        if isinstance(step, Done):
            return self.sentence(step)
        if isinstance(step, Wait):
            return f"would wait: {step.why}"
        require_same_version(self.sets[owner(step.pod)], step.pod)
        print(f"would DELETE {path_of(step.pod)} with {options_of(step.pod)['preconditions']}")
        return f"would delete Pod {key(step.pod)} and wait for another of {self.named()}"


def require_kubelet(seen: OperationAndNode) -> None:
    """Raise Refused when nobody on the node would stop the old Pod and start a new one."""
    if seen.ready not in ("True", "False"):
        name = seen.node["metadata"]["name"]
        raise Refused(f"the kubelet of {name} does not report, nothing there would start a new Pod: reboot the node")


def path_of(pod: Object) -> str:
    """Its address at the API server."""
    return f"/api/v1/namespaces/{quote(pod['metadata']['namespace'])}/pods/{quote(pod['metadata']['name'])}"


def options_of(pod: Object) -> Object:
    """Return the DeleteOptions that fit this Pod only, and only while it is as it was read."""
    only_this = {part: pod["metadata"][part] for part in ("uid", "resourceVersion")}
    return {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": only_this}


def restart(environment: Environment, dry_run: bool, kind: WantedDaemonSet) -> str:
    """Restart the Pod of one DaemonSet on the node of this environment and return the sentence."""
    seconds = number(environment.parameters, "waitSeconds", 300, least=1)
    wanted = read_wanted(environment.parameters, kind)
    api = Api(os.environ, environment.token_dir)
    patiently(lambda: look(api, environment), PATIENCE)
    sets = patiently(lambda: find_sets(api, wanted), PATIENCE)
    work = Restart(api, environment, sets, wanted.what)
    return patiently(work.preview, PATIENCE) if dry_run else work.run(seconds)

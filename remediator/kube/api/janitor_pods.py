"""Pods as the janitor reads them: what they hold, how their containers end, and what they wait for."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from remediator.core import names
from remediator.core.pod_facts import ContainerExit, ContainerFacts, PodFacts, Scheduling
from remediator.core.text import printable
from remediator.kube.api import working_pods
from remediator.kube.api.builtin import PodCondition, Waiting
from remediator.kube.api.common import Base, ObjectMeta
from remediator.kube.api.decode.times import LATEST, moment, moment_of_node
from remediator.kube.wire.client import Kind

SHOWN = 300  # letters of what others say of a Pod
LONGEST = 256  # letters of a text that may mean something: a time, or a name of at most 253
MOST_LABELS = 4096  # letters of the labels of one Pod that are kept


class JanitorContainerRunning(Base, frozen=True, kw_only=True):
    """A container that runs. Times of a kubelet are text: one that is odd must not hide the Pod."""

    started_at: str | None = None


class JanitorContainerTerminated(Base, frozen=True, kw_only=True):
    """How a container ended."""

    exit_code: int = -1
    reason: str = ""
    started_at: str | None = None
    finished_at: str | None = None


class JanitorContainerState(Base, frozen=True, kw_only=True):
    """Whether it waits, runs, or has ended."""

    waiting: Waiting | None = None
    running: JanitorContainerRunning | None = None
    terminated: JanitorContainerTerminated | None = None


class JanitorContainerStatus(Base, frozen=True, kw_only=True):
    """One container, now and before."""

    name: str = ""
    restart_count: int = 0
    state: JanitorContainerState = JanitorContainerState()
    last_state: JanitorContainerState = JanitorContainerState()


class JanitorPodCondition(PodCondition, frozen=True, kw_only=True):
    """One entry of a Pod's status.conditions, with its time."""

    last_transition_time: str | None = None


class JanitorPodSpec(working_pods.WorkingPodSpec, frozen=True, kw_only=True):
    """Where a Pod runs, what it asks for, and who is to find a node for it."""

    scheduler_name: str = ""


class JanitorPodStatus(working_pods.WorkingPodStatus, frozen=True, kw_only=True):
    """How far it is, and its containers."""

    conditions: tuple[JanitorPodCondition, ...] = ()
    init_container_statuses: tuple[JanitorContainerStatus, ...] = ()
    container_statuses: tuple[JanitorContainerStatus, ...] = ()


class JanitorPod(Base, frozen=True, kw_only=True):
    """A Pod."""

    metadata: ObjectMeta
    spec: JanitorPodSpec = JanitorPodSpec()
    status: JanitorPodStatus = JanitorPodStatus()


GO_ON = "status.phase!=Succeeded,status.phase!=Failed"  # the field selector of Pods that have not ended
POD: Kind[JanitorPod] = Kind("", "v1", "pods", "Pod", JanitorPod, namespaced=True)


def goes_on(wire: JanitorPod) -> bool:
    """Whether a Pod has not ended, nobody deletes it, and it is no picture of a file of its node."""
    meta = wire.metadata
    ended = wire.status.phase in ("Succeeded", "Failed")
    return not (ended or meta.deletion_timestamp or names.MIRROR in meta.annotations)


def facts(wire: JanitorPod, annotations: Iterable[str]) -> PodFacts:
    """The Pod, with these of its annotations."""
    meta, spec, status = wire.metadata, wire.spec, wire.status
    scheduled = next((each for each in status.conditions if each.type == "PodScheduled"), None)
    all_labels = sum(len(name) + len(value) for name, value in meta.labels.items()) <= MOST_LABELS
    return PodFacts(
        meta.namespace,
        meta.name,
        meta.uid,
        working_pods.gpus(spec),
        moment(status.start_time),
        {name: kept(meta.annotations[name]) for name in annotations if name in meta.annotations},
        meta.labels if all_labels else {},
        containers=len(spec.containers or ()),
        states=(
            *_states(status.init_container_statuses, init=True),
            *_states(status.container_statuses, init=False),
        ),
        pending=status.phase == "Pending",
        created=moment(meta.creation_timestamp),
        unchanged=_unchanged(wire),
        scheduling=_scheduling(scheduled) if scheduled else None,
        scheduler=kept(spec.scheduler_name),
        all_labels=all_labels,
        node=kept(spec.node_name or ""),
    )


def kept(text: str) -> str:
    """What is kept of a text that anybody may write: one that is too long to mean anything means nothing when cut.

    >>> kept("30d"), len(kept(300 * "1h")), kept(300 * "1h")[-3:]
    ('30d', 256, 'h1…')
    """
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _scheduling(scheduled: JanitorPodCondition) -> Scheduling | None:
    if scheduled.status == "True":
        return Scheduling("", "")
    return Scheduling(kept(scheduled.reason), printable(scheduled.message)[:SHOWN])


def _unchanged(wire: JanitorPod) -> datetime | None:
    """The latest of its creation and of the changes of its Conditions; None where one of them is no time."""
    times = [moment_of_node(each.last_transition_time) for each in wire.status.conditions]
    changes = [moment(wire.metadata.creation_timestamp), *(at for at in times if at is not None)]
    known = [at for at in changes if at is not None]
    return max(known) if len(known) == len(changes) and LATEST not in known else None


def _states(statuses: tuple[JanitorContainerStatus, ...], *, init: bool) -> Iterator[ContainerFacts]:
    for status in statuses:
        waiting, running = status.state.waiting, status.state.running
        ended = status.last_state.terminated or status.state.terminated
        yield ContainerFacts(
            status.name,
            status.restart_count,
            (kept(waiting.reason), printable(waiting.message)[:SHOWN]) if waiting else None,
            _time(running.started_at) if running else None,
            _exit(ended) if ended else None,
            init,
        )


def _exit(ended: JanitorContainerTerminated) -> ContainerExit:
    return ContainerExit(
        ended.exit_code, printable(ended.reason)[:SHOWN], _time(ended.started_at), _time(ended.finished_at)
    )


def _time(text: str | None) -> datetime | None:
    at = moment_of_node(text)
    return None if at == LATEST else at


# --- what the author of a Pod asked for, for him to look at ---------------------------------------------------------

MOST_NAMES = 16


def manifest(pod: dict[str, Any]) -> str:
    """What a Pod runs, on one line. Values of variables, and arguments, may be secrets: they are left out.

    >>> manifest({"spec": {"containers": [{"name": "main", "image": "x:1", "command": ["python", "--token=abc"],
    ...     "env": [{"name": "KEY", "value": "abc"}], "resources": {"limits": {"cpu": "1"}}}]}})
    'container main: image x:1, command python and 1 more, limits cpu=1, env KEY'
    """
    spec = pod.get("spec") or {}
    kinds = (("init container", "initContainers"), ("container", "containers"))
    return "; ".join(
        f"{kind} {container.get('name', '')}: {', '.join(filter(None, _asked(container)))}"
        for kind, field in kinds
        for container in spec.get(field) or ()
        if isinstance(container, dict)
    )


def _asked(container: dict[str, Any]) -> Iterator[str]:
    yield f"image {printable(str(container.get('image', '')))[:128]}"
    if command := container.get("command") or []:
        more = f" and {len(command) - 1} more" if len(command) > 1 else ""
        yield f"command {printable(str(command[0]).partition(' ')[0])[:64]}{more}"
    if args := container.get("args") or []:
        yield f"{len(args)} args"
    for kind, quantities in sorted((container.get("resources") or {}).items()):
        if isinstance(quantities, dict) and quantities:
            yield f"{kind} " + " ".join(f"{name}={value}" for name, value in sorted(quantities.items()))
    if env := [str(each.get("name", "")) for each in container.get("env") or () if isinstance(each, dict)]:
        yield "env " + " ".join(env[:MOST_NAMES])
    yield from (probe for probe in ("livenessProbe", "startupProbe") if container.get(probe))

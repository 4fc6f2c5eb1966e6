"""`remediator why` and `remediator what-if`: which nodes take a Pod, and what would make more of them take it."""

import asyncio
import json
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from remediator.cli.common import DOMAINS, GangTopology, Kubeconfig, Namespace, app, asking, incomplete, out, refusal
from remediator.clock import SYSTEM
from remediator.core import names
from remediator.core.shared_gpus import MOST_CARDS, MOST_MEMORY, Ask
from remediator.settings import Settings

if TYPE_CHECKING:
    from remediator.kube.api import gpu_pods
    from remediator.kube.wire.client import Client
    from remediator.scheduler.gang.told import Gang
    from remediator.scheduler.outlook import Outlook
    from remediator.scheduler.verdict import Shape
    from remediator.scheduler.why import NodeClass

SHOWN = 3  # names of nodes in a line
MOST_PODS = 100_000


class Form(StrEnum):
    """How the answer is printed."""

    TEXT = "text"
    JSON = "json"


Output = Annotated[Form, typer.Option("--output", "-o", help="For people, or for programs.")]


@app.command()
def why(
    pod: Annotated[str, typer.Argument(help="NAME, or NAMESPACE/NAME. NAME alone is in the namespace default.")],
    kubeconfig: Kubeconfig = None,
    namespace: Namespace = names.SYSTEM_NAMESPACE,
    output: Output = Form.TEXT,
    gang_topology: GangTopology = DOMAINS,
) -> None:
    """Say which nodes take a Pod, which do not, and what would make it fit. Exit 1 where none does. Changes nothing."""
    try:
        settings = Settings(namespace=namespace, gang_topology=gang_topology)
    except ValueError as wrong:
        raise refusal(wrong) from None
    raise typer.Exit(asyncio.run(_why(pod, kubeconfig, settings, output)))


@app.command(name="what-if")
def what_if(
    gpus: Annotated[int, typer.Option(min=0, max=1024, help="Whole GPUs of one Pod.")] = 0,
    gpu_memory: Annotated[
        int, typer.Option(min=0, max=MOST_MEMORY, help="Instead: what one Pod requests of aliyun.com/gpu-mem.")
    ] = 0,
    cards: Annotated[int, typer.Option(min=1, max=MOST_CARDS, help="Its memory lies on so many GPUs.")] = 1,
    replicas: Annotated[int, typer.Option(min=1, max=MOST_PODS, help="How many such Pods.")] = 1,
    resource: Annotated[str, typer.Option(help="What the Pods request.")] = "nvidia.com/gpu",
    attributes: Annotated[str, typer.Option(help=f"As in the annotation {names.GPU}, such as memory>=40G.")] = "",
    kubeconfig: Kubeconfig = None,
    namespace: Namespace = names.SYSTEM_NAMESPACE,
    output: Output = Form.TEXT,
) -> None:
    """Say whether so many Pods with GPUs would find nodes now. Exit 1 where not all do. Changes nothing."""
    from remediator.kube.api import gpu_pods
    from remediator.scheduler.attributes.selector import ANYTHING, selector
    from remediator.scheduler.verdict import Shape

    if bool(gpus) == bool(gpu_memory):
        raise refusal("say what one Pod requests: --gpus for whole GPUs, or --gpu-memory for memory of shared ones")
    if gpu_memory % cards or (gpus and cards > 1):
        raise refusal(f"--cards: --gpu-memory must be a multiple of it, and is {gpu_memory} with {cards} cards")
    if not gpu_pods.is_gpu(resource):
        raise refusal(f"--resource is {resource!r}, which does not count as a GPU; name one such as nvidia.com/gpu")
    asked = selector(attributes, None, None) if attributes else ANYTHING
    if asked.mistake:
        raise refusal(f"--attributes: {asked.mistake.removeprefix(names.GPU + ': ')}")
    shape = Shape(((resource, gpus),) if gpus else (), attributes=asked, memory=Ask(gpu_memory, cards))
    raise typer.Exit(asyncio.run(_what_if(shape, replicas, kubeconfig, names.Namespaces(namespace), output)))


async def _why(name: str, kubeconfig: Path | None, settings: Settings, form: Form) -> int:
    from remediator.scheduler.extender import shape_of
    from remediator.scheduler.outlook import outlook
    from remediator.scheduler.protocol import Malformed
    from remediator.scheduler.why import classes

    space, _, short = name.rpartition("/")
    space = space or "default"
    async with asking(kubeconfig) as client:
        pod, message = await _pod(client, space, short)
        try:
            shape = shape_of(pod, shared=True)
        except Malformed as wrong:
            raise refusal(wrong) from None
        shared = bool(shape.memory.memory)
        seen = await outlook(client, settings.namespaces, SYSTEM, settings.domains, shared)
    incomplete(seen.left_out)
    met = classes(seen.rows, seen.cordoned, shape, seen.open is not None)
    at, gang = pod.spec.node_name or "", _gang(pod, shape, seen)
    fitting = sum(len(each.nodes) for each in met if each.fits)
    report = {"pod": f"{space}/{short}", "requests": _requests(shape), "node": at, "fits": fitting}
    report |= {"classes": list(map(_object, met)), "scheduler": message, "health": seen.health}
    report |= {"gang": _gang_object(gang) if gang else None}
    state = f"runs on {at}" if at else "waits"
    lines = [f"{space}/{short} requests {_words(shape)} and {state}; {fitting} of {len(seen.rows)} nodes take it"]
    lines += _lines(met) + (gang.lines() if gang else [])
    lines += [f"kube-scheduler says: {message}"] if message else []
    _print(form, report, [*lines, seen.health])
    return 0 if at or fitting else 1


async def _pod(client: "Client", space: str, name: str) -> "tuple[gpu_pods.GpuPod, str]":
    """A Pod, and what kube-scheduler says of it while it waits. Exit 2 where there is none."""
    from remediator.kube.api import builtin, gpu_pods
    from remediator.kube.wire import errors

    try:
        pod = await client.get(gpu_pods.POD, name, namespace=space)
        wire = await client.get(builtin.POD, name, namespace=space)
    except errors.NotFound:
        raise refusal(f"no Pod {space}/{name} in the cluster; name one as NAMESPACE/NAME") from None
    scheduled = next((row for row in wire.status.conditions if row.type == "PodScheduled"), None)
    return pod, scheduled.message if scheduled is not None and not pod.spec.node_name else ""


def _gang(pod: "gpu_pods.GpuPod", shape: "Shape", seen: "Outlook") -> "Gang | None":
    """Of a Pod that belongs to one and requests GPUs; others prefer no domain."""
    from remediator.scheduler.gang.told import gang, rooms_of

    if pod.gang is None or not shape.gang:
        return None
    rooms = rooms_of(seen.rows, shape, seen.open is not None, seen.topology)
    return gang(str(pod.gang), pod.gang_size, seen.siblings.of(pod.gang), seen.topology, rooms)


async def _what_if(
    shape: "Shape", replicas: int, kubeconfig: Path | None, namespaces: names.Namespaces, form: Form
) -> int:
    from remediator.scheduler.outlook import outlook
    from remediator.scheduler.what_if import what_if as placed

    async with asking(kubeconfig) as client:
        seen = await outlook(client, namespaces, SYSTEM, shared=bool(shape.memory.memory))
    incomplete(seen.left_out)
    plan = placed(seen.rows, seen.cordoned, shape, replicas, seen.open is not None)
    report: dict[str, Any] = {"requests": _requests(shape), "replicas": replicas, "placed": plan.pods}
    report["nodes"] = [{"node": place.node, "reason": place.reason, "pods": place.pods} for place in plan.placed]
    report |= {"next": list(map(_object, plan.next_one)), "health": seen.health}
    lines = [f"{plan.pods} of {replicas} Pods with {_words(shape)} each find a node"]
    shown = [f"{place.node} ({place.pods})" for place in plan.placed[: 4 * SHOWN]]
    more = len(plan.placed) - len(shown)
    lines += [f"  {', '.join(shown)}{f' and {more} more nodes' if more else ''}"] if shown else []
    lines += ["one more would meet:" if plan.pods == replicas else "the next one meets:", *_lines(plan.next_one)]
    _print(form, report, [*lines, seen.health])
    return 0 if plan.pods == replicas else 1


def _requests(shape: "Shape") -> dict[str, int]:
    """What it asks for of GPUs, by resource."""
    from remediator.kube.api.shared_gpus import MEMORY

    return dict(shape.gpus) | ({MEMORY: shape.memory.memory} if shape.memory.memory else {})


def _words(shape: "Shape") -> str:
    on = f" on {shape.memory.cards} GPUs" if shape.memory.cards > 1 else ""
    return (", ".join(f"{count} {name}" for name, count in _requests(shape).items()) or "no GPUs") + on


def _gang_object(gang: "Gang") -> dict[str, Any]:
    near = [each._asdict() for each in gang.near]
    fields = {"name": gang.name, "size": gang.size or None, "siblings": gang.siblings}
    return {**fields, "reason": gang.preference.why, "prefers": near}


def _object(each: "NodeClass") -> dict[str, Any]:
    fields = {"reason": each.reason, "says": each.says, "fits": each.fits, "remedy": each.remedy}
    return {**fields, "count": len(each.nodes), "nodes": each.nodes}


def _lines(met: "Sequence[NodeClass]") -> list[str]:
    """Two lines for each class of nodes: what is said of how many, and what would help."""
    lines = []
    for each in met:
        shown = ", ".join(each.nodes[:SHOWN]) + (", …" if len(each.nodes) > SHOWN else "")
        lines.append(f"{len(each.nodes):>5} {each.reason.value}: {each.says} ({shown})")
        lines += [f"      {each.remedy}"] if each.remedy else []
    return lines


def _print(form: Form, report: dict[str, Any], lines: list[str]) -> None:
    if form is Form.JSON:
        typer.echo(json.dumps(report))
        return
    for line in lines:
        out.print(line)

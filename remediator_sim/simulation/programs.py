"""The programs of operations as models: how long they take, what they do to their node, and how they end."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from random import Random
from typing import Any, NamedTuple

from remediator.kube import api
from remediator.kube.wire import errors
from remediator.kube.wire.client import Client
from remediator_sim.plain import PODS, Object, plain
from remediator_sim.simulation.node import NodeModel

DONE, FAILED, REFUSED = 0, 1, 2
OPERATIONS = plain(api.OPERATION)
FINAL = ("Succeeded", "Failed", "Refused", "Cancelled")
LOOK = 5.0  # seconds between two looks of a drain


class Ended(NamedTuple):
    """An exit code and the last sentence of a program."""

    code: int
    message: str


@dataclass(slots=True)
class Run:
    """One start of a program: on which node, of which operation, and what it is told. `target` may be another node."""

    node: NodeModel
    target: NodeModel | None
    template: str
    env: dict[str, str]
    client: Client
    chance: Random
    say: Callable[[str], None]

    @property
    def parameters(self) -> dict[str, Any]:
        """PARAMETERS."""
        return json.loads(self.env.get("PARAMETERS") or "{}")  # type: ignore[no-any-return]


Program = Callable[[Run], Awaitable[Ended]]


def fresh(run: Run) -> Ended | None:
    """Why a program that runs once for one attempt must not run, None where it may. Leaves its marker."""
    expected, attempt = run.env.get("EXPECTED_BOOT_ID", ""), run.env["ATTEMPT_ID"]
    if run.node.boot_id != expected:
        return Ended(REFUSED, f"refused: boot id is {run.node.boot_id}, not {expected}: it was rebooted since")
    if attempt in run.node.markers:
        return Ended(REFUSED, f"refused: attempt {attempt} was started before in this boot")
    run.node.markers.add(attempt)
    return None


def plainly(least: float, most: float, *, once: bool = False) -> Program:
    """A program that takes so many seconds, and cures what it cures; `once` for one attempt in one boot."""

    async def program(run: Run) -> Ended:
        if once and (refusal := fresh(run)):
            return refusal
        await asyncio.sleep(run.chance.uniform(least, most))
        run.node.treat(run.template)
        return Ended(DONE, f"{run.template} of {run.node.name} is done")

    return program


async def collect_diagnostics(run: Run) -> Ended:
    """Look at the node."""
    await asyncio.sleep(run.chance.uniform(2, 20))
    return Ended(DONE, json.dumps({"kernel": f"seen on {run.node.name}"}))


async def reboot(run: Run) -> Ended:
    """Ask for the reboot, and be killed by it."""
    if refusal := fresh(run):
        return refusal
    run.say(f"reboot of {run.node.name} asked for by attempt {run.env['ATTEMPT_ID']}")
    await asyncio.sleep(run.chance.uniform(1, 10))
    run.node.treat("reboot")
    down = asyncio.ensure_future(run.node.go_down(run.chance.uniform(60, 240)))
    await asyncio.shield(down)
    return Ended(FAILED, "the node still runs")


async def drain(run: Run) -> Ended:
    """Evict in rounds until no Pod is left."""
    parameters, target = run.parameters, run.env["NODE_NAME"]
    try:
        async with asyncio.timeout(float(parameters["timeoutSeconds"])):
            while True:
                ended = await _drain_round(run, parameters, target)
                if ended is not None:
                    return ended
                await asyncio.sleep(LOOK)
    except TimeoutError:
        return Ended(FAILED, "time is over and Pods are left")


async def _drain_round(run: Run, parameters: dict[str, Any], target: str) -> Ended | None:
    try:
        operation = await run.client.get(OPERATIONS, parameters["operation"])
        if operation.get("status", {}).get("phase") in FINAL:
            return Ended(REFUSED, f"operation {parameters['operation']} has ended")
        listed = await run.client.list_all(PODS, fields=f"spec.nodeName={target}")
        left = [pod for pod in listed if _to_drain(pod)]
        for pod in left:
            await _evict(run.client, pod)
    except errors.NotFound:
        return Ended(REFUSED, f"operation {parameters['operation']} is gone")
    except errors.ApiError:
        return None
    return None if left else Ended(DONE, f"no pods left on {target}")


def _to_drain(pod: Object) -> bool:
    ours = pod["metadata"]["namespace"] == "remediator-operations"
    return not ours and pod["status"].get("phase") not in ("Succeeded", "Failed")


async def _evict(client: Client, pod: Object) -> None:
    meta = pod["metadata"]
    if meta.get("deletionTimestamp"):
        return
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": meta["name"]}}
    path = f"{PODS.path(meta['name'], meta['namespace'])}/eviction"
    await client.transport.request("POST", path, body=json.dumps(body).encode())


PROGRAMS: dict[str, Program] = {
    "collect-diagnostics": collect_diagnostics,
    "drain": drain,
    "reboot": reboot,
    "reset-gpu": plainly(10, 60, once=True),
    "restart-device-plugin": plainly(5, 30),
    "remount-nfs": plainly(2, 30, once=True),
    "reload-driver": plainly(20, 90, once=True),
    "restart-service": plainly(5, 30, once=True),
    "gpu-check": plainly(5, 60),
}

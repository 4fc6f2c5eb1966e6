"""The model of the program that lets a cordon outlive its case."""

import asyncio

from remediator.kube.wire.transport import MERGE_PATCH
from remediator_sim.plain import Object
from remediator_sim.simulation.programs.api import Unreachable, ask, part, read, require_claim
from remediator_sim.simulation.programs.run import Failed, Refused, Run

BY, KEPT = "remediator.dev/cordoned-by", "remediator.dev/kept-cordoned"
ATTEMPTS = 10


async def cordon(run: Run) -> str:
    """Keep the node cordoned for a person."""
    for attempt in range(ATTEMPTS):
        try:
            if sentence := await _write_once(run):
                return sentence
        except Unreachable:
            pass
        await asyncio.sleep(min(0.2 * 2**attempt, 5.0))
    raise Failed(f"{run.env['NODE_NAME']} could not be changed")


async def _write_once(run: Run) -> str | None:
    """The sentence; None where the node changed in between. Raises Unreachable."""
    case_uid, name = run.parameters.get("caseUID", ""), run.env["NODE_NAME"]
    path = f"/api/v1/nodes/{name}"
    node = await read(run, path)
    require_claim(node, case_uid)
    marks = part(node, "metadata", "annotations")
    if not part(node, "spec").get("unschedulable"):
        raise Refused(f"a user has uncordoned {name}")
    if marks.get(KEPT) == case_uid and not marks.get(BY):
        return f"{name} is kept cordoned already"
    if marks.get(BY) != case_uid:
        return f"left as it is: {name} was cordoned by "
    version = node["metadata"]["resourceVersion"]
    patch: Object = {"metadata": {"annotations": {BY: None, KEPT: case_uid}, "resourceVersion": version}}
    reply = await ask(run, "PATCH", path, patch, MERGE_PATCH)
    if reply.status in (409, 429):
        return None
    if reply.status >= 300:
        raise Failed(f"{name} could not be changed")
    return f"{name} stays cordoned for a person"

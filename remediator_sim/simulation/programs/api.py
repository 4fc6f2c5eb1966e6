"""How models of programs speak to the API server: each answer is what the program itself takes it for."""

import json
from collections.abc import Sequence
from typing import Any

from remediator.kube.wire.errors import ApiError
from remediator.kube.wire.transport import JSON, Reply
from remediator_sim.plain import Object
from remediator_sim.simulation.programs.run import Failed, Refused, Run

FINAL = ("Succeeded", "Failed", "Refused", "Cancelled")
TAINT = "remediator.dev/case"
OPERATIONS = "/apis/remediator.dev/v1alpha1/nodeoperations"


class Unreachable(Exception):
    """No answer came, or one that promises a better one later."""


class ServerError(Unreachable):
    """The server answered 5xx."""


async def ask(
    run: Run, method: str, path: str, body: Object | None = None, content_type: str = JSON, *, dry_run: bool = False
) -> Reply:
    """The answer to one request below 500. Raises Unreachable."""
    sent = json.dumps(body).encode() if body is not None else b""
    try:
        query = [("dryRun", "All")] if dry_run else []
        reply = await run.client.transport.request(method, path, query=query, body=sent, content_type=content_type)
    except ApiError as error:
        raise Unreachable(str(error)) from error
    if reply.status >= 500:
        raise ServerError(f"{method} {path}: HTTP {reply.status}")
    return reply


async def read(run: Run, path: str, otherwise: Object | None = None) -> Object:
    """One object. Where there is none, `otherwise` if it is given.

    Raises Unreachable, Refused where there is none, Failed where it may not be read.
    """
    reply = await ask(run, "GET", path)
    if reply.status in (410, 429):
        raise Unreachable(f"GET {path}: HTTP {reply.status}")
    if reply.status == 404 and otherwise is not None:
        return otherwise
    if reply.status == 404:
        raise Refused("not there any more")
    if reply.status != 200:
        raise Failed(f"{path} cannot be read")
    return json.loads(reply.body)  # type: ignore[no-any-return]


async def items(run: Run, path: str, what: str, fields: Sequence[tuple[str, str]] = ()) -> list[Object]:
    """The objects of a list. Raises Unreachable, and Failed where it may not be read."""
    objects: list[Object] = []
    following = ""
    while True:
        query = [*fields, ("limit", "100"), *([("continue", following)] if following else [])]
        try:
            reply = await run.client.transport.request("GET", path, query=query)
        except ApiError as error:
            raise Unreachable(str(error)) from error
        if reply.status in (410, 429) or reply.status >= 500:
            raise Unreachable(f"GET {path}: HTTP {reply.status}")
        if reply.status != 200:
            raise Failed(f"{what} cannot be listed")
        page = json.loads(reply.body)
        objects += page["items"]
        following = page["metadata"].get("continue", "")
        if not following:
            return objects


def part(obj: Object, *names: str) -> Any:
    """A part of an object, {} where it has none."""
    for name in names:
        obj = obj.get(name) or {}
    return obj


def key_of(obj: Object) -> str:
    """namespace/name."""
    return f"{obj['metadata']['namespace']}/{obj['metadata']['name']}"


def is_ending(obj: Object) -> bool:
    """Whether somebody has deleted or evicted it."""
    return bool(part(obj, "metadata").get("deletionTimestamp"))


def require_claim(node: Object, case_uid: str) -> None:
    """Raise Refused unless the node carries the taint of this case."""
    taints = [(taint.get("key"), taint.get("value")) for taint in part(node, "spec").get("taints") or ()]
    if not case_uid or (TAINT, case_uid) not in taints:
        raise Refused(f"node {node['metadata']['name']} is not held by case {case_uid or '(none given)'}")


async def look(run: Run) -> tuple[Object, Object]:
    """The operation of this attempt and its node. Raises Unreachable, and Refused where they are not what was meant."""
    case_uid, node_name = run.parameters.get("caseUID", ""), run.env["NODE_NAME"]
    if not run.attempt:
        raise Refused("ATTEMPT_ID is empty")
    operation = await read(run, f"{OPERATIONS}/{run.attempt}")
    if is_ending(operation):
        raise Refused(f"operation {run.attempt} is being deleted")
    if (phase := part(operation, "status").get("phase")) in FINAL:
        raise Refused(f"operation {run.attempt} has ended: {phase}")
    spec = part(operation, "spec")
    if (spec.get("nodeName"), spec.get("caseUID")) != (node_name, case_uid):
        raise Refused(f"operation {run.attempt} is not for node {node_name} and case {case_uid}")
    node = await read(run, f"/api/v1/nodes/{node_name}")
    if node["metadata"].get("uid") != spec.get("nodeUID"):
        raise Refused(f"node {node_name} is another one than was meant")
    require_claim(node, case_uid)
    return operation, node

"""Cases that have ended, as a year of faults leaves them behind."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from remediator.kube import api
from remediator.kube.wire.client import Client

AT_ONCE = 40
CONDITIONS = 27
AGO = timedelta(days=20)


async def create(client: Client, nodes: Sequence[str], count: int) -> None:
    """Create so many, in turn on each node."""
    at_once = asyncio.Semaphore(AT_ONCE)

    async def make(index: int) -> None:
        async with at_once:
            body = case(nodes[index % len(nodes)], index)
            made = await client.create(api.CASE, {key: body[key] for key in ("apiVersion", "kind", "metadata", "spec")})
            await client.patch(api.CASE, made.metadata.name, {"status": body["status"]}, subresource="status")

    await asyncio.gather(*(make(index) for index in range(count)))


def case(node: str, index: int) -> dict[str, Any]:
    """One that two attempts have cured."""
    began = datetime.now(UTC) - AGO + timedelta(seconds=index)
    at = [(began + timedelta(minutes=minute)).strftime("%Y-%m-%dT%H:%M:%SZ") for minute in range(20)]
    name = f"{node}-gpu-lost-{index:08x}"
    trigger = {
        "condition": "GpuLost",
        "status": "True",
        "reason": "GpuFellOffBus",
        "message": "GPU 3 (0000:4e:00.0) does not answer",
        "since": at[0],
    }
    heartbeats = {f"Condition{number}": at[9] for number in range(CONDITIONS)}
    attempts = [
        {
            "operation": f"{node}-{template}-{index:08x}",
            "template": template,
            "rung": rung,
            "attempt": 1,
            "intent": {"bootID": f"boot-{index}", "at": at[5]},
            "startedAt": at[4],
            "finishedAt": at[9],
            "outcome": outcome,
            "message": "the kernel says that GPU 3 is not there",
            "nodeHeartbeats": heartbeats,
        }
        for rung, (template, outcome) in enumerate((("reset-gpu", "Failed"), ("reboot", "Succeeded")), 1)
    ]
    reasons = ("Claimed", "Started", "Operating", "Failed", "Started", "Operating", "Succeeded", "Verified")
    timeline = [
        {"at": at[number], "reason": reason, "message": f"case {name} on node {node}: step {number} of its story"}
        for number, reason in enumerate(reasons)
    ]
    status = {
        "phase": "Recovered",
        "reason": "Verified",
        "message": "healthy on fresh evidence; the node is back",
        "rung": 2,
        "evidence": {"kernel": [f"NVRM: Xid (PCI:0000:4e:00): 79, line {line} of the log" for line in range(30)]},
        "diagnostics": {"outcome": "Succeeded"},
        "attempts": attempts,
        "startedAt": at[1],
        "endedAt": at[12],
        "timeline": timeline,
    }
    spec = {"nodeName": node, "nodeUID": f"uid-{node}", "policyName": "gpu-lost", "trigger": trigger}
    return {
        "apiVersion": api.CASE.api_version,
        "kind": api.CASE.name,
        "metadata": {"name": name},
        "spec": spec,
        "status": status,
    }

"""The wire floor: a bare watch on nodes that answers a fault with the three writes of a claim, and does nothing else.

`python -m tests.bench.floor KUBECONFIG` runs until it is ended. It opens no case twice, judges nothing, holds no lease
and knows no other node than the one that the watch has just shown: no controller that writes the same can be faster.
"""

import asyncio
import ssl
import sys
from pathlib import Path

import aiohttp
import msgspec
import yaml

GROUP = "bench.remediator.dev"
API = f"/apis/{GROUP}/v1alpha1"
CONDITION, TAINT, BUDGET = "FloorFault", f"{GROUP}/case", "floor"
MERGE = {"Content-Type": "application/merge-patch+json"}
NODES = "/api/v1/nodes"


class _Meta(msgspec.Struct, rename="camel"):
    name: str
    uid: str
    resource_version: str


class _Condition(msgspec.Struct, rename="camel"):
    type: str
    status: str
    last_transition_time: str = ""


class _Spec(msgspec.Struct):
    taints: list[dict] = []


class _Status(msgspec.Struct):
    conditions: list[_Condition] = []


class Object(msgspec.Struct):
    """A Node, or one of the objects that are written."""

    metadata: _Meta
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status = msgspec.field(default_factory=_Status)


class _Event(msgspec.Struct):
    type: str
    object: Object


event, _object = msgspec.json.Decoder(_Event).decode, msgspec.json.Decoder(Object).decode


class Floor:
    """Three writes for each fault, one fault after another. `budget` is the version of the ledger last read."""

    def __init__(self, session: aiohttp.ClientSession, budget: str) -> None:
        self.session, self._budget = session, budget

    async def follow(self) -> None:
        """Answer every fault that the watch shows, until the watch ends."""
        query = {"watch": "true", "resourceVersion": "0", "timeoutSeconds": "86400"}
        async with self.session.get(NODES, params=query) as response:
            async for line in response.content:
                node = event(line).object
                if sick(node) and not claimed(node):
                    await self.claim(node)

    async def claim(self, node: Object) -> None:
        """The object, the ledger, the taint: in this order, each after the answer to the one before."""
        case = await self.write("POST", f"{API}/noderemediations", new_case(node))
        budget = await self.write("PATCH", f"{API}/nodedisruptionbudgets/{BUDGET}/status", self._ledger(node, case))
        self._budget = budget.metadata.resource_version
        await self.mark(node, case)

    async def mark(self, node: Object, case: Object) -> None:
        """The taint, again where the node has moved meanwhile."""
        while True:
            try:
                await self.write("PATCH", f"{NODES}/{node.metadata.name}", _taints(node, case))
                return
            except aiohttp.ClientResponseError as refused:
                if refused.status != 409:
                    raise
                node = await read(self.session, f"{NODES}/{node.metadata.name}")

    def _ledger(self, node: Object, case: Object) -> dict:
        claim = {"node": node.metadata.name, "case": case.metadata.uid, "since": since(node)}
        status = {"claims": [claim], "total": 1, "unavailable": 1, "allowed": 0}
        return {"metadata": {"resourceVersion": self._budget}, "status": status}

    async def write(self, method: str, path: str, body: dict) -> Object:
        """One write and the object that came of it."""
        headers = MERGE if method == "PATCH" else {"Content-Type": "application/json"}
        data = msgspec.json.encode(body)
        async with self.session.request(method, path, data=data, headers=headers) as response:
            return _object(await response.read())


async def read(session: aiohttp.ClientSession, path: str) -> Object:
    """One object, live."""
    async with session.get(path) as response:
        return _object(await response.read())


def sick(node: Object) -> bool:
    """Whether the node has the fault."""
    return any(found.type == CONDITION and found.status == "True" for found in node.status.conditions)


def claimed(node: Object) -> bool:
    """Whether it carries the taint."""
    return any(taint["key"] == TAINT for taint in node.spec.taints)


def since(node: Object) -> str:
    """When the fault began."""
    return next(found.last_transition_time for found in node.status.conditions if found.type == CONDITION)


def new_case(node: Object) -> dict:
    """The object of one fault."""
    name = node.metadata.name
    trigger = {"condition": CONDITION, "status": "True", "reason": "Bench", "message": "", "since": since(node)}
    return {
        "apiVersion": f"{GROUP}/v1alpha1",
        "kind": "NodeRemediation",
        "metadata": {"name": name},
        "spec": {"nodeName": name, "nodeUID": node.metadata.uid, "policyName": "floor", "trigger": trigger},
    }


def _taints(node: Object, case: Object) -> dict:
    taint = {"key": TAINT, "value": case.metadata.uid, "effect": "NoSchedule"}
    version = {"resourceVersion": node.metadata.resource_version}
    return {"metadata": version, "spec": {"taints": [*node.spec.taints, taint]}}


def connect(kubeconfig: Path) -> aiohttp.ClientSession:
    """A session with the client certificate of a kubeconfig; a refusal is raised as ClientResponseError."""
    config = yaml.safe_load(kubeconfig.read_text())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    context = ssl.create_default_context(cafile=cluster["certificate-authority"])
    context.load_cert_chain(user["client-certificate"], user["client-key"])
    return aiohttp.ClientSession(
        cluster["server"],
        connector=aiohttp.TCPConnector(ssl=context),
        timeout=aiohttp.ClientTimeout(total=None),
        raise_for_status=True,
        read_bufsize=2**20,
    )


async def main(kubeconfig: Path) -> None:
    """Follow the nodes of one API server."""
    async with connect(kubeconfig) as session:
        budget = await read(session, f"{API}/nodedisruptionbudgets/{BUDGET}")
        await Floor(session, budget.metadata.resource_version).follow()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))

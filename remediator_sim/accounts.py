"""Tokens of service accounts, as a kubelet asks for them."""

from collections.abc import Mapping

from remediator.kube.wire.client import Client
from remediator_sim.plain import ACCOUNTS, NODES, Object


async def token(
    client: Client, account: str, namespace: str, bound: Mapping[str, str] | None = None, seconds: int = 3600
) -> str:
    """A token of an account, good for so many seconds. `bound` is the object that it names and ends with."""
    spec: Object = {"expirationSeconds": seconds, **({"boundObjectRef": dict(bound)} if bound else {})}
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
    granted = await client.send("POST", ACCOUNTS.path(account, namespace, "token"), dict, asked)
    return str(granted["status"]["token"])


async def node_token(client: Client, account: str, namespace: str, node: str) -> str:
    """What the kubelet mounts into a Pod of a DaemonSet: a token that names the node and ends with it."""
    uid = (await client.get(NODES, node))["metadata"]["uid"]
    return await token(client, account, namespace, {"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid})

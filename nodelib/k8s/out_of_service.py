"""The taint that tells the control plane that a node is off: Pods there are deleted by force, their volumes detached.

It is set only where volumes are attached, and only while the power of this very node is proven to be off: a kubelet
that still ran would go on to write to a volume that another node has by then. Kubernetes asks for the same of a person
(Node Shutdowns, Non-graceful node shutdown handling). The annotation beside it says that the taint is ours, and which
boot it is about: the controller takes both off when the node is Ready in another boot. One that a user has set is left
as it is.
"""

import time
from collections.abc import Callable
from typing import Any

from nodelib.contract.operation import Failed, Refused
from nodelib.k8s.api import MERGE_PATCH, Api
from nodelib.k8s.case import patiently

KEY = "node.kubernetes.io/out-of-service"
TAINT = {"key": KEY, "value": "nodeshutdown", "effect": "NoExecute"}
BOOT = "remediator.dev/out-of-service-boot"
ATTACHMENTS = "/apis/storage.k8s.io/v1/volumeattachments"
PAGE, WRITES = 500, 10


def attached(api: Api, node: str) -> list[str]:
    """Return the VolumeAttachments of a node, by name. Raises Unreachable, Failed."""
    names, more = [], ""
    while True:
        reply = api.get(ATTACHMENTS, limit=str(PAGE), **({"continue": more} if more else {}))
        if reply.status != 200:
            raise Failed(f"VolumeAttachments cannot be listed: {reply.message}")
        items = reply.body.get("items") or []
        here = (item for item in items if (item.get("spec") or {}).get("nodeName") == node)
        names += [item["metadata"]["name"] for item in here]
        more = (reply.body.get("metadata") or {}).get("continue") or ""
        if not more:
            return sorted(names)


def declare(api: Api, name: str, uid: str, boot: str) -> str:
    """Set the taint, with whose it is, unless it is there; return the sentence. Raises Unreachable, Failed, Refused."""
    path = f"/api/v1/nodes/{name}"
    for _ in range(WRITES):
        node = api.get_object(path)
        if node["metadata"].get("uid") != uid:
            raise Refused(f"node {name} is another one than was meant")
        patch = change(node, boot)
        if patch is None:
            return f"{name} was out of service already"
        reply = api.request("PATCH", path, patch, MERGE_PATCH, node)
        if reply.status < 300:
            return f"{name} was declared out of service"
        if reply.status not in (409, 429):
            raise Failed(f"{name} could not be declared out of service: {reply.message}")
    raise Failed(f"{name} could not be declared out of service: it changed each time it was read")


def change(node: dict[str, Any], boot: str) -> dict[str, Any] | None:
    """Return the patch that sets it, refused where the node has changed since; None where it is there."""
    taints = (node.get("spec") or {}).get("taints") or []
    if any((taint.get("key"), taint.get("effect")) == (KEY, TAINT["effect"]) for taint in taints):
        return None
    meta = {"resourceVersion": node["metadata"]["resourceVersion"], "annotations": {BOOT: boot}}
    return {"metadata": meta, "spec": {"taints": [*taints, TAINT]}}


class Volumes:
    """What hangs on a node whose power is off. `told` says what was done about it, "" where nothing hangs on it.

    `doubt` says why the power of this node is not proven to be off now, "" where it is.
    """

    def __init__(self, api: Api, node: dict[str, Any], seconds: float, patience: float, doubt: Callable[[], str]):
        self.api, self.node, self.seconds, self.told = api, node, seconds, ""
        self._patience, self._doubt = patience, doubt

    def give_up(self) -> None:
        """Let the control plane detach them, and wait until it has, or until the time is over. Raises Stopped alone."""
        name = self.node["metadata"]["name"]
        try:
            left = patiently(lambda: attached(self.api, name), self._patience)
            if not left:
                return
            sentence = patiently(self._declare, self._patience)
            self.told = f"; {sentence}: {len(left)} volumes were attached"
            until = time.monotonic() + self.seconds
            while left and time.monotonic() < until:
                time.sleep(2.0)
                left = patiently(lambda: attached(self.api, name), self._patience)
            self.told += f", {len(left)} still are" if left else ""
        except (Failed, Refused) as error:  # it must not stay without power for this
            self.told = f"; its volumes were not given up: {error}"

    def _declare(self) -> str:
        """Declare it, unless there is a doubt. Raises Unreachable, Failed, Refused."""
        doubt = self._doubt()  # asked right before, each time: a person may turn it on
        if doubt:
            raise Refused(doubt)
        meta = self.node["metadata"]
        return declare(self.api, meta["name"], meta["uid"], self.node["status"]["nodeInfo"]["bootID"])

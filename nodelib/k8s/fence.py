"""The Lease that keeps a second start of an attempt from doing again what the first one has done."""

import os
from typing import Any

from nodelib.contract.operation import Failed, Refused
from nodelib.k8s.api import Api

LEASES = "/apis/coordination.k8s.io/v1/namespaces"

Object = dict[str, Any]


class Fence:
    """The Lease that only one start of an attempt can create."""

    def __init__(self, api: Api, attempt: str):
        self.api, self.attempt = api, attempt
        self.path = f"{LEASES}/{api.namespace}/leases"
        self.me = f"{os.uname().nodename}.{os.urandom(4).hex()}"

    def holder(self) -> str:
        """Return which start of this attempt holds it, "" for none. Raises Failed, Unreachable."""
        reply = self.api.get(f"{self.path}/{self.attempt}")
        if reply.status == 404:
            return ""
        if reply.status != 200:
            raise Failed(f"Lease {self.attempt} cannot be read: {reply.message}")
        return str((reply.body.get("spec") or {}).get("holderIdentity") or "another start")

    def take(self, operation: Object) -> None:
        """Create it. Raises Refused when another start has, Failed, Unreachable; may be called again after that."""
        reply = self.api.request("POST", self.path, self.lease(operation))
        if reply.status == 409 and self.holder() == self.me:
            return  # ours: the answer to the first request was lost
        if reply.status == 409:
            raise Refused(f"attempt {self.attempt} was started before")
        if reply.status >= 300:
            raise Failed(f"Lease {self.attempt} could not be created, so nothing was done: {reply.message}")

    def lease(self, operation: Object) -> Object:
        """Return the Lease; it goes when its NodeOperation goes."""
        meta = operation["metadata"]
        owner = {
            "apiVersion": "remediator.dev/v1alpha1",
            "kind": "NodeOperation",
            "name": meta["name"],
            "uid": meta["uid"],
        }
        return {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": self.attempt, "ownerReferences": [owner]},
            "spec": {"holderIdentity": self.me},
        }

"""One bind to shared GPUs in a process of its own, which stops around the bind itself: a test kills it there."""

import asyncio
from pathlib import Path
from random import Random
from typing import Any

from remediator.clock import SYSTEM
from remediator.kube.wire.http import HttpTransport
from remediator.kube.wire.transport import Reply
from tests.harness.kinds import Object
from tests.harness.replica import at_work
from tests.remediator.scheduler.shared.stand import Replica


class Stopping(HttpTransport):
    """Waits for ever at the bind: before it is sent, or when it is done."""

    sends: bool

    async def request(self, method: str, path: str, **asked: Any) -> Reply:
        """See Transport.request."""
        stops = path.endswith("/binding")
        if not stops or self.sends:
            reply = await super().request(method, path, **asked)
        if stops:
            await asyncio.Event().wait()
        return reply


class Alone:
    """What the replica stands on."""

    clock = SYSTEM

    def look(self) -> None:
        """Nobody judges here."""


def main(kubeconfig: Path, pod: Object, node: str, sends: bool) -> None:
    """Bind the Pod to the node, until killed."""
    asyncio.run(_bind(kubeconfig, pod, node, sends))


async def _bind(kubeconfig: Path, pod: Object, node: str, sends: bool) -> None:
    transport = await Stopping.from_kubeconfig(kubeconfig)
    transport.sends = sends
    replica = Replica(Alone(), Random(), transport)
    async with at_work(replica.informers.run()):
        await replica.informers.synced()
        await replica.bind(pod, node)

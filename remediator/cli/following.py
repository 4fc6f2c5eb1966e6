"""Operations that users have asked for are followed to their ends: each change is told."""

import asyncio
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from remediator.cli.common import err, out
from remediator.clock import SYSTEM
from remediator.core import asked

if TYPE_CHECKING:
    from remediator.core.operation import Operation
    from remediator.kube.wire.client import Client

EVERY = 1.0  # seconds between two looks


class Following:
    """Those of one command, by node. `ended` has None for one that was deleted: it is taken back."""

    def __init__(self, made: Mapping[str, str], *, silent: bool) -> None:
        self._made, self._silent = made, silent
        self.ended: dict[str, Operation | None] = {}
        self._last: dict[str, str] = {}
        self._seen: dict[str, Operation] = {}
        self._away = False

    def left(self, *, kept: bool) -> Iterator[asked.LeftOperation]:
        """Those that go on, as they were seen last. `kept`: their user keeps the nodes."""
        for node, name in self._made.items():
            if node not in self.ended:
                operation = self._seen.get(node)
                case = operation.case_name if operation else ""
                drains = operation is not None and operation.template == asked.DRAIN
                yield asked.LeftOperation(node, name, self._last.get(node, ""), case, kept, drains)

    async def to_the_end(self, client: "Client") -> None:
        """Look again and again until all have ended. A server that is away for a while is asked again."""
        from remediator.kube.wire import errors

        while True:
            for node, name in self._made.items():
                if node in self.ended:
                    continue
                try:
                    await self._look(client, node, name)
                except (errors.Unavailable, errors.TooManyRequests) as failed:
                    if not self._away:
                        err.print(f"remediator: {asked.unheard(name, failed.message)}")
                    self._away = True
                    break
            if len(self.ended) == len(self._made):
                return
            await asyncio.sleep(EVERY)

    async def _look(self, client: "Client", node: str, name: str) -> None:
        from remediator.kube import api
        from remediator.kube.api import decode
        from remediator.kube.wire import errors

        try:
            operation = decode.operation(await client.get(api.OPERATION, name))
        except errors.NotFound:
            err.print(f"remediator: NodeOperation {name} was deleted: it is taken back")
            self.ended[node] = None
            return
        current = await _current(client, operation)
        self._away = False
        line = asked.progress(operation, current)
        if line != self._last.get(node) and not self._silent:
            where = f"{node}: " if len(self._made) > 1 else ""
            out.print(f"{SYSTEM.now():%H:%M:%S} {where}{line}")
        self._last[node] = line
        self._seen[node] = operation
        if operation.finished is not None:
            self.ended[node] = operation


async def _current(client: "Client", operation: "Operation") -> "Operation | None":
    """What the case of a user's operation does to the node now, while Pods leave it."""
    from remediator.core.operation import OperationPhase
    from remediator.kube import api
    from remediator.kube.api import decode
    from remediator.kube.wire import errors

    drains = operation.phase is OperationPhase.OPERATING and operation.template == asked.DRAIN
    if not drains and operation.phase is not OperationPhase.DRAINING:
        return None
    try:
        attempt = decode.remediation_case(await client.get(api.CASE, operation.case_name)).attempt
        return decode.operation(await client.get(api.OPERATION, attempt.operation)) if attempt else None
    except errors.NotFound:
        return None

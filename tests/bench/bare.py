"""The bare client of a storm: the same writes as a controller's for many faults at once, and nothing else.

`python -m tests.bench.bare KUBECONFIG ADMITTED` runs until it is ended. Of each fault that its watch shows it makes a
case. The first ADMITTED cases get their entries in the ledger, as many at once as wait, and then their taints; of all
others it writes into the status what holds them. So many requests are under way at once as the controller has workers.
"""

import asyncio
import itertools
import sys
from pathlib import Path

from tests.bench import floor
from tests.bench.floor import API, BUDGET, NODES, Floor, Object, claimed, connect, read, sick, since

AT_ONCE = 16
HELD = {"phase": "Held", "blockedBy": [{"reason": "BreakerOpen", "message": "10 starts in 10 min; wait"}]}


class Bare:
    """Answers a storm of faults."""

    def __init__(self, writer: Floor, admitted: int) -> None:
        self._writer, self._left = writer, itertools.chain(itertools.repeat(True, admitted), itertools.repeat(False))
        self._sick: asyncio.Queue[Object] = asyncio.Queue()
        self._made: asyncio.Queue[tuple[Object, Object]] = asyncio.Queue()
        self._entered: asyncio.Queue[tuple[Object, Object]] = asyncio.Queue()
        self._claims: list[dict] = []

    async def run(self) -> None:
        """Answer every fault that the watch shows, until the watch ends."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._follow())
            group.create_task(self._enter())
            for _ in range(AT_ONCE):
                group.create_task(self._make())
                group.create_task(self._mark())

    async def _follow(self) -> None:
        seen = set()
        query = {"watch": "true", "resourceVersion": "0", "timeoutSeconds": "86400"}
        async with self._writer.session.get(NODES, params=query) as response:
            async for line in response.content:
                node = floor.event(line).object
                if sick(node) and not claimed(node) and node.metadata.uid not in seen:
                    seen.add(node.metadata.uid)
                    self._sick.put_nowait(node)

    async def _make(self) -> None:
        while True:
            node = await self._sick.get()
            case = await self._writer.write("POST", f"{API}/noderemediations", floor.new_case(node))
            if next(self._left):
                self._made.put_nowait((node, case))
            else:
                path = f"{API}/noderemediations/{case.metadata.name}/status"
                await self._writer.write("PATCH", path, {"status": HELD})

    async def _enter(self) -> None:
        """The ledger, with all that wait by now in one write."""
        while True:
            made = [await self._made.get()]
            while not self._made.empty():
                made.append(self._made.get_nowait())
            self._claims += [
                {"node": node.metadata.name, "case": case.metadata.uid, "since": since(node)} for node, case in made
            ]
            count = len(self._claims)
            status = {"claims": self._claims, "total": count, "unavailable": count, "allowed": 0}
            await self._writer.write("PATCH", f"{API}/nodedisruptionbudgets/{BUDGET}/status", {"status": status})
            for pair in made:
                self._entered.put_nowait(pair)

    async def _mark(self) -> None:
        while True:
            await self._writer.mark(*await self._entered.get())


async def main(kubeconfig: Path, admitted: int) -> None:
    """Follow the nodes of one API server."""
    async with connect(kubeconfig) as session:
        budget = await read(session, f"{API}/nodedisruptionbudgets/{BUDGET}")
        await Bare(Floor(session, budget.metadata.resource_version), admitted).run()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))

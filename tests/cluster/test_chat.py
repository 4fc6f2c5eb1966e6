"""What rooms were told is kept on a real API server, by the controller's account, beside what is kept of the issue."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from remediator.clock import SYSTEM
from remediator.core.chat import ChatThread
from remediator.core.names import Namespaces
from remediator.core.ticket import Ticket, TicketPhase
from remediator.kube import api
from remediator.kube.api import decode
from remediator.kube.informers import Informers
from remediator.tickets.chat.store import ThreadChanged, ThreadStore
from remediator.tickets.reconcile.cache import TicketCache
from remediator.tickets.reconcile.store import TicketStore
from tests.cluster.servers import serving
from tests.contract.docs.world import NODE, lay_out

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(180)]
NOW = datetime(2026, 11, 26, 3, 0, tzinfo=UTC)
BEGUN = ChatThread("gpu-team", NOW, NOW)
POSTED = ChatThread("gpu-team", NOW, NOW, 2, "1732600000.000100", True, "person", "0123456789abcdef", NOW)


@pytest.mark.parametrize("name", ["http", "real"])
async def test_threads_and_issues_are_written_apart_and_of_two_claims_one_succeeds(
    name: str, request: pytest.FixtureRequest
) -> None:
    async with serving(name, request) as server:
        await lay_out(server.client, server.controller)
        async with server.controller() as client:
            cache = TicketCache(Informers(client, SYSTEM, Namespaces()))
            threads, tickets = ThreadStore(client, cache), TicketStore(client, cache)

            async def now() -> Ticket:
                return decode.ticket(await client.get(api.TICKET, f"node-{NODE}"))

            first = await now()
            await threads.put(first, "gpu-team", BEGUN)
            with pytest.raises(ThreadChanged):
                await threads.put(first, "gpu-team", BEGUN)
            await tickets.save(first, replace(first, phase=TicketPhase.PENDING))
            assert ((await now()).phase, (await now()).chat) == (TicketPhase.PENDING, (BEGUN,))
            await threads.put(await now(), "gpu-team", POSTED)
            await threads.put(await now(), "pager", replace(BEGUN, room="pager"))
            assert {thread.id for thread in (await now()).chat} == {POSTED.id, ""}
            assert (await now()).thread("gpu-team") == POSTED
            await threads.put(await now(), "gpu-team", None)
            await threads.put(await now(), "pager", None)
            assert ((await now()).phase, (await now()).chat) == (TicketPhase.PENDING, ())

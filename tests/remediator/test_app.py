"""What one replica starts, it ends."""

import asyncio
from contextlib import suppress
from pathlib import Path

from remediator.app import Replica
from remediator.clock import SYSTEM
from remediator.kube.wire.client import Client
from remediator.settings import Settings
from remediator_sim.apiserver import EmbeddedServer
from tests.remediator.tickets.memory_channel import MemoryChannel


async def test_a_replica_that_ends_closes_the_channel_of_its_tickets(tmp_path: Path) -> None:
    (tmp_path / "routes.yaml").write_text("default: {repository: org/ops}\n")
    (tmp_path / "token").write_text("secret")
    settings = Settings(
        listen="127.0.0.1:0", routes=tmp_path / "routes.yaml", github_token_file=tmp_path / "token", identity="one"
    )
    replica = Replica(Client(EmbeddedServer().transport()), settings, SYSTEM)
    assert replica.tickets is not None
    await replica.tickets.channel.aclose()
    replica.tickets.channel = channel = MemoryChannel()
    running = asyncio.create_task(replica.run())
    await asyncio.sleep(0.1)
    assert channel.calls == []
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running
    assert channel.calls == ["aclose"]

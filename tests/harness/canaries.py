"""What anybody could read of a program that runs, to look for secrets in it."""

import asyncio
import os
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp

from remediator_sim.apiserver import EmbeddedServer
from tests.remediator.test_cli import COMMAND


class Seen:
    """All that anybody could read, by where."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}

    def add(self, where: str, *parts: object) -> None:
        self.texts[where] = self.texts.get(where, "") + "\n".join(map(str, parts)) + "\n"

    def shows(self, secrets: Iterable[str]) -> list[str]:
        """Where one of them stands."""
        return [f"{where}: {secret}" for secret in secrets for where, text in self.texts.items() if secret in text]


def stored(server: EmbeddedServer) -> str:
    """Every version of every object and Event that the server remembers, but Secrets."""
    kinds = server.cluster.store.collections()
    changes = [change for kind, collection in kinds.items() if kind != "secrets" for change in collection.changes]
    return "\n".join(str(change.entry.copy()) for change in changes)


@asynccontextmanager
async def running(seen: Seen, log: Path, *options: object, command: str = "run") -> AsyncIterator[None]:
    """A command as a process of its own, at its most talkative; what it said is seen at the end."""
    words = [*COMMAND, command, "--log-level=debug", *map(str, options)]
    environment = {**os.environ, "POD_NAMESPACE": "default"}
    with log.open("wb") as out:
        process = await asyncio.create_subprocess_exec(*words, stdout=out, stderr=out, env=environment)
    try:
        yield
        seen.add("command line", Path(f"/proc/{process.pid}/cmdline").read_text())
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()
        seen.add("log", log.read_text())


async def asked(seen: Seen, method: str, url: str, body: bytes = b"", token: str = "", **headers: str) -> int:
    """The status of one request; the answer is seen."""
    headers |= {"Authorization": f"Bearer {token}"} if token else {}
    async with aiohttp.ClientSession() as session:
        try:
            async with session.request(method, url, data=body, headers=headers, ssl=False) as reply:
                seen.add("answers", dict(reply.headers), await reply.text())
                return reply.status
        except aiohttp.ClientError:
            return 0

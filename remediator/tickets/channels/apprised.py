"""Rooms of whatever services apprise knows, one URL a line in a file. A message is all they have: nothing is edited.

A service may read markup in a text, each its own. Whatever others wrote has no character that begins any.
"""

import asyncio
import logging
import re
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from datetime import datetime
from pathlib import Path

import apprise
import structlog

from remediator.core.policy import Severity
from remediator.tickets.channels.base import Refused, Unsure
from remediator.tickets.channels.chat import ChatLine, Looked, Message, Search
from remediator.tickets.channels.rooms import Apprise

log = structlog.get_logger()
logging.getLogger("apprise").setLevel(logging.CRITICAL + 1)  # what it logs holds URLs, and so secrets
MOST, LONGEST = 16, 2000
KINDS = {
    Severity.CRITICAL: apprise.NotifyType.FAILURE,
    Severity.WARNING: apprise.NotifyType.WARNING,
    Severity.INFO: apprise.NotifyType.INFO,
}
HARMLESS = str.maketrans(dict(zip("@<>&#*_`~[]|\\", "＠‹›＆＃∗＿ˋ～［］｜＼", strict=True)))


class AppriseRoom:
    """A `Chat` that only posts."""

    edits = False

    def __init__(self, name: str, place: Apprise, *, worker: Executor | None = None) -> None:
        """Raises ValueError that names the file and the line of a URL that apprise does not know, and quotes none."""
        self._name, self._place = name, place
        self._worker = worker or ThreadPoolExecutor(max_workers=1, thread_name_prefix="apprise")
        list(services(place.urls))

    async def post(self, message: Message, marker: str) -> str:
        """To every service. Such a thread has the name of its marker: nobody knows another."""
        await self._run(message)
        return marker

    async def reply(self, thread: str, message: Message) -> None:
        """One message more."""
        await self._run(message)

    async def edit(self, thread: str, message: Message) -> None:
        """What was sent stays as it was."""

    async def find(self, marker: str, since: datetime) -> Search:
        """No service is asked for what it holds."""
        return Search(Looked.CANNOT_TELL)

    async def aclose(self) -> None:
        """Let what is under way end, and drop what waits."""
        await asyncio.to_thread(self._worker.shutdown, cancel_futures=True)

    async def _run(self, message: Message) -> None:
        await asyncio.get_running_loop().run_in_executor(self._worker, self._notify, message)

    def _notify(self, message: Message) -> None:
        """Delivered where one service has it: those that have not are named, by line and kind."""
        try:
            all_services = list(services(self._place.urls))
        except ValueError as error:
            raise Refused(f"room {self._name}: {error}", "apprise") from None
        failed = [where for where, service in all_services if not self._delivered(service, message)]
        if len(failed) == len(all_services):
            raise Unsure(f"room {self._name}: no answer that tells of delivery from {', '.join(failed)}")
        if failed:
            log.warning("room told in part", room=self._name, failed=failed)

    def _delivered(self, service: apprise.NotifyBase, message: Message) -> bool:
        target = apprise.Apprise(asset=ASSET)
        target.add(service)
        lines = "\n".join(map(_line, message.lines))[:LONGEST]
        kind, title = KINDS[message.severity], harmless(message.title.text)
        try:
            return bool(target.notify(lines or title, title, kind, body_format=apprise.NotifyFormat.TEXT))
        except Exception:  # of a plugin; what it says may quote its URL
            return False


ASSET = apprise.AppriseAsset(secure_logging=True, interpret_escapes=False, plugin_paths=(), async_mode=False)


def services(path: Path) -> Iterator[tuple[str, apprise.NotifyBase]]:
    """Each service of a file with its place there, for users. Raises ValueError that quotes nothing of it."""
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"the file {path} cannot be read ({type(error).__name__}); write one URL a line") from None
    urls = [(number, line.strip()) for number, line in enumerate(lines, 1) if re.match(r"\s*[^#\s]", line)]
    if not 1 <= len(urls) <= MOST:
        raise ValueError(f"the file {path} holds {len(urls)} URLs; write 1 to {MOST}, one a line")
    for number, url in urls:
        service = apprise.Apprise.instantiate(url, asset=ASSET, suppress_exceptions=True)
        if not isinstance(service, apprise.NotifyBase):
            raise ValueError(f"the file {path}, line {number}: apprise knows no such URL; see its documentation")
        yield f"line {number} ({type(service).__name__.removeprefix('Notify')})", service


def harmless(text: str) -> str:
    """Text in which no service finds a mention, a link or markup."""
    return text.translate(HARMLESS).replace("://", ":／／")


def _line(line: ChatLine) -> str:
    return f"{harmless(line.text)}: {line.url}" if line.url else harmless(line.text)

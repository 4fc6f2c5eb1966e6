"""Which rooms of a chat hear of which issues: the file of `--chat`."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from remediator.core.policy import Severity
from remediator.kube.manifests import yamlfile

MOST = 16
NAME = r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
SLACK_URL = "https://slack.com/api/"
LOOPBACK = r"http://(127\.0\.0\.1|localhost|\[::1\])(:[0-9]{1,5})?"
FORM = "it is not the name of a file beside this one, such as slack-token"


class WireSlack(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, rename="camel"):
    """What is the same for all rooms of Slack, as written."""

    token_file: str
    url: str = SLACK_URL


class WireRoom(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """One room as written."""

    slack: str = ""
    apprise: str = ""
    severity: tuple[Severity, ...] = (Severity.CRITICAL,)
    routes: tuple[str, ...] = ()


class WireRooms(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The file as written."""

    rooms: Annotated[dict[str, WireRoom], Meta(min_length=1, max_length=MOST)]
    slack: WireSlack | None = None


@dataclass(frozen=True, slots=True)
class Slack:
    """A channel of Slack, by its id; the token lies in a file."""

    channel: str
    token: Path
    url: str = SLACK_URL


@dataclass(frozen=True, slots=True)
class Apprise:
    """Services that apprise knows, one URL a line in a file."""

    urls: Path


@dataclass(frozen=True, slots=True)
class Room:
    """One room. Of `routes` none are all."""

    name: str
    place: Slack | Apprise
    severities: frozenset[Severity] = frozenset({Severity.CRITICAL})
    routes: frozenset[str] = frozenset()

    def takes(self, severity: Severity, route: str) -> bool:
        """Whether it hears of an issue of this severity under this route."""
        return severity in self.severities and (not self.routes or route in self.routes)


def load(path: Path) -> Mapping[str, Room]:
    """Read the file. Raises ValueError that names file, field and remedy, and quotes no secret."""
    try:
        written = yamlfile.one(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"{path}: {error}; write the file as docs/chat.md shows, or correct it") from None
    with _naming(path):
        wire = msgspec.convert(written, WireRooms)
        rooms = {name: _room(name, room, wire.slack, path.parent) for name, room in wire.rooms.items()}
        places = [room.place for room in rooms.values()]
        if len(set(places)) < len(places):
            raise ValueError("rooms: two of them are the same channel or file; write one room with both severities")
    return rooms


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    try:
        yield
    except ValueError as error:  # msgspec.ValidationError is one; it names the field as $.rooms
        raise ValueError(f"{path}: {str(error).replace('`$', '`')}; correct that field") from None


def _room(name: str, wire: WireRoom, slack: WireSlack | None, folder: Path) -> Room:
    where = f"rooms.{name}"
    if not re.fullmatch(NAME, name):
        raise ValueError(f"{where}: a name has at most 63 small letters, digits and hyphens")
    if bool(wire.slack) is bool(wire.apprise):
        raise ValueError(f"{where}: give either slack, the id of a channel, or apprise, a file of URLs")
    if not wire.severity:
        raise ValueError(f"{where}.severity is empty: the room would hear of nothing")
    place = _slack(wire.slack, slack, where, folder) if wire.slack else _apprise(wire.apprise, where, folder)
    return Room(name, place, frozenset(wire.severity), frozenset(wire.routes))


def _slack(channel: str, wire: WireSlack | None, where: str, folder: Path) -> Slack:
    if wire is None:
        raise ValueError(f"slack: {where} needs it: write slack: {{tokenFile: slack-token}}")
    if not re.fullmatch("[CG][A-Z0-9]{2,31}", channel):
        raise ValueError(
            f"{where}.slack is {channel!r}, not the id of a channel such as C0123456789 (About, at its end)"
        )
    if not (wire.url.startswith("https://") or re.match(LOOPBACK, wire.url)) or not wire.url.endswith("/"):
        raise ValueError(f"slack.url is not https://HOST/api/, such as {SLACK_URL}")
    return Slack(channel, folder / _beside(wire.token_file, "slack.tokenFile"), wire.url)


def _apprise(file: str, where: str, folder: Path) -> Apprise:
    return Apprise(folder / _beside(file, f"{where}.apprise"))


def _beside(name: str, where: str) -> str:
    """The name of a file in the same folder: not quoted, since a user may have written the secret itself."""
    if not re.fullmatch(r"[\w.-]{1,253}", name) or name in (".", ".."):
        raise ValueError(f"{where}: {FORM}")
    return name

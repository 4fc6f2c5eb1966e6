"""What a cloud has planned for this machine: which cloud it is, and what its metadata service tells. Judges nothing.

The cloud is learnt from the firmware (/sys/class/dmi/id), so that a machine of no cloud asks nobody. Oracle's service
has no key for maintenance: there nobody is asked either.
"""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from nodelib.host.attributes import text

DMI = "class/dmi/id"
AWS, GOOGLE, AZURE, ORACLE = "AWS", "Google Cloud", "Azure", "Oracle Cloud"
SIGNS = (  # which file of DMI tells of which cloud, and how
    (AWS, "sys_vendor", re.compile("Amazon EC2")),
    (AWS, "bios_version", re.compile(r".*\.amazon")),  # on Xen
    (GOOGLE, "product_name", re.compile("Google Compute Engine")),
    (AZURE, "chassis_asset_tag", re.compile("7783-7084-3265-9085-8269-3286-77")),  # Hyper-V elsewhere has another
    (ORACLE, "chassis_asset_tag", re.compile(r"OracleCloud\.com")),
)
WORD = re.compile(r"[\w.:+-]{1,80}", re.ASCII)
# 21 Jan 2019 09:00:43 GMT, with a weekday or without; 2024-12-01T19:00:01Z, or with an offset.
IN_WORDS = re.compile(r"(?:\w{3}, )?(\d{1,2}) (\w{3}) (\d{4}) (\d\d):(\d\d):(\d\d) GMT", re.ASCII)
ISO = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.\d+)?(?:Z|([+-])(\d\d):?(\d\d))", re.ASCII)
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
NO_NEWS = "no notifications have been received yet"  # Google's, with 503, where nothing is planned
OVER = {"completed", "canceled", "cancelled"}
Ask = Callable[..., Any]  # metadata.Ask, whose module needs sockets


class PlannedEvent(NamedTuple):
    """What is planned. `start`: in Unix seconds, None for any moment; `stops`: it ends what runs, or only pauses it."""

    kind: str
    start: float | None
    id: str
    stops: bool = True


class UnknownReply(ValueError):
    """What the service told is not what it is known to tell."""


def cloud_of(sys: Path) -> str:
    """Return the cloud of this machine, "" for none. Raises OSError where the firmware's words cannot be read."""
    (sys / "class").stat()  # a machine may have no DMI, and none has no classes
    for cloud, name, sign in SIGNS:
        words = text(sys / DMI / name)
        if words == "" and not (sys / DMI / name).read_bytes():  # empty is nobody's word; unreadable raises
            continue
        if words and sign.fullmatch(words):
            return cloud
    return ""


def aws(ask: Ask) -> list[PlannedEvent]:
    """Events of EC2, which wants a token first (IMDSv2). Its advice to leave a Spot machine is of a risk, no plan."""
    lifetime = {"X-aws-ec2-metadata-token-ttl-seconds": "60"}
    token = _body(ask("/latest/api/token", "PUT", lifetime))
    if not re.fullmatch("[!-~]{1,200}", token):
        raise UnknownReply("its token makes no sense")
    headers = {"X-aws-ec2-metadata-token": token}
    return [
        PlannedEvent(
            _word(event, "Code"),
            _time(event, "NotBefore"),
            _word(event, "EventId"),
            event["Code"] != "system-maintenance",
        )
        for event in _objects(_json(ask("/latest/meta-data/events/maintenance/scheduled", headers=headers), none="[]"))
        if str(event.get("State", "active")).lower() not in OVER
    ]


def google(ask: Ask) -> list[PlannedEvent]:
    """What happens within the hour, and the window that is planned."""
    headers = {"Metadata-Flavor": "Google"}
    now = _body(ask("/computeMetadata/v1/instance/maintenance-event", headers=headers)).strip()
    if now not in ("NONE", "MIGRATE_ON_HOST_MAINTENANCE", "TERMINATE_ON_HOST_MAINTENANCE"):
        raise UnknownReply(f"maintenance-event is {now[:40]!r}")
    soon = [] if now == "NONE" else [PlannedEvent(now, None, "now", now.startswith("TERMINATE"))]
    page = ask("/computeMetadata/v1/instance/upcoming-maintenance?alt=json", headers=headers)
    if page.status == 503 and NO_NEWS in page.body:
        return soon
    answer = _json(page, none="{}")
    planned = {} if answer == "NONE" else _object(answer)
    if not planned or NO_NEWS in str(planned.get("error")):
        return soon
    named = {name.replace("_", "").lower(): value for name, value in planned.items()}
    start, status = _time(named, "windowstarttime"), _word(named, "maintenancestatus")
    return [*soon, PlannedEvent(_word(named, "type"), start, status, not now.startswith("MIGRATE"))]


def azure(ask: Ask) -> list[PlannedEvent]:
    """Scheduled events, which are those of all machines of the group: the ones that name this machine."""
    headers = {"Metadata": "true"}
    answer = _object(_json(ask("/metadata/scheduledevents?api-version=2020-07-01", headers=headers)))
    events = [event for event in _objects(answer.get("Events")) if str(event.get("EventStatus")).lower() not in OVER]
    if not events:
        return []
    name = _body(ask("/metadata/instance/compute/name?api-version=2021-02-01&format=text", headers=headers)).strip()
    return [
        PlannedEvent(
            _word(event, "EventType"),
            _time(event, "NotBefore") if event.get("NotBefore") else None,  # it has begun
            _word(event, "EventId"),
            event["EventType"] != "Freeze",
        )
        for event in events
        if name in _names(event)
    ]


CLOUDS: Mapping[str, Callable[[Ask], list[PlannedEvent]]] = {AWS: aws, GOOGLE: google, AZURE: azure}


def _names(event: Mapping[str, Any]) -> list[Any]:
    names = event.get("Resources")
    if not isinstance(names, list):
        raise UnknownReply("Resources is no list")
    return names


def _body(page: Any, none: str | None = None) -> str:
    if page.status == 404 and none is not None:
        return none
    if page.status != 200:
        raise UnknownReply(f"HTTP {page.status}")
    return str(page.body)


def _json(page: Any, none: str | None = None) -> Any:
    try:
        return json.loads(_body(page, none))
    except RecursionError as error:
        raise UnknownReply("its JSON has no end") from error


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise UnknownReply("it is no object of JSON")
    return value


def _objects(value: Any) -> list[dict[str, Any]]:
    if not isinstance(value, list):
        raise UnknownReply("it is no list")
    return [_object(item) for item in value]


def _word(values: Mapping[str, Any], name: str) -> str:
    value = values.get(name)
    if not isinstance(value, str) or not WORD.fullmatch(value):
        raise UnknownReply(f"{name} makes no sense")
    return value


def _time(values: Mapping[str, Any], name: str) -> float:
    value = values.get(name)
    moment = unix(value) if isinstance(value, str) else None
    if moment is None:
        raise UnknownReply(f"{name} is no time")
    return moment


def unix(words: str) -> float | None:
    """Return the Unix seconds of a time as the clouds write it; None for none.

    >>> unix("Thu, 01 Jan 1970 00:01:00 GMT"), unix("1970-01-01T01:00:01+01:00"), unix("soon")
    (60.0, 1.0, None)
    """
    match = IN_WORDS.fullmatch(words)
    if match and match[2] in MONTHS:
        day, month, year = int(match[1]), MONTHS.index(match[2]) + 1, int(match[3])
        return _seconds(year, month, day) + _of_day(match[4], match[5], match[6])
    match = ISO.fullmatch(words)
    if not match or not 1 <= int(match[2]) <= 12:
        return None
    off = _of_day(match[8] or "0", match[9] or "0", "0") * (-1 if match[7] == "-" else 1)
    return _seconds(int(match[1]), int(match[2]), int(match[3])) + _of_day(match[4], match[5], match[6]) - off


def _of_day(hours: str, minutes: str, seconds: str) -> float:
    return float(int(hours) * 3600 + int(minutes) * 60 + int(seconds))


def _seconds(year: int, month: int, day: int) -> float:
    """Seconds from 1970 to a day: years begin in March here, so that a leap day is their last."""
    year, month = (year - 1, month + 9) if month < 3 else (year, month - 3)
    days = year * 365 + year // 4 - year // 100 + year // 400 + (153 * month + 2) // 5 + day - 1
    return (days - 719468) * 86400.0

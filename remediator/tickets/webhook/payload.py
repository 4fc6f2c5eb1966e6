"""What Alertmanager posts → alerts. Pure; it knows every version of the payload and refuses everything else."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from types import MappingProxyType

import msgspec

from remediator.core.policy import Severity
from remediator.core.text import one_line
from remediator.core.ticket import Alert
from remediator.tickets.webhook.posted import PART, BadPayload, WireAlert, decoded, posted

ROUTE_LABEL = "remediator_route"
OWNER_LABEL, REPOSITORY_LABEL = "atg_owner", "atg_repo"  # labels of alertmanager-to-github
KEEP_OPEN = "atg_skip_auto_close"  # an annotation, with the value true, as in alertmanager-to-github
SEVERITIES = MappingProxyType(
    {
        "critical": Severity.CRITICAL,
        "page": Severity.CRITICAL,
        "emergency": Severity.CRITICAL,
        "error": Severity.CRITICAL,
        "warning": Severity.WARNING,
        "info": Severity.INFO,
        "none": Severity.INFO,
    }
)
# Labels that a user wants to see, and no others: some exporters add dozens.
SHOWN = (
    *("cluster", "gpu", "UUID", "modelName", "pci_bus_id", "device", "mountpoint", "namespace", "pod", "rack", "team"),
)


class ParsedAlert(msgspec.Struct, frozen=True):
    """One alert with the labels that may tell what it is about."""

    alert: Alert
    labels: Mapping[str, str]


_WORDS = msgspec.json.Decoder(dict[str, str])
LABELS, ANNOTATIONS = PART, 4 * PART  # the most bytes of one alert: a million words are read in one step of seconds


def alerts_in(body: bytes) -> Iterator[ParsedAlert | None]:
    """The alerts of one delivery, in the order sent, the words of each read when it is asked for. Raises BadPayload.

    None is a step that gives no alert: a large delivery is looked at before its first one is read, and after each PART
    of words others may have their turn.

    Of a truncated delivery only alerts that fire are believed: `max_alerts` leaves alerts out that fire, so its
    "resolved" may close a ticket whose other alerts were left out.
    """
    payload, wires = yield from posted(body)
    if payload.version != "4":
        raise BadPayload(f"version is {payload.version!r}, not '4': this Alertmanager is too old or too new")
    heard = 0
    for number, wire in enumerate(wires, 1):
        labels = _words(_checked(wire).labels, LABELS, f"labels of alert {number}")
        annotations = _words(wire.annotations, ANNOTATIONS, f"annotations of alert {number}")
        if not payload.truncated_alerts or wire.status == "firing":
            yield ParsedAlert(_alert(wire, labels, annotations), labels)
        heard += len(wire.labels) + len(wire.annotations)
        if heard > PART:
            yield None
            heard = 0


def _words(raw: msgspec.Raw, most: int, where: str) -> Mapping[str, str]:
    """Raises BadPayload."""
    if len(raw) > most:
        raise BadPayload(
            f"{where} are {len(raw)} bytes, more than {most}: take out of its rule, or by alert_relabel_configs of"
            " Prometheus, those that nobody reads"
        )
    return decoded(_WORDS, raw, f"{where}: ")


def _checked(wire: WireAlert) -> WireAlert:
    if wire.status not in ("firing", "resolved"):
        raise BadPayload(f"status of alert {wire.fingerprint} is {wire.status!r}, not firing or resolved")
    if not wire.fingerprint:
        raise BadPayload("an alert has no fingerprint")
    return wire


def _alert(wire: WireAlert, labels: Mapping[str, str], annotations: Mapping[str, str]) -> Alert:
    alert = alert_of(wire.fingerprint, labels, annotations, wire.starts_at)
    ends = _utc(wire.ends_at) if wire.ends_at else alert.starts
    return replace(alert, ended=max(alert.starts, ends)) if wire.status == "resolved" else alert


def alert_of(fingerprint: str, labels: Mapping[str, str], annotations: Mapping[str, str], starts: datetime) -> Alert:
    """An alert that fires, from what Alertmanager says of it in a post or in a list."""
    return Alert(
        fingerprint=one_line(fingerprint, 64),
        name=one_line(labels.get("alertname", ""), 253) or "unnamed",
        starts=_utc(starts),
        severity=SEVERITIES.get(labels.get("severity", "").lower(), Severity.WARNING),
        summary=one_line(_summary(annotations), 1024),
        runbook=one_line(annotations.get("runbook_url", ""), 1024),
        route=one_line(labels.get(ROUTE_LABEL, "") or _repository(labels), 253),
        labels=_shown(labels),
        keep_open=annotations.get(KEEP_OPEN) == "true",
    )


def _repository(labels: Mapping[str, str]) -> str:
    """OWNER/NAME where the labels of alertmanager-to-github say it, "" where one of them is not there."""
    owner, name = labels.get(OWNER_LABEL, ""), labels.get(REPOSITORY_LABEL, "")
    return f"{owner}/{name}" if owner and name else ""


def _utc(at: datetime) -> datetime:
    """Aware, UTC; the zero time of Go stays the least of all times, whatever its zone."""
    try:
        return at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)
    except OverflowError:
        return datetime.min.replace(tzinfo=UTC)


def _summary(annotations: Mapping[str, str]) -> str:
    return annotations.get("summary") or annotations.get("description") or annotations.get("message") or ""


def _shown(labels: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    pairs: Iterable[tuple[str, str]] = ((name, one_line(labels[name], 256)) for name in SHOWN if name in labels)
    return tuple(sorted((name, value) for name, value in pairs if value))

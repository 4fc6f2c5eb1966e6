"""What an issue tells beside its cases and alerts: the machine, its GPUs, their history, what was lost. Pure."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from remediator.core.case import Case, PastCase, Phase
from remediator.core.gpus import slots
from remediator.core.lemon import did_something, history
from remediator.core.node import Gpus, Node
from remediator.core.node_labels import of_labels
from remediator.core.relapse import given_back
from remediator.core.rma import bundle_place
from remediator.tickets.reconcile.input import TicketInput

HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class GpuFact:
    """One GPU that the ticket is about; "" for what nobody has told. The slot is its PCI address."""

    uuid: str = ""
    serial: str = ""
    slot: str = ""


@dataclass(frozen=True, slots=True)
class Outage:
    """One node that a case took out of service: its GPUs, since when, and until when they are counted."""

    node: str
    gpus: int
    since: datetime
    until: datetime
    over: bool

    @property
    def gpu_hours(self) -> int:
        """GPU-hours that nobody could use."""
        return round(self.gpus * ((self.until - self.since) / HOUR))


@dataclass(frozen=True, slots=True)
class IssueFacts:
    """`node`: what its labels say, by the words of node_labels. `past`: earlier cases of the node and the GPUs."""

    node: tuple[tuple[str, str], ...] = ()
    gpus: tuple[GpuFact, ...] = ()
    bundles: tuple[str, ...] = ()  # where those of the cases are
    past: tuple[PastCase, ...] = ()
    outages: tuple[Outage, ...] = ()


NONE = IssueFacts()


def facts(given: TicketInput, node: Node | None, earlier: Iterable[Case], now: datetime) -> IssueFacts:
    """The facts of one ticket. `earlier`: all cases of its node and its GPUs, those of the ticket among them."""
    current = {linked.case.name for linked in given.cases}
    in_service = node.in_service if node else ""  # of this case only GPUs are out, and nobody has counted which
    done = (case for case in earlier if case.name not in current and (did_something(case) or given_back(case)))
    bundles = (bundle_place(linked.case.evidence) for linked in given.cases)
    return IssueFacts(
        of_labels(node.labels) if node else (),
        _gpus(given),
        tuple(place for place in bundles if place),
        history(case for case in done if case.ended),
        tuple(
            outage
            for linked in given.cases
            if linked.case.uid != in_service and (outage := _outage(linked.case, now)) is not None
        ),
    )


def _gpus(given: TicketInput) -> tuple[GpuFact, ...]:
    """Those of the cases, as the diagnostics found them, and those that alerts name besides."""
    known = dict.fromkeys(gpu for linked in given.cases for gpu in _of_case(linked.case))
    uuids = {gpu.uuid for gpu in known}
    named = (dict(alert.labels) for alert in given.alerts)
    alerted = (GpuFact(labels["UUID"], "", labels.get("pci_bus_id", "")) for labels in named if labels.get("UUID"))
    return (*known, *dict.fromkeys(gpu for gpu in alerted if gpu.uuid not in uuids))


def _of_case(case: Case) -> Iterator[GpuFact]:
    places = slots(case.evidence)
    for gpu in case.gpus:
        yield GpuFact(gpu.uuid, gpu.serial, places.get(gpu.uuid) or places.get(gpu.serial, ""))


def _outage(case: Case, now: datetime) -> Outage | None:
    count = gpu_count(case.trigger.devices) if case.trigger else 0
    if case.started is None or not count or case.phase is Phase.CANCELLED:
        return None
    until = case.ended or case.started + stage(now - case.started)
    return Outage(case.node, count, case.started, max(until, case.started), case.ended is not None)


def gpu_count(devices: Gpus) -> int:
    """How many GPUs a node has: as a label counts them, else the most of one resource; parts of a GPU count as one."""
    labelled = [count for name, count in devices if name.endswith(".count")]
    return max(labelled or (count for _, count in devices), default=0)


def stage(elapsed: timedelta) -> timedelta:
    """The last of 1 h, 2 h, 4 h, 8 h, ... that has passed, 0 before: a text with a running clock would never rest.

    >>> str(stage(timedelta(hours=5, minutes=7)))
    '4:00:00'
    """
    hours = int(elapsed / HOUR)
    return HOUR * (1 << (hours.bit_length() - 1)) if hours > 0 else timedelta(0)

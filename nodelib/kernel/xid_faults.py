"""What the events of one boot add up to, for each GPU and NVSwitch. Pure: events in, devices out.

One fault makes many lines, on several GPUs and processes, and is repeated: each code counts once for each device. It
stands until the log shows that it was repaired, however long ago its line was overwritten.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from nodelib.kernel.xid import ADVICE, CALLS_FOR, SEVERITY, XidEvent, XidRow, advised, kind_of, sxid_kind, table, wanted

GONE = 0  # stands for a code where a GPU has fallen off the bus without an Xid
DOUBLE_BIT, REMAPPED = 48, 63
WAITS = "drain and reset"  # a repair that waits until the node is idle
# No repair of this GPU: another node's, and an end of what jobs do with its peers, after which the driver asks anew.
ELSEWHERE, PEERS = "IMEX recovery", "P2P drain"
BURST = 180.0  # seconds within which lines of one code are one event
AFTERMATH = 10.0  # seconds after a fault in which the errors of jobs follow from it
TEXT_CHARS = 240
RELOAD_CURES = SEVERITY[SEVERITY.index("bus reset") :]  # what a driver that is loaded anew has done, too
SWITCH = "NVSwitch "
OF_SWITCHES = ("sxid", "switch reset")
REPAIRS = ("reset", "loaded")  # kinds of events


class Fault(NamedTuple):
    """One code of one device that is not over. `action`: one of SEVERITY, "watch" or "unexpected"; `at`: first seen."""

    code: int
    at: float
    action: str
    text: str

    @property
    def rank(self) -> tuple[int, float, int]:
        """Sorts the cause first: the most severe, then the earliest, and a line without a code last."""
        known = SEVERITY.index(self.action) if self.action in SEVERITY else len(SEVERITY) + (self.action == "watch")
        return known, self.at if self.code else float("inf"), self.code


class FaultyDevice(NamedTuple):
    """One GPU or NVSwitch. `advice`: what the driver wants, "" for nothing; `repaired`: codes that were over before.

    `processes`: for each code that is a job's own fault the last process that had it.
    """

    faults: tuple[Fault, ...] = ()
    advice: str = ""
    advised: str = ""
    repaired: tuple[int, ...] = ()
    processes: tuple[tuple[int, str], ...] = ()
    uuid: str = ""
    serial: str = ""

    @property
    def cause(self) -> Fault | None:
        """The worst fault that calls for a repair, None for no such.

        The driver's own word outranks the table's, but for an inspection: of its cause the driver does not know.
        """
        worst = min(self.faults, key=lambda fault: fault.rank, default=Fault(ADVICE, 0.0, "", self.advised))
        if self.advice and worst.action != "inspection":
            return worst._replace(action=self.advice)
        if worst.code == DOUBLE_BIT and any(fault.code == REMAPPED for fault in self.faults):
            return worst._replace(action=WAITS)  # its row is put out of use by a reset, and jobs are safe until then
        return worst if worst.action in SEVERITY else None


Devices = Mapping[str, FaultyDevice]


def follow(devices: Devices, events: Iterable[XidEvent]) -> dict[str, FaultyDevice]:
    """Return what `devices`, by name, are after `events`."""
    after = dict(devices)
    for event in events:
        if event.kind == "loaded":
            after = {name: _reloaded(device) for name, device in after.items()}
        elif event.address:
            name = f"{SWITCH}{event.address}" if event.kind in OF_SWITCHES else event.address
            after[name] = _STEPS[event.kind](after.get(name, FaultyDevice()), event)
    return after


def shelve(devices: Devices) -> tuple[dict[str, FaultyDevice], dict[str, FaultyDevice]]:
    """Divide what `devices` are into what is known for good, and the devices that call for a repair."""
    known = {name: device._replace(faults=_harmless(device), advice="", advised="") for name, device in devices.items()}
    return known, {name: device for name, device in devices.items() if device.cause}


def _harmless(device: FaultyDevice) -> tuple[Fault, ...]:
    return tuple(fault for fault in device.faults if fault.action not in SEVERITY)


def follow_repairs(devices: Devices, events: Iterable[XidEvent]) -> dict[str, FaultyDevice]:
    """Return which of `devices` still call for a repair after `events`, whose new errors are not of them."""
    ends = [event for event in events if event.kind in REPAIRS or (event.code == ADVICE and wanted(event) == 0)]
    return {name: device for name, device in follow(devices, ends).items() if device.cause}


def _xid(device: FaultyDevice, event: XidEvent) -> FaultyDevice:
    if event.code == ADVICE:
        return _advised(device, event)
    row, kind = table().get(event.code), kind_of(event)
    if kind == "IGN":
        return device
    if kind == "APP":
        return _by_job(device, event, row)
    last = _last(device, event.code)
    watched = last is not None and last.action == "watch" and event.line.at - last.at > BURST
    again = event.code in device.repaired or watched
    return _add(device, event, (row.again if row and again else "") or kind)


def _advised(device: FaultyDevice, event: XidEvent) -> FaultyDevice:
    if wanted(event) == 0:
        return _reset(device, event)
    action = advised(event)
    if action:
        return device._replace(advice=action, advised=event.line.text[:TEXT_CHARS])
    return _add(device, event, "?")


def _by_job(device: FaultyDevice, event: XidEvent, row: XidRow | None) -> FaultyDevice:
    """A job's own fault is worth watching when another process has it on the same GPU, and not by another fault."""
    broken = any(fault.action in SEVERITY and event.line.at - fault.at <= AFTERMATH for fault in device.faults)
    if broken or not event.pid or not (row and row.again):
        return device
    processes = dict(device.processes)
    other = processes.get(event.code, event.pid) != event.pid
    device = device._replace(processes=tuple(sorted({**processes, event.code: event.pid}.items())))
    return _add(device, event, row.again) if other else device


def _sxid(device: FaultyDevice, event: XidEvent) -> FaultyDevice:
    kind = sxid_kind(event)
    return _add(device, event, kind) if kind != "W" else device


def _gone(device: FaultyDevice, event: XidEvent) -> FaultyDevice:
    return _add(device, event._replace(code=GONE), "B")


def _reset(device: FaultyDevice, _event: XidEvent) -> FaultyDevice:
    codes = {*device.repaired, *(fault.code for fault in device.faults)}
    return device._replace(faults=(), advice="", advised="", repaired=tuple(sorted(codes)))


def _reloaded(device: FaultyDevice) -> FaultyDevice:
    """What a new start of the driver leaves: what a reset would not cure either."""
    over = {fault.code for fault in device.faults if fault.action in RELOAD_CURES}
    cured = device.advice in RELOAD_CURES
    return device._replace(
        faults=tuple(fault for fault in device.faults if fault.code not in over),
        advice="" if cured else device.advice,
        advised="" if cured else device.advised,
        repaired=tuple(sorted({*device.repaired, *over})),
    )


def _add(device: FaultyDevice, event: XidEvent, kind: str) -> FaultyDevice:
    """Let the event's code stand; one that stands already may only become more severe."""
    last = _last(device, event.code)
    new = Fault(event.code, event.line.at, CALLS_FOR[kind], event.line.text[:TEXT_CHARS])
    if last and new._replace(at=last.at).rank >= last.rank:
        return device
    others = tuple(fault for fault in device.faults if fault.code != event.code)
    return device._replace(faults=(*others, new._replace(at=last.at) if last else new))


def _last(device: FaultyDevice, code: int) -> Fault | None:
    return next((fault for fault in device.faults if fault.code == code), None)


_STEPS = {
    "xid": _xid,
    "sxid": _sxid,
    "fallen": _gone,
    "reset": _reset,
    "switch reset": _reset,
    "uuid": lambda device, event: device._replace(uuid=event.rest),
    "serial": lambda device, event: device._replace(serial=event.rest),
}

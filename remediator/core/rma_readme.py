"""The README of an RMA package: what a vendor's form asks for, in the order in which most ask for it. Pure."""

import re
from collections.abc import Iterable, Iterator
from datetime import datetime

from remediator.core.case import Attempt, PastCase
from remediator.core.node import Node, NodeCondition, Status
from remediator.core.node_labels import of_labels
from remediator.core.report_conditions import REPORTS
from remediator.core.rma import TAKEN, Board, Part, RmaClaim, boards
from remediator.core.rma_missing import Missing, missing
from remediator.core.runbooks import runbook
from remediator.core.stuck_pods import STUCK_PODS
from remediator.core.text import printable

FILES = {
    "conditions.json": "the Conditions of the node now",
    "evidence.json": "what was found on the node before anything was done to it",
    "nvidia-bug-report.log.gz": "the report of the driver's own script",
    "nvidia-smi.txt": "nvidia-smi -q",
    "sel.txt": "the event log of the BMC",
    "nvml.json": "what NVML says of each GPU",
    "kernel.log": "the kernel's log",
    "proc/driver/nvidia/version": "the version of the driver",
}
MACHINE = {
    "vendor": "maker",
    "model": "model",
    "serial": "serial number",
    "chassis": "chassis",
    "board": "board",
    "boardSerial": "board serial",
    "bios": "BIOS",
}
REMAPPED = ("corrected", "uncorrected", "pending", "failed")  # in the order of nvmlDeviceGetRemappedRows
LONGEST = 400  # characters of what an operation said
UNKNOWN = "not known, see Missing"


def readme(claim: RmaClaim, now: datetime) -> str:
    """The whole text."""
    lacks = missing(claim)
    sections = (
        ("Machine", _table(_machine(claim))),
        ("Parts to replace", _parts(claim)),
        ("Fault", _table(_fault(claim))),
        ("What was done", _lines(map(_attempt, _done(claim)), "nothing: no operation of this case was carried out")),
        ("Earlier cases of this machine and these boards", _lines(map(_past, claim.earlier), "none is known")),
        ("Conditions of the node now", _conditions(claim.node)),
        ("Files", _table((name, FILES[name]) for name in files(claim))),
        ("Missing", _lines(map(_missing, lacks), "nothing")),
    )
    head = f"RMA package of {claim.case.node}, case {claim.case.name}, as of {now:%Y-%m-%d %H:%M} UTC\n"
    warning = "Look through the files before you send them on: a kernel's log may name programs, users and addresses.\n"
    numbered = (f"\n{place}. {title}\n\n{text}" for place, (title, text) in enumerate(sections, 1))
    return head + warning + "".join(numbered)


def files(claim: RmaClaim) -> list[str]:
    """The names of the files beside the README."""
    attached = [name for name in TAKEN if claim.bundle and name in claim.bundle.files]
    return [
        *(["evidence.json"] if claim.evidence else []),
        *(["conditions.json"] if claim.node else []),
        *attached,
    ]


def summary(claim: RmaClaim) -> str:
    """What the package is about, in a few words."""
    named = [f"board {board.serial}" if board.serial else f"GPU {board.uuid}" for board in boards(claim)]
    what = ", ".join(named) if claim.case.gpus and named else claim.part.value
    return f"{claim.condition or 'no Condition'}: {what}"


def _machine(claim: RmaClaim) -> Iterator[tuple[str, str]]:
    machine = claim.machine
    for key, word in MACHINE.items():
        if key in machine or key == "serial":
            yield word, machine.get(key) or UNKNOWN
    yield "node", claim.case.node
    yield from of_labels(claim.node.labels) if claim.node else ()
    kernel = claim.evidence.get("kernel")
    yield "kernel", kernel if isinstance(kernel, str) else ""
    yield "driver", claim.bundle.driver if claim.bundle else ""


def _parts(claim: RmaClaim) -> str:
    if claim.part is not Part.GPU:
        return _table([("part", f"{claim.part.value}, see the text of the Condition")])
    gpus = boards(claim)
    unsure = "" if claim.case.gpus or not gpus else "The case names no GPU; these are all that were found.\n\n"
    return unsure + ("\n".join(_table(_board(board)) for board in gpus) or f"{UNKNOWN}\n")


def _board(board: Board) -> Iterator[tuple[str, str]]:
    yield "serial number", board.serial or UNKNOWN
    yield "part number", board.part or UNKNOWN
    yield "UUID", board.uuid or UNKNOWN
    yield "slot (PCI)", board.slot
    yield "model", board.model
    yield "InfoROM", board.inforom or UNKNOWN
    yield "VBIOS", board.vbios
    yield "remapped rows", _remapped(board.remapped)


def _remapped(rows: str) -> str:
    """The list that NVML gives, each number with its word; as it is where it is another one.

    >>> _remapped("[0, 8, 0, 1]")
    '0 corrected, 8 uncorrected, 0 pending, 1 failed'
    """
    numbers = re.findall(r"\d+", rows)
    if len(numbers) != len(REMAPPED):
        return rows
    return ", ".join(f"{number} {word}" for number, word in zip(numbers, REMAPPED, strict=True))


def _fault(claim: RmaClaim) -> Iterator[tuple[str, str]]:
    trigger = claim.case.trigger
    if trigger is None:
        yield "asked for", "by a user, without a Condition"
        return
    yield "Condition", f"{trigger.condition}={trigger.status} ({trigger.reason})"
    yield "text", _text(trigger.condition, trigger.message)
    yield "since", f"{trigger.since:%Y-%m-%d %H:%M:%S} UTC" if _known(trigger.since) else ""
    page = runbook(trigger.condition)
    yield "when to claim", f"{page}#rma" if page else ""


def _done(claim: RmaClaim) -> Iterator[Attempt]:
    return (attempt for attempt in claim.case.attempts if attempt.counts and not attempt.stopped)


def _attempt(attempt: Attempt) -> str:
    """One operation. Of a drain it is not told what it said: that names Pods."""
    outcome = "its Pods did not leave" if attempt.kept_by_pods else attempt.outcome.value or "running"
    message = "" if attempt.kept_by_pods or not attempt.message else f": {attempt.message[:LONGEST]}"
    return f"{_at(attempt.started)} {attempt.template}: {outcome}{message}"


def _past(past: PastCase) -> str:
    done = ", ".join(past.operations) or "nothing was done"
    return f"{_at(past.ended)} {past.policy} on {past.node}: {done}: {past.outcome.value}"


def _conditions(node: Node | None) -> str:
    if node is None:
        return "the node is gone\n"
    shown = [condition for _, condition in sorted(node.conditions.items()) if _tells(condition)]
    return _lines(map(_condition, shown), "no Condition says that anything is wrong")


def _tells(condition: NodeCondition) -> bool:
    """Whether it says that something is wrong: only Ready is well when it is True; REPORTS tell of none."""
    well = Status.TRUE if condition.type == "Ready" else Status.FALSE
    return condition.type not in REPORTS and condition.status is not well


def _condition(condition: NodeCondition) -> str:
    message = _text(condition.type, condition.message)
    text = f": {message}" if message else ""
    since = f" since {condition.since:%Y-%m-%d %H:%M} UTC" if _known(condition.since) else ""
    reason = f" ({condition.reason})" if condition.reason else ""
    return f"{condition.type}={condition.status.value}{reason}{since}{text}"


def _text(condition: str, message: str) -> str:
    """The message as a vendor may read it: "" where it names Pods."""
    return "" if condition == STUCK_PODS else message


def _known(at: datetime) -> bool:
    """Whether it is a time: who wrote none stands at the first second of 1970."""
    return at.timestamp() > 0


def _at(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M} UTC" if _known(at) else "at a time that is not known:"


def _missing(lack: Missing) -> str:
    return f"{lack.what}: {lack.how}"


def _table(rows: Iterable[tuple[str, str]]) -> str:
    """A row for each that has a value, the values below each other."""
    shown = [(word, printable(value)) for word, value in rows if value]
    width = max((len(word) for word, _ in shown), default=0)
    return "".join(f"   {word:<{width}}  {value}\n" for word, value in shown)


def _lines(texts: Iterable[str], otherwise: str) -> str:
    return "".join(f"   {printable(text)}\n" for text in texts) or f"   {otherwise}\n"

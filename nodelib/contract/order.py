"""What the two containers of a watchdog hand each other: an order and its answer, each a file.

Each has a folder of its own that the other one can only read. The one that reads orders may be taken over from outside:
it has a token and the network. So the other one believes only what stands here: an operation of this table, parameters
that it knows, a file of the right form and size.
"""

import json
import os
import re
import stat
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from nodelib.contract.operation import STOPPED, Refused

MOST_BYTES = 8192
LONGEST = 256  # letters of what is only told
ORDER, ANSWER = ".order", ".answer"
_NAME = re.compile(r"[a-z0-9][a-z0-9.-]{0,200}")  # of an attempt: it names files


class Deed(NamedTuple):
    """Which program of operations/ does it, with which parameters in any case, and which ones an order may give."""

    program: str
    fixed: Mapping[str, str]
    allowed: frozenset[str]


_RESTART = frozenset({"restartSeconds", "settleSeconds", "healthzPort"})
DEEDS: Mapping[str, Deed] = {
    "restart-kubelet": Deed("restart_service.py", {"service": "kubelet"}, _RESTART),
    "restart-runtime": Deed("restart_service.py", {"service": "runtime"}, _RESTART),
    "reboot-by-watchdog": Deed("reboot.py", {}, frozenset({"waitSeconds", "lastResort"})),
}
_FIELDS: Mapping[str, type] = {
    "operation": str,
    "attempt": str,
    "case": str,
    "node": str,
    "bootID": str,
    "until": float,
    "parameters": dict,
}
# What an order of an older version lacks.
_LATER: Mapping[str, type] = {"caseName": str, "onBehalfOf": str}


class Order(NamedTuple):
    """One operation of one attempt, in one boot; `until` is when it must have ended, in seconds since that boot.

    `case` is the uid of the case; its name, and on whose word it is done, are only told in the program's log.
    """

    operation: str
    attempt: str
    case: str
    node: str
    boot_id: str
    until: float
    parameters: Mapping[str, str]
    case_name: str = ""
    on_behalf_of: str = ""

    @property
    def deed(self) -> Deed:
        """What is done."""
        return DEEDS[self.operation]


class OrderResult(NamedTuple):
    """The exit code of the program, as operation Pods have them, and its sentence."""

    code: int
    sentence: str


LOST = OrderResult(STOPPED, "the watchdog was started anew meanwhile: nobody knows how the operation ended")


def checked(order: Order) -> Order:
    """Return it. Raises Refused for what no watchdog does."""
    if order.operation not in DEEDS:
        raise Refused(f"{order.operation!r} is no operation of a watchdog: name the template {', '.join(DEEDS)}")
    for name, value in (("attempt", order.attempt), ("node", order.node)):
        if not _NAME.fullmatch(value):
            raise Refused(f"{name} is {value!r}, which is no name of Kubernetes")
    if not order.case or not order.boot_id:
        raise Refused("an order needs the uid of its case and the boot id of its node")
    strange = sorted(set(order.parameters) - order.deed.allowed)
    if strange:
        known = ", ".join(sorted(order.deed.allowed))
        raise Refused(f"PARAMETERS may not name {', '.join(strange)}: {order.operation} takes {known}")
    if not all(isinstance(value, str) for value in order.parameters.values()):
        raise Refused("PARAMETERS: write every value as text")
    for name, value in (("case name", order.case_name), ("word", order.on_behalf_of)):
        if value != told(value):
            raise Refused(f"the {name} of an order is one line of at most {LONGEST} printable letters")
    return order


def told(text: str) -> str:
    """Return what of a text an order can tell: printable letters on one line."""
    return "".join(letter if letter.isprintable() else "?" for letter in text[:LONGEST])


def boot_seconds() -> float:
    """The seconds since the boot. Both containers have this clock, and nobody sets it."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def give(folder: Path, order: Order) -> None:
    """Hand an order over."""
    _write(folder / f"{order.attempt}{ORDER}", dict(zip((*_FIELDS, *_LATER), order, strict=True)))


def attempts(folder: Path, suffix: str) -> list[str]:
    """The attempts of which there is an ORDER, or an ANSWER."""
    names = (path.name.removesuffix(suffix) for path in folder.glob(f"*{suffix}"))
    return sorted(name for name in names if _NAME.fullmatch(name))


def take(folder: Path, attempt: str) -> Order:
    """Return one order, also one of an older version. Raises Refused for one that is not as it has to be."""
    fields = {**_FIELDS, **_LATER}
    read = dict.fromkeys(_LATER, "") | _read(folder / f"{attempt}{ORDER}")
    if set(read) != set(fields) or not all(isinstance(read[name], kind) for name, kind in fields.items()):
        raise Refused(f"an order has the fields {', '.join(fields)}, each of its type")
    order = checked(Order(*(read[name] for name in fields)))
    if order.attempt != attempt:
        raise Refused(f"the order of {order.attempt} lies under another name")
    return order


def say(folder: Path, attempt: str, answer: OrderResult) -> None:
    """Hand an answer over."""
    _write(folder / f"{attempt}{ANSWER}", answer._asdict())


def answer_of(folder: Path, attempt: str) -> OrderResult | None:
    """Return the answer; None where there is none."""
    path = folder / f"{attempt}{ANSWER}"
    if not path.exists():
        return None
    read = _read(path)
    return OrderResult(int(read["code"]), str(read["sentence"]))


def forget(folder: Path, attempt: str, suffix: str) -> None:
    """Take a file of an attempt away."""
    with suppress(FileNotFoundError):
        (folder / f"{attempt}{suffix}").unlink()


def _write(path: Path, content: Mapping[str, object]) -> None:
    """Write a file that is never there by half."""
    hidden = path.with_name(f".{path.name}.{os.urandom(8).hex()}")
    hidden.write_text(json.dumps(content), encoding="utf-8")
    hidden.replace(path)


def _read(path: Path) -> dict[str, Any]:
    """Return what a file says. Raises Refused for a link, a pipe, one that is too large, or no JSON object."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise Refused(f"{path.name} cannot be read: {error}") from error
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise Refused(f"{path.name} is no plain file")
        text = os.read(descriptor, MOST_BYTES + 1)
    finally:
        os.close(descriptor)
    try:
        read = json.loads(text) if len(text) <= MOST_BYTES else None
    except (ValueError, RecursionError) as error:
        raise Refused(f"{path.name} is not JSON: {error}") from error
    if not isinstance(read, dict):
        raise Refused(f"{path.name} is no JSON object of at most {MOST_BYTES} bytes")
    return read

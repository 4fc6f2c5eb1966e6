"""What is known of a node's BMC, and how its power goes away and comes back, whatever it speaks.

The entry is a Secret of the node's own, mounted as files; a ConfigMap has what all nodes share. Passwords are never
printed.
"""

import base64
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from nodelib.contract.operation import Failed, Refused, Stopped

CONFIG = "ConfigMap remediator-bmc"
KEYS = ("address", "username", "password", "protocol", "ca.crt", "insecure", "system", "uuid")
FLAGS = {"true": True, "false": False}
PROTOCOLS = {"redfish": 443, "ipmi": 623}  # and their ports
PAUSE_FIRST, PAUSE_MOST = 0.2, 3.0  # seconds between two looks at the power
LAST = 30.0  # seconds to give the power back once we were told to stop


class Silent(Exception):
    """The BMC gave no answer, or said that it cannot answer now. Nobody knows whether it did what it was asked."""


class Entry(NamedTuple):
    """How to reach one BMC. `secret` is where it stands, `ca` PEM text, "" for the authorities that the image knows."""

    secret: str
    host: str
    port: int
    username: str
    password: str
    protocol: str
    ca: str
    insecure: bool
    system: str
    uuid: str

    @property
    def word(self) -> str:
        """The user and the password as HTTP sends them."""
        return base64.b64encode(f"{self.username}:{self.password}".encode()).decode()

    def hidden(self, text: str) -> str:
        """Return what a BMC or its tool said without the password: some repeat what they were asked."""
        return text.replace(self.word, "[password]").replace(self.password, "[password]")


class Steps(NamedTuple):
    """What this BMC is told: to take the power away, and to give it back; `on` is "" where `cut` does both."""

    cut: str
    on: str


class Bmc(Protocol):
    """One BMC that is known to be that of the node."""

    steps: Steps

    def power(self) -> str:
        """Return On, Off, or what else it calls the state in between. Raises Silent, Refused, Failed."""

    def tell(self, step: str) -> None:
        """Send one step, once. Raises Silent when its answer was lost, Refused, Failed."""

    def shown(self, step: str) -> str:
        """One step in words, as a dry run prints it."""


def read_entry(folder: Path, node: str) -> Entry:
    """Return the entry of `node`. Raises Refused for one that is not there or cannot be meant."""
    shared, own = _read(folder / "shared", CONFIG), _read(folder / "node", secret(node))
    fields = {**shared, **own}
    strange = sorted(set(fields) - {*KEYS})
    missing = [name for name in KEYS[:3] if not fields.get(name)]
    if "password" in shared:  # every Pod of this operation mounts it, and so would every node that runs one
        raise Refused(f"{CONFIG} holds a password: move it into {secret(node)}, one Secret for each node")
    if strange:
        raise Refused(f"{secret(node)} or {CONFIG}: unknown key {', '.join(strange)}; known are {', '.join(KEYS)}")
    if missing:
        raise Refused(f"{secret(node)} lacks {', '.join(missing)}: add what is missing, see docs/operations.md")
    insecure, protocol = fields.get("insecure", "false"), fields.get("protocol", "redfish")
    if insecure not in FLAGS:
        raise Refused(f"{secret(node)}: insecure must be true or false")
    if protocol not in PROTOCOLS:
        raise Refused(f"{secret(node)}: protocol must be redfish or ipmi")
    host, port = split(fields["address"].replace("{node}", node), PROTOCOLS[protocol], secret(node))
    ca, system, uuid = (fields.get(name, "") for name in ("ca.crt", "system", "uuid"))
    login = fields["username"], fields["password"]
    return Entry(secret(node), host, port, *login, protocol, ca, FLAGS[insecure], system, uuid)


def secret(node: str) -> str:
    """Return which Secret the entry of a node is, for a user."""
    return f"Secret remediator-bmc-{node}"


def _read(folder: Path, source: str) -> dict[str, str]:
    """Return what a Secret or a ConfigMap holds, mounted as one file for each key; nothing where there is none."""
    try:
        files = sorted(path for path in folder.iterdir() if not path.name.startswith("..")) if folder.is_dir() else []
        return {path.name: path.read_text(encoding="utf-8").strip() for path in files}
    except (OSError, ValueError) as error:
        # Of what is in a file nothing is repeated: it may be the password.
        raise Refused(f"{source} cannot be read: {type(error).__name__}") from None


def split(address: str, port: int, secret: str) -> tuple[str, int]:
    """Return host and port of an address: a name or an IP, with https:// before and :port behind if wanted.

    `secret` says where it stands. It is not quoted in a refusal: it may hold a password (https://user:password@host).
    """
    if address.startswith("http://"):
        raise Refused(f"{secret}: the address would send the password in the clear: write https://")
    plain = address.removeprefix("https://").rstrip("/")
    host, colon, given = plain.rpartition(":")
    if not colon or plain.endswith("]") or ":" in host.rpartition("]")[2]:  # no port, or an IPv6 address without one
        host, given = plain, str(port)
    host = host.removeprefix("[").removesuffix("]")
    if not host or "/" in host or "@" in host or not given.isdecimal():
        raise Refused(f"{secret}: the address is not a host, with :port if wanted")
    return host, int(given)


def ask_power(bmc: Bmc, seconds: float) -> str:
    """Return the power state, asking again while the BMC is silent. Raises Failed after `seconds`."""
    until = time.monotonic() + seconds
    while True:
        try:
            return bmc.power()
        except Silent as error:
            if time.monotonic() >= until:
                raise Failed(f"the BMC does not answer: {error}") from error
        time.sleep(1.0)


class Power:
    """The power of one node. `was_off` is True as soon as the node was seen without."""

    def __init__(self, bmc: Bmc):
        self.bmc, self.was_off, self.trouble = bmc, False, ""

    def cycle(self, seconds: float, rest: float) -> None:
        """Take the power away, once, leave it off for `rest` seconds and see it on again.

        Going and coming back may take `seconds` each. Told to stop in between, it gives the power back first: nobody
        comes after us. Raises Failed, and Refused when the BMC turns the first request down.
        """
        try:
            try:
                self.bmc.tell(self.bmc.steps.cut)
            except Silent as error:  # the power state tells what became of it
                self.trouble = f"the answer was lost: {error}"
            self._wait(seconds, rest)
        except Stopped:
            print("told to stop: giving the power back first", flush=True)
            self._wait(LAST, 0.0)

    def restore(self, seconds: float) -> None:
        """Turn a node on that is off, and see it on. Raises Failed."""
        self.was_off = True
        self._wait(seconds, 0.0)

    def _wait(self, seconds: float, rest: float) -> None:
        until, pause = time.monotonic() + seconds, PAUSE_FIRST
        while time.monotonic() < until:
            state = self._step()
            if state == "Off" and not self.was_off:
                self.was_off = True
                time.sleep(rest)
                until, pause = time.monotonic() + seconds, PAUSE_FIRST
            elif state == "On" and self.was_off:
                return
            else:
                time.sleep(pause)
                pause = min(pause * 1.5, PAUSE_MOST)
        raise Failed(f"{self._what_now(seconds)}; look at its BMC{f': {self.trouble}' if self.trouble else ''}")

    def _step(self) -> str:
        """Look at the power and ask for it where it is gone. Returns the state, "" when the BMC does not say."""
        try:
            state = self.bmc.power()
            if state == "Off" and self.was_off:
                self.bmc.tell(self.bmc.steps.on)
        except (Silent, Refused, Failed) as error:  # giving up would leave the node without power
            self.trouble = str(error)
            return ""
        return state

    def _what_now(self, seconds: float) -> str:
        if self.was_off:
            return f"the power was taken away and is not back after {seconds:g} s"
        return f"the power was to go and is still there after {seconds:g} s, it may yet go and not come back"


def choose(allowed: Sequence[str] | None, ways: Sequence[Steps]) -> Steps:
    """Return the first of `ways` that a BMC allows; the first where it does not say. Raises Refused for none."""
    allowed_ways = [way for way in ways if allowed is None or {way.cut, way.on} - {""} <= set(allowed)]
    if not allowed_ways:
        known = ", ".join("+".join(step for step in way if step) for way in ways)
        offered = ", ".join(allowed or ()) or "nothing"
        raise Refused(f"the BMC allows {offered} and none of {known}: power-cycle by hand")
    return allowed_ways[0]

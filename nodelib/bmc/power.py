"""How the power of a node goes away and comes back, whatever its BMC speaks."""

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from nodelib.bmc.identity import Identity
from nodelib.contract import audit
from nodelib.contract.operation import Failed, Refused, Stopped

BETWEEN = ("PoweringOn", "PoweringOff")  # of PowerState in Redfish: it will be On or Off by itself
PAUSE_FIRST, PAUSE_MOST = 0.2, 3.0  # seconds between two looks at the power
LAST = 30.0  # seconds to give the power back once we were told to stop


class Silent(Exception):
    """The BMC gave no answer, or said that it cannot answer now. Nobody knows whether it did what it was asked."""


class Steps(NamedTuple):
    """What this BMC is told: to take the power away, and to give it back; `on` is "" where `cut` does both."""

    cut: str
    on: str


class Bmc(Protocol):
    """One BMC, and what is known of whose it is."""

    steps: Steps
    identity: Identity

    def power(self) -> str:
        """Return On, Off, or what else it calls the state in between. Raises Silent, Refused, Failed."""

    def tell(self, step: str) -> None:
        """Send one step, once. Raises Silent when its answer was lost, Refused, Failed."""

    def shown(self, step: str) -> str:
        """One step in words, as a dry run prints it."""


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


def settle(bmc: Bmc, state: str, seconds: float, patience: float) -> str:
    """Return the power state once it is none in between. Raises Failed after `seconds`, or for a BMC that is silent."""
    until = time.monotonic() + seconds
    while state in BETWEEN:
        if time.monotonic() >= until:
            raise Failed(f"the power is still {state} after {seconds:g} s; look at its BMC")
        time.sleep(1.0)
        state = ask_power(bmc, patience)
    return state


def told(bmc: Bmc, step: str) -> None:
    """Send one step to the BMC, once, and say so in the log. Raises Silent, Refused, Failed."""
    ended, why = audit.UNKNOWN, ""
    try:
        bmc.tell(step)
        ended = audit.DONE
    except (Refused, Failed) as error:
        ended, why = audit.GAVE_UP, str(error)
        raise
    except Silent as error:
        why = str(error)
        raise
    finally:
        audit.say("power", "bmcs", "", ended, changes=[{"field": "power", "after": step}], why=why)


class Power:
    """The power of one node. `was_off` is True as soon as the node was seen without.

    `while_off` is called once, when the BMC has said that the power is off and before it is told to give it back.
    """

    def __init__(self, bmc: Bmc, while_off: Callable[[], None] = lambda: None):
        self.bmc, self.was_off, self.trouble, self._while_off = bmc, False, "", while_off

    def cycle(self, seconds: float, rest: float) -> None:
        """Take the power away, once, leave it off for `rest` seconds and see it on again.

        Going and coming back may take `seconds` each. Told to stop in between, it gives the power back first: nobody
        comes after us. Raises Failed, and Refused when the BMC turns the first request down.
        """
        try:
            try:
                told(self.bmc, self.bmc.steps.cut)
            except Silent as error:  # the power state tells what became of it
                self.trouble = f"the answer was lost: {error}"
            self._wait(seconds, rest)
        except Stopped:
            print("told to stop: giving the power back first", flush=True)
            self._while_off = lambda: None  # nothing may take the time that is left
            self._wait(LAST, 0.0)

    def restore(self, seconds: float) -> None:
        """Turn a node on that is off, and see it on. Raises Failed. Told to stop, it gives the power back first."""
        self.was_off = True
        try:
            self._while_off()
            self._wait(seconds, 0.0)
        except Stopped:
            print("told to stop: giving the power back first", flush=True)
            self._wait(LAST, 0.0)

    def _wait(self, seconds: float, rest: float) -> None:
        until, pause = time.monotonic() + seconds, PAUSE_FIRST
        while time.monotonic() < until:
            state = self._step()
            if state == "Off" and not self.was_off:
                self.was_off = True
                time.sleep(rest)
                self._while_off()
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
                told(self.bmc, self.bmc.steps.on)
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

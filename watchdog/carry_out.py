#!/usr/bin/env -S python3 -I -S -B
"""Do what the watchdog of this node is ordered to do. This container has privileges and no token.

It looks every second for an order in ORDERS, a folder that it can only read, and has the program of operations/ that
belongs to it do it, as the Pod of an operation would: nodelib/contract/order.py has the table. Nothing else is ever
done. The answer goes to ANSWERS, which the other container can only read.

An order is for one boot, for once and until a time: the program refuses another boot id than the order's, and an
attempt of which the mark lies in the node's /run/remediator, which goes with the boot. What has not ended in its time,
or whose order was taken back, is stopped: SIGTERM, and SIGKILL 30 s later.
"""

import os.path
import sys

sys.path.append(os.path.realpath(f"{__file__}/../.."))  # where nodelib/ is; python3 -I leaves it out

import json
import os
import signal
import subprocess
import time
from pathlib import Path

from nodelib.contract import order as contract
from nodelib.contract.operation import STOPPED, Refused, one_line
from nodelib.contract.order import ANSWER, LOST, ORDER, Order, OrderResult
from nodelib.host.commands import ends_by

PROGRAMS = Path(__file__).resolve().parents[1] / "operations"
LOOK_SECONDS, GRACE = 1.0, 30.0
SENTENCE_BYTES = 1024


class CarriesOut:
    """The orders of one folder, done on the node whose root is `host`."""

    def __init__(self, orders: Path, answers: Path, host: Path, grace: float = GRACE):
        self.orders, self.answers, self.host, self.grace = orders, answers, host, grace

    def look(self) -> None:
        """Do what is ordered and has no answer; forget the answers that were read."""
        ordered = contract.attempts(self.orders, ORDER)
        for attempt in set(contract.attempts(self.answers, ANSWER)) - set(ordered):
            contract.forget(self.answers, attempt, ANSWER)
        for attempt in ordered:
            if contract.answer_of(self.answers, attempt) is None:
                answer = self.answer(attempt)
                print(f"{attempt}: exit {answer.code}: {answer.sentence}", flush=True)
                contract.say(self.answers, attempt, answer)

    def answer(self, attempt: str) -> OrderResult:
        """Do one order; what came of it."""
        try:
            order = contract.take(self.orders, attempt)
            if self._mark(attempt).exists():
                return LOST  # this program writes an answer whenever it sees the end of what it has started
            if contract.boot_seconds() >= order.until:
                raise Refused("the order came too late: its time is over")
            return self._run(order)
        except Refused as refusal:
            return OrderResult(2, f"refused: {refusal}")
        except OSError as error:
            return OrderResult(1, f"failed: {type(error).__name__}: {error}")

    def _mark(self, attempt: str) -> Path:
        return self.host / "run/remediator" / attempt

    def _run(self, order: Order) -> OrderResult:
        """Run its program to the end of its time."""
        log = os.memfd_create("termination-log")
        command = [sys.executable, "-I", "-S", "-B", str(PROGRAMS / order.deed.program)]
        print(f"{order.attempt}: {order.operation} for case {order.case}", flush=True)
        child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, env=self._environment(order, log), start_new_session=True, cwd="/"
        )
        in_time = self._wait(child, order) or self._stop(child)
        sentence = one_line(os.pread(log, SENTENCE_BYTES, 0).decode(errors="replace"), SENTENCE_BYTES)
        os.close(log)
        code = STOPPED if child.returncode is None or child.returncode < 0 else child.returncode
        late = "stopped: it did not end in its time, or its order was taken back"
        late += "; it still runs, and no signal ends it" if child.returncode is None else ""
        return OrderResult(code, sentence or "the program left no message") if in_time else OrderResult(STOPPED, late)

    def _environment(self, order: Order, log: int) -> dict[str, str]:
        """What the Pod of an operation has."""
        parameters = {**order.parameters, **order.deed.fixed, "caseUID": order.case}
        return {
            "PATH": os.environ.get("PATH", os.defpath),
            "NODE_NAME": order.node,
            "OPERATION": order.operation,
            "ATTEMPT_ID": order.attempt,
            "EXPECTED_BOOT_ID": order.boot_id,
            "PARAMETERS": json.dumps(parameters),
            "CASE_NAME": order.case_name,
            "ON_BEHALF_OF": order.on_behalf_of,
            "TERMINATION_LOG": f"/proc/{os.getpid()}/fd/{log}",
            "HOST_ROOT": str(self.host),
        }

    def _wait(self, child: subprocess.Popen[bytes], order: Order) -> bool:
        """Whether it ends before its time is over, or its order is taken back."""
        while contract.boot_seconds() < order.until and (self.orders / f"{order.attempt}{ORDER}").exists():
            if ends_by(child, time.monotonic() + LOOK_SECONDS):
                return True
        return False

    def _stop(self, child: subprocess.Popen[bytes]) -> bool:
        """End it, or leave it behind: a program may sleep in the kernel, where no signal reaches it."""
        for signum, patience in ((signal.SIGTERM, self.grace), (signal.SIGKILL, 1.0)):
            try:
                os.killpg(child.pid, signum)
            except ProcessLookupError:
                break
            if ends_by(child, time.monotonic() + patience):
                break
        return False


def main() -> None:
    """Look for ever."""
    if len(sys.argv) > 1:
        print(f"usage: {Path(__file__).name}\n\n{__doc__}")
        return
    variables = {"ORDERS": "/orders", "ANSWERS": "/answers", "HOST_ROOT": "/host", **os.environ}
    carries_out = CarriesOut(*(Path(variables[name]) for name in ("ORDERS", "ANSWERS", "HOST_ROOT")))
    while True:
        looks(carries_out)


def looks(carries_out: CarriesOut) -> None:
    """One look, and the wait for the next one."""
    try:
        carries_out.look()
    except Exception as error:  # whatever it is: a kubelet that hangs starts no container anew
        print(f"cannot look for orders: {type(error).__name__}: {error}", flush=True)
    time.sleep(LOOK_SECONDS)


if __name__ == "__main__":
    main()

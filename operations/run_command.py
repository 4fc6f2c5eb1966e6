#!/usr/bin/env -S python3 -I -S -B
"""Run the one program that an administrator wrote into this template, once for one attempt, and pass on its outcome.

COMMAND, an environment variable of the template, is a JSON list of words; PARAMETERS cannot name a program, because
whoever asks for an operation may not choose what runs. Until the template is edited COMMAND is [] and that is refused.
The program gets the environment of the contract (NODE_NAME, OPERATION, ATTEMPT_ID, EXPECTED_BOOT_ID, PARAMETERS) and
owes its half: exit code 0 done, 1 failed, 2 refused, any other is failed; its last line is the sentence. It is ended
when it takes longer than timeoutSeconds, or when the Pod is.

Refused (exit 2): no COMMAND; another boot than EXPECTED_BOOT_ID, or an ATTEMPT_ID that was started before in this boot;
the program says so.

PARAMETERS: timeoutSeconds (600); all others are the program's own.
"""

import os.path
import sys

sys.path.append(os.path.realpath(f"{__file__}/../.."))  # where nodelib/ is; python3 -I leaves it out

import contextlib
import json
import os
import selectors
import shlex
import signal
import subprocess
import time
from collections.abc import Callable

from nodelib.contract.attempt import create_marker, require_fresh
from nodelib.contract.operation import Environment, Failed, Refused, main
from nodelib.contract.parameters import number
from nodelib.host.commands import GRACE, ends_by

LINE_BYTES, PIPE_BYTES = 4096, 1 << 16  # a pipe holds no more


def run_command(environment: Environment, dry_run: bool) -> str:
    """Run the template's program for this environment and return its sentence."""
    command = read_command(os.environ.get("COMMAND", ""))
    marker = require_fresh(environment)
    seconds = number(environment.parameters, "timeoutSeconds", 600)
    if dry_run:
        print(f"would create {marker} and run {shlex.join(command)} for at most {seconds:g} s")
        return f"would run {command[0]} for {environment.node}"
    create_marker(require_fresh(environment))
    return judge(*run(command, seconds), seconds)


def read_command(text: str) -> list[str]:
    """Return the words of the program. Raises Refused when there are none."""
    try:
        words = json.loads(text or "[]")
    except ValueError:
        words = None
    if not (isinstance(words, list) and all(isinstance(word, str) for word in words)):
        raise Refused(f'COMMAND in the template is not a JSON list of words, such as ["/repair", "--now"]: {text[:80]}')
    if not words:
        raise Refused("this template runs nothing yet: write its image and its COMMAND")
    return words


def judge(code: int | None, last: str, seconds: float) -> str:
    """Return the sentence of a program that has done it. Raises what its exit code means otherwise."""
    if code is None:
        raise Failed(f"it did not end within {seconds:g} s; its last line: {last or 'none'}")
    if code == 0:
        return last or "done, it printed nothing"
    if code == 2:
        raise Refused(last or "it printed nothing")
    raise Failed(f"exit {code}: {last or 'it printed nothing'}")


def run(command: list[str], seconds: float) -> tuple[int | None, str]:
    """Return the exit code, None when it did not end in time, and the last line that is not empty.

    What it says on both streams is passed on as it comes. Raises Failed when it cannot be started.
    """
    let_stop = hold_stop()
    try:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as error:
        raise Failed(f"{command[0]} cannot be started: {error.strerror}") from error
    until = time.monotonic() + seconds
    try:
        let_stop()
        last = pass_on(child, lambda: time.monotonic() < until)
        return child.poll(), last
    finally:
        end(child)


def hold_stop() -> Callable[[], None]:
    """Keep SIGTERM back until what this returns is called: one that came while a child is being started would leave it
    running with nobody to end it.
    """
    came: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda signum, _: came.append(signum))

    def let() -> None:
        signal.signal(signal.SIGTERM, before)
        for signum in came[:1]:
            signal.raise_signal(signum)

    return let


def pass_on(child: "subprocess.Popen[bytes]", may: Callable[[], bool]) -> str:
    """Print what `child` says until it has ended or may go on no longer; return its last line that is not empty."""
    assert child.stdout is not None
    pipe, tail, over = child.stdout.fileno(), b"", False
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        while not over:
            over = child.poll() is not None or not may()  # one more look: it may have spoken before it ended
            if not selector.select(0 if over else 0.1):
                continue
            chunk = os.read(pipe, PIPE_BYTES)
            if not chunk:
                selector.unregister(pipe)  # it said its last and may go on working
            sys.stdout.buffer.write(chunk)
            sys.stdout.flush()
            tail = (tail + chunk)[-LINE_BYTES:]
    lines = (line.strip() for line in reversed(tail.decode(errors="replace").splitlines()))
    return next((line for line in lines if line), "")


def end(child: "subprocess.Popen[bytes]") -> None:
    """End it with all that it started."""
    for signum in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signum)
        ends_by(child, time.monotonic() + GRACE)


if __name__ == "__main__":
    main(run_command, __doc__)

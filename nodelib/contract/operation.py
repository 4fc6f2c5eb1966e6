"""What an operation program owes the controller: its environment, an exit code, and one sentence.

Exit codes: 0 done, 1 failed (may be tried again), 2 refused (a precondition is not met; do not retry), 143 stopped by
SIGTERM before there was a result. The sentence goes to TERMINATION_LOG and to standard output; with --dry-run only to
the latter. That it was stopped replaces nothing that the program has left in TERMINATION_LOG.
"""

import json
import os
import signal
import sys
from collections import namedtuple
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from nodelib.contract import audit

SENTENCE_BYTES = 1024
STOPPED = 128 + signal.SIGTERM  # what a shell makes of a program that a signal has ended
ENDS = {0: audit.DONE, 1: audit.RETRY, 2: audit.GAVE_UP, STOPPED: audit.UNKNOWN}  # exit code → outcome in the log
MESSAGE_BYTES = 4096  # what a kubelet keeps of a termination message


class Failed(Exception):
    """It was tried and did not work; the message is the sentence."""


class Refused(Exception):
    """It must not be done; the message is the sentence."""


class NothingToDo(Refused):
    """The operation does not apply to this node; the message is the sentence. The controller knows its first words."""


class Stopped(Exception):
    """SIGTERM came: whoever started us wants us gone."""


class Environment(
    namedtuple("Environment", "node attempt expected_boot_id parameters termination_log token_dir host_root")
):
    """What the controller passes. Empty strings where it passed nothing; `parameters` is a JSON object."""

    __slots__ = ()


def read_environment(variables: dict[str, str]) -> Environment:
    """Return the contract's variables. Raises Refused when PARAMETERS is not a JSON object."""
    return Environment(
        node=variables.get("NODE_NAME", ""),
        attempt=variables.get("ATTEMPT_ID", ""),
        expected_boot_id=variables.get("EXPECTED_BOOT_ID", ""),
        parameters=parameters_of(variables),
        termination_log=variables.get("TERMINATION_LOG", "/dev/termination-log"),
        token_dir=variables.get("TOKEN_DIR", "/var/run/secrets/kubernetes.io/serviceaccount"),
        host_root=variables.get("HOST_ROOT", "/host"),
    )


def parameters_of(variables: Mapping[str, str]) -> dict:
    """Return the JSON object in PARAMETERS, an empty one where there is none. Raises Refused for anything else."""
    try:
        parameters = json.loads(variables.get("PARAMETERS") or "{}")
    except ValueError as error:
        raise Refused(f"PARAMETERS is not JSON: {error}") from error
    if not isinstance(parameters, dict):
        raise Refused("PARAMETERS is not a JSON object")
    return parameters


Work = Callable[[Environment, bool], str]


def main(work: Work, about: str | None, limit: int = SENTENCE_BYTES) -> None:
    """Parse the command line, do `work(environment, dry_run)` and exit; it returns the sentence or raises one.

    A longer sentence than `limit` bytes is cut.
    """
    dry_run = len(sys.argv) > 1 and _dry_run(about)
    signal.signal(signal.SIGTERM, _stop)
    code, sentence = outcome(work, dry_run)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it has a result now
    sentence = one_line(sentence, limit)
    print(sentence, flush=True)
    if not dry_run:
        audit.say("end", "operations", os.environ.get("ATTEMPT_ID", ""), ENDS[code], why=sentence)
        log = os.environ.get("TERMINATION_LOG", "/dev/termination-log")
        if code != STOPPED or not said(log):
            say(log, sentence)
    sys.exit(code)


def _dry_run(about: str | None) -> bool:
    import argparse  # only here: a Pod gives no options, and it takes a tenth of the start of a program

    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dry-run", action="store_true", help="print what would be done and change nothing")
    return parser.parse_args().dry_run


def outcome(work: Work, dry_run: bool) -> tuple[int, str]:
    """Return the exit code and the sentence of one piece of work, whatever it raises.

    Work that was stopped has no result: who preempts, evicts or deletes a Pod says nothing about the node.
    """
    try:
        return 0, work(read_environment(dict(os.environ)), dry_run)
    except NothingToDo as nothing:
        return 2, f"nothing to do: {nothing}"
    except Refused as refusal:
        return 2, f"refused: {refusal}"
    except Stopped as stop:
        return STOPPED, str(stop)
    except Failed as failure:
        return 1, f"failed: {failure}"
    except Exception as error:
        return 1, f"failed: {type(error).__name__}: {error}"


def one_line(text: str, limit: int) -> str:
    """Return `text` as one line of at most `limit` bytes."""
    return " ".join(text.split()).encode()[:limit].decode(errors="ignore")


def say(path: str, sentence: str) -> None:
    """Write the termination message. Run by hand there may be no such file: the sentence has been printed anyway."""
    try:
        Path(path).write_text(sentence, encoding="utf-8")
    except OSError as error:
        print(f"no termination message: {error}", file=sys.stderr)


def said(path: str) -> bool:
    """Whether something stands there already, such as what a program has found out before it was stopped."""
    try:
        return Path(path).stat().st_size > 0
    except OSError:
        return False


@contextmanager
def finishing() -> Iterator[None]:
    """While open SIGTERM waits until what was begun is over, as far as the Pod's grace goes. Raises Stopped then.

    What a program has started is killed with it: in the middle of a call of a driver that may wedge a device.
    """
    came: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
        if came:
            _stop()


def _stop(*_: object) -> None:
    raise Stopped("stopped by SIGTERM")

"""A detector: options, what a run has around its judgement, and the words in which it tells.

A detector reads, judges and says what is worth keeping (`Findings`); whether that is kept, and what happens where it
cannot be, is decided here. A run by hand (--explain) keeps nothing: it is none of two in a row, and leaves no mark.
"""

import argparse
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Generic, NamedTuple

from nodelib.contract import memory, npd
from nodelib.contract.memory import M, Scope, Stamp
from nodelib.contract.npd import STATE, Verdict, boot_id, leave_mark, read_json, since_boot, write_json

WIDTH = 120
OLD = 300.0  # seconds: the first of two in a row is no older; the longest interval of who remembers is four minutes
LINE_CHARS = 300  # of a line in evidence, lest it be cut elsewhere


class Nothing(NamedTuple):
    """The memory of a detector that needs none."""


class Run(Generic[M]):
    """What a detector is given: its options, the clock (seconds since boot), this boot's id, what the last run kept.

    It, `Findings` and `Detector` are no NamedTuples: making the class of one takes longer than all that it saves here.
    """

    def __init__(self, options: argparse.Namespace, stamp: Stamp, last: M) -> None:
        self.options, self.now, self.boot, self.last = options, stamp.now, stamp.boot, last


class Findings:
    """What a detector found in one run.

    `memory`: what the next run must know, None to leave the file as it is; `evidence`: asked at the first sight of a
    fault, as later it may be gone, None where nothing is to be kept; `explain`: prints what --explain is asked for.
    """

    def __init__(
        self,
        verdict: Verdict,
        line: str,
        memory: tuple[Any, ...] | None = None,
        evidence: Callable[[], Mapping[str, Any]] | None = None,
        explain: Callable[[], None] | None = None,
    ) -> None:
        self.verdict, self.line, self.memory, self.evidence, self.explain = verdict, line, memory, evidence, explain


class Detector(Generic[M]):
    """A program on a node. `name`: of its files in the state folder; `memory`: the type of what it keeps there."""

    def __init__(
        self,
        name: str,
        condition: str,
        check: Callable[[Run[M]], Findings],
        memory: type[M] = Nothing,  # type: ignore[assignment]
        scope: Scope = Scope.BOOT,
    ) -> None:
        self.name, self.condition, self.check, self.memory, self.scope = name, condition, check, memory, scope


def main(options: argparse.Namespace, detector: Detector[Any]) -> None:
    """Run the detector once, say what came out, and exit with it."""
    npd.run(lambda: perform(options, detector))


def clock(options: argparse.Namespace) -> float:
    """Return the seconds since boot."""
    return float(since_boot() if options.now is None else options.now)


def perform(options: argparse.Namespace, detector: Detector[Any]) -> tuple[Verdict, str]:
    """Check, keep what is to be kept, and return verdict and line."""
    stamp, path = Stamp(boot_id(options.proc), clock(options)), options.state / f"{detector.name}.json"
    last = memory.recall(path, detector.memory, stamp, detector.scope)
    run = Run(options, stamp, last)
    if options.explain:
        return _explained(detector.check(run))
    try:
        findings = detector.check(run)
    finally:
        unmarked = _failure(lambda: leave_mark(options.state, detector.name, clock(options), stamp.boot))
    kept, evidence = findings.memory, findings.evidence
    forgotten = "" if kept is None else _failure(lambda: memory.keep(path, kept, stamp))
    if evidence is not None:  # a fault is a fault where nothing can be written of it
        _failure(lambda: keep_evidence(options.state, detector, findings, evidence))
    is_old = bool(forgotten) and last != detector.memory() and memory.age(path, stamp, detector.scope) > OLD
    return _doubted(findings, forgotten or unmarked, is_old)


def _explained(findings: Findings) -> tuple[Verdict, str]:
    if findings.explain:
        findings.explain()
    return findings.verdict, findings.line


def _failure(write: Callable[[], None]) -> str:
    """Return why something cannot be written, "" where it was."""
    try:
        write()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def _doubted(findings: Findings, why: str, is_old: bool) -> tuple[Verdict, str]:
    """Return verdict and line where `why` says what could not be kept: who remembers nothing may miss a fault.

    `is_old`: what the fault may rest on was known long ago, and nothing that came since.
    """
    if not why or (findings.verdict is Verdict.FAULT and not is_old):
        return findings.verdict, findings.line
    return Verdict.UNKNOWN, why if findings.verdict is Verdict.OK else f"{findings.line}; {why}"


def keep_evidence(
    state: Path, detector: Detector[Any], findings: Findings, evidence: Callable[[], Mapping[str, Any]]
) -> None:
    """Write down what was seen, and when, at the first sight of a fault; drop it when all is well. Raises OSError."""
    path = state / "evidence" / f"{detector.name}.json"
    if findings.verdict is Verdict.OK:
        path.unlink(missing_ok=True)
    elif findings.verdict is Verdict.FAULT and read_json(path).get("detector") != detector.name:
        wall = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        head = {"detector": detector.name, "first_seen": wall, "condition": detector.condition}
        write_json(path, {**head, "line": findings.line[:LINE_CHARS], **evidence()})


def _help(prog: str) -> argparse.HelpFormatter:
    """Formats --help; told a width it need not look for a terminal, which takes longer to import than the rest."""
    return argparse.RawDescriptionHelpFormatter(prog, width=WIDTH)


def parser(description: str | None, deadline: float | None = None, awaited: str = "") -> argparse.ArgumentParser:
    """Return a parser with the options of every detector; `awaited` says what --deadline, if there is one, is for."""
    options = argparse.ArgumentParser(description=description, formatter_class=_help)
    if deadline is not None:
        options.add_argument(
            "--deadline", type=float, default=deadline, help=f"seconds to wait for {awaited} (%(default)s)"
        )
    options.add_argument("--proc", type=Path, default=Path("/proc"), help="the node's /proc (%(default)s)")
    options.add_argument("--sys", type=Path, default=Path("/sys"), help="the node's /sys (%(default)s)")
    options.add_argument("--dev", type=Path, default=Path("/dev"), help="the node's /dev (%(default)s)")
    options.add_argument("--state", type=Path, default=STATE, help="the only folder that is written to (%(default)s)")
    options.add_argument("--now", type=float, help="seconds since boot, instead of the clock")
    options.add_argument("--explain", action="store_true", help="also print what was read and how it was judged")
    return options


def add_credentials(options: argparse.ArgumentParser) -> None:
    """Add the options of a detector that may have to ask the API server (k8s/pod_list.py)."""
    options.add_argument(
        "--node-root",
        type=Path,
        metavar="FOLDER",
        help="folder in which the node's files are, those of its kubelet among them (default: 1/root in /proc)",
    )
    options.add_argument(
        "--kubelet-kubeconfig",
        default="",
        metavar="PATH",
        help="the node's file with which its kubelet asks the API server (default: what the kubelet was started with)",
    )
    options.add_argument(
        "--token-dir",
        type=Path,
        default=os.environ.get("TOKEN_DIR", "/var/run/secrets/kubernetes.io/serviceaccount"),
        help="folder with the token and ca.crt to ask the API server where the kubelet's credentials are no files; "
        "TOKEN_DIR sets it too (%(default)s)",
    )


def conclude(verdicts: Mapping[str, Verdict], fine: str) -> tuple[Verdict, str]:
    """Turn texts and their verdicts into one: any fault outranks any doubt, any doubt outranks health."""
    for verdict in (Verdict.FAULT, Verdict.UNKNOWN):
        texts = sorted(text for text, judged in verdicts.items() if judged is verdict)
        if texts:
            return verdict, "; ".join(texts)
    return Verdict.OK, fine


def explain(views: Mapping[str, Any], checks: Mapping[str, Any], verdict: Verdict) -> None:
    """Print each view, and what each check made of all of them."""
    for name, value in views.items():
        print(f"{name}: {'not available' if value is None else plain(value)}")
    for name, check in checks.items():
        print(f"{name}: {plain(check)}")
    print(f"verdict: {verdict.name}")


def fields(record: Any) -> dict[str, Any]:
    """Return the fields of a NamedTuple under the words that --explain prints."""
    return {name.replace("_", " "): part for name, part in record._asdict().items()}


def plain(value: Any) -> str:
    """Return a value without the names of types: `gpus (a, b), why none`. What is empty is none."""
    if hasattr(value, "_asdict"):
        value = fields(value)
    if isinstance(value, Mapping):
        return ", ".join(f"{_inner(name)} {_inner(part)}" for name, part in value.items()) or "none"
    if isinstance(value, (set, frozenset)):
        return ", ".join(sorted(map(_inner, value))) or "none"
    if isinstance(value, (tuple, list)):
        return ", ".join(map(_inner, value)) or "none"
    return "none" if value is None or value == "" else str(value)


def _inner(value: Any) -> str:
    text = plain(value)
    return f"({text})" if not isinstance(value, str) and ", " in text else text

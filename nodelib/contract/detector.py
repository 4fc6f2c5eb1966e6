"""What detectors share around their judgement: options, evidence and the mark."""

import argparse
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from nodelib.contract.npd import STATE, Verdict, boot_id, leave_mark, run, since_boot, write_json

WIDTH = 120
Check = Callable[[argparse.Namespace], tuple[Verdict, str]]


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


def main(options: argparse.Namespace, name: str, check: Check) -> None:
    """Check, leave the mark (a run by hand with --explain leaves none), say what came out and exit with it."""
    run(lambda: _check_and_mark(options, name, check))


def clock(options: argparse.Namespace) -> float:
    """Return the seconds since boot."""
    return float(since_boot() if options.now is None else options.now)


def _check_and_mark(options: argparse.Namespace, name: str, check: Check) -> tuple[Verdict, str]:
    try:
        return check(options)
    finally:
        if not options.explain:
            leave_mark(options.state, name, clock(options), boot_id(options.proc))


def keep_evidence(state: Path, name: str, verdict: Verdict, record: Mapping[str, Any]) -> None:
    """Write `record` and when, at the first sight of a fault, as later it may be gone; drop it when all is well."""
    path = state / "evidence" / f"{name}.json"
    if verdict is Verdict.OK:
        path.unlink(missing_ok=True)
    elif verdict is Verdict.FAULT and not path.exists():
        wall = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        write_json(path, {"detector": name, "first_seen": wall, **record})


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


def plain(value: Any) -> str:
    """Return a value without the names of types: `gpus (a, b), why none`. What is empty is none."""
    if hasattr(value, "_asdict"):
        value = value._asdict()
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

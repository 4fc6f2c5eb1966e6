"""The command line: one module per command. What only one command needs is imported when that command runs."""

import io
import os
import shlex
import sys

from remediator.cli import (
    client_certificate,
    close_breaker,
    convert,
    crds,
    defaults,
    demo,
    explain,
    extender,
    gpus,
    history,
    inventory,
    janitor,
    keep,
    lint,
    operate,
    orders,
    placing,
    replay,
    retire,
    rma,
    run,
    status,
    ticket,
    uninstall,
)
from remediator.cli.common import app

__all__ = [
    "app",
    "client_certificate",
    "close_breaker",
    "complete_for_kubectl",
    "convert",
    "crds",
    "defaults",
    "demo",
    "explain",
    "extender",
    "gpus",
    "history",
    "inventory",
    "janitor",
    "keep",
    "lint",
    "main",
    "operate",
    "orders",
    "placing",
    "replay",
    "retire",
    "rma",
    "run",
    "status",
    "ticket",
    "uninstall",
]


def main() -> None:
    """The entry point."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a file's name may be no text; stderr does so of itself
    app()


def complete_for_kubectl() -> None:
    """Print what the last word may become: kubectl asks `kubectl_complete-remediator` so for `kubectl remediator`."""
    words = sys.argv[1:]
    asked = {"COMP_WORDS": shlex.join(["remediator", *words]), "COMP_CWORD": str(len(words))}
    os.environ.update(asked, _REMEDIATOR_COMPLETE="complete_bash")
    app(args=[], prog_name="remediator")

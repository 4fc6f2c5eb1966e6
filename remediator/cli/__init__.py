"""The command line: one module per command. What only one command needs is imported when that command runs."""

import importlib
import io
import os
import shlex
import sys
from collections.abc import Sequence

from remediator import collector, process

# Commands that have a module of their own name: what the others need is not imported for these.
ALONE = (
    "client-certificate",
    "close-breaker",
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
    "retire",
    "rma",
    "run",
    "status",
    "ticket",
    "uninstall",
)


# Those that stay: there Python collects cycles as it always does.
STAY = frozenset({"demo", "extender", "janitor", "run"})


def load(words: Sequence[str]) -> None:
    """Import what these words of a command line need: the command alone, or all where they name none of its own."""
    if not STAY.intersection(words[:1]):
        collector.seldom()
    process.plain_tracebacks()
    alone = bool(words) and words[0] in ALONE
    importlib.import_module(f"remediator.cli.{words[0].replace('-', '_') if alone else 'every'}")


def main() -> None:
    """The entry point."""
    load(sys.argv[1:])
    from remediator.cli.common import app

    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a file's name may be no text; stderr does so of itself
    app()


def complete_for_kubectl() -> None:
    """Print what the last word may become: kubectl asks `kubectl_complete-remediator` so for `kubectl remediator`."""
    from remediator.cli.every import app

    words = sys.argv[1:]
    asked = {"COMP_WORDS": shlex.join(["remediator", *words]), "COMP_CWORD": str(len(words))}
    os.environ.update(asked, _REMEDIATOR_COMPLETE="complete_bash")
    app(args=[], prog_name="remediator")

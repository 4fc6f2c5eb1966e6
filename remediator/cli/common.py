"""What every command shares: the app, how the cluster is reached, how bad input is refused."""

import json
import os
import signal
import threading
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from remediator import process
from remediator.core import names, retention
from remediator.core.case_data import in_json
from remediator.core.places import DEFAULT
from remediator.core.text import printable

if TYPE_CHECKING:
    from remediator.kube.wire.client import Client
    from remediator.kube.wire.http import HttpTransport

app = typer.Typer(
    help="Finds unhealthy GPU nodes, repairs them where that is safe, and hands a person a complete case where it is "
    "not.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


@app.callback()
def _remediator() -> None:
    """With this Typer takes the name of a command also where only one command was imported."""


class Screen:
    """Prints each text on one line and without control characters.

    Nodes and Pods may say anything: a terminal would obey it, or it would look like a line of ours.
    """

    def __init__(self, *, stderr: bool = False) -> None:
        self._stderr = stderr

    def print(self, text: str) -> None:
        """One line."""
        typer.echo(printable(text), err=self._stderr)


out, err = Screen(), Screen(stderr=True)
Kubeconfig = Annotated[
    Path | None,
    typer.Option(
        envvar="KUBECONFIG",
        help="How to reach the cluster from outside. Left out: the Pod's own service account; outside of a Pod, "
        "where a user asks, ~/.kube/config as kubectl.",
    ),
]

Namespace = Annotated[
    str,
    typer.Option(envvar="POD_NAMESPACE", help="The controller's namespace: of Leases, Secret and pause annotation."),
]

OUR_NAMESPACE, OPERATIONS = names.SYSTEM_NAMESPACE, names.OPERATIONS_NAMESPACE

OperationsNamespace = Annotated[
    str, typer.Option(envvar="OPERATIONS_NAMESPACE", help="The namespace in which the Pods of operations run.")
]

ApiPodsNodeSelector = Annotated[
    str,
    typer.Option(
        # Not by envvar: to typer, a variable that is empty, which means every node here, is one that is not there.
        default_factory=lambda: os.environ.get("API_PODS_NODE_SELECTOR", DEFAULT),
        show_default=f"API_PODS_NODE_SELECTOR, or {DEFAULT}",
        help="Label selector of the nodes for Pods with rights in the API, such as drains; '' is every node.",
    ),
]

GangTopology = Annotated[
    str, typer.Option(help="Labels by which Pods of a gang keep together, the narrowest domain first. Empty: none.")
]

PrometheusTokenFile = Annotated[
    Path | None, typer.Option(exists=True, dir_okay=False, help="File with a bearer token for Prometheus.")
]

PrometheusCaFile = Annotated[
    Path | None, typer.Option(exists=True, dir_okay=False, help="Who signs the certificate of Prometheus, PEM.")
]

AlertmanagerTokenFile = Annotated[
    Path | None, typer.Option(exists=True, dir_okay=False, help="File with a bearer token for Alertmanager.")
]

AlertmanagerCaFile = Annotated[
    Path | None, typer.Option(exists=True, dir_okay=False, help="Who signs Alertmanager's certificate, PEM.")
]

AlertmanagerWatchdog = Annotated[
    str,
    typer.Option(
        help="Name of an alert that always fires, such as Watchdog of kube-prometheus: while no Alertmanager lists "
        "it, Prometheus is away, and no alert has ended."
    ),
]

AlertmanagerMatcher = Annotated[
    str,
    typer.Option(
        help='Only alerts that match count, such as cluster="prod-a": needed where Alertmanager has those of several '
        "clusters, whose nodes and Pods may have the same names."
    ),
]

Form = Annotated[Literal["text", "json"], typer.Option("--output", "-o", help="text is for people, json for scripts.")]


class ExitCode(IntEnum):
    """What a command ends with; a script may rely on it (docs/commands.md)."""

    DONE = 0
    NO_SUCH = 1  # nothing has this name
    REFUSED = 2  # used wrongly, or the cluster refuses, or cannot be reached
    NOTHING = 3  # the command would do nothing: it is so already, or cannot be so now
    FAILED = 4  # what was asked for was tried, and did not succeed
    INTERRUPTED = 130  # by Ctrl-C, as of every program


DOMAINS = ",".join(names.DOMAINS)

LONGEST_WINDOW = int(retention.AGE.total_seconds())  # what began before that is no longer known

Starts = Annotated[int, typer.Option(min=1, help="At most so many disruptive starts in the whole fleet in --window.")]

Window = Annotated[int, typer.Option(min=1, max=LONGEST_WINDOW, help="Seconds over which --starts are counted.")]


def incomplete(left_out: Iterable[str]) -> None:
    """Say on stderr what could not be read of shared GPUs."""
    for why in left_out:
        err.print(f"remediator: what is said of shared GPUs may be incomplete: {why}")


OUR_KINDS = "is it an API server, and are Remediator's kinds in it (`remediator crds`)?"


def amount(count: int, noun: str) -> str:
    """A number with its noun.

    >>> amount(1, "document"), amount(0, "finding")
    ('1 document', '0 findings')
    """
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def refusal(why: object) -> typer.Exit:
    """Say in one sentence what cannot be done and what would help; to be raised, and exits 2."""
    err.print(f"remediator: {why}")
    return typer.Exit(ExitCode.REFUSED)


class Ended(typer.Exit):
    """A command that ends with one sentence on stderr; to be raised."""

    def __init__(self, code: ExitCode, why: str) -> None:
        err.print(f"remediator: {why}")
        super().__init__(code)


def confirm(question: str, *, yes: bool, script: bool = False) -> None:
    """Ask before something is disturbed, unless `yes`; without a yes the command ends, and nothing was done.

    A script cannot answer: it is not asked.
    """
    if yes:
        return
    if script:
        raise refusal(f"nothing was done: {printable(question)} With -o json nobody is asked: give --yes")
    try:
        with _ctrl_c_ends():
            answer = typer.confirm(printable(question), err=True)
    except typer.Abort as ended:
        if isinstance(ended.__context__, KeyboardInterrupt):
            raise KeyboardInterrupt from None
        raise refusal("nothing was done, for nobody has answered; where nobody can, give --yes") from None
    if not answer:
        raise refusal("nothing was done")


@contextmanager
def _ctrl_c_ends() -> Iterator[None]:
    """While a question waits Ctrl-C ends it: asyncio would only note it, and go on once the question is answered."""
    if threading.current_thread() is not threading.main_thread():  # no other is told of Ctrl-C, or may ask for it
        yield
        return
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def print_json(data: Any) -> None:
    """Print data for scripts in ASCII alone: a terminal obeys nothing in it."""
    typer.echo(json.dumps(data, indent=2, default=in_json))


async def connect(kubeconfig: Path | None) -> "HttpTransport":
    """A connection from the kubeconfig, or from inside a Pod; one sentence and exit 2 where neither works."""
    try:
        return await process.connect(kubeconfig)
    except process.Unrunnable as failed:
        raise refusal(failed) from None


def _usual() -> Path | None:
    """The file that kubectl takes where none is given; inside of a Pod none."""
    usual = Path.home() / ".kube" / "config"
    return usual if "KUBERNETES_SERVICE_HOST" not in os.environ and usual.is_file() else None


@asynccontextmanager
async def asking(
    kubeconfig: Path | None, what: str = "", remedy: str = "", forbidden: str = ""
) -> AsyncIterator["Client"]:
    """A client for a command of a user; one sentence and exit 2 where the server refuses.

    `what` is asked about, where it is one thing. `remedy` helps whatever is wrong, `forbidden` who may not.
    """
    from remediator.kube.wire import errors
    from remediator.kube.wire.client import Client

    transport = await connect(kubeconfig or _usual())
    try:
        yield Client(transport)
    except errors.ApiError as failed:
        helps = remedy or (forbidden if isinstance(failed, errors.Forbidden) else "")
        sentence = f"{what}: {failed.message}" if what else failed.message
        if isinstance(failed, errors.NotFound) and not helps:
            sentence, helps = f"the server of the kubeconfig says {failed.message!r}", OUR_KINDS
        raise refusal("; ".join(filter(None, (sentence, helps)))) from None
    finally:
        await transport.close()

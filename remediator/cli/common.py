"""What every command shares: the app, how the cluster is reached, how bad input is refused."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from remediator.core import retention

if TYPE_CHECKING:
    from remediator.kube.wire.http import HttpTransport

app = typer.Typer(
    help="Finds sick GPU nodes, repairs them where that is safe, and hands a person a complete case where it is not.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
out, err = (
    Console(stderr=stderr, soft_wrap=True, highlight=False, markup=False, emoji=False) for stderr in (False, True)
)
Kubeconfig = Annotated[
    Path | None,
    typer.Option(
        envvar="KUBECONFIG", help="How to reach the cluster from outside. Left out: the Pod's own service account."
    ),
]

Namespace = Annotated[
    str,
    typer.Option(envvar="POD_NAMESPACE", help="The controller's namespace: of Leases, Secret and pause annotation."),
]

OperationsNamespace = Annotated[
    str, typer.Option(envvar="OPERATIONS_NAMESPACE", help="The namespace in which the Pods of operations run.")
]

LONGEST_WINDOW = int(retention.AGE.total_seconds())  # what began before that is no longer known

Starts = Annotated[int, typer.Option(min=1, help="Most disruptive starts in the whole fleet in --window.")]

Window = Annotated[int, typer.Option(min=1, max=LONGEST_WINDOW, help="Seconds over which --starts are counted.")]


def refusal(why: object) -> typer.Exit:
    """Say in one sentence what cannot be done and what would help; to be raised, and exits 2."""
    err.print(f"remediator: {why}")
    return typer.Exit(2)


async def connect(kubeconfig: Path | None) -> "HttpTransport":
    """A connection from the kubeconfig, or from inside a Pod; one sentence and exit 2 where neither works."""
    # Only here, because the client of Kubernetes takes half a second to import, which other commands need not wait for.
    from remediator.kube.wire.http import HttpTransport

    try:
        return await (HttpTransport.from_kubeconfig(kubeconfig) if kubeconfig else HttpTransport.in_cluster())
    except Exception as failed:
        if kubeconfig is None:
            raise refusal(
                f"no --kubeconfig given, and no service account of a Pod here ({failed}); give --kubeconfig FILE"
            ) from None
        why = f"kubeconfig {kubeconfig}: {str(failed) or type(failed).__name__}"
        raise refusal(f"{why}; correct it, or give another with --kubeconfig or KUBECONFIG") from None

"""`remediator reboot`, `drain`, `take-out` and `put-back`: operations that users ask for."""

from typing import Annotated

import typer

from remediator.cli.common import (
    OPERATIONS,
    OUR_NAMESPACE,
    Form,
    Kubeconfig,
    Namespace,
    OperationsNamespace,
    app,
    refusal,
)
from remediator.cli.meant import JobName, NodeName, NodeNames, PodName, Target
from remediator.cli.operating import Operating
from remediator.cli.ordering import Ordering
from remediator.cli.orders import Yes, reason_given, until
from remediator.core.asked import DRAIN
from remediator.core.case import KeepOut
from remediator.core.names import Namespaces
from remediator.core.orders import Command, Order

NoFollow = Annotated[bool, typer.Option("--no-follow", help="Do not wait for its end.")]
NO_LENGTH = (
    "--for is missing: say for how long you keep the node, such as --for 4h or --for 3d; after that everybody is told "
    "that it is overdue, and it stays yours until you put it back"
)


@app.command()
def reboot(
    node: NodeName = "",
    pod: PodName = "",
    job: JobName = "",
    yes: Yes = False,
    no_follow: NoFollow = False,
    kubeconfig: Kubeconfig = None,
    namespace: Namespace = OUR_NAMESPACE,
    operations_namespace: OperationsNamespace = OPERATIONS,
    output: Form = "text",
) -> None:
    """Have a node drained and rebooted within all budgets. Shows what ends with it, asks, and follows to the end."""
    spaces = Namespaces(namespace, operations_namespace)
    Operating("reboot", Target(node, pod, job), spaces, kubeconfig, output).run(yes=yes, follow=not no_follow)


@app.command()
def drain(
    node: NodeName = "",
    pod: PodName = "",
    job: JobName = "",
    yes: Yes = False,
    no_follow: NoFollow = False,
    kubeconfig: Kubeconfig = None,
    namespace: Namespace = OUR_NAMESPACE,
    operations_namespace: OperationsNamespace = OPERATIONS,
    output: Form = "text",
) -> None:
    """Have a node emptied and given back. Shows what ends with it, asks, and follows to the end."""
    spaces = Namespaces(namespace, operations_namespace)
    Operating(DRAIN, Target(node, pod, job), spaces, kubeconfig, output).run(yes=yes, follow=not no_follow)


@app.command(name="take-out")
def take_out(
    nodes: NodeNames,
    length: Annotated[
        str, typer.Option("--for", metavar="LENGTH", help="How long you keep them, such as 4h or 3d. Must be given.")
    ] = "",
    because: Annotated[str, typer.Option("--reason", help="Shown wherever the nodes are shown as taken out.")] = "",
    pod: PodName = "",
    job: JobName = "",
    yes: Yes = False,
    no_follow: NoFollow = False,
    kubeconfig: Kubeconfig = None,
    namespace: Namespace = OUR_NAMESPACE,
    operations_namespace: OperationsNamespace = OPERATIONS,
    output: Form = "text",
) -> None:
    """Have nodes emptied and keep them, counted by their budgets, until you put them back. Asked again: longer."""
    if not length:
        raise refusal(NO_LENGTH)
    ends = until(length)
    if ends is None:
        raise refusal(
            f"--for {length}: a node that is kept for ever is forgotten; say how long, such as 3d, and ask again"
        )
    spaces, target = Namespaces(namespace, operations_namespace), Target("", pod, job, nodes=tuple(nodes))
    terms = KeepOut(ends.replace(microsecond=0), reason_given(because))
    Operating(DRAIN, target, spaces, kubeconfig, output, terms).run(yes=yes, follow=not no_follow)


@app.command(name="put-back")
def put_back(
    nodes: NodeNames,
    pod: PodName = "",
    job: JobName = "",
    kubeconfig: Kubeconfig = None,
    output: Form = "text",
) -> None:
    """Give nodes back that were taken out, so that they take work again."""
    target = Target("", pod, job, nodes=tuple(nodes))
    Ordering(target, Order(Command.PUT_BACK, ""), kubeconfig, output).run(yes=True)

"""`remediator hold`, `approve`, `release`, `retry`, `cancel`: what a user decides about the open case of a node."""

from datetime import datetime
from typing import Annotated

import typer

from remediator.cli.common import Form, Kubeconfig, app, refusal
from remediator.cli.meant import CaseNames, JobName, NodeName, PodName, Target
from remediator.cli.ordering import Ordering
from remediator.clock import SYSTEM
from remediator.core.command import LONGEST_REASON
from remediator.core.orders import Command, Order

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before something is disturbed.")]


@app.command()
def hold(
    cases: CaseNames,
    node: NodeName = "",
    length: Annotated[
        str, typer.Option("--for", metavar="LENGTH", help="Such as 30m, 2h or 3d. Left out: no end.")
    ] = "",
    because: Annotated[str, typer.Option("--reason", help="Shown wherever the hold is shown.")] = "",
    off: Annotated[bool, typer.Option("--off", help="End a hold.")] = False,
    pod: PodName = "",
    job: JobName = "",
    kubeconfig: Kubeconfig = None,
    output: Form = "text",
) -> None:
    """Let nothing new start in the case of a node, for a while or until `--off`."""
    if off and (length or because):
        raise refusal("--off takes neither --for nor --reason")
    order = Order(Command.UNHOLD if off else Command.HOLD, "", until(length), reason_given(because))
    Ordering(Target(node, pod, job, tuple(cases)), order, kubeconfig, output).run(yes=True)


@app.command()
def approve(
    cases: CaseNames,
    node: NodeName = "",
    pod: PodName = "",
    job: JobName = "",
    yes: Yes = False,
    kubeconfig: Kubeconfig = None,
    output: Form = "text",
) -> None:
    """Let the case of a node start that waits for an approval. Shows what ends with it, and asks."""
    Ordering(Target(node, pod, job, tuple(cases)), Order(Command.APPROVE, ""), kubeconfig, output).run(yes=yes)


@app.command()
def release(
    cases: CaseNames,
    node: NodeName = "",
    pod: PodName = "",
    job: JobName = "",
    kubeconfig: Kubeconfig = None,
    output: Form = "text",
) -> None:
    """Give the node of an Escalated case back, once it is repaired."""
    Ordering(Target(node, pod, job, tuple(cases)), Order(Command.RELEASE, ""), kubeconfig, output).run(yes=True)


@app.command()
def retry(
    cases: CaseNames,
    node: NodeName = "",
    pod: PodName = "",
    job: JobName = "",
    yes: Yes = False,
    kubeconfig: Kubeconfig = None,
    output: Form = "text",
) -> None:
    """Let the Escalated case of a node try again from the rung that it came to last. Asks."""
    Ordering(Target(node, pod, job, tuple(cases)), Order(Command.RETRY, ""), kubeconfig, output).run(yes=yes)


@app.command()
def cancel(
    cases: CaseNames,
    node: NodeName = "",
    pod: PodName = "",
    job: JobName = "",
    kubeconfig: Kubeconfig = None,
    output: Form = "text",
) -> None:
    """End the case of a node for good, by deleting it. Its node is given back."""
    Ordering(Target(node, pod, job, tuple(cases)), Order(Command.CANCEL, ""), kubeconfig, output).run(yes=True)


def reason_given(because: str) -> str:
    """What stands behind --reason, on one line. Raises refusal where it is too long."""
    if len(because) > LONGEST_REASON:
        raise refusal(f"--reason has {len(because)} characters: write at most {LONGEST_REASON}")
    return " ".join(because.split())


def until(length: str) -> datetime | None:
    """When what lasts for as long as --for says ends; None: at no time. Raises refusal."""
    if not length:
        return None
    from remediator.janitor.ttl import TTL_FORM, UnreadableTime, parse_ttl

    try:
        long = parse_ttl(length)
    except UnreadableTime:
        raise refusal(f"--for {length[:64]} is no length of time: {TTL_FORM}") from None
    return None if long is None else SYSTEM.now() + long

"""`remediator hold`, `approve`, `release`, `retry`, `cancel`: what a user decides about the open case of a node."""

import asyncio
import contextlib
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from remediator.cli.common import Ended, Exit, Form, Kubeconfig, app, asking, confirm, out, print_json, refusal
from remediator.cli.meant import CaseNames, JobName, NodeName, PodName, Target, must_exist, nodes_meant
from remediator.cli.nearest import hint
from remediator.clock import SYSTEM
from remediator.core.blast_radius import described
from remediator.core.case import Case
from remediator.core.command import LONGEST_REASON
from remediator.core.orders import STARTS, Answer, Command, Order, choose, shown

if TYPE_CHECKING:
    from remediator.kube.wire.client import Client

TRIES = 5
MAY = "the role remediator-operator may do this"
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
    if len(because) > LONGEST_REASON:
        raise refusal(f"--reason has {len(because)} characters: write at most {LONGEST_REASON}")
    order = Order(Command.UNHOLD if off else Command.HOLD, "", _until(length), " ".join(because.split()))
    asyncio.run(_obey(Target(node, pod, job, tuple(cases)), order, kubeconfig, output, yes=True))


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
    asyncio.run(_obey(Target(node, pod, job, tuple(cases)), Order(Command.APPROVE, ""), kubeconfig, output, yes=yes))


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
    asyncio.run(_obey(Target(node, pod, job, tuple(cases)), Order(Command.RELEASE, ""), kubeconfig, output, yes=True))


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
    asyncio.run(_obey(Target(node, pod, job, tuple(cases)), Order(Command.RETRY, ""), kubeconfig, output, yes=yes))


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
    asyncio.run(_obey(Target(node, pod, job, tuple(cases)), Order(Command.CANCEL, ""), kubeconfig, output, yes=True))


def _until(length: str) -> datetime | None:
    """When a hold of this length ends."""
    if not length:
        return None
    from remediator.janitor.ttl import TTL_FORM, Unreadable, parse_ttl

    try:
        long = parse_ttl(length)
    except Unreadable:
        raise refusal(f"--for {length[:64]} is no length of time: {TTL_FORM}") from None
    return None if long is None else SYSTEM.now() + long


async def _obey(target: Target, order: Order, kubeconfig: Path | None, output: str, *, yes: bool) -> None:
    """What has moved since it was read is read again. Each line is printed once that is done which it says."""
    from remediator.kube.meant import own_name
    from remediator.kube.wire import errors

    obeyed: list[Answer] = []
    async with asking(kubeconfig, forbidden=MAY) as client:
        nodes = await nodes_meant(client, target)
        order = Order(order.command, await own_name(client), order.until, order.because)
        for _ in range(TRIES):
            try:
                answers = await _chosen(client, target, nodes, order)
                _confirm(answers, order, yes=yes)
                yes = True
                for answer in answers:
                    await _act(client, answer, order.user)
                    obeyed.append(answer)
                    if output == "text":
                        out.print(f"{shown(answer.case)} {answer.text}")
                break
            except errors.Conflict:
                target = Target(target.node, target.pod, target.job, _left(target, obeyed))
        else:
            raise refusal(f"{target.shown}: its cases change faster than they can be written; try again")
    if output == "json":
        cases = [{"case": each.case.name, "node": each.case.node, "text": each.text} for each in obeyed]
        print_json({"command": order.command.value, "by": order.user, "cases": cases})


def _left(target: Target, obeyed: list[Answer]) -> tuple[str, ...]:
    """The cases that are still to obey, where they were named."""
    done = {answer.case.name for answer in obeyed}
    return tuple(name for name in target.cases if name not in done)


async def _chosen(client: "Client", target: Target, nodes: list[str], order: Order) -> tuple[Answer, ...]:
    """What is done now, as the cases are. Raises Ended."""
    cases = await _cases(client, nodes)
    if not cases and target.node:
        await must_exist(client, target.node)
    known = [case.name for case in cases]
    for name in target.cases:
        if name not in known:
            raise Ended(Exit.NO_SUCH, f"no case {name} of {', '.join(nodes)} is kept{hint(name, known)}")
    choice = choose(cases, order, ", ".join(nodes), target.cases)
    if choice.nothing:
        raise Ended(Exit.NOTHING, choice.nothing)
    if choice.unclear:
        raise refusal(choice.unclear)
    return choice.answers


async def _cases(client: "Client", nodes: list[str]) -> list[Case]:
    from remediator.kube.cases_of import cases_of

    return [case for node in nodes for case in await cases_of(client, SYSTEM, node)]


def _confirm(answers: tuple[Answer, ...], order: Order, *, yes: bool) -> None:
    if order.command not in STARTS:
        return
    for answer in answers:
        case = answer.case
        ends = described(case.blast) if case.blast else "not looked at yet"
        confirm(f"{shown(case)} {answer.text}; what would end with it: {ends}. Go on?", yes=yes)


async def _act(client: "Client", answer: Answer, user: str) -> None:
    """Raises Conflict where the case has moved. One that is gone has ended: then there is nothing more to do."""
    from remediator.kube import api
    from remediator.kube.api import encode
    from remediator.kube.wire import errors

    if answer.delete:
        with contextlib.suppress(errors.NotFound):
            await client.delete(api.CASE, answer.case.name, uid=answer.case.uid)
    elif answer.change is not None:
        await client.patch(api.CASE, answer.case.name, encode.decided(answer.change, user))

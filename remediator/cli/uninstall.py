"""`remediator uninstall`: every node is given back, before Remediator is taken away."""

import asyncio
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from remediator.cli.common import OUR_NAMESPACE, Ended, ExitCode, Kubeconfig, Namespace, app, asking, confirm, err, out
from remediator.cli.orders import Yes
from remediator.cli.patience import PatientTransport
from remediator.clock import SYSTEM
from remediator.core import names
from remediator.core.case import Case
from remediator.core.leaving import GIVE_BACK_BROKEN, Leaving, leftovers, named

if TYPE_CHECKING:
    from remediator.kube.api.builtin import Head, OperationWithPhase
    from remediator.kube.wire.client import Client

EVERY = 1.0  # seconds between two looks
TELL_EVERY = timedelta(seconds=30)
DELETES = 8  # that are under way at once
PAGE = 500  # operations in a page


@app.command()
def uninstall(
    yes: Yes = False,
    give_back_broken: Annotated[
        bool,
        typer.Option(
            GIVE_BACK_BROKEN, help="With --yes: go on though nodes are in quarantine, or users have taken them out."
        ),
    ] = False,
    timeout: Annotated[int, typer.Option(min=1, help="Seconds to wait until the last node is given back.")] = 1800,
    kubeconfig: Kubeconfig = None,
    namespace: Namespace = OUR_NAMESPACE,
) -> None:
    """Pause everything new, cancel every open case, and wait until no node carries a mark of ours."""
    try:
        asyncio.run(_uninstall(kubeconfig, namespace, timedelta(seconds=timeout), yes=yes, broken=give_back_broken))
    except KeyboardInterrupt:
        raise typer.Exit(ExitCode.INTERRUPTED) from None


async def _uninstall(kubeconfig: Path | None, namespace: str, timeout: timedelta, *, yes: bool, broken: bool) -> None:
    from remediator.controller.leading import leading
    from remediator.kube.api import encode
    from remediator.kube.api.builtin import NAMESPACE
    from remediator.kube.wire.client import Client

    async with asking(kubeconfig, forbidden="the role remediator-operator may do this") as client:
        now = SYSTEM.now()
        leader = await leading(client, namespace, now)
        before = await _leaving(client, namespace)
        if not leader.leads(now) and (before.cases or await _held(client)):
            why = f"{leader.described(now)}: start the controller, for nobody else gives nodes back"
            raise Ended(ExitCode.FAILED, why)
        if before.cases:
            if yes and before.broken and not broken:
                why = f"nothing was done: {before.broken}; then run this again with {GIVE_BACK_BROKEN}"
                raise Ended(ExitCode.FAILED, why)
            confirm(before.question, yes=yes)
        until = SYSTEM.now() + timeout  # a user may have taken their time to answer
        await client.patch(NAMESPACE, namespace, encode.annotations({names.PAUSED: names.LEAVING}))
        out.print(f"everything new is paused: the namespace {namespace} has the annotation {names.PAUSED}")
        await _leave(Client(PatientTransport(client.transport, until)), namespace, until)
    out.print("no case is open, and no node is kept by a mark of ours: take Remediator away now (docs/uninstall.md)")


async def _leave(client: "Client", namespace: str, until: datetime) -> None:
    """Whatever ends it while everything new is paused is told, with how to go on and how to give up."""
    from remediator.kube.wire import errors

    try:
        await _until_given_back(client, namespace, until)
        await _until_let_go(client, namespace, until)
        await _see_marks(client, namespace)
    except asyncio.CancelledError:
        err.print(f"interrupted: run this again to go on{_pause_ends(namespace)}")
        raise
    except (errors.TooManyRequests, errors.Unavailable) as failed:
        raise Ended(ExitCode.FAILED, f"{failed.message}; run this again to go on{_pause_ends(namespace)}") from None


async def _leaving(client: "Client", namespace: str) -> Leaving:
    from remediator.kube.overview import open_cases

    return Leaving(await open_cases(client, SYSTEM, names.Namespaces(namespace)))


async def _until_given_back(client: "Client", namespace: str, until: datetime) -> None:
    """Cancel what is open, again and again: a case may have begun before the pause was seen."""
    cancelled: set[str] = set()
    tell = SYSTEM.now() + TELL_EVERY
    while cases := (await _leaving(client, namespace)).cases:
        for case in (case for case in cases if case.uid not in cancelled):
            await _cancel(client, case)
            cancelled.add(case.uid)
        if SYSTEM.now() > until:
            waits = named({case.node for case in cases})
            why = f"not given back: {waits}; `remediator explain NODE` says why; then run this again"
            raise Ended(ExitCode.FAILED, why + _pause_ends(namespace))
        if SYSTEM.now() > tell:
            out.print(f"waiting for {named({case.node for case in cases})}")
            tell += TELL_EVERY
        await asyncio.sleep(EVERY)


async def _cancel(client: "Client", case: Case) -> None:
    """One that is gone, or another one of its name, is nothing to cancel."""
    from remediator.kube import api
    from remediator.kube.wire import errors

    with suppress(errors.NotFound, errors.Conflict):
        await client.delete(api.CASE, case.name, uid=case.uid)
        out.print(f"cancelled case {case.name} on {case.node}")


def _pause_ends(namespace: str) -> str:
    """What takes the pause back, for whoever gives up."""
    return f", or give up: kubectl annotate namespace {namespace} {names.PAUSED}-"


async def _until_let_go(client: "Client", namespace: str, until: datetime) -> None:
    """Delete ended operations that carry our finalizer: only the controller takes it off, and only of what is deleted.

    Once it is gone nobody would, and to delete the definitions of our kinds would never end. There may be tens of
    thousands: all are read once. Then one page says whether the controller still holds any; only where that names one
    that is not deleted, for it had not ended or is new, all that are left are read again, and a case that was opened
    before the pause was seen is cancelled.
    """
    await _delete_ended(client)
    tell = SYSTEM.now() + TELL_EVERY
    while held := await _held(client):
        what = named({each.metadata.name for each in held})
        if SYSTEM.now() > until:
            why = f"the controller still holds {what} by the finalizer {names.CASE_FINALIZER}"
            raise Ended(ExitCode.FAILED, f"{why}; run this again{_pause_ends(namespace)}")
        if SYSTEM.now() > tell:
            out.print(f"waiting until the controller lets go of {what}")
            tell += TELL_EVERY
        await asyncio.sleep(EVERY)
        if any(each.metadata.deletion_timestamp is None for each in held):
            await _until_given_back(client, namespace, until)
            await _delete_ended(client)


async def _delete_ended(client: "Client") -> None:
    """Page by page, and say how many."""
    from remediator.core.operation import OperationPhase
    from remediator.kube.api.builtin import OPERATION_WITH_PHASE

    ended = {phase.value for phase in OperationPhase if phase.outcome}
    deleted, room = 0, asyncio.Semaphore(DELETES)
    async for page in client.pages(OPERATION_WITH_PHASE, "", "", "", PAGE):
        held = [each for each in page if names.CASE_FINALIZER in each.metadata.finalizers]
        gone = [each for each in held if each.status.phase in ended and each.metadata.deletion_timestamp is None]
        await asyncio.gather(*(_delete(client, each, room) for each in gone))
        deleted += len(gone)
        if gone:
            out.print(f"deleted {deleted} ended operations, which the controller lets go")


async def _delete(client: "Client", operation: "OperationWithPhase", room: asyncio.Semaphore) -> None:
    from remediator.kube.api.builtin import OPERATION_WITH_PHASE
    from remediator.kube.wire import errors

    async with room:
        with suppress(errors.NotFound, errors.Conflict):
            await client.delete(OPERATION_WITH_PHASE, operation.metadata.name, uid=operation.metadata.uid)


async def _held(client: "Client") -> list["Head"]:
    """Operations, or else cases, that carry our finalizer: those of the first page that has any."""
    from remediator.kube.api.builtin import CASE_HEAD, OPERATION_HEAD

    for kind in (OPERATION_HEAD, CASE_HEAD):
        async for page in client.metadata_pages(kind):
            if held := [each for each in page if names.CASE_FINALIZER in each.metadata.finalizers]:
                return held
    return []


async def _see_marks(client: "Client", namespace: str) -> None:
    """Print every mark of ours, and what takes it off. Raises Ended where one is no cordon for a person."""
    from remediator.kube.informers import Informers

    informers = Informers(client, SYSTEM, names.Namespaces(namespace))
    nodes = informers.nodes
    await informers.read()
    marked = {node.name: marks for node in nodes if (marks := leftovers(node))}
    for name, marks in sorted(marked.items()):
        for mark in marks:
            out.print(f"{name} still has {mark.what}: {mark.command}")
    blocked = [name for name, marks in marked.items() if any(mark.blocks for mark in marks)]
    if blocked:
        helps = "run this again in a minute, or take off what stands above with the command behind it"
        raise Ended(ExitCode.FAILED, f"not given back: {named(blocked)}; {helps}")

"""What a user decides about cases is done: under the versions that were read, and told, also where it is cut short."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from remediator.cli.common import Ended, ExitCode, asking, confirm, err, out, print_json, refusal
from remediator.cli.meant import Target, must_exist, nodes_meant
from remediator.cli.nearest import hint
from remediator.clock import SYSTEM
from remediator.core.case import Case
from remediator.core.orders import OF_EACH, STARTS, Choice, Order, OrderAnswer, choose, question, shown, stopped_short

if TYPE_CHECKING:
    from remediator.kube.wire.client import Client

TRIES = 5
MAY = "the role remediator-operator may do this"


class Ordering:
    """One such command. What it has done, tries and has still to do is known, so that who interrupts it is told."""

    def __init__(self, target: Target, order: Order, kubeconfig: Path | None, output: str) -> None:
        self._target, self._order, self._kubeconfig, self._json = target, order, kubeconfig, output == "json"
        self._done: list[OrderAnswer] = []
        self._trying: OrderAnswer | None = None
        self._rest: tuple[OrderAnswer, ...] = ()
        self._agreed: set[str] = set()  # the questions that were answered with yes
        self._told: set[str] = set()  # of which cases it was said that they do not change

    def run(self, *, yes: bool) -> None:
        """Raises typer.Exit with what it ends with, unless all is done."""
        try:
            asyncio.run(self._run(yes=yes))
        except KeyboardInterrupt:
            self._tell_end()
            raise typer.Exit(ExitCode.INTERRUPTED) from None
        except typer.Exit:
            if self._done or self._trying:
                self._tell_end()
            raise
        finally:
            if self._json and self._done:
                self._print()

    async def _run(self, *, yes: bool) -> None:
        """What has moved since it was read is read again. Each line is printed once that is done which it says."""
        from remediator.kube.meant import own_name

        async with asking(self._kubeconfig, forbidden=MAY) as client:
            nodes = await nodes_meant(client, self._target)
            self._order = replace(self._order, user=await own_name(client))
            for _ in range(TRIES):
                choice = await _chosen(client, self._target, nodes, self._order)
                self._tell_idle(choice.idle)
                self._tell_left_out(nodes, choice)
                self._confirm(choice.answers, yes=yes)
                if await self._obeyed_by_all(client, choice.answers):
                    return
                self._target = replace(self._target, cases=self._cases_left())
            raise refusal(f"{self._target.shown}: its cases change faster than they can be written; try again")

    async def _obeyed_by_all(self, client: "Client", answers: tuple[OrderAnswer, ...]) -> bool:
        """Whether all have obeyed; False once one is found that is no longer as it was read."""
        from remediator.kube.wire import errors

        for number, answer in enumerate(answers, start=1):
            self._trying, self._rest = answer, answers[number:]
            try:
                await _act(client, answer, self._order.user)
            except errors.ApiError as refused:
                if not isinstance(refused, errors.Unavailable):  # then nothing was written
                    self._trying, self._rest = None, answers[number - 1 :]
                if isinstance(refused, errors.Conflict | errors.NotFound):
                    return False
                raise
            self._trying = None
            self._done.append(answer)
            if not self._json:
                out.print(f"{shown(answer.case)} {answer.text}")
        return True

    def _cases_left(self) -> tuple[str, ...]:
        """The cases that are still to obey, where they were named."""
        done = {answer.case.name for answer in self._done}
        return tuple(name for name in self._target.cases if name not in done)

    def _tell_idle(self, answers: tuple[OrderAnswer, ...]) -> None:
        for answer in answers:
            if answer.case.name not in self._told:
                err.print(f"remediator: {shown(answer.case)} {answer.text}")
            self._told.add(answer.case.name)

    def _tell_left_out(self, nodes: list[str], choice: Choice) -> None:
        """Of which nodes no case can be meant, though each was named."""
        touched = {answer.case.node for answer in (*choice.answers, *self._done)}
        for node in nodes:
            if self._order.command in OF_EACH and node not in touched | self._told:
                err.print(f"remediator: {node} is not taken out, so nothing is done to it")
                self._told.add(node)

    def _confirm(self, answers: tuple[OrderAnswer, ...], *, yes: bool) -> None:
        """Ask, unless the same was asked before: of a case that has moved meanwhile other work may end."""
        if self._order.command not in STARTS:
            return
        for text in map(question, answers):
            if text not in self._agreed:
                confirm(text, yes=yes, script=self._json)
            self._agreed.add(text)

    def _tell_end(self) -> None:
        err.print(f"remediator: {stopped_short(self._done, self._trying, self._rest)}")

    def _print(self) -> None:
        cases = [{"case": each.case.name, "node": each.case.node, "text": each.text} for each in self._done]
        print_json({"command": self._order.command.value, "by": self._order.user, "cases": cases})


async def _chosen(client: "Client", target: Target, nodes: list[str], order: Order) -> Choice:
    """What is done now, as the cases are. Raises Ended."""
    cases = await _cases(client, nodes)
    busy = {case.node for case in cases}
    for node in (target.node, *target.nodes):
        if node and node not in busy:
            await must_exist(client, node)
    known = [case.name for case in cases]
    for name in target.cases:
        if name not in known:
            raise Ended(ExitCode.NO_SUCH, f"no case {name} of {', '.join(nodes)} is kept{hint(name, known)}")
    choice = choose(cases, order, ", ".join(nodes), target.cases)
    if choice.nothing:
        raise Ended(ExitCode.NOTHING, choice.nothing)
    if choice.unclear:
        raise refusal(choice.unclear)
    return choice


async def _cases(client: "Client", nodes: list[str]) -> list[Case]:
    from remediator.kube.cases_of import cases_of

    return [case for node in nodes for case in await cases_of(client, SYSTEM, node)]


async def _act(client: "Client", answer: OrderAnswer, user: str) -> None:
    """Raises Conflict where the case has moved since it was read, NotFound where it is gone."""
    from remediator.kube import api
    from remediator.kube.api import encode

    case = answer.case
    if answer.delete:
        await client.delete(api.CASE, case.name, uid=case.uid, version=case.version)
    elif answer.change is not None:
        await client.patch(api.CASE, case.name, encode.decided(answer.change, user))

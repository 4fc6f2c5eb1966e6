"""Operations that users ask for: shown before, made in their names, followed to their ends."""

import asyncio
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from remediator.cli.common import Ended, ExitCode, asking, confirm, err, out, print_json, refusal
from remediator.cli.following import Following
from remediator.cli.meant import Target, nodes_meant
from remediator.cli.nearest import hint, missing_node
from remediator.cli.ordering import MAY, TRIES
from remediator.clock import SYSTEM
from remediator.core import asked, orders
from remediator.core.case import Case, KeepOut
from remediator.core.names import Namespaces

if TYPE_CHECKING:
    from remediator.controller.cache import ClusterCache
    from remediator.core.operation import Operation
    from remediator.kube.wire.client import Client


class Operating:
    """One such command. What it has made is known, so that who interrupts it is told. `terms`: of a take-out."""

    def __init__(
        self,
        template: str,
        target: Target,
        namespaces: Namespaces,
        kubeconfig: Path | None,
        output: str,
        terms: KeepOut | None = None,
    ) -> None:
        self._template, self._target, self._namespaces, self._terms = template, target, namespaces, terms
        self._kubeconfig, self._json = kubeconfig, output == "json"
        self._user = ""
        self._made: dict[str, str] = {}  # NodeOperations by node
        self._trying = ""  # the node of which nobody knows whether it was asked for
        self._rest: tuple[str, ...] = ()  # nodes that are still to be asked for
        self._longer: list[orders.OrderAnswer] = []  # what its user keeps for another time than before
        self._followed = Following(self._made, silent=self._json)

    def run(self, *, yes: bool, follow: bool) -> None:
        """Raises typer.Exit with what it ends with."""
        try:
            code = asyncio.run(self._run(yes=yes, follow=follow))
        except KeyboardInterrupt:
            code = self._left_alone(ExitCode.INTERRUPTED)
        except typer.Exit as ended:
            if ended.exit_code != ExitCode.REFUSED or not (self._made or self._trying or self._longer):
                raise
            code = self._left_alone(ExitCode.REFUSED)
        raise typer.Exit(code)

    def _left_alone(self, code: ExitCode) -> ExitCode:
        """Say what goes on, though nobody looks any more, what was made, and what was not."""
        for line in [*self._goes_on()] or ["nothing was done"]:
            err.print(f"remediator: {line}")
        if self._json and (self._made or self._longer):
            print_json(self._data())
        return code

    def _goes_on(self) -> Iterator[str]:
        for answer in self._longer:
            yield f"done, and stays: {orders.shown(answer.case)} {answer.text}"
        for left in self._followed.left(kept=self._terms is not None):
            yield from asked.left_alone(left)
        if self._trying:
            yield from asked.left_alone(asked.LeftOperation(self._trying))
        if self._rest:
            yield f"not asked for: {', '.join(self._rest)}"

    async def _run(self, *, yes: bool, follow: bool) -> ExitCode:
        from remediator.kube.meant import own_name

        async with asking(self._kubeconfig, forbidden=MAY) as client:
            nodes = await self._nodes(client)
            self._user = await own_name(client)
            wanted, longer = await self._looks(client, nodes)
            for answer in longer:
                await self._keep_longer(client, answer)
            if wanted:
                names = ", ".join(each.node.name for each in wanted)
                confirm(f"Have {wanted[0].what} of {names} done?", yes=yes, script=self._json)
            await self._make_all(client, wanted)
            if follow:
                await self._followed.to_the_end(client)
        return self._end()

    async def _make_all(self, client: "Client", wanted: list[asked.Asked]) -> None:
        for number, each in enumerate(wanted, start=1):
            self._rest = tuple(later.node.name for later in wanted[number:])
            self._made[each.node.name] = name = await self._make(client, each)
            self._trying = ""
            if not self._json:
                out.print(f"NodeOperation {name} is made" + (f", in the name of {self._user}" if self._user else ""))

    async def _make(self, client: "Client", wanted: asked.Asked) -> str:
        """The name that the server has given it. From here on it may be there, unless the server refuses it."""
        from remediator.kube import api
        from remediator.kube.api import encode
        from remediator.kube.wire import errors

        body = encode.asked_operation(wanted.node, self._template, self._user, self._terms)
        self._trying = wanted.node.name
        try:
            return (await client.create(api.OPERATION, body)).metadata.name
        except errors.ApiError as refused:
            if not isinstance(refused, errors.Unavailable):
                self._trying, self._rest = "", (wanted.node.name, *self._rest)
            raise

    async def _keep_longer(self, client: "Client", answer: orders.OrderAnswer) -> None:
        """Under the version that was read; a case that has moved meanwhile is read again."""
        from remediator.kube import api
        from remediator.kube.api import decode, encode
        from remediator.kube.wire import errors

        for _ in range(TRIES):
            if answer.change is None:
                raise Ended(ExitCode.NOTHING, f"{orders.shown(answer.case)} {answer.text}")
            try:
                await client.patch(api.CASE, answer.case.name, encode.decided(answer.change, self._user))
            except errors.Conflict:
                case = decode.remediation_case(await client.get(api.CASE, answer.case.name))
                answer = orders.ANSWERS[orders.Command.TAKE_OUT](case, self._order())
                continue
            self._longer.append(answer)
            if not self._json:
                out.print(f"{orders.shown(answer.case)} {answer.text}")
            return
        raise refusal(f"{orders.shown(answer.case)} changes faster than it can be written; try again")

    def _order(self) -> orders.Order:
        until, because = self._terms or (None, "")
        return orders.Order(orders.Command.TAKE_OUT, self._user, until, because)

    async def _nodes(self, client: "Client") -> list[str]:
        nodes = await nodes_meant(client, self._target)
        if len(nodes) > 1 and self._terms is None:
            raise refusal(f"{self._target.shown} runs on {', '.join(nodes)}: say which node")
        return nodes

    async def _looks(self, client: "Client", nodes: list[str]) -> tuple[list[asked.Asked], list[orders.OrderAnswer]]:
        """What is to be asked for, and what is kept for another time. Raises Ended where nothing would be done."""
        wanted, answers, idle = list[asked.Asked](), list[orders.OrderAnswer](), list[str]()
        for node in nodes:
            match await self._look(client, node):
                case str(why):
                    idle.append(f"{node}: {why}" if len(nodes) > 1 else why)
                case orders.OrderAnswer() as answer:
                    answers.append(answer)
                case each:
                    wanted.append(each)
        if not wanted and not answers:
            raise Ended(ExitCode.NOTHING, "; ".join(idle))
        for why in idle:
            err.print(f"remediator: {why}")
        return wanted, answers

    async def _look(self, client: "Client", name: str) -> "asked.Asked | orders.OrderAnswer | str":
        """What is to be asked for, shown to who asks; or what it changes, or why it would do nothing. Raises Ended."""
        from remediator.controller.blast_looks import look
        from remediator.controller.explain import snapshot_of

        now = SYSTEM.now()
        cache = await snapshot_of(name, client, self._namespaces, SYSTEM)
        if out_already := self._terms and next((case for case in cache.cases.by("node", name) if _keeps(case)), None):
            answer = orders.ANSWERS[orders.Command.TAKE_OUT](out_already, self._order())
            return answer if answer.acts else f"{orders.shown(out_already)} {answer.text}"
        wanted = await self._asked(client, cache, name, now)
        if why := asked.nothing_to_do(wanted, self._user, now):
            return why
        ends = await look(client, name, self._namespaces.operations, now)
        for line in asked.before(wanted, ends):
            (err if self._json else out).print(line)
        return wanted

    async def _asked(self, client: "Client", cache: "ClusterCache", name: str, now: datetime) -> asked.Asked:
        """Raises Ended where node or template are not there."""
        from remediator.controller.fleet import hosted
        from remediator.controller.leading import leading

        node, template = cache.nodes.get(name), cache.templates.get(self._template)
        if node is None:
            raise Ended(ExitCode.NO_SUCH, await missing_node(client, name))
        if template is None:
            known = [each.name for each in cache.templates]
            raise Ended(ExitCode.NO_SUCH, f"no template {self._template} in the cluster{hint(self._template, known)}")
        operations = tuple(each for each in cache.operations if each.node == node.name)
        cases = tuple(cache.cases.by("node", node.name))
        leader = await leading(client, self._namespaces.system, now)
        leaderless = "" if leader.leads(now) else leader.described(now)
        return asked.Asked(
            template, node, cases, operations, cache.paused, hosted(cache, node.name), leaderless, self._terms
        )

    def _end(self) -> ExitCode:
        """The end, or what was made."""
        if self._json:
            print_json(self._data())
        failed = [each for each in self._followed.ended.values() if each is None or not asked.succeeded(each)]
        return ExitCode.FAILED if failed else ExitCode.DONE

    def _data(self) -> dict[str, Any]:
        each = [self._data_of(node, name) for node, name in self._made.items()]
        if self._terms is None:
            return each[0]
        longer = [{"case": answer.case.name, "node": answer.case.node, "text": answer.text} for answer in self._longer]
        return {"until": self._terms.until, "reason": self._terms.reason, "asked": each, "changed": longer}

    def _data_of(self, node: str, name: str) -> dict[str, Any]:
        made = {"operation": name, "template": self._template, "node": node}
        operation: Operation | None = self._followed.ended.get(node)
        if operation is None:
            return made
        phase = {"phase": operation.phase.value, "reason": operation.reason, "message": operation.message}
        return made | phase | {"case": operation.case_name}


def _keeps(case: Case) -> bool:
    return case.open and case.keep_out is not None

"""`remediator reboot` and `drain`: an operation that a user asks for, shown before and followed to its end."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from remediator.cli.common import (
    OPERATIONS,
    OUR_NAMESPACE,
    Ended,
    ExitCode,
    Form,
    Kubeconfig,
    Namespace,
    OperationsNamespace,
    app,
    asking,
    confirm,
    err,
    out,
    print_json,
    refusal,
)
from remediator.cli.meant import JobName, NodeName, PodName, Target, nodes_meant
from remediator.cli.nearest import hint, missing_node
from remediator.cli.ordering import MAY
from remediator.cli.orders import Yes
from remediator.clock import SYSTEM
from remediator.core import asked
from remediator.core.names import Namespaces

if TYPE_CHECKING:
    from remediator.core.operation import Operation
    from remediator.kube.wire.client import Client

EVERY = 1.0  # seconds between two looks
NoFollow = Annotated[bool, typer.Option("--no-follow", help="Do not wait for its end.")]


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
    Operating("drain", Target(node, pod, job), spaces, kubeconfig, output).run(yes=yes, follow=not no_follow)


class Operating:
    """One such command. `made` is what it has made, so that who interrupts it is told."""

    def __init__(
        self, template: str, target: Target, namespaces: Namespaces, kubeconfig: Path | None, output: str
    ) -> None:
        self._template, self._target, self._namespaces = template, target, namespaces
        self._kubeconfig, self._json = kubeconfig, output == "json"
        self._node, self._asking, self._made = "", False, ""

    def run(self, *, yes: bool, follow: bool) -> None:
        """Raises typer.Exit with what it ends with."""
        try:
            code = asyncio.run(self._run(yes=yes, follow=follow))
        except KeyboardInterrupt:
            code = self._left_alone(ExitCode.INTERRUPTED)
        except typer.Exit as ended:
            if ended.exit_code != ExitCode.REFUSED or not self._asking:
                raise
            code = self._left_alone(ExitCode.REFUSED)
        raise typer.Exit(code)

    def _left_alone(self, code: ExitCode) -> ExitCode:
        """Say what goes on, though nobody looks any more, and what was made."""
        lines = asked.left_alone(self._made, self._node) if self._asking else ("nothing was done",)
        for line in lines:
            err.print(f"remediator: {line}")
        if self._json and self._made:
            print_json(self._data(None))
        return code

    async def _run(self, *, yes: bool, follow: bool) -> ExitCode:
        from remediator.kube.api import encode
        from remediator.kube.meant import own_name

        async with asking(self._kubeconfig, forbidden=MAY) as client:
            self._node = await self._one_node(client)
            user = await own_name(client)
            wanted = await self._look(client, user)
            confirm(f"Have {self._template} of {self._node} done?", yes=yes)
            self._made = await self._make(client, encode.asked_operation(wanted.node, self._template, user))
            if not self._json:
                out.print(f"NodeOperation {self._made} is made" + (f", in the name of {user}" if user else ""))
            return await self._follow(client) if follow else self._told(None)

    async def _make(self, client: "Client", body: dict[str, Any]) -> str:
        """The name that the server has given it. From here on it may be there, unless the server refuses it."""
        from remediator.kube import api
        from remediator.kube.wire import errors

        self._asking = True
        try:
            return (await client.create(api.OPERATION, body)).metadata.name
        except errors.ApiError as refused:
            self._asking = isinstance(refused, errors.Unavailable)
            raise

    async def _one_node(self, client: "Client") -> str:
        nodes = await nodes_meant(client, self._target)
        if len(nodes) > 1:
            raise refusal(f"{self._target.shown} runs on {', '.join(nodes)}: say which node")
        return nodes[0]

    async def _look(self, client: "Client", user: str) -> asked.Asked:
        """What is to be asked for, shown to whoever asks. Raises Ended where it is not there, or would do nothing."""
        from remediator.controller.blast_looks import look
        from remediator.controller.explain import snapshot_of
        from remediator.controller.fleet import hosted
        from remediator.controller.leading import leading

        now = SYSTEM.now()
        cache = await snapshot_of(self._node, client, self._namespaces, SYSTEM)
        node, template = cache.nodes.get(self._node), cache.templates.get(self._template)
        if node is None:
            raise Ended(ExitCode.NO_SUCH, await missing_node(client, self._node))
        if template is None:
            known = [each.name for each in cache.templates]
            raise Ended(ExitCode.NO_SUCH, f"no template {self._template} in the cluster{hint(self._template, known)}")
        operations = tuple(each for each in cache.operations if each.node == node.name)
        cases = tuple(cache.cases.by("node", node.name))
        leader = await leading(client, self._namespaces.system, now)
        leaderless = "" if leader.leads(now) else leader.described(now)
        wanted = asked.Asked(template, node, cases, operations, cache.paused, hosted(cache, node.name), leaderless)
        if why := asked.nothing_to_do(wanted, user, now):
            raise Ended(ExitCode.NOTHING, why)
        ends = await look(client, node.name, self._namespaces.operations, now)
        for line in asked.before(wanted, ends):
            (err if self._json else out).print(line, markup=False)
        return wanted

    async def _follow(self, client: "Client") -> ExitCode:
        """Tell each change until it has ended. A server that is away for a while is asked again."""
        from remediator.kube import api
        from remediator.kube.api import decode
        from remediator.kube.wire import errors

        last, away = "", False
        while True:
            try:
                operation = decode.operation(await client.get(api.OPERATION, self._made))
                current = await _current(client, operation)
            except errors.NotFound:
                raise Ended(ExitCode.FAILED, f"NodeOperation {self._made} was deleted: it is taken back") from None
            except (errors.Unavailable, errors.TooManyRequests) as failed:
                if not away:
                    err.print(f"remediator: {asked.unheard(self._made, failed.message)}")
                away = True
                await asyncio.sleep(EVERY)
                continue
            away = False
            if (line := asked.progress(operation, current)) != last and not self._json:
                out.print(f"{SYSTEM.now():%H:%M:%S} {line}", markup=False)
            if operation.finished is not None:
                return self._told(operation)
            last = line
            await asyncio.sleep(EVERY)

    def _told(self, operation: "Operation | None") -> ExitCode:
        """The end, or what was made; `operation` None: its end is not waited for."""
        if self._json:
            print_json(self._data(operation))
        return ExitCode.DONE if operation is None or asked.succeeded(operation) else ExitCode.FAILED

    def _data(self, operation: "Operation | None") -> dict[str, Any]:
        made = {"operation": self._made, "template": self._template, "node": self._node}
        if operation is None:
            return made
        phase = {"phase": operation.phase.value, "reason": operation.reason, "message": operation.message}
        return made | phase | {"case": operation.case_name}


async def _current(client: "Client", operation: "Operation") -> "Operation | None":
    """What the case of a user's operation does to the node now, while Pods leave it."""
    from remediator.core.operation import OperationPhase
    from remediator.kube import api
    from remediator.kube.api import decode
    from remediator.kube.wire import errors

    if operation.phase is not OperationPhase.DRAINING:
        return None
    try:
        attempt = decode.remediation_case(await client.get(api.CASE, operation.case_name)).attempt
        return decode.operation(await client.get(api.OPERATION, attempt.operation)) if attempt else None
    except errors.NotFound:
        return None

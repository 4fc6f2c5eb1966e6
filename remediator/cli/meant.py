"""Which nodes a user means: by name, Pod, job or case. A name that nothing has is answered with the nearest."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from remediator.cli.common import Ended, ExitCode, refusal
from remediator.cli.nearest import hint, hint_within, missing_node

if TYPE_CHECKING:
    from remediator.kube.wire.client import Client

NodeName = Annotated[str, typer.Argument(metavar="[NODE]", help="Name of the node.", show_default=False)]
NodeNames = Annotated[
    list[str], typer.Argument(metavar="[NODE]...", help="Names of the nodes.", default_factory=list, show_default=False)
]
PodName = Annotated[str, typer.Option("--pod", metavar="NAMESPACE/NAME", help="The node of this Pod instead.")]
JobName = Annotated[
    str, typer.Option("--job", metavar="NAMESPACE/NAME", help="The nodes on which Pods of this job run instead.")
]
CaseNames = Annotated[
    list[str], typer.Option("--case", metavar="NAME", help="Only this case; may be repeated.", default_factory=list)
]


@dataclass(frozen=True, slots=True)
class Target:
    """What was named on the command line; exactly one of these, or `cases` alone."""

    node: str = ""
    pod: str = ""
    job: str = ""
    cases: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()  # where a command takes several

    def __post_init__(self) -> None:
        """Raises refusal."""
        named = [name for name in (self.node, self.nodes, self.pod, self.job) if name]
        if len(named) > 1 or not (named or self.cases):
            raise refusal("name one of these: NODE, --pod NAMESPACE/NAME or --job NAMESPACE/NAME")

    @property
    def shown(self) -> str:
        """In words."""
        return (
            self.node
            or ", ".join(self.nodes)
            or (f"Pod {self.pod}" if self.pod else f"job {self.job}" if self.job else "these names")
        )


async def nodes_meant(client: "Client", target: Target) -> list[str]:
    """The names of the nodes; those that are named are not looked at. Raises Ended."""
    if target.node or target.nodes:
        return list(dict.fromkeys((target.node,) if target.node else target.nodes))
    if target.pod:
        return [await _node_of_pod(client, *_parts("--pod", target.pod))]
    if target.job:
        return await _nodes_of_job(client, *_parts("--job", target.job))
    return sorted({await _node_of_case(client, name) for name in target.cases})


def _parts(option: str, value: str) -> tuple[str, str]:
    namespace, _, name = value.partition("/")
    if not namespace or not name or "/" in name:
        raise refusal(f"{option} {value}: write NAMESPACE/NAME")
    return namespace, name


async def _node_of_pod(client: "Client", namespace: str, name: str) -> str:
    from remediator.kube import meant
    from remediator.kube.wire import errors

    try:
        node = await meant.node_of_pod(client, namespace, name)
    except errors.NotFound:
        near = hint_within(namespace, name, await meant.pods_known(client, namespace), "Pods")
        raise Ended(ExitCode.NO_SUCH, f"no Pod {namespace}/{name} in the cluster{near}") from None
    if not node:
        raise Ended(ExitCode.NOTHING, f"Pod {namespace}/{name} is on no node yet")
    return node


async def _nodes_of_job(client: "Client", namespace: str, name: str) -> list[str]:
    from remediator.kube import meant

    nodes, known = await meant.nodes_of_job(client, namespace, name)
    if not known:
        near = hint_within(namespace, name, await meant.jobs_known(client, namespace), "jobs")
        raise Ended(ExitCode.NO_SUCH, f"no label of a Pod in namespace {namespace} names a job {name}{near}")
    if not nodes:
        raise Ended(ExitCode.NOTHING, f"no Pod of job {namespace}/{name} runs now")
    return nodes


async def _node_of_case(client: "Client", name: str) -> str:
    from remediator.kube import api
    from remediator.kube.wire import errors

    try:
        return (await client.get(api.CASE, name)).spec.node_name
    except errors.NotFound:
        known, _ = await client.heads(api.CASE)
        raise Ended(ExitCode.NO_SUCH, f"no case {name} in the cluster{hint(name, known)}") from None


async def must_exist(client: "Client", node: str) -> None:
    """Raises Ended where there is no such node."""
    from remediator.kube.api.builtin import NODE
    from remediator.kube.wire import errors

    try:
        await client.get(NODE, node)
    except errors.NotFound:
        raise Ended(ExitCode.NO_SUCH, await missing_node(client, node)) from None

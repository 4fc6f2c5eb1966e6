"""What a user means on the command line: their own name, and the nodes of a Pod or of a job."""

from collections.abc import Iterable

from remediator.core.job import GANGS, JOBS
from remediator.kube.api import gpu_pods, working_pods
from remediator.kube.api.builtin import POD_HEAD, USER_PODS, Head
from remediator.kube.api.encode.objects import body
from remediator.kube.api.reviews import REVIEW, SelfSubjectReview
from remediator.kube.wire import errors
from remediator.kube.wire.client import Client

LABELS = tuple(dict.fromkeys(label for label, _ in (*GANGS, *JOBS)))


async def own_name(client: Client) -> str:
    """The name by which the server knows who asks; "" where it does not say: it is older than 1.28, or forbids it."""
    try:
        review = await client.create(REVIEW, body(SelfSubjectReview()))
    except (errors.NotFound, errors.Forbidden):
        return ""
    return review.status.user_info.username


async def node_of_pod(client: Client, namespace: str, name: str) -> str:
    """The node of a Pod; "" while it has none. Raises NotFound."""
    pod = await client.get(working_pods.POD, name, namespace=namespace)
    return pod.spec.node_name or ""


async def pods_known(client: Client, namespace: str) -> set[tuple[str, str]]:
    """Namespace and name of all Pods; those of the namespace alone where no others may be read."""
    return {(head.metadata.namespace, head.metadata.name) for head in await _heads(client, namespace)}


async def jobs_known(client: Client, namespace: str) -> set[tuple[str, str]]:
    """As `pods_known`, of jobs."""
    heads = await _heads(client, namespace)
    return {(head.metadata.namespace, job) for head in heads for _, job in _named([head])}


async def _heads(client: Client, namespace: str) -> list[Head]:
    try:
        return await client.metadata(POD_HEAD)
    except errors.Forbidden:
        return await client.metadata(POD_HEAD, namespace=namespace)


async def nodes_of_job(client: Client, namespace: str, name: str) -> tuple[list[str], bool]:
    """The nodes on which Pods of the job run, and whether a Pod is of it at all.

    A job is what a label of its Pods names. A Pod may be of two: of a JobSet, and of a Job of it.
    """
    heads = await client.metadata(POD_HEAD, namespace=namespace)
    nodes: set[str] = set()
    for label in sorted(label for label, job in _named(heads) if job == name):
        selector = f"{label}={name}"
        async for page in client.pages(working_pods.POD, namespace, selector, gpu_pods.RUNNING, USER_PODS):
            nodes |= {pod.spec.node_name for pod in page if pod.spec.node_name}
    return sorted(nodes), any(job == name for _, job in _named(heads))


def _named(heads: Iterable[Head]) -> set[tuple[str, str]]:
    """The labels that name jobs, with the jobs that they name."""
    marks = (head.metadata.labels for head in heads)
    return {(label, labels[label]) for labels in marks for label in LABELS if labels.get(label)}

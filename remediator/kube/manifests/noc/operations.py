"""NodeOperationTemplate and NodeOperation of theirs: both become a NodeOperationTemplate."""

from collections.abc import Iterator

from remediator.core.template import Strategy
from remediator.kube import api
from remediator.kube.manifests.noc import job, wire
from remediator.kube.manifests.noc.meta import kept
from remediator.kube.manifests.noc.remark import Refused, Remark

Made = api.NodeOperationTemplate | Remark
# By their strategy, and whether they skip the wait.
_STRATEGIES = {
    ("Evict", False): Strategy.EVICT,
    ("Evict", True): Strategy.EVICT,
    ("Delete", False): Strategy.DELETE,
    ("Delete", True): Strategy.DELETE,
    ("ForceDelete", False): Strategy.DELETE,
    ("ForceDelete", True): Strategy.DELETE,
    ("None", False): Strategy.WAIT_FOR_COMPLETION,
    ("None", True): Strategy.NONE,
}
_MOVES = (Strategy.EVICT, Strategy.DELETE)
_ENDED = ("Completed", "Failed")


def template(theirs: wire.NodeOperationTemplate) -> Iterator[Made]:
    """The same template."""
    yield from _template(theirs.metadata, theirs.spec.template.spec, "", "spec.template.spec.")


def operation(theirs: wire.NodeOperation) -> Iterator[Made]:
    """The template of an operation that somebody has asked for; asking again needs the uid of the node."""
    if theirs.metadata.owner_references:
        yield Remark("", "is left out: it was made for a NodeRemediation, and a policy here makes its own")
    elif theirs.status.phase in _ENDED:
        yield Remark("status.phase", f"is left out: it has ended, {theirs.status.phase}")
    else:
        node, name = theirs.spec.node_name, theirs.metadata.name
        yield from _template(theirs.metadata, theirs.spec, node, "spec.")
        yield Remark(
            "spec.nodeName",
            f"only its template is made: to have it done, make a NodeOperation with nodeName: {node}, "
            f"templateName: {name}, and nodeUID as `kubectl get node {node} -o jsonpath={{.metadata.uid}}` prints it",
        )


def _template(metadata: api.ObjectMeta, spec: wire.OperationSpec, node: str, at: str) -> Iterator[Made]:
    strategy, written = _strategy(spec, at), spec.job_template.spec
    try:
        read = job.read(written)
        pod = job.pod_template(written, read, node)
    except Refused as refused:
        raise Refused(at + refused.remark.field, refused.remark.message) from None
    on, moves = job.run_on(read, node), strategy in _MOVES
    yield api.NodeOperationTemplate(
        metadata=kept(metadata),
        spec=api.NodeOperationTemplateSpec(
            drain=api.Drain(strategy=strategy, delete_bare_pods=moves, delete_empty_dir_data=moves),
            run_on=on,
            timeout=job.timeout(read) or "15m",
            pod_template=pod,
        ),
    )
    for field, message in (*_drain(spec, strategy), *job.remarks(written, read, on)):
        yield Remark(at + field, message)


def _strategy(spec: wire.OperationSpec, at: str) -> Strategy:
    chosen = spec.eviction_strategy or "Evict"
    try:
        return _STRATEGIES[chosen, spec.skip_waiting_for_eviction]
    except KeyError:
        message = f"{chosen!r} is none of theirs; write Evict, Delete, ForceDelete or None"
        raise Refused(f"{at}evictionStrategy", message) from None


def _drain(spec: wire.OperationSpec, strategy: Strategy) -> Iterator[Remark]:
    if spec.eviction_strategy == "ForceDelete":
        message = (
            "becomes Delete, with the grace of each Pod: a process that is forgotten while its kubelet works goes on"
        )
        yield Remark("evictionStrategy", message)
    if spec.skip_waiting_for_eviction and strategy in _MOVES:
        message = "is left out: nothing is operated on under Pods that run; after drain.timeout, 30m, the attempt fails"
        yield Remark("skipWaitingForEviction", message)
    if spec.node_disruption_budget_selector:
        message = "is left out: every budget that selects the node holds; raise maxUnavailable of it for urgent work"
        yield Remark("nodeDisruptionBudgetSelector", message)

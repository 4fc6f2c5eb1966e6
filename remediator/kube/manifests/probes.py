"""Finds probes of policies that are legal and unwise: one that does more than look, or that nothing was drained for."""

from collections.abc import Collection, Iterator, Mapping
from itertools import takewhile

from remediator.core import idle_test
from remediator.core.gpu_label import has_label
from remediator.core.idle_result import IDLE_TEST_FAILED
from remediator.core.names import GPU_PRESENT
from remediator.core.node import Node
from remediator.core.policy import Policy
from remediator.core.template import Strategy, Template
from remediator.kube.manifests.budgets import some
from remediator.kube.manifests.decoded import Documents, disturbing, policies, templates

GPU_CHECK = "gpu-check"  # the shipped template


def warnings(documents: Documents, nodes: Collection[Node] | None = None) -> Iterator[str]:
    """What to look at, a sentence each. Only templates among the documents are known. `nodes`: those of a cluster."""
    documents = list(documents)
    known = templates(documents)
    for policy in policies(documents):
        for field, name in _named(policy):
            for what in _unwise(known[name]) if name in known else ():
                yield f"policy {policy.name}: {field} {name} {what}; name one that only looks"
        yield from _never_tests(policy, known)
        if not policy.verify.probe and policy.ladder and _repairs_tested(policy):
            what = f"{IDLE_TEST_FAILED} is False once an operation has succeeded, which proves nothing of the GPUs"
            yield f"policy {policy.name}: {what}; name the probe of idleTest in verify.probe"
    for policy in disturbing(documents):
        yield from _at_work(policy, known)
        yield from _without_gpus(policy, nodes)


def _never_tests(policy: Policy, templates: Mapping[str, Template]) -> Iterator[str]:
    """A probe of idle nodes that can never run on one."""
    test = policy.idle_test
    why = idle_test.cannot_run(templates[test.probe], test) if test and test.probe in templates else ""
    if why:
        remedy = "name one that runs on its node and drains nothing"
        yield f"policy {policy.name}: idleTest.probe: {why}, so no idle node is tested; {remedy}"


def _repairs_tested(policy: Policy) -> bool:
    return any(clause.condition == IDLE_TEST_FAILED for when in policy.when for clause in when.clauses)


def _named(policy: Policy) -> Iterator[tuple[str, str]]:
    """The probes of a policy, each with its field."""
    yield "verify.probe", policy.verify.probe
    if policy.admit is not None:
        yield "admit.probe", policy.admit.probe
    if policy.idle_test is not None:
        yield "idleTest.probe", policy.idle_test.probe


def _at_work(policy: Policy, templates: Mapping[str, Template]) -> Iterator[str]:
    """gpu-check refuses a GPU on which a Pod computes: something must have drained the node before it."""
    undrained = list(takewhile(lambda rung: _drains_nothing(templates.get(rung.operation)), policy.ladder))
    operations = [rung.operation for rung in undrained]
    remedy = "put a rung before it whose template drains"
    if GPU_CHECK in operations:
        index = operations.index(GPU_CHECK)
        yield f"policy {policy.name}: spec.ladder[{index}] ({GPU_CHECK}) refuses a GPU that a Pod uses; {remedy}"
    acting = [operation for operation in operations if operation != GPU_CHECK]
    if policy.verify.probe == GPU_CHECK and acting:
        rung = f"spec.ladder[{operations.index(acting[0])}] ({acting[0]})"
        what = f"verify.probe {GPU_CHECK} cannot tell while Pods use the GPUs, and {rung} drains nothing"
        yield f"policy {policy.name}: {what}; write a drain into its template, or name no probe"


def _drains_nothing(template: Template | None) -> bool:
    return template is not None and template.strategy is Strategy.NONE


def _unwise(template: Template) -> Iterator[str]:
    if template.strategy is not Strategy.NONE:
        yield f"drains the node first (drain.strategy {template.strategy.value})"
    if template.boot_id_changed:
        yield "succeeds by a reboot, which proves nothing"


def _without_gpus(policy: Policy, nodes: Collection[Node] | None) -> Iterator[str]:
    """gpu-check cannot tell on a node without GPUs: none is ever proven healthy, and none is given back."""
    if policy.verify.probe != GPU_CHECK:
        return
    chosen = [node.name for node in nodes or () if policy.selects(node) and not has_label(node.labels)]
    anywhere = nodes is None and policy.selector.matches({})
    if chosen or anywhere:
        where = (
            f"{len(chosen)} of its nodes ({some(chosen)}) have" if chosen else "its nodeSelector takes nodes that have"
        )
        what = f"verify.probe {GPU_CHECK} cannot tell where there are no GPUs, and {where} no label of GPUs"
        yield f'policy {policy.name}: {what}; select {GPU_PRESENT}: "true", or name no probe'

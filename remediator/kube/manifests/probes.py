"""Finds probes of policies that are legal and unwise: one that does more than look, or that nothing was drained for."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import takewhile
from typing import Any

import msgspec

from remediator.core.policy import Policy
from remediator.core.template import Strategy, Template
from remediator.kube import api
from remediator.kube.api import decode
from remediator.kube.manifests.api_pods import policies

GPU_CHECK = "gpu-check"  # the shipped template


def warnings(documents: Iterable[tuple[str, dict[str, Any]]]) -> Iterator[str]:
    """What to look at, a sentence each. Only templates among the documents are known."""
    documents = list(documents)
    templates = {template.name: template for template in _templates(documents)}
    for policy in policies(documents):
        for field, name in _named(policy):
            for what in _unwise(templates[name]) if name in templates else ():
                yield f"policy {policy.name}: {field} {name} {what}; name one that only looks"
        yield from _at_work(policy, templates)


def _named(policy: Policy) -> Iterator[tuple[str, str]]:
    """The probes of a policy, each with its field."""
    yield "verify.probe", policy.verify.probe
    if policy.admit is not None:
        yield "admit.probe", policy.admit.probe


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


def _templates(documents: Iterable[tuple[str, dict[str, Any]]]) -> Iterator[Template]:
    for _, document in documents:
        if document.get("kind") == api.TEMPLATE.name:
            try:
                yield decode.template(msgspec.convert(document, api.NodeOperationTemplate))
            except (msgspec.ValidationError, ValueError):
                continue

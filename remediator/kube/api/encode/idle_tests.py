"""The Pod that tests an idle node: placed there by the scheduler, with all GPUs, at a priority below all others."""

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from remediator.core import names
from remediator.core.idle_test import whole_gpus
from remediator.core.neighbour import SERVES
from remediator.core.node import Node
from remediator.core.template import Template
from remediator.kube.api.encode.pods import containers_of
from remediator.kube.api.patch import Body

GRACE_SECONDS = 5  # who preempts it waits for so long at most


def idle_test_pod(template: Template, name: str, policy: str, node: Node, now: datetime) -> Body:
    """One test.

    PARAMETERS say that it is a test: a program that is late may have had to share the node's processors.
    """
    return _giving_way(template, name, policy, node, now, {})


def neighbour_pod(
    template: Template,
    name: str,
    policy: str,
    node: Node,
    operation_uid: str,
    service: Mapping[str, object],
    now: datetime,
) -> Body:
    """One that only is the other end of what an operation measures from another node. `service`: whom it answers."""
    short = replace(template, timeout=SERVES)
    body = _giving_way(short, name, policy, node, now, {"serve": dict(service)})
    body["metadata"]["labels"][names.NEIGHBOUR_OF] = operation_uid
    return body


def _giving_way(
    template: Template, name: str, policy: str, node: Node, now: datetime, parameters: Mapping[str, object]
) -> dict[str, Any]:
    """A Pod that the scheduler alone places, on no node that lacks a GPU: where work has come it waits in vain."""
    written, asked = dict(template.pod), f"{policy}/{node.name}/{node.boot_id}"
    meta, spec = dict(written.get("metadata") or {}), dict(written.get("spec") or {})
    env = {
        "NODE_NAME": node.name,
        "OPERATION": template.name,
        "ATTEMPT_ID": f"{name}.{now:%Y%m%d%H%M%S}",  # the Pod's name comes again and again
        "EXPECTED_BOOT_ID": node.boot_id,
        "PARAMETERS": json.dumps({"idleTest": True, **parameters}),
    }
    before, containers = containers_of(template, spec, env)
    gpus = {resource: str(count) for resource, count in whole_gpus(node)}
    containers[0]["resources"] = _with(containers[0].get("resources") or {}, gpus)
    for key in ("nodeName", "nodeSelector", "priority", "preemptionPolicy"):
        spec.pop(key, None)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "labels": {**(meta.get("labels") or {}), names.OPERATION_LABEL: template.name, names.IDLE_TEST: "true"},
            "annotations": {**(meta.get("annotations") or {}), names.IDLE_TEST: asked},
        },
        "spec": {
            **spec,
            **({"initContainers": before} if before else {}),
            "containers": containers,
            "restartPolicy": "Never",
            "activeDeadlineSeconds": max(1, int(template.timeout.total_seconds())),
            "terminationGracePeriodSeconds": GRACE_SECONDS,
            "priorityClassName": names.IDLE_TEST_PRIORITY,
            "affinity": _only_on(node.name),
        },
    }


def _with(resources: dict[str, Any], gpus: dict[str, str]) -> dict[str, Any]:
    return {
        **resources,
        "limits": {**(resources.get("limits") or {}), **gpus},
        "requests": {**(resources.get("requests") or {}), **gpus},
    }


def _only_on(node: str) -> Body:
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}

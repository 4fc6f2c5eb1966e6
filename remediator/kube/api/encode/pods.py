"""The Pod of an operation, built from its template. A template may have any field, so its JSON is merged as JSON."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from remediator.core import names
from remediator.core.policy import RunOn, Template
from remediator.kube.api.patch import Body


def pod(
    template: Template,
    name: str,
    target: str,
    *,
    labels: Mapping[str, str],
    env: Mapping[str, str],
    deadline: timedelta,
    avoid: Sequence[str] = (),
) -> Body:
    """The Pod of one operation: the template's, made ours.

    On the target it is bound at once, tolerates every taint, asks for nothing and may not be preempted; elsewhere the
    scheduler places it on any node but the target, and on those to `avoid` only where no other fits.
    """
    written = dict(template.pod)
    meta, spec = dict(written.get("metadata") or {}), dict(written.get("spec") or {})
    containers = [dict(container) for container in spec.get("containers") or [{}]]
    containers[0]["env"] = [*(containers[0].get("env") or []), *({"name": k, "value": v} for k, v in env.items())]
    if template.run_on is RunOn.TARGET:
        for container in containers:
            container["resources"] = {**(container.get("resources") or {}), "requests": {"cpu": "0", "memory": "0"}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "labels": {**(meta.get("labels") or {}), **labels},
            "annotations": meta.get("annotations") or {},
            "finalizers": [names.POD_FINALIZER],
        },
        "spec": {
            **spec,
            "containers": containers,
            "restartPolicy": "Never",
            "activeDeadlineSeconds": max(1, int(deadline.total_seconds())),
            **_placement(template, spec, target, avoid),
        },
    }


def _placement(template: Template, spec: Mapping[str, Any], target: str, avoid: Sequence[str]) -> Body:
    if template.run_on is RunOn.TARGET:
        return {"nodeName": target, "tolerations": [{"operator": "Exists"}]}
    away = {"key": "metadata.name", "operator": "NotIn", "values": [target]}
    affinity = spec.get("affinity") or {}
    node_affinity = affinity.get("nodeAffinity") or {}
    required = node_affinity.get(_REQUIRED) or {}
    terms = [
        {**term, "matchFields": [*(term.get("matchFields") or []), away]}
        for term in required.get("nodeSelectorTerms") or [{}]
    ]
    node_affinity = {**node_affinity, _REQUIRED: {**required, "nodeSelectorTerms": terms}}
    if avoid:
        others = {"matchFields": [{**away, "values": [name]} for name in avoid]}
        preferred = [*(node_affinity.get(_PREFERRED) or []), {"weight": 100, "preference": others}]
        node_affinity = {**node_affinity, _PREFERRED: preferred}
    return {"affinity": {**affinity, "nodeAffinity": node_affinity}}


_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"

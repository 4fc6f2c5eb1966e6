"""Manifests of node-operation-controller, in the shape of its README, tutorial and samples (github.com/pfnet-research/
node-operation-controller, v0.2.2)."""

from typing import Any

Object = dict[str, Any]
GROUP = "nodeops.k8s.preferred.jp"
BY_ANNOTATION = {"fieldRef": {"fieldPath": f"metadata.annotations['{GROUP}/nodename']"}}


def pod(**spec: Any) -> Object:
    """The spec of a Pod that is told its node, as in their README."""
    env = [{"name": "TARGET_NODE", "valueFrom": BY_ANNOTATION}]
    container = {"name": "operation", "image": "busybox", "command": ["sh", "-c", "echo $TARGET_NODE"], "env": env}
    return {"containers": [container], "restartPolicy": "Never"} | spec


def operation_spec(job: Object | None = None, **spec: Any) -> Object:
    """What a NodeOperationTemplate and a NodeOperation have in common; `job`: fields of the spec of the Job."""
    template = {"metadata": {"namespace": "default"}, "spec": {"template": {"spec": pod()}} | (job or {})}
    return {"jobTemplate": template} | spec


def theirs(kind: str, name: str, spec: Object, **metadata: Any) -> Object:
    """One object of theirs."""
    return {
        "apiVersion": f"{GROUP}/v1alpha1",
        "kind": kind,
        "metadata": {"name": name} | metadata,
        "spec": spec,
    }


def template(name: str = "repair", job: Object | None = None, **spec: Any) -> Object:
    """A NodeOperationTemplate."""
    return theirs("NodeOperationTemplate", name, {"template": {"metadata": {}, "spec": operation_spec(job, **spec)}})


def operation(name: str = "by-hand", node: str = "gpu-1", job: Object | None = None, **spec: Any) -> Object:
    """A NodeOperation."""
    return theirs("NodeOperation", name, operation_spec(job, nodeName=node, **spec))


def remediations(*conditions: tuple[str, str], name: str = "sick", nodes: dict[str, str] | None = None) -> Object:
    """A NodeRemediationTemplate whose template is `repair`."""
    spec = {"nodeOperationTemplateName": "repair", "rule": _rule(conditions)}
    selected = {"auto-remediation": ""} if nodes is None else nodes
    return theirs("NodeRemediationTemplate", name, {"nodeSelector": selected, "template": {"spec": spec}})


def remediation(*conditions: tuple[str, str], node: str = "gpu-1", **metadata: Any) -> Object:
    """A NodeRemediation whose template is `repair`."""
    spec = {"nodeName": node, "nodeOperationTemplateName": "repair", "rule": _rule(conditions)}
    return theirs("NodeRemediation", "sick-gpu-1", spec, **metadata)


def _rule(conditions: tuple[tuple[str, str], ...]) -> Object:
    return {"conditions": [{"type": kind, "status": status} for kind, status in conditions]}


def budget(selector: dict[str, str] | None = None, labels: dict[str, str] | None = None, **spec: Any) -> Object:
    """A NodeDisruptionBudget."""
    metadata = {"labels": labels} if labels else {}
    return theirs("NodeDisruptionBudget", "workers", {"selector": selector or {}} | spec, **metadata)

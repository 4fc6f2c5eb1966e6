"""The Pod of an operation, built from its template. A template may have any field, so its JSON is merged as JSON."""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from remediator.core import names
from remediator.core.places import BORNE
from remediator.core.pod import Pod
from remediator.core.selector import EVERYTHING, Requirement, Selector
from remediator.core.template import RunOn, Template
from remediator.kube.api.patch import Body

NODE_NAME = "$(NODE_NAME)"  # in the name of a Secret's volume: the node that the operation is about


def pod(
    template: Template,
    name: str,
    target: str,
    *,
    labels: Mapping[str, str],
    env: Mapping[str, str],
    secret: Sequence[str] = (),
    deadline: timedelta,
    on: Selector = EVERYTHING,
    avoid: Sequence[str] = (),
) -> Body:
    """The Pod of one operation: the template's, made ours.

    On the target it is bound at once, tolerates every taint, asks for nothing and may not be preempted; elsewhere the
    scheduler places it on a node that `on` chooses and that is not the target, and on those to `avoid` only where no
    other fits; it bears the taint of control planes. For a watchdog it is placed nowhere, with the label of the node.
    What the template runs before, in init containers, is given the same environment. `env` comes first, so that a
    variable of the template may have $(NODE_NAME) in its value.
    The variables of `secret` are keys of the Secret of its own name: its kubelet waits until that is there.
    """
    written = dict(template.pod)
    meta, spec = dict(written.get("metadata") or {}), dict(written.get("spec") or {})
    before, containers = containers_of(template, spec, env)
    keys = [{"name": key, "valueFrom": {"secretKeyRef": {"name": name, "key": key}}} for key in secret]
    containers[0]["env"] += keys
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "labels": {**(meta.get("labels") or {}), **labels, **_order(template, target)},
            "annotations": meta.get("annotations") or {},
            "finalizers": [names.POD_FINALIZER],
        },
        "spec": {
            **spec,
            **({"initContainers": before} if before else {}),
            "containers": containers,
            "restartPolicy": "Never",
            "activeDeadlineSeconds": max(1, int(deadline.total_seconds())),
            **_volumes(spec, target),
            **_placement(template, spec, target, on, avoid),
        },
    }


def containers_of(
    template: Template, spec: Mapping[str, Any], env: Mapping[str, str]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The init containers and the containers, of which the first does the work, with our environment."""
    before = [dict(container) for container in spec.get("initContainers") or []]
    containers = [dict(container) for container in spec.get("containers") or [{}]]
    ours = [{"name": name, "value": _literal(value)} for name, value in env.items()]
    for container in (*before, containers[0]):
        container["env"] = [*ours, *(each for each in container.get("env") or [] if each["name"] not in env)]
    if template.run_on is RunOn.TARGET:
        for container in (*before, *containers):
            container["resources"] = {**(container.get("resources") or {}), "requests": {"cpu": "0", "memory": "0"}}
    return before, containers


def secret_of(pod: Pod, key: str, text: str) -> Body:
    """The Secret of one Pod, which goes with it."""
    owner = {"apiVersion": "v1", "kind": "Pod", "name": pod.name, "uid": pod.uid}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": pod.name, "ownerReferences": [owner]},
        "type": names.BUNDLE_SECRET,
        "immutable": True,
        "data": {key: b64encode(text.encode()).decode()},
    }


def _order(template: Template, target: str) -> Mapping[str, str]:
    """The label by which the watchdog of the node finds its order."""
    return {names.WATCHDOG_LABEL: names.watchdog(target)} if template.run_on is RunOn.WATCHDOG else {}


def _literal(text: str) -> str:
    """A value that the kubelet hands on as it is: it would fill in $(NAME), also with a secret of the template."""
    return text.replace("$", "$$")


def _volumes(spec: Mapping[str, Any], target: str) -> Body:
    """The volumes, each Secret under the name that it has for this node: a kubelet fills in no names of Secrets."""
    if not spec.get("volumes"):
        return {}
    return {"volumes": [_volume(volume, target) for volume in spec["volumes"]]}


def _volume(volume: Mapping[str, Any], target: str) -> Mapping[str, Any]:
    secret = volume.get("secret")
    if not secret or NODE_NAME not in secret.get("secretName", ""):
        return volume
    return {**volume, "secret": {**secret, "secretName": secret["secretName"].replace(NODE_NAME, target)}}


def _placement(template: Template, spec: Mapping[str, Any], target: str, on: Selector, avoid: Sequence[str]) -> Body:
    if template.run_on is RunOn.TARGET:
        return {"nodeName": target, "tolerations": [{"operator": "Exists"}]}
    if template.run_on is RunOn.WATCHDOG:
        return {"schedulerName": names.WATCHDOG_SCHEDULER}
    away = {"key": "metadata.name", "operator": "NotIn", "values": [target]}
    affinity = spec.get("affinity") or {}
    node_affinity = affinity.get("nodeAffinity") or {}
    required = node_affinity.get(_REQUIRED) or {}
    terms = [
        {**term, **_chosen(term, on), "matchFields": [*(term.get("matchFields") or []), away]}
        for term in required.get("nodeSelectorTerms") or [{}]
    ]
    node_affinity = {**node_affinity, _REQUIRED: {**required, "nodeSelectorTerms": terms}}
    if avoid:
        others = {"matchFields": [{**away, "values": [name]} for name in avoid]}
        preferred = [*(node_affinity.get(_PREFERRED) or []), {"weight": 100, "preference": others}]
        node_affinity = {**node_affinity, _PREFERRED: preferred}
    borne = {"key": BORNE.key, "operator": "Exists", "effect": BORNE.effect}
    tolerations = [*(spec.get("tolerations") or []), borne]
    return {"affinity": {**affinity, "nodeAffinity": node_affinity}, "tolerations": tolerations}


def _chosen(term: Mapping[str, Any], on: Selector) -> Body:
    """What a term of the template asks of labels, and what the settings ask."""
    ours = [_expression(requirement) for requirement in on.requirements]
    expressions = [*(term.get("matchExpressions") or []), *ours]
    return {"matchExpressions": expressions} if expressions else {}


def _expression(requirement: Requirement) -> Body:
    values = {"values": list(requirement.values)} if requirement.values else {}
    return {"key": requirement.key, "operator": requirement.operator.value, **values}


_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"

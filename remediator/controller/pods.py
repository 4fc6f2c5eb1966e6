"""The Pods of operations: how one is built, and how one is taken away. Pure."""

from datetime import timedelta

from remediator.controller.effects import Delete, Patch, Plan
from remediator.core import names
from remediator.core.case import Case, Operation
from remediator.core.pod import Pod
from remediator.core.policy import Template
from remediator.kube.api import encode as bodies
from remediator.kube.api.builtin import POD

# A Pod that its kubelet or the scheduler never starts is given up this long after its own deadline.
START_GRACE = timedelta(seconds=60)


def pod(template: Template, name: str, case: Case, operation: Operation | None, parameters: str = "{}") -> bodies.Body:
    """The Pod of a case, or of one operation of it, with the environment that its program is promised."""
    labels = {names.OPERATION_LABEL: template.name, names.CASE_UID_LABEL: case.uid}
    env = {
        "NODE_NAME": case.node,
        "OPERATION": template.name,
        "ATTEMPT_ID": operation.name if operation else case.name,
        "EXPECTED_BOOT_ID": operation.intent_boot_id if operation else "",
        "PARAMETERS": parameters,
    }
    if operation:
        labels[names.OPERATION_UID_LABEL] = operation.uid
    return bodies.pod(template, name, case.node, labels=labels, env=env, deadline=template.timeout)


def sweep(pods: tuple[Pod, ...]) -> Plan:
    """Take Pods away whose outcome is recorded: let go of them first, so that the kubelet's word is enough."""
    return tuple(effect for pod in pods for effect in _drop(pod))


def _drop(pod: Pod) -> Plan:
    body = bodies.without_finalizer(pod.version, pod.finalizers, names.POD_FINALIZER)
    release = Patch(POD, pod.name, body, pod.namespace)
    delete = Delete(POD, pod.name, pod.uid, pod.namespace)
    return (*((release,) if pod.finalizer else ()), *(() if pod.deleting else (delete,)))

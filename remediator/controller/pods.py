"""The Pods of operations: their names, and how one is built and deleted. Pure."""

from collections.abc import Sequence
from datetime import timedelta

from remediator.controller.effects import Delete, Patch, Plan
from remediator.core import audit, names
from remediator.core.case import Case
from remediator.core.node import Node, Status
from remediator.core.operation import Operation
from remediator.core.places import SHIPPED, ApiNodes
from remediator.core.pod import Pod
from remediator.core.template import Template
from remediator.kube.api import encode
from remediator.kube.api.builtin import POD

# A Pod that its kubelet or the scheduler never starts is given up this long after its own deadline.
START_GRACE = timedelta(seconds=60)
NAMED = 5  # Pods in a message


def pod(
    template: Template,
    name: str,
    case: Case,
    operation: Operation | None,
    parameters: str = "{}",
    api_nodes: ApiNodes = SHIPPED,
    avoid: Sequence[str] = (),
    secret: Sequence[str] = (),
) -> encode.Body:
    """The Pod of a case, or of one operation of it, with the environment that its program is promised.

    `secret`: what of that stands in the Secret of its name, and not in the Pod.
    """
    labels = {names.OPERATION_LABEL: template.name, names.CASE_UID_LABEL: case.uid}
    env = {
        "NODE_NAME": case.node,
        "OPERATION": template.name,
        "ATTEMPT_ID": operation.name if operation else case.name,
        "EXPECTED_BOOT_ID": operation.intent_boot_id if operation else "",
        "PARAMETERS": parameters,
        "CASE_NAME": case.name,
        "ON_BEHALF_OF": on_behalf_of(case),
    }
    if operation:
        labels[names.OPERATION_UID_LABEL] = operation.uid
    return encode.pod(
        template,
        name,
        case.node,
        labels=labels,
        env=env,
        secret=secret,
        deadline=template.timeout,
        on=api_nodes.selector,
        avoid=avoid,
    )


def on_behalf_of(case: Case) -> str:
    """On whose word a program works for a case, as it says in its log."""
    by, who, _ = audit.word(case)
    return f"{by.value} {who}".strip()


def pod_name(operation: Operation) -> str:
    """The name of the operation's own Pod."""
    return names.name(operation.node, operation.template, operation.uid)


def drain_pod_name(operation: Operation) -> str:
    """The name of its drain Pod of this round."""
    return names.name(operation.node, names.DRAIN_TEMPLATE, operation.uid, str(operation.drain_round))


def diagnostics_pod_name(case: Case) -> str:
    """The name of the Pod that collects evidence before the first operation."""
    return names.name(case.node, names.DIAGNOSTICS_TEMPLATE, case.uid)


def given_back(name: str, pods: tuple[Pod, ...], node: Node | None) -> str:
    """What is said of the node of a case that is over: that it is given back, or what that waits for and what to do."""
    if not pods:
        stays = node is not None and node.kept_out
        cordoned = f", and stays cordoned, as its operation left it: `kubectl uncordon {name}` lets new work in"
        return f"node {name} is given back{cordoned if stays else ''}"
    single = len(pods) == 1
    waited = ", ".join(sorted(pod.name for pod in pods)[:NAMED])
    text = f"node {name} is given back once {'Pod' if single else 'Pods'} {waited} {'is' if single else 'are'} gone"
    if node is None or node.ready is not Status.UNKNOWN or all(pod.node != name for pod in pods):
        return text
    silent = f"{text}, and its kubelet does not report that"
    return f"{silent}: turn the power of {name} off and on by hand, or delete the Node if the machine is gone"


def deletions(pods: tuple[Pod, ...]) -> Plan:
    """Delete Pods whose outcome is recorded. Our finalizer goes first, so that nothing but the kubelet keeps them."""
    return tuple(effect for pod in pods for effect in _deletion(pod))


def _deletion(pod: Pod) -> Plan:
    plan: Plan = () if pod.deleting else (Delete(POD, pod.name, pod.uid, pod.namespace),)
    if not pod.finalizer:
        return plan
    body = encode.without_finalizer(pod.version, pod.finalizers, names.POD_FINALIZER)
    return (Patch(POD, pod.name, body, pod.namespace), *plan)

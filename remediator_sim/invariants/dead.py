"""I3's exception: on Ready=Unknown only what runs elsewhere starts, once the kubelet's Lease has expired."""

from collections.abc import Iterator
from datetime import timedelta

from remediator_sim.invariants import clauses, contract, pod_words
from remediator_sim.invariants.contract import Obj, clock, part
from remediator_sim.invariants.event import Event
from remediator_sim.invariants.history import History
from remediator_sim.invariants.results import HELD

LASTS = timedelta(seconds=40)  # how long a kubelet's Lease is good for
BOOT, TAINT = "remediator.dev/out-of-service-boot", "node.kubernetes.io/out-of-service"


def asks_unknown(policy: Obj) -> bool:
    """Whether a policy is about nodes whose kubelet does not report."""
    return any(status == "Unknown" for _, status in clauses.wanted(policy))


def alive(history: History, policy: Obj, node: str) -> str:
    """Why nothing may be done to a node under such a policy; "" where it may, and under any other policy."""
    renewed = history.renewed.get(node)
    if not asks_unknown(policy) or contract.says(history.nodes.get(node), "Ready") != "Unknown" or renewed is None:
        return ""
    return f"its kubelet renewed its Lease at {clock(renewed)}" if history.at - renewed < LASTS else ""


def elsewhere(history: History, event: Event) -> Iterator[str]:
    """A Pod was written. Counts each new one of a case about a silent kubelet: it runs on another node."""
    if event.old is not None or pod_words.template(event.obj) == "":
        return
    case = history.tracked.get(part(event.obj, "metadata", "labels").get(contract.CASE_UID, ""))
    policy = history.policy(case.last) if case else None
    if case is None or policy is None or not asks_unknown(policy):
        return
    node = case.last["spec"]["nodeName"]
    if contract.says(history.nodes.get(node), "Ready") == "Unknown":
        runs_there = part(event.obj, "spec").get("nodeName") == node
        made = f"Pod {event.key} was made at {clock(event.at)}"
        yield f"{made} on {node}, whose kubelet does not report" if runs_there else HELD


def back_in_service(history: History, event: Event) -> Iterator[str]:
    """The end. Counts each node that was declared out of service by us: once it runs again, that is taken back."""
    for name, node in history.nodes.items():
        boot = part(node, "metadata", "annotations").get(BOOT)
        runs = contract.says(node, "Ready") == "True" and part(node, "status", "nodeInfo").get("bootID") != boot
        if boot and history.acts():
            yield f"{name} runs again and is still declared out of service" if runs else HELD

#!/usr/bin/env -S python3 -I -S -B
"""Take the orders of this node's watchdog from the API server, and say there what came of them.

This container has a token and no privileges. An order is the Pod of an operation whose template has runOn: Watchdog. It
has the label of this node and is placed on none, so that no kubelet starts it. Before it is handed over, the operation,
the node and the claim of its case are read anew, as the programs of operations do; then the status of the Pod becomes
Running, under the version that was read: an order that was deleted or taken meanwhile is none. The other container does
it and answers, and the answer becomes the end of the Pod.

Where the API server does not know the token any more, because the kubelet has not renewed it in time, that is printed,
and nothing is done until it does.
"""

import os.path
import sys

sys.path.append(os.path.realpath(f"{__file__}/../.."))  # where nodelib/ is; python3 -I leaves it out

import hashlib
import os
import time
from datetime import datetime
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

from nodelib.contract import order as contract
from nodelib.contract.operation import Environment, Failed, Refused, parameters_of
from nodelib.contract.order import LOST, ORDER, Order, OrderResult
from nodelib.k8s.api import MERGE_PATCH, Api, Unreachable
from nodelib.k8s.case import look

LABEL, NAMESPACE = "remediator.dev/watchdog", "remediator-operations"
LOOK_SECONDS, AGAIN_SECONDS = 2.0, 30.0  # between two looks; after an error
WATCH_SECONDS, SILENCE = 900, 150.0  # a bookmark comes every minute
# Seconds before the end of a Pod's time that its program is told to end, which takes up to 30; the least for one.
MARGIN, LEAST = 60.0, 30.0
EXPIRED = "the API server does not know the token: the kubelet has not renewed it, and nothing is done until it does"

Object = dict[str, Any]


class Step(Enum):
    """What is done about one order."""

    NOTHING = "nothing"
    TAKE = "take it"
    TAKE_BACK = "take it back"
    REPORT = "report the answer"
    REPORT_LOST = "report that it was lost"
    TOO_LATE = "too late to take it"


class OrderObservation(NamedTuple):
    """What is seen of one order: the phase of its Pod, the files that are there, the seconds that are left for it."""

    phase: str
    deleted: bool
    ordered: bool
    answered: bool
    seconds: float


def step(seen: OrderObservation) -> Step:
    """What is done about an order. Pure."""
    if seen.phase not in ("Pending", "Running"):
        return Step.TAKE_BACK if seen.ordered else Step.NOTHING
    if seen.answered:
        return Step.REPORT
    if seen.deleted:
        return Step.TAKE_BACK if seen.ordered else Step.NOTHING
    if seen.ordered:
        return Step.NOTHING
    if seen.phase == "Running":  # this container ended before it could hand it over, or the folder went with the Pod
        return Step.REPORT_LOST
    return Step.TAKE if seen.seconds >= LEAST else Step.TOO_LATE


def label_of(node: str) -> str:
    """The value of the label of a node's orders: its name may be too long for one."""
    return hashlib.sha256(node.encode()).hexdigest()[:32]


def environment(pod: Object) -> dict[str, str]:
    """The variables of a Pod's container that have plain values, as its kubelet would give them."""
    given = pod["spec"]["containers"][0].get("env") or []
    return {entry["name"]: entry["value"].replace("$$", "$") for entry in given if "value" in entry}


def order_of(pod: Object, until: float) -> Order:
    """What a Pod orders. Raises Refused for what no watchdog does."""
    variables = environment(pod)
    parameters = parameters_of(variables)
    case = parameters.pop("caseUID", "")
    names = ("OPERATION", "ATTEMPT_ID", "NODE_NAME", "EXPECTED_BOOT_ID")
    operation, attempt, node, boot_id = (variables.get(name, "") for name in names)
    words = (contract.told(variables.get(name, "")) for name in ("CASE_NAME", "ON_BEHALF_OF"))
    return contract.checked(Order(operation, attempt, case, node, boot_id, until, parameters, *words))


class TakesOrders:
    """The orders of one node: the API server on one side, the two folders on the other."""

    def __init__(self, api: Api, node: str, orders: Path, answers: Path, namespace: str = NAMESPACE):
        self.api, self.node, self.orders, self.answers = api, node, orders, answers
        self.pods = f"/api/v1/namespaces/{namespace}/pods"
        self.query = {"labelSelector": f"{LABEL}={label_of(node)}"}

    def look(self) -> tuple[bool, str]:
        """Do what is next for each order. Returns whether one goes on, and the version of the list.

        Raises Unreachable, Failed.
        """
        reply = self.api.get(self.pods, **self.query)
        if reply.status == 401:
            raise Failed(EXPIRED)
        if reply.status != 200:
            raise Failed(f"orders cannot be listed: {reply.message}")
        pods = {_attempt(pod): pod for pod in reply.body.get("items") or ()}
        for attempt in contract.attempts(self.orders, ORDER):
            if attempt not in pods:
                contract.forget(self.orders, attempt, ORDER)
        going_on = [self._step(attempt, pod, reply.at) for attempt, pod in pods.items()]
        return any(going_on), str((reply.body.get("metadata") or {}).get("resourceVersion") or "")

    def wait(self, version: str) -> None:
        """Wait until an order comes or changes. Raises Unreachable."""
        self.api.wait_for_change(self.pods, WATCH_SECONDS, SILENCE, resourceVersion=version, **self.query)

    def _step(self, attempt: str, pod: Object, now: datetime | None) -> bool:
        answer = contract.answer_of(self.answers, attempt)
        seconds = _left(pod, now)
        phase = (pod.get("status") or {}).get("phase") or "Pending"
        deleted = bool(pod["metadata"].get("deletionTimestamp"))
        ordered = (self.orders / f"{attempt}{ORDER}").exists()
        next_step = step(OrderObservation(phase, deleted, ordered, answer is not None, seconds))
        if next_step not in (Step.NOTHING, Step.TOO_LATE):
            print(f"{attempt}: {next_step.value}", flush=True)
        if next_step is Step.TAKE:
            self._take(attempt, pod, seconds)
        elif next_step is Step.REPORT_LOST:
            self._report(attempt, pod, LOST)
        elif next_step is Step.REPORT and answer is not None:
            self._report(attempt, pod, answer)
        elif next_step is Step.TAKE_BACK:
            contract.forget(self.orders, attempt, ORDER)
        return phase in ("Pending", "Running") and not deleted

    def _take(self, attempt: str, pod: Object, seconds: float) -> None:
        """Read once more whose node it is, have the Pod run, and hand the order over."""
        try:
            order = order_of(pod, contract.boot_seconds() + seconds)
            if order.node != self.node:
                raise Refused(f"the order is for node {order.node}, and this is {self.node}")
            about = Environment(order.node, order.attempt, order.boot_id, {"caseUID": order.case}, "", "", "")
            look(self.api, about)
        except Refused as refusal:
            self._report(attempt, pod, OrderResult(2, f"refused: {refusal}"))
            return
        if self._write(pod, {"running": {}}, "Running"):
            contract.give(self.orders, order)

    def _report(self, attempt: str, pod: Object, answer: OrderResult) -> None:
        """Have the Pod end as the program did."""
        reason = "Completed" if answer.code == 0 else "Error"
        ended = {"exitCode": answer.code, "reason": reason, "message": answer.sentence}
        if self._write(pod, {"terminated": ended}, "Succeeded" if answer.code == 0 else "Failed"):
            contract.forget(self.orders, attempt, ORDER)

    def _write(self, pod: Object, state: Object, phase: str) -> bool:
        """Write the status of the very Pod that was read; whether that was done."""
        container = pod["spec"]["containers"][0]
        status = {
            "name": container["name"],
            "image": container["image"],
            "imageID": "",
            "ready": False,
            "restartCount": 0,
            "state": state,
        }
        meta = {key: pod["metadata"][key] for key in ("uid", "resourceVersion")}
        body = {"metadata": meta, "status": {"phase": phase, "containerStatuses": [status]}}
        reply = self.api.request("PATCH", f"{self.pods}/{pod['metadata']['name']}/status", body, MERGE_PATCH)
        if reply.status >= 300:
            print(f"{pod['metadata']['name']}: {phase} could not be written: {reply.message}", flush=True)
        return reply.status < 300 and not (phase == "Running" and reply.body["metadata"].get("deletionTimestamp"))


def _attempt(pod: Object) -> str:
    return environment(pod).get("ATTEMPT_ID", "")


def _left(pod: Object, now: datetime | None) -> float:
    """The seconds in which it must have ended, by the clock of the API server; 0 where nobody knows."""
    if now is None:
        return 0.0
    made = datetime.fromisoformat(pod["metadata"]["creationTimestamp"])
    return float(pod["spec"].get("activeDeadlineSeconds") or 0) - (now - made).total_seconds() - MARGIN


def main() -> None:
    """Take orders for ever. Raises Refused where there is no API server to talk to."""
    if len(sys.argv) > 1:
        print(f"usage: {Path(__file__).name}\n\n{__doc__}")
        return
    variables = {
        "TOKEN_DIR": "/var/run/secrets/kubernetes.io/serviceaccount",
        "ORDERS": "/orders",
        "ANSWERS": "/answers",
        "OPERATIONS_NAMESPACE": NAMESPACE,
        **os.environ,
    }
    api = Api(variables, variables["TOKEN_DIR"])
    folders = (Path(variables["ORDERS"]), Path(variables["ANSWERS"]))
    takes_orders = TakesOrders(api, variables["NODE_NAME"], *folders, variables["OPERATIONS_NAMESPACE"])
    while True:
        takes_on(takes_orders)


def takes_on(takes_orders: TakesOrders) -> None:
    """One look, and the wait for the next one."""
    try:
        going_on, version = takes_orders.look()
        if not going_on:
            takes_orders.wait(version)
        time.sleep(LOOK_SECONDS)
    except Exception as error:  # whatever it is: a kubelet that hangs starts no container anew
        known = isinstance(error, Unreachable | Failed | Refused)
        print(error if known else f"{type(error).__name__}: {error}", flush=True)
        time.sleep(AGAIN_SECONDS)


if __name__ == "__main__":
    main()

#!/usr/bin/env -S python3 -I -S -B
"""Move the Pods of a node away: evict each, politely and again, until none is left that should go.

Mirror Pods, Pods of DaemonSets, ended Pods and those of the operations' own namespace stay. An eviction that a
PodDisruptionBudget refuses is tried again, each Pod at its own growing interval; who is in the way is written to
status.drain of the NodeOperation whenever that changes. Nothing is watched: each round lists the node's Pods again.

PARAMETERS: operation and operationUID (the NodeOperation), caseUID (the case that holds the node), strategy (Evict;
Delete asks no budget; None leaves all Pods), timeoutSeconds (1800), perSecond (5 evictions), skipWaitForDeleteSeconds
(a Pod whose end is overdue by more is not waited for: its process cannot end, and a reboot is what ends it), case,
policy and namespace (their names, where a hold, a mode and a pause are looked up).

It asks no more Pods to go while a user stops the repair: holds, releases or deletes the case, excludes or uncordons the
node, pauses the policy or everything. Then it waits, also beyond its time: the controller ends the operation.

It stops by itself (exit 2) when its NodeOperation has ended or is gone, when the node is not the one that was meant, or
when the case no longer holds the node. Exit 0: no Pod is left that should go. Exit 1: the time was over; who was in the
way is named.
"""

import os.path
import sys

sys.path.append(os.path.realpath(f"{__file__}/../.."))  # where nodelib/ is; python3 -I leaves it out

import os
import time
from typing import Any, NamedTuple
from urllib.parse import quote

from nodelib.contract.operation import Environment, Failed, Refused, main
from nodelib.contract.parameters import number
from nodelib.k8s.api import MERGE_PATCH, Api, Reply, ServerError, Unreachable
from nodelib.k8s.case import ENDED, OURS
from nodelib.k8s.claims import require_claim
from nodelib.k8s.pods import Pod, budgets_over, list_budgets, list_pods
from nodelib.k8s.stops import why_stopped

LOOK_AGAIN = 5.0  # seconds that an answer about our claim, or about what stops us, is good for
RETRY_FIRST, RETRY_MOST = 1.0, 30.0
ROUND_FIRST, ROUND_MOST = 0.5, 5.0
SHOWN = 20  # blockers written to the status; `left` counts them all
LONGEST = 366 * 86400.0  # seconds: work may have weeks to end by itself
STRATEGIES = ("Evict", "Delete", "None")


class Orders(NamedTuple):
    """PARAMETERS, checked. `timeout` and `skip` in seconds, `rate` in evictions a second.

    `asked`: the paths of the case, the policy and the namespace that may stop us, "" for one that was not named.
    """

    operation: str
    operation_uid: str
    case_uid: str
    strategy: str
    timeout: float
    rate: float
    skip: float
    asked: tuple[str, str, str] = ("", "", "")


def read_orders(parameters: dict[str, Any]) -> Orders:
    """Return the orders. Raises Refused for what cannot be meant."""
    missing = [name for name in ("operation", "operationUID", "caseUID") if not parameters.get(name)]
    if missing:
        raise Refused(f"PARAMETERS lacks {', '.join(missing)}")
    strategy = parameters.get("strategy", "Evict")
    if strategy not in STRATEGIES:
        raise Refused(f"PARAMETERS.strategy is {strategy!r}: write {' or '.join(STRATEGIES)}")
    return Orders(
        parameters["operation"],
        parameters["operationUID"],
        parameters["caseUID"],
        strategy,
        number(parameters, "timeoutSeconds", 1800, least=0.01, most=LONGEST),
        number(parameters, "perSecond", 5, least=0.01),
        number(parameters, "skipWaitForDeleteSeconds", LONGEST, least=0.01, most=LONGEST),
        (
            path_of(f"{OURS}/noderemediations", parameters, "case"),
            path_of(f"{OURS}/remediationpolicies", parameters, "policy"),
            path_of("/api/v1/namespaces", parameters, "namespace"),
        ),
    )


def path_of(folder: str, parameters: dict[str, Any], word: str) -> str:
    """Return the path of the object that `word` of PARAMETERS names, "" where it names none."""
    return f"{folder}/{quote(str(parameters[word]), safe='')}" if parameters.get(word) else ""


def sorted_out(pods: list[Pod], skip: float) -> tuple[list[Pod], list[Pod]]:
    """Return the Pods that must go, and those whose end is overdue by more than `skip` seconds."""
    return [pod for pod in pods if pod.overdue <= skip], [pod for pod in pods if pod.overdue > skip]


class Bucket:
    """Lets `rate` things through a second, and as many at once after a quiet second."""

    def __init__(self, rate: float, now: float):
        self._rate, self._most = rate, max(1.0, rate)
        self._tokens, self._at = self._most, now

    def take(self, now: float) -> float:
        """Take one token and return how many seconds to wait before using it."""
        self._tokens = min(self._most, self._tokens + (now - self._at) * self._rate) - 1.0
        self._at = now
        return max(0.0, -self._tokens / self._rate)


class Block(NamedTuple):
    """Why a Pod is still there after we asked, when to ask again, and how long to wait after that."""

    message: str
    budgets: str
    due: float
    delay: float


class Drain:
    """One drain. Holds what it has learnt; everything it must not forget is at the API server."""

    def __init__(self, api: Api, node: str, orders: Orders):
        self.api, self.node, self.orders = api, node, orders
        self.deadline = time.monotonic() + orders.timeout
        self.bucket = Bucket(orders.rate, time.monotonic())
        self.evicted: set[str] = set()
        self.blocks: dict[str, Block] = {}
        self.left: list[Pod] = []
        self.stuck: list[Pod] = []
        self.looked_at = self.asked_at = float("-inf")
        self.others: list[dict[str, Any]] = []  # the case, the policy and the namespace, as they were at `asked_at`
        self.stop = ""  # what a user stops us with
        self.written: dict[str, Any] | None = None

    def run(self) -> str:
        """Evict in rounds until no Pod is left. Raises Failed when the time is over, Refused when it is not ours."""
        pause = ROUND_FIRST
        while True:
            before, answered = self.progress(), True
            try:
                self.round()
                if not self.left and not self.stop:
                    return f"drained {self.node}: {len(self.evicted)} pods evicted{self.not_waited_for()}"
            except Unreachable as error:
                answered = False
                print(f"the API server does not answer, trying again: {error}", flush=True)
            pause = ROUND_FIRST if self.progress() != before else min(pause * 1.5, ROUND_MOST)
            self.rest(pause, [block.due for block in self.blocks.values()] if answered else [])

    def rest(self, pause: float, dues: list[float]) -> None:
        """Sleep `pause` seconds, or less where a Pod is due again before. Raises Failed when the time is over.

        While a user stops us no time runs out: the controller has the last word.
        """
        now = time.monotonic()
        if self.stop:
            time.sleep(pause)
            self.deadline += pause
            return
        if now >= self.deadline:
            raise Failed(self.farewell())
        time.sleep(max(0.05, min([pause, self.deadline - now, *(due - now for due in dues)])))

    def round(self) -> None:
        """List, ask each Pod that is due to go, and write down how far we are. Does nothing while a user stops us."""
        self.look()
        if self.stop:
            return
        self.left, self.stuck = sorted_out(list_pods(self.api, self.node), self.orders.skip)
        staying = {pod.uid for pod in self.left}
        self.blocks = {uid: block for uid, block in self.blocks.items() if uid in staying}
        budgets: dict[str, list[dict[str, Any]]] = {}
        for pod in self.left:
            if pod.ending or self.not_due(pod):
                continue
            if not self.wait_for_turn():
                return
            self.ask(pod, budgets)
        self.write_progress()

    def not_due(self, pod: Pod) -> bool:
        """Tell whether this Pod was refused a short while ago."""
        return pod.uid in self.blocks and time.monotonic() < self.blocks[pod.uid].due

    def wait_for_turn(self) -> bool:
        """Wait for a token, and look again if that is some time ago. Return whether nobody stops us."""
        time.sleep(self.bucket.take(time.monotonic()))
        if time.monotonic() - self.looked_at > LOOK_AGAIN:
            self.look()
        if self.stop:
            return False
        if time.monotonic() >= self.deadline:
            raise Failed(self.farewell())
        return True

    def look(self) -> None:
        """Raise Refused unless our operation goes on, the node is the one meant, and our case holds it.

        Sets `stop`.
        """
        orders = self.orders
        operation = self.api.get_object(f"{OURS}/nodeoperations/{orders.operation}")
        if operation["metadata"].get("uid") != orders.operation_uid or operation["metadata"].get("deletionTimestamp"):
            raise Refused(f"operation {orders.operation} is gone")
        phase = (operation.get("status") or {}).get("phase")
        if phase in ENDED:
            raise Refused(f"operation {orders.operation} has ended: {phase}")
        node = self.api.get_object(f"/api/v1/nodes/{self.node}")
        meant = (operation.get("spec") or {}).get("nodeUID")
        if meant and node["metadata"].get("uid") != meant:
            raise Refused(f"node {self.node} is another one than was meant: its uid has changed")
        require_claim(node, orders.case_uid)
        self.looked_at = time.monotonic()
        self.look_for_stops(node)

    def look_for_stops(self, node: dict[str, Any]) -> None:
        """Note what a user stops us with, and say it once. Only the node is read in every round."""
        if time.monotonic() - self.asked_at > LOOK_AGAIN:
            case, *others = self.orders.asked
            of_case = self.api.get_object(case) if case else {}
            self.others = [of_case, *(self.api.get_object_if_any(path) if path else {} for path in others)]
            self.asked_at = time.monotonic()
        before, self.stop = self.stop, why_stopped(node, *self.others)
        if self.stop != before:
            print(f"waiting: {self.stop}" if self.stop else "going on", flush=True)

    def ask(self, pod: Pod, budgets: dict[str, list[dict[str, Any]]]) -> None:
        """Ask for one Pod to go, and keep the refusal if there is one."""
        try:
            reply = self.request(pod)
        except ServerError as error:
            reply = error.reply
        if reply.status < 300:
            self.evicted.add(pod.uid)
            self.blocks.pop(pod.uid, None)
        elif reply.status not in (404, 409):  # gone, or another Pod has its name by now: the next list tells
            self.keep_block(pod, reply, budgets)

    def request(self, pod: Pod) -> Reply:
        """Evict or delete exactly this Pod, not a later one of the same name."""
        only_this = {"preconditions": {"uid": pod.uid}}
        if self.orders.strategy == "Delete":
            return self.api.request("DELETE", pod.path, {"apiVersion": "v1", "kind": "DeleteOptions", **only_this})
        eviction = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod.name, "namespace": pod.namespace},
            "deleteOptions": only_this,
        }
        return self.api.request("POST", f"{pod.path}/eviction", eviction)

    def keep_block(self, pod: Pod, reply: Reply, budgets: dict[str, list[dict[str, Any]]]) -> None:
        """Remember why a Pod did not go and when to ask again: twice as late as last time."""
        if pod.namespace not in budgets:
            budgets[pod.namespace] = list_budgets(self.api, pod.namespace)
        last = self.blocks.get(pod.uid)
        delay = min(RETRY_MOST, last.delay * 2) if last else RETRY_FIRST
        due = time.monotonic() + max(delay, min(reply.retry_after, RETRY_MOST))
        self.blocks[pod.uid] = Block(reply.message[:300], budgets_over(pod, budgets[pod.namespace]), due, delay)

    def progress(self) -> dict[str, Any]:
        """Return status.drain: how many are left, how many we evicted, and the first blockers by name."""
        blocked = [(pod, self.blocks[pod.uid]) for pod in self.left if pod.uid in self.blocks]
        return {
            "left": len(self.left),
            "evicted": len(self.evicted),
            "blocked": [
                *({"pod": pod.key, "pdb": block.budgets, "message": block.message} for pod, block in blocked),
                *({"pod": pod.key, "pdb": "", "message": "its end is overdue: not waited for"} for pod in self.stuck),
            ][:SHOWN],
        }

    def write_progress(self) -> None:
        """Patch status.drain when it differs from what we wrote last. A refused patch does not stop a drain."""
        progress = self.progress()
        if progress == self.written:
            return
        path = f"{OURS}/nodeoperations/{self.orders.operation}/status"
        reply = self.api.request("PATCH", path, {"status": {"drain": progress}}, MERGE_PATCH)
        if reply.status >= 300:
            print(f"progress could not be written: {reply.message}", flush=True)
            return
        self.written = progress

    def not_waited_for(self) -> str:
        """Name the Pods that are left to what comes after the drain."""
        names = ", ".join(pod.key for pod in self.stuck[:SHOWN])
        return f"; not waited for, their end is overdue: {names}" if names else ""

    def farewell(self) -> str:
        """Return the sentence of a drain whose time is over: who was in the way, and why."""
        names = [self.in_the_way(pod) for pod in self.left[:SHOWN]]
        more = f" and {len(self.left) - SHOWN} more" if len(self.left) > SHOWN else ""
        return f"{len(self.left)} pods left on {self.node} after {self.orders.timeout:g} s: {', '.join(names)}{more}"

    def in_the_way(self, pod: Pod) -> str:
        """Name one Pod and what keeps it."""
        block = self.blocks.get(pod.uid)
        if block is None:
            return f"{pod.key} (still ending)" if pod.ending else f"{pod.key} (not asked in time)"
        return f"{pod.key} ({block.budgets or block.message})"


def drain(environment: Environment, dry_run: bool) -> str:
    """Drain the node of this environment and return the sentence."""
    orders = read_orders(environment.parameters)
    if orders.strategy == "None":
        return f"nothing to drain on {environment.node}: strategy None"
    work = Drain(Api(os.environ, environment.token_dir), environment.node, orders)
    if not dry_run:
        return work.run()
    try:
        work.look()
        pods, stuck = sorted_out(list_pods(work.api, environment.node), orders.skip)
    except Unreachable as error:
        raise Failed(str(error)) from error
    verb = "delete" if orders.strategy == "Delete" else "evict"
    for pod in pods:
        print(f"would {verb} {pod.key}{' (already ending)' if pod.ending else ''}")
    for pod in stuck:
        print(f"would not wait for {pod.key}: its end is overdue")
    return f"would {verb} {len(pods)} pods on {environment.node}"


if __name__ == "__main__":
    main(drain, __doc__)

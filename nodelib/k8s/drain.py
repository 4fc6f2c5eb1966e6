"""A drain: rounds of evictions until no Pod is left that should go.

It is here and not in its program since Python compiles the file that it runs at each start, and keeps what it imports.
"""

import time
from collections import namedtuple

from nodelib.contract.operation import Failed, Refused
from nodelib.k8s.api import MERGE_PATCH, Api, ApiReply, Unreachable, reply_to
from nodelib.k8s.bucket import Bucket
from nodelib.k8s.claims import ENDED, OURS, require_claim
from nodelib.k8s.drain_moves import ASKS, EVICT, FORCE, KEEP, LEAVE, MOST_RETURNS, SKIP, WAIT, Scene, moves, owned_by
from nodelib.k8s.drain_orders import Orders
from nodelib.k8s.eviction_answers import answer_of, message_of
from nodelib.k8s.pods import Pod, budgets_over, list_budgets, list_pods
from nodelib.k8s.stops import why_stopped

LOOK_AGAIN = 5.0  # seconds that an answer about our claim, or about what stops us, is good for
RETRY_FIRST, RETRY_MOST = 1.0, 30.0
ROUND_FIRST, ROUND_MOST = 0.5, 5.0
SHOWN = 20  # blockers written to the status; `left` counts them all
MOST_BUDGETS = 250  # characters of their names in the status


def is_silent(node: dict) -> bool:
    """Tell whether the control plane has lost the kubelet: nobody knows then what runs there, if anything does."""
    conditions = (node.get("status") or {}).get("conditions") or []
    return any((entry.get("type"), entry.get("status")) == ("Ready", "Unknown") for entry in conditions)


def short(budgets: str) -> str:
    """Return the names of budgets as they are written to the status."""
    return budgets if len(budgets) <= MOST_BUDGETS else f"{budgets[: MOST_BUDGETS - 1]}…"


class Block(namedtuple("Block", "message budgets due delay verb unjudged", defaults=[float("inf"), 0.0, "", False])):
    """Why a Pod is still there. Where we asked with `verb`: when to ask again, and how long to wait after that.

    `unjudged`: nobody was there to say whether it may go.
    """

    __slots__ = ()


class Drain:
    """One drain. Holds what it has learnt; everything it must not forget is at the API server."""

    def __init__(self, api: Api, node: str, orders: Orders):
        self.api, self.node, self.orders = api, node, orders
        self.deadline = time.monotonic() + orders.timeout
        self.bucket = Bucket(orders.rate, time.monotonic())
        self.evicted: set[str] = set()
        self.returned: dict[tuple, int] = {}  # by Pod.maker: how many came after the drain had begun, and were asked
        self.blocks: dict[str, Block] = {}
        self.judged: set[str] = set()  # uids of Pods of which a budget has refused an eviction to us
        self.left: list[Pod] = []
        self.stuck: list[Pod] = []
        self.kept: list[Pod] = []  # of those that are left: while there is one, nobody is asked to go
        self.silent = False  # whether nobody hears of the kubelet
        self.looked_at = self.asked_at = float("-inf")
        self.operation: dict = {}  # ours, as it was at `looked_at`
        self.others: list[dict] = []  # the case, the policy and the namespace, as they were at `asked_at`
        self.stop = ""  # what a user stops us with
        self.serves = ""  # the static Pod of the control plane on the node, which stops us as well
        self.written: dict | None = None
        self.unwritten = ""  # why nothing could be written yet

    def run(self) -> str:
        """Evict in rounds until no Pod is left. Raises Failed when the time is over, Refused when it is not ours."""
        pause = ROUND_FIRST
        while True:
            before, answered = self.progress(), True
            began, deadline = time.monotonic(), self.deadline
            try:
                self.round()
                if not self.left and not self.waits:
                    return f"drained {self.node}: {len(self.evicted)} pods {self.orders.done}{self.not_waited_for()}"
            except Unreachable as error:
                answered = error.seconds is None
                self.deadline += error.seconds or 0.0
                print(f"the API server does not answer, trying again: {error}", flush=True)
            if self.unjudged:
                self.deadline = deadline + time.monotonic() - began
            pause = ROUND_FIRST if self.progress() != before else min(pause * 1.5, ROUND_MOST)
            self.rest(pause, [block.due for block in self.blocks.values()], answered)

    def rest(self, pause: float, dues: list[float], answered: bool = True) -> None:
        """Sleep `pause` seconds, or less where a Pod is due again before. Raises Failed when the time is over.

        While a user stops us, or nobody answers or judges evictions, no time runs out: the controller has the last
        word.
        """
        now = time.monotonic()
        if self.waits or self.unjudged or not answered:
            time.sleep(pause)
            self.deadline += pause
            return
        if now >= self.deadline:
            raise Failed(self.farewell())
        time.sleep(max(0.05, min([pause, self.deadline - now, *(due - now for due in dues)])))

    def round(self) -> None:
        """List, write down how far we are, and ask each Pod that is due to go. Does nothing while a user stops us.

        Nobody is asked while one Pod keeps the node for good, nor before the first progress has been written. Who is in
        the way is written at once, how many have gone with the next list: a write costs more than an eviction.
        """
        self.look()
        if self.stop:
            return
        steps = self.steps()
        if self.serves:
            return
        self.take_note(steps)
        if not self.write_progress() and self.written is None:
            return
        budgets: dict[str, list[dict]] = {}
        for unit in [] if self.kept else self.units(steps):
            if not self.ask_unit(unit, budgets):
                return
        if self.blocks:
            self.write_progress()

    def take_note(self, steps: list) -> None:
        """Note who is left, who is in the way first, and why."""
        self.stuck = [pod for pod, move in steps if move.verb == SKIP]
        self.kept = [pod for pod, move in steps if move.verb == KEEP]
        self.left = self.kept + [pod for pod, move in steps if move.verb not in (KEEP, SKIP, LEAVE)]
        asking = {pod.uid for pod, move in steps if move.verb in ASKS and not self.kept}
        asked = {uid: block for uid, block in self.blocks.items() if uid in asking and block.verb}
        self.blocks = asked | {
            pod.uid: Block(move.why, short(move.budgets))
            for pod, move in steps
            if move.verb in (KEEP, WAIT) and move.why
        }

    def units(self, steps: list) -> list[list]:
        """Return the Pods with their moves, in the groups in which they go: here each for itself."""
        return [[step] for step in steps]

    def ask_unit(self, unit: list, budgets: dict[str, list[dict]]) -> bool:
        """Ask the Pods of one unit that are due. Return whether nobody stops us."""
        for pod, move in unit:
            if move.verb not in ASKS or self.not_due(pod, move.verb):
                continue
            if not self.wait_for_turn():
                return False
            if move.verb != FORCE or self.silent:  # its kubelet may have come back in a long round
                self.ask(pod, move.verb, budgets)
        return True

    def steps(self) -> list:
        """List the Pods that must go, each with what is to be done with it now. Sets `serves`."""
        pods, before = list_pods(self.api, self.node), self.waits
        self.serves = pods.control_plane
        self.tell(before)
        return moves(pods.leaving, self.orders, self.scene())

    def scene(self) -> Scene:
        """Return what matters now beside each Pod."""
        left, orders = self.deadline - time.monotonic(), self.orders
        insistent = frozenset(maker for maker, count in self.returned.items() if count >= MOST_RETURNS)
        deletes = left <= orders.delete_for and not self.unjudged
        return Scene(self.silent, deletes, left <= orders.override_for > 0, insistent, self.judged)

    @property
    def unjudged(self) -> bool:
        """Tell whether a Pod has last been refused since nobody could say whether it may go. It is asked again."""
        return any(block.unjudged for block in self.blocks.values())

    def not_due(self, pod: Pod, verb: str) -> bool:
        """Tell whether this Pod refused the same a short while ago."""
        block = self.blocks.get(pod.uid)
        return block is not None and block.verb == verb and time.monotonic() < block.due

    def wait_for_turn(self, count: int = 1) -> bool:
        """Wait for so many tokens, and look again if that is some time ago. Return whether nobody stops us."""
        time.sleep(self.bucket.take(time.monotonic(), count))
        if time.monotonic() - self.looked_at > LOOK_AGAIN:
            self.look()
        if self.stop:
            return False
        if time.monotonic() >= self.deadline and not self.unjudged:
            raise Failed(self.farewell())
        return True

    def look(self) -> None:
        """Raise Refused unless our operation goes on, the node is the one meant, and our case holds it.

        Sets `stop`.
        """
        orders = self.orders
        self.operation = operation = self.api.get_object(f"{OURS}/nodeoperations/{orders.operation}")
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
        self.silent = is_silent(node)
        self.looked_at = time.monotonic()
        self.look_for_stops(node)

    def look_for_stops(self, node: dict) -> None:
        """Note what a user stops us with, and say it once. Only the node is read in every round.

        Raises Refused where the case is cancelled: it waits for our end, and nothing undoes that.
        """
        if time.monotonic() - self.asked_at > LOOK_AGAIN:
            case, *others = self.orders.asked
            of_case = self.api.get_object(case) if case else {}
            if (of_case.get("metadata") or {}).get("deletionTimestamp"):
                raise Refused("the case is cancelled")
            self.others = [of_case, *(self.api.get_object_if_any(path) if path else {} for path in others)]
            self.asked_at = time.monotonic()
        before, self.stop = self.waits, why_stopped(node, *self.others)
        self.tell(before)

    @property
    def waits(self) -> str:
        """Why nobody is asked to go, "" where nothing stops us."""
        serving = f"{self.node} is part of the control plane: Pod {self.serves} runs there"
        return self.stop or (serving if self.serves else "")

    def tell(self, before: str) -> None:
        """Say once what stops us from now on, or that nothing does any more."""
        if self.waits != before:
            print(f"waiting: {self.waits}" if self.waits else "going on", flush=True)

    def ask(self, pod: Pod, verb: str, budgets: dict[str, list[dict]]) -> None:
        """Ask for one Pod to go, and keep the refusal if there is one."""
        reply = reply_to(self.request, pod, verb)
        if reply.status < 300:
            self.note_gone(pod)
        if answer_of(reply).keeps:
            self.keep_block(pod, verb, reply, budgets)
        else:
            self.blocks.pop(pod.uid, None)

    def note_gone(self, pod: Pod) -> None:
        """Count a Pod that has been asked to go, for itself and where it has come after the drain had begun."""
        self.evicted.add(pod.uid)
        if pod.created > self.operation["metadata"]["creationTimestamp"]:
            self.returned[pod.maker] = self.returned.get(pod.maker, 0) + 1
        if pod.wish.kept:
            print(f"{pod.key} goes against its annotation, as the template says; it is of {owned_by(pod)}", flush=True)

    def request(self, pod: Pod, verb: str, dry_run: bool = False) -> ApiReply:
        """Evict or delete exactly this Pod, not a later one of the same name; or ask whether it could be evicted."""
        only_this = {"preconditions": {"uid": pod.uid}}
        if verb != EVICT:
            options = {"apiVersion": "v1", "kind": "DeleteOptions", **only_this}
            return self.api.request("DELETE", pod.path, options | ({"gracePeriodSeconds": 0} if verb == FORCE else {}))
        eviction = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod.name, "namespace": pod.namespace},
            "deleteOptions": only_this,
        }
        return self.api.request("POST", f"{pod.path}/eviction{'?dryRun=All' if dry_run else ''}", eviction)

    def keep_block(self, pod: Pod, verb: str, reply: ApiReply, budgets: dict[str, list[dict]]) -> None:
        """Remember why a Pod did not go and when to ask again: twice as late as last time."""
        answer = answer_of(reply)
        if answer.budgets and pod.namespace not in budgets:
            budgets[pod.namespace] = list_budgets(self.api, pod.namespace)
        over = budgets_over(pod, budgets[pod.namespace]) if answer.budgets else ""
        if answer.budgets:
            self.judged.add(pod.uid)
        last = self.blocks.get(pod.uid)
        delay = min(RETRY_MOST, last.delay * 2) if last and last.verb == verb else RETRY_FIRST
        due = time.monotonic() + max(delay, min(reply.retry_after, RETRY_MOST))
        self.blocks[pod.uid] = Block(message_of(reply), short(over), due, delay, verb, answer.unjudged)

    def progress(self) -> dict:
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

    def write_progress(self) -> bool:
        """Patch status.drain when it differs from what we wrote last. Return whether it stands there now.

        Only the first one must: who cannot say what it does must not begin. A later one that is refused stops no drain.
        """
        progress = self.progress()
        if progress == self.written:
            return True
        path = f"{OURS}/nodeoperations/{self.orders.operation}/status"
        reply = reply_to(self.api.request, "PATCH", path, {"status": {"drain": progress}}, MERGE_PATCH)
        if reply.status >= 300:
            self.unwritten = reply.message
            print(f"progress could not be written: {reply.message}", flush=True)
            return False
        self.written = progress
        return True

    def not_waited_for(self) -> str:
        """Name the Pods that are left to what comes after the drain."""
        names = ", ".join(pod.key for pod in self.stuck[:SHOWN])
        return f"; not waited for, their end is overdue: {names}" if names else ""

    def farewell(self) -> str:
        """Return the sentence of a drain whose time is over: who was in the way, by what kept them."""
        by_reason: dict[str, list[str]] = {}
        named = self.kept or self.left
        for pod in named[:SHOWN]:
            by_reason.setdefault(self.reason(pod), []).append(pod.key)
        names = "; ".join(f"{', '.join(keys)} ({why})" for why, keys in by_reason.items())
        more = f" and {len(named) - SHOWN} more" if len(named) > SHOWN else ""
        rest = "; nobody else was asked" if len(self.left) > len(named) else ""
        return f"{len(self.left)} pods left on {self.node} after {self.orders.timeout:g} s: {names}{more}{rest}"

    def reason(self, pod: Pod) -> str:
        """Return what keeps one Pod."""
        block = self.blocks.get(pod.uid)
        if block is not None:
            return block.budgets or block.message
        if pod.ending:
            return "still ending"
        if self.written is None and self.unwritten:
            return f"not asked: progress cannot be written: {self.unwritten}"
        return "not asked in time"

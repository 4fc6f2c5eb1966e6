"""A drain that knows jobs: Pods of one gang go together, and a Pod that asked for it is told before.

Before anything of such a unit is evicted, each eviction is tried as a dry run and counted against the budgets: one Pod
that may not go keeps its whole gang. Then those that want a checkpoint are asked, all at once. When all have answered,
or their time is over, the gang goes as one order. A gang that is kept on another node keeps this node, too.
"""

import time
from collections import namedtuple
from datetime import datetime

from nodelib.k8s import gangs, handshake
from nodelib.k8s.api import Api, reply_to
from nodelib.k8s.drain import LOOK_AGAIN, RETRY_FIRST, RETRY_MOST, ROUND_MOST, Block, Drain
from nodelib.k8s.drain_moves import ASKS, EVICT, FORCE, KEEP, LEAVE, SKIP, Move, strategy_of, why_owner_keeps
from nodelib.k8s.drain_orders import Orders
from nodelib.k8s.eviction_answers import EvictionAnswer, answer_of, message_of
from nodelib.k8s.pods import Pod, budgets_over, list_budgets, list_elsewhere, never_evicted, selects


class Look(namedtuple("Look", "why at delay")):
    """Why a gang is kept on another node, "" where it is not; when that was read, and for how long it is good."""

    __slots__ = ()


class JobDrain(Drain):
    """A drain, and what it knows of gangs."""

    def __init__(self, api: Api, node: str, orders: Orders):
        super().__init__(api, node, orders)
        self.groups: dict[tuple[str, str], bool] = {}  # PodGroups: whether they are disrupted as a whole
        self.begun: set[str] = set()  # gangs of which a Pod has gone: the others follow, each as soon as it may
        self.elsewhere: dict[str, Look] = {}  # by gang

    def steps(self) -> list:
        """List the Pods as any drain does. Before one is asked, also who can never go keeps the node."""
        steps = super().steps()
        if all(self.not_due(pod, move.verb) for pod, move in steps if move.verb in ASKS):
            return steps
        kept = self.kept_by_gangs(steps) | self.kept_by_budgets(steps)
        return [(pod, kept.get(pod.uid, move)) for pod, move in steps]

    def units(self, steps: list) -> list[list]:
        """Return the Pods with their moves, in the groups in which they go."""
        moves = {pod.uid: move for pod, move in steps if move.verb not in (SKIP, LEAVE)}
        pods = gangs.with_groups(self.api, [pod for pod, _ in steps if pod.uid in moves], self.groups)
        return [[(pod, moves[pod.uid]) for pod in unit] for unit in gangs.units(pods)]

    def ask_unit(self, unit: list, budgets: dict[str, list[dict]]) -> bool:
        """Let the Pods of one unit go, or note what they wait for. Return whether nobody stops us."""
        staying = [(pod, move) for pod, move in unit if not pod.ending]
        asks = [(pod, move) for pod, move in staying if move.verb in ASKS]
        wanted = [pod for pod, _ in asks if pod.checkpoint]
        intact = self.is_intact(unit)
        whole = intact and len(unit) > 1
        if not asks or not (wanted or intact):
            return super().ask_unit(unit, budgets)
        if whole and len(asks) < len(staying):
            return self.keep_gang(staying, asks)
        if (any if whole else all)(self.not_due(pod, move.verb) for pod, move in asks):
            return True
        asked = all(pod.checkpoint.asked(self.since) for pod in wanted)
        if asked and not all(pod.checkpoint.over for pod in wanted) and time.monotonic() < self.waits_until(asks):
            return self.wait_for_checkpoints(asks, wanted)
        if intact and self.is_kept_elsewhere(asks):
            return True
        if (whole or (wanted and len(unit) == 1)) and not self.may_all_go(asks):
            return True
        if not asked:
            return self.ask_for_checkpoints(asks, wanted)
        return self.let_go(asks, budgets) if whole else super().ask_unit(unit, budgets)

    def keep_gang(self, staying: list, asks: list) -> bool:
        """One of a gang is not asked to go: no other one is either."""
        culprit = next(pod for pod, move in staying if move.verb not in ASKS)
        for pod, _ in asks:
            self.blocks[pod.uid] = Block(f"waits for {culprit.key} of the same gang", "")
        return True

    def let_go(self, gang: list, budgets: dict[str, list[dict]]) -> bool:
        """Ask a gang to go as one order: its turn comes once, for all of it. Return whether nobody stops us."""
        if not self.wait_for_turn(len(gang)):
            return False
        self.begun.add(gang[0][0].member.gang)
        for pod, move in gang:
            if move.verb != FORCE or self.silent:  # its kubelet may have come back meanwhile
                self.ask(pod, move.verb, budgets)
        return True

    @property
    def since(self) -> datetime:
        """When our operation was made: a checkpoint that was asked for before was asked for by another drain."""
        return datetime.fromisoformat(self.operation["metadata"]["creationTimestamp"])

    def waits_until(self, asks: list) -> float:
        """Return when nobody of a unit is waited for any longer: each must still end within the drain's time."""
        return self.deadline - handshake.last_call(self.orders.timeout, max(pod.grace for pod, _ in asks))

    # --- checkpoints -------------------------------------------------------------------------------------------------

    def ask_for_checkpoints(self, asks: list, wanted: list[Pod]) -> bool:
        """Ask those that this drain has not asked yet. One that cannot be asked keeps its unit."""
        if not self.wait_for_turn(len(wanted)):
            return False
        for pod in [pod for pod in wanted if not pod.checkpoint.asked(self.since)]:
            reply = reply_to(handshake.ask, self.api, pod.path, pod.uid, pod.checkpoint.now)
            if reply.status in (404, 409):  # gone, or another Pod has its name by now: the next list tells
                return True
            if reply.status >= 300:
                self.keep_unit(asks, pod, f"cannot be asked for a checkpoint: {reply.message}")
                return True
        return self.wait_for_checkpoints(asks, wanted)

    def wait_for_checkpoints(self, asks: list, wanted: list[Pod]) -> bool:
        """Note who is waited for, and look again soon, in any case at the last call."""
        last = max(wanted, key=lambda pod: pod.checkpoint.waits_until(self.since))
        until = handshake.text_of(last.checkpoint.waits_until(self.since))
        most = min(ROUND_MOST, max(0.1, self.waits_until(asks) - time.monotonic()))
        self.keep_unit(asks, last, f"asked for a checkpoint: waits for its answer until {until}", most=most)
        return True

    # --- who can never go --------------------------------------------------------------------------------------------

    def kept_by_budgets(self, steps: list) -> dict[str, Move]:
        """Return what keeps each Pod that is only ever evicted, and that the API server never evicts."""
        evicts = [pod for pod, move in steps if move.verb == EVICT and strategy_of(pod, self.orders) == "Evict"]
        never: dict[str, tuple[str, str]] = {}
        for space in sorted({pod.namespace for pod in evicts}):
            never |= never_evicted([pod for pod in evicts if pod.namespace == space], list_budgets(self.api, space))
        return {uid: Move(KEEP, why, names) for uid, (why, names) in never.items()}

    def kept_by_gangs(self, steps: list) -> dict[str, Move]:
        """Return what keeps each Pod whose gang is kept on another node."""
        kept: dict[str, Move] = {}
        for unit in self.units(steps):
            asks = [pod for pod, move in unit if move.verb in ASKS]
            why = self.why_elsewhere(asks[0]) if asks and self.is_intact(unit) else ""
            kept |= {pod.uid: Move(KEEP, why) for pod in asks if why}
        return kept

    def is_kept_elsewhere(self, asks: list) -> bool:
        """Tell whether the gang is kept on another node by now, shortly before it goes, and note that."""
        pod = asks[0][0]
        why = self.why_elsewhere(pod, LOOK_AGAIN)
        if why:
            self.keep_unit(asks, pod, why)
        return bool(why)

    def why_elsewhere(self, pod: Pod, most: float = RETRY_MOST) -> str:
        """Return why the gang of a Pod is kept on another node, as it was at most `most` seconds ago.

        Each answer is good for twice as long as the one before: of many a gang all Pods of the namespace are listed.
        """
        now, last = time.monotonic(), self.elsewhere.get(pod.member.gang)
        if last is None or now >= last.at + min(last.delay, most):
            delay = min(RETRY_MOST, last.delay * 2) if last else RETRY_FIRST
            self.elsewhere[pod.member.gang] = last = Look(self.look_elsewhere(pod), now, delay)
        return last.why

    def look_elsewhere(self, pod: Pod) -> str:
        """Return why an owner keeps one of the gang on another node: its work would end with that of these.

        Where one is ending already, the work of all is lost, and nobody is kept.
        """
        others = list_elsewhere(self.api, self.node, pod.namespace, pod.member.selector)
        members = [other for other in others if gangs.is_same(pod.member, other.member)]
        kept = next((other for other in members if why_owner_keeps(other, self.scene())), None)
        if kept is None or any(other.ending for other in members):
            return ""
        why = why_owner_keeps(kept, self.scene())
        return f"its gang goes as a whole, and {kept.key} on another node may not: {why}"[:300]

    # --- gangs -------------------------------------------------------------------------------------------------------

    def is_intact(self, unit: list) -> bool:
        """Tell whether these Pods are of a gang of which none has gone or is ending here."""
        gang = unit[0][0].member.gang
        return bool(gang) and gang not in self.begun and not any(pod.ending for pod, _ in unit)

    def may_all_go(self, asks: list) -> bool:
        """Try what is to be evicted, without evicting anything; note what keeps the unit."""
        evicts = [pod for pod, move in asks if move.verb == EVICT]
        for pod in evicts:
            reply = reply_to(self.request, pod, EVICT, True)
            answer = answer_of(reply)
            if answer.keeps:
                self.note_judged(asks, answer.budgets)
                named = budgets_over(pod, list_budgets(self.api, pod.namespace)) if answer.budgets else ""
                self.keep_unit(asks, pod, message_of(reply), named, retry_after=reply.retry_after, answer=answer)
                return False
        for budget in list_budgets(self.api, evicts[0].namespace) if len(evicts) > 1 else []:
            message = too_small(budget, evicts)
            if message:
                self.note_judged(asks, True)
                self.keep_unit(asks, evicts[0], message, budget["metadata"]["name"])
                return False
        return True

    def note_judged(self, asks: list, by_budget: bool) -> None:
        """Note whether a budget has refused a unit: it goes as one, and so it is judged as one."""
        self.judged.update(pod.uid for pod, _ in asks if by_budget)

    def keep_unit(
        self,
        asks: list,
        culprit: Pod,
        message: str,
        named: str = "",
        *,
        most: float = RETRY_MOST,
        retry_after: float = 0.0,
        answer: EvictionAnswer | None = None,
    ) -> None:
        """Note for each Pod of a unit what keeps it, and when to try again: each time twice as late, up to `most`."""
        last = self.blocks.get(culprit.uid)
        delay = min(most, last.delay * 2 if last and last.delay else RETRY_FIRST)
        due = time.monotonic() + max(delay, min(retry_after, RETRY_MOST))
        for pod, move in asks:
            waits = f"waits for {culprit.key} of the same gang"
            own = pod.uid == culprit.uid
            why, budgets = (message[:300], named) if own else (waits[:300], "")
            self.blocks[pod.uid] = Block(why, budgets, due, delay, move.verb, answer is not None and answer.unjudged)


def too_small(budget: dict, staying: list[Pod]) -> str:
    """Return why a PodDisruptionBudget does not let all these Pods go at once, "" where it does.

    A Pod that is not ready takes nothing of a budget.
    """
    selector = (budget.get("spec") or {}).get("selector")
    needed = sum(pod.ready and selects(selector, pod.labels) for pod in staying)
    allowed = (budget.get("status") or {}).get("disruptionsAllowed") or 0
    if needed <= allowed:
        return ""
    name = budget["metadata"]["name"]
    return f"budget {name} allows {allowed} disruptions now, and the gang needs {needed} at once"

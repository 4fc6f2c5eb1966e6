"""One pass over one node."""

from datetime import datetime
from functools import partial

import structlog

from remediator.controller import marks, measure
from remediator.controller.effects import ChangeNode, Create, Done, EffectResult
from remediator.controller.fleet import may_start
from remediator.controller.handlers.base import SOON, Dependencies, seconds, seconds_until
from remediator.core import new_node
from remediator.core.decide import Busy, Decision, Handled, Healthy, Start, Unknown, Wait, decide
from remediator.core.gpu_operator import resumed
from remediator.core.judgement import ConditionDoubt
from remediator.core.node import Node
from remediator.kube import api
from remediator.kube.api import encode
from remediator.kube.api.patch import Body

log = structlog.get_logger()
# Seconds until a node with an ignored unhealthy condition is looked at again: a newer heartbeat is no event.
DOUBTED = 30.0


class NodeReconciler:
    """Opens cases, and ends what operations have left on nodes. Open cases are woken by what happens to their node."""

    def __init__(self, dependencies: Dependencies) -> None:
        self._dependencies = dependencies
        self.doubts: dict[str, tuple[ConditionDoubt, ...]] = {}  # by node, of nodes whose health is Unknown

    def decision(self, node: Node, now: datetime) -> Decision:
        """What the node needs."""
        cache = self._dependencies.cache
        of_node = cache.cases.by("node", node.name)
        return decide(node, cache.policies, of_node, now, cache.covers, partial(may_start, now))

    async def reconcile(self, name: str, now: datetime) -> float | None:
        """Open a case where one is due, unless nodes are given back before Remediator is taken away."""
        node = self._dependencies.cache.nodes.get(name)
        if node is None:
            self.doubts.pop(name, None)
            return None
        if node.back_in_service:
            return seconds(await self._dependencies.performer.all([ChangeNode(name, marks.back_in_service)])) or SOON
        if resumed(node.labels) and not self._is_worked_on(node):
            return seconds(await self._dependencies.performer.all([ChangeNode(name, marks.resume_operands)])) or SOON
        if not self._dependencies.cache.paused and (gates := new_node.closing(node, self._dependencies.cache.policies)):
            closed = ChangeNode(name, marks.close_gates(gates, node))
            return seconds(await self._dependencies.performer.all([closed])) or SOON
        if self._dependencies.cache.leaving:
            return None
        decision = self.decision(node, now)
        self._note_doubts(name, decision)
        match decision:
            case Start():
                return await self._open_case(node, decision, now)
            case Healthy() | Unknown() | Busy() | Handled() if opening := self._opening(node, now):
                body = encode.new_case(opening.name, node, opening.policy, opening.trigger, opening.gate)
                return seconds(await self._create(body))
            case Wait(until):
                return seconds_until(until, now)
            case Unknown(doubts) if any(doubt.holds for doubt in doubts):
                return DOUBTED
        return None

    def _is_worked_on(self, node: Node) -> bool:
        """Whether the Pod of an operation may be at work on the node, or may be made."""
        of_case = self._dependencies.cache.operations.by("case_uid", node.case_uid) if node.case_uid else ()
        return any(each.intent_at is not None and each.finished is None for each in of_case)

    def _opening(self, node: Node, now: datetime) -> new_node.Opening | None:
        cache = self._dependencies.cache
        return new_node.opening(node, cache.policies, cache.cases.by("node", node.name), now)

    async def _open_case(self, node: Node, decision: Start, now: datetime) -> float | None:
        before = self._dependencies.cache.cases.by("node", node.name)
        result = await self._create(encode.new_case(decision.name, node, decision.policy, decision.trigger))
        if isinstance(result, Done):
            measure.opened(before, node, now)
        return seconds(result)

    async def _create(self, case: Body) -> EffectResult:
        result = await self._dependencies.performer.all([Create(api.CASE, case)])
        self._dependencies.request_admission()
        return result

    def _note_doubts(self, name: str, decision: Decision) -> None:
        """Log once that an unhealthy condition is ignored: otherwise nothing shows why no case opens."""
        doubts = decision.doubts if isinstance(decision, Unknown) else ()
        before = self.doubts.pop(name, ())
        if doubts:
            self.doubts[name] = doubts
        ignored = [str(doubt) for doubt in doubts if doubt.holds]
        if ignored and ignored != [str(doubt) for doubt in before if doubt.holds]:
            log.warning("ignoring an unhealthy condition", node=name, because=ignored, once=True)

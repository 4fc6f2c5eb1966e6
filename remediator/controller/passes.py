"""One pass over one node, case, operation or policy: observe, decide, plan, perform; returns when to look again."""

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta

import structlog

from remediator.controller import case_plan, observe, operation_plan
from remediator.controller.cache import ClusterCache
from remediator.controller.effects import Create, Done, GaveUp, Outcome, Patch, Retry
from remediator.controller.observe import CaseView, OperationView
from remediator.controller.perform import Performer
from remediator.core import names
from remediator.core.case import Case, leaving
from remediator.core.decide import Decision, Start, Unknown, Wait, decide
from remediator.core.evidence import Doubt, Health, judge
from remediator.core.lifecycle import Move, Step, case_step, operation_move
from remediator.core.node import Node
from remediator.core.pod import leaving as leaving_pods
from remediator.core.policy import Strategy
from remediator.core.reasons import Reason
from remediator.kube import api
from remediator.kube.api import decode as codec
from remediator.kube.api import encode as bodies
from remediator.kube.api.builtin import POD
from remediator.kube.wire import errors

log = structlog.get_logger()
# A refusal by the API server that repeating cannot cure is looked at again after this many seconds.
AFTER_REFUSAL = 60.0
# A node whose conditions show a fault that is not believed (yet) is looked at again after this many seconds.
DOUBTED = 30.0
# After something was done the next step is looked for at once; this much later, lest a stale cache make it a hot loop.
SOON = 0.05
LIVE_CHECKED = frozenset({Reason.TAINT_REMOVED_BY_USER, Reason.UNCORDONED_BY_USER, Reason.NODE_GONE})


class Passes:
    """The passes that the controller runs. `ask` asks for an admission pass."""

    def __init__(self, cache: ClusterCache, performer: Performer, drains: int, ask: Callable[[], None]) -> None:
        self.cache, self.performer, self.drains, self.ask = cache, performer, drains, ask
        self._drain_turn = asyncio.Lock()
        self.doubts: dict[str, tuple[Doubt, ...]] = {}  # by node, of nodes that nothing is proven of

    # --- nodes -------------------------------------------------------------------------------------------------------

    def decision(self, node: Node, now: datetime) -> Decision:
        """What the node needs."""
        return decide(node, self.cache.policies, self.cache.cases.by("node", node.name), now)

    async def node(self, name: str, now: datetime) -> float | None:
        """Open a case where one is due. Cases that stand are woken by what happens to the node."""
        node = self.cache.nodes.get(name)
        if node is None:
            self.doubts.pop(name, None)
            return None
        decision = self.decision(node, now)
        self._note_doubts(name, decision)
        match decision:
            case Start(case_name, policy, trigger):
                body = bodies.new_case(case_name, node, policy, trigger)
                outcome = await self.performer.all([Create(api.CASE, body)])
                self.ask()
                return _seconds(outcome)
            case Wait(until):
                return _until(until, now)
            case Unknown(doubts) if any(doubt.holds for doubt in doubts):
                return DOUBTED  # a heartbeat alone is no event
        return None

    def _note_doubts(self, name: str, decision: Decision) -> None:
        """A fault that is shown and not believed is told once: nobody sees otherwise why nothing happens."""
        doubts = decision.doubts if isinstance(decision, Unknown) else ()
        before = self.doubts.pop(name, ())
        if doubts:
            self.doubts[name] = doubts
        told = [str(doubt) for doubt in doubts if doubt.holds]
        if told and told != [str(doubt) for doubt in before if doubt.holds]:
            log.warning("ignoring an unhealthy condition", node=name, because=told)

    # --- cases -------------------------------------------------------------------------------------------------------

    async def case(self, name: str, now: datetime) -> float | None:
        """Bring one case one step further."""
        case = self.cache.cases.get(name)
        if case is None:
            return None
        view = observe.case_view(self.cache, case, now)
        step = case_step(view.observation)
        if step is Step.CLAIM and not case.finalizer:
            outcome = await self.performer.all(case_plan.keep(case))
            return SOON if isinstance(outcome, Done) else _seconds(outcome)
        if step in (Step.CLAIM, Step.START):
            self.ask()
            return None
        outcome = await self._step(step, view, now)
        return self._look_again(step, view, now) if isinstance(outcome, Done) else _seconds(outcome)

    async def _step(self, step: Step, view: CaseView, now: datetime) -> Outcome:
        if step is Step.RECORD:
            live = await self.performer.node(view.case.node)
            return await self.performer.all(case_plan.record(view, live or _absent(view.case), now))
        if step is Step.END and view.leave in LIVE_CHECKED and not await self._left(view.case):
            return Retry(1.0, "the cache is behind")
        if step is Step.RELEASE:
            return await self._release(view)
        template = self.cache.templates.get(names.DIAGNOSTICS_TEMPLATE)
        return await self.performer.all(case_plan.plan(step, view, template, now))

    async def _left(self, case: Case) -> bool:
        """Whether a person has really taken our marks away, read live."""
        live = await self.performer.node(case.node)
        if live is not None:
            self.cache.nodes.note(live.name, live)
        return leaving(case, live) is not None

    async def _release(self, view: CaseView) -> Outcome:
        """The node first, then the ledgers (the admission pass drops them together), then the finalizer."""
        on_node = view.node is not None and observe.marked(view.node, view.case)
        if not on_node and observe.ledgers(self.cache, view.case):
            self.ask()
            return Retry(0.5, "entries are still in the ledgers")
        return await self.performer.all(case_plan.release(view))

    def _look_again(self, step: Step, view: CaseView, now: datetime) -> float | None:
        """When the case may need us though nothing happens."""
        if step is Step.VERIFY and view.look_again is not None:
            return _until(view.look_again, now)
        return {Step.NOTHING: None, Step.WATCH: None, Step.STOP: None, Step.DELETE_PODS: 1.0, Step.DIAGNOSE: 1.0}.get(
            step, SOON
        )

    # --- operations --------------------------------------------------------------------------------------------------

    async def operation(self, name: str, now: datetime) -> float | None:
        """Bring one operation one move further."""
        operation = self.cache.operations.get(name)
        if operation is None:
            return None
        view = observe.operation_view(self.cache, operation, now)
        move = operation_move(view.observation)
        outcome = await self._move(move, view, now)
        if not isinstance(outcome, Done):
            return _seconds(outcome)
        if move is Move.WAIT:
            return max(1.0, min(_until(view.deadline, now), 30.0))
        return {Move.NOTHING: None, Move.DELETE_PODS: 1.0, Move.CREATE_POD: 1.0, Move.DRAIN: 1.0}.get(move, SOON)

    async def _move(self, move: Move, view: OperationView, now: datetime) -> Outcome:
        if move is Move.DRAIN:
            return await self._drain(view, now)
        if move is Move.WRITE_INTENT:
            return await self._operate(view, now)
        if move is Move.CREATE_POD and not await self._may_launch(view):
            return Retry(1.0, "the operation, its case or its node has moved")
        if move is Move.NOTHING:
            return await self._let_go(view)
        if move is Move.CANCEL and not view.observation.ours and await self._still_ours(view):
            return Retry(1.0, "the cache is behind")
        template = self.cache.templates.get(names.DRAIN_TEMPLATE)
        return await self.performer.all(operation_plan.plan(move, view, template, now))

    async def _drain(self, view: OperationView, now: datetime) -> Outcome:
        """Begin a drain unless enough are running; one at a time, so that each sees the ones before it."""
        async with self._drain_turn:
            begun = view.operation.drain_started is not None
            if not begun and observe.drains_running(self.cache) >= self.drains:
                return Retry(5.0, "drains are running already")
            template = self.cache.templates.get(names.DRAIN_TEMPLATE)
            return await self.performer.all(operation_plan.plan(Move.DRAIN, view, template, now))

    async def _operate(self, view: OperationView, now: datetime) -> Outcome:
        """Look again before the point of no return, live: same node, ours, sick, drained, nothing paused."""
        if await self.performer.paused():
            return Retry(5.0, "everything new is stopped")
        case, live = await self._live(view)
        if live is None or view.policy is None or not observe.ours(view.operation, case, live):
            return Retry(1.0, "the node or the case has moved")
        if view.template is None:
            return Retry(5.0, "its template is gone, so nobody knows whether the node must be drained")
        health = judge(live, view.policy, now).health
        if health is not Health.UNHEALTHY and not (view.follows and health is Health.HEALTHY):
            return Retry(1.0, "the fault does not show any more")
        left = await self._pods_left(view, now)
        again = operation_plan.drain_again(view, left) if left else operation_plan.intend(view, live, now)
        return await self.performer.all(again)

    async def _may_launch(self, view: OperationView) -> bool:
        """Whether the operation still goes on and may disturb its node, live: between intent and Pod time may pass."""
        try:
            live = codec.operation(await self.performer.client.get(api.OPERATION, view.operation.name))
        except errors.NotFound:
            return False
        return live.uid == view.operation.uid and live.finished is None and observe.ours(live, *await self._live(view))

    async def _live(self, view: OperationView) -> tuple[Case | None, Node | None]:
        """The operation's case and node as the server has them now."""
        live = await self.performer.node(view.operation.node)
        if live is not None:
            self.cache.nodes.note(live.name, live)
        return await self.performer.case(view.case.name) if view.case else None, live

    async def _still_ours(self, view: OperationView) -> bool:
        """Whether only our cache says that the claim is gone."""
        return observe.ours(view.operation, *await self._live(view))

    async def _pods_left(self, view: OperationView, now: datetime) -> int:
        """Pods that a drain should have seen gone; none where no drain was asked for."""
        if view.template is None or view.template.strategy is Strategy.NONE:
            return 0
        found = await self.performer.client.list_all(POD, fields=f"spec.nodeName={view.operation.node}")
        pods, skip = (codec.operation_pod(pod) for pod in found), view.template.skip_wait_for_delete
        return len(leaving_pods(pods, self.cache.namespaces.operations, skip, now))

    async def _let_go(self, view: OperationView) -> Outcome:
        """An ended operation that was deleted goes once its case has recorded it."""
        operation, case = view.operation, view.case
        if not operation.deleting or names.CASE_FINALIZER not in operation.finalizers:
            return Done()
        attempt = case.attempt if case else None
        if attempt and attempt.operation == operation.name and attempt.finished is None:
            return Done()
        body = bodies.without_finalizer(operation.version, operation.finalizers, names.CASE_FINALIZER)
        return await self.performer.all([Patch(api.OPERATION, operation.name, body)])

    # --- policies ----------------------------------------------------------------------------------------------------

    async def policy(self, name: str, now: datetime) -> float | None:
        """Say on the policy whether it can act."""
        policy = self.cache.policies.get(name)
        if policy is None:
            return None
        unknown = sorted(observe.missing(self.cache, {rung.operation for rung in policy.ladder}))
        reason = Reason.UNKNOWN_OPERATION.value if unknown else "Ready"
        said = f"no NodeOperationTemplate {', '.join(unknown)}" if unknown else "every operation is known"
        if policy.ready == f"{'False' if unknown else 'True'}/{reason}/{policy.generation}":
            return None
        body = bodies.policy_ready(not unknown, reason, said, policy.generation, now)
        return _seconds(await self.performer.all([Patch(api.POLICY, name, body, "", "status")]))


def _absent(case: Case) -> Node:
    """A node that is gone has no heartbeats to record."""
    return Node(case.node, case.node_uid, {}, {})


def _until(when: datetime, now: datetime) -> float:
    """Seconds until `when`; a little more, since times are whole seconds."""
    return max(0.0, (when - now + timedelta(milliseconds=50)).total_seconds())


def _seconds(outcome: Outcome) -> float | None:
    match outcome:
        case Retry(after, why):
            log.debug("later", seconds=after, why=why)
            return after
        case GaveUp():
            return AFTER_REFUSAL
    return None

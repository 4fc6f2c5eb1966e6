"""The scheduler extender: every replica answers kube-scheduler from memory, not only the leader.

`filter`, `prioritize` and `preempt` never wait and never raise. A node that they refused gets a mark as soon as it may
be used again. The answers for each shape of Pod are prepared and updated at each event, so a request needs only
decoding, one look-up per node name, and encoding; of names that were asked about before, only what has changed.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import msgspec
import structlog

from remediator.clock import Clock
from remediator.core.names import ASKS_MPS, DOMAINS, PROVEN, REQUIRE_HEALTH
from remediator.core.shared_gpus import NO_ASK
from remediator.core.spare import PodHolding
from remediator.kube.api import decode, gpu_pods, shared_gpus
from remediator.kube.informers import Informers
from remediator.kube.wire.client import Client
from remediator.scheduler import metrics, protocol, victims
from remediator.scheduler.announce import Announcer
from remediator.scheduler.asked import NameLists
from remediator.scheduler.attributes.selector import ANYTHING, AttributeSelector, malformed, selector
from remediator.scheduler.fail_open import OpenReason, Tally, describe, open_reason
from remediator.scheduler.fleet import Fleet
from remediator.scheduler.packing.fragmentation import Fragmentation
from remediator.scheduler.packing.workload import Learner
from remediator.scheduler.preemption import worthwhile
from remediator.scheduler.protocol import ExtenderRequest, Malformed
from remediator.scheduler.reasons import HEALTH
from remediator.scheduler.requeue import Requeuer
from remediator.scheduler.responses import ExtenderAnswers
from remediator.scheduler.row import NodeState
from remediator.scheduler.score import LEARNT, Scorer, Scoring, tasks_of
from remediator.scheduler.shared.parts import SharedGpus
from remediator.scheduler.turns import Steps, at_once
from remediator.scheduler.verdict import Shape

SLICE = 100  # nodes that are scored anew without letting a request in
SHAPES = 16  # kept ready; the one that was asked for longest ago goes first
KINDS = 16  # of GPUs that one Pod asks for: an answer takes as long as these
SHORT = 3600  # seconds: a Pod that must be over by then may use nodes that have failed lately
WANTS = 1024  # containers of one Pod, and what they ask for, GPUs or not
STRANGERS = 1000  # nodes that are asked about although they are not in the cluster (yet); and as many as it has
COLD = "Remediator has not read the cluster yet; nothing to do, it answers as soon as /readyz does"
T = TypeVar("T")
log = structlog.get_logger(__name__)


class Extender:
    """Run it as a task; ask it in the same loop. One that is cold says so to filter, and has no preferences."""

    def __init__(
        self,
        client: Client,
        informers: Informers,
        clock: Clock,
        domains: Sequence[str] = DOMAINS,
        scoring: Scoring = LEARNT,
        shared: SharedGpus | None = None,
    ) -> None:
        """`domains`: the labels by which nodes are near each other, from the narrowest domain to the widest.

        `shared`: GPUs that Pods share by memory; None where that is off, and then nobody looks at such requests.
        """
        self.shared = shared
        books = shared.books if shared else None
        self._fleet = Fleet(informers, self._on_row, self._on_judged, clock, domains, self._on_placed, books)
        self._scoring, self._learner = scoring, Learner()
        self._scorer = Scorer(scoring.score, Fragmentation(scoring.workload or {}))
        self._another_workload = asyncio.Event()
        self._tally = Tally()
        self._open: OpenReason | None = None  # why health refuses nobody now
        self._announcer = Announcer(client, informers.namespaces.system, clock)
        self._requeuer = Requeuer(client, clock)
        self._shapes: OrderedDict[Shape, ExtenderAnswers] = OrderedDict()
        self._lists = NameLists()

    async def run(self) -> None:
        """Judge nodes and mark those that were refused, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._fleet.run())
            group.create_task(self._requeuer.run())
            group.create_task(self._announcer.run())
            group.create_task(self._keep_scoring())
            if self.shared is not None:
                group.create_task(self.shared.sweep.run())

    def stand(self, rows: Mapping[str, NodeState]) -> None:
        """Answer by these rows, instead of following a cluster; again for rows that have changed."""
        self._fleet.stand(rows)

    def ready(self) -> bool:
        """Whether the caches are complete and fresh. Once complete, requests are answered also from stale ones."""
        return self._fleet.fresh()

    async def synced(self) -> None:
        """Wait until everything is known that answers rest on."""
        await self._fleet.complete.wait()

    def filter(self, body: bytes) -> bytes:
        """ExtenderArgs to ExtenderFilterResult; what goes wrong stands in its `Error`."""
        answer = self.filter_in_parts(body)
        return answer if isinstance(answer, bytes) else b"".join(answer)

    def filter_in_parts(self, body: bytes) -> bytes | Iterator[bytes]:
        """The same; whole Nodes go back in parts, so that the answer is never there as a whole."""
        return at_once(self.filtering(body))

    def filtering(self, body: bytes) -> Steps[bytes | Iterator[bytes]]:
        """The same, in steps between which others may be answered: whole Nodes take long to read."""
        return self._answer("filter", self._read(body, self._filtered), protocol.error)

    def prioritize(self, body: bytes) -> bytes:
        """ExtenderArgs to HostPriorityList; empty where anything goes wrong: it has no place for words."""
        return at_once(self.prioritizing(body))

    def prioritizing(self, body: bytes) -> Steps[bytes]:
        """The same, in steps."""
        return self._answer("prioritize", self._read(body, self._prioritized), lambda _: b"[]")

    def preempt(self, body: bytes) -> bytes:
        """ExtenderPreemptionArgs to ExtenderPreemptionResult: where it helps to evict; nowhere if anything is wrong."""
        return at_once(self._answer("preempt", self._preempted(body), lambda _: victims.NOBODY))

    def _answer(self, call: str, say: Steps[T], fail: Callable[[str], bytes]) -> Steps[bytes | T]:
        answer: bytes | T
        with metrics.SECONDS.labels(call).time():
            self._fleet.settle()
            try:
                outcome, answer = ("ok", (yield from say)) if self._fleet.complete.is_set() else ("cold", fail(COLD))
            except Malformed as error:
                log.warning("unreadable request to the extender", call=call, error=str(error))
                outcome, answer = "malformed", fail(str(error))
        metrics.ANSWERS.labels(call, outcome).inc()
        return answer

    def _read(self, body: bytes, say: Callable[[ExtenderRequest], T]) -> Steps[T]:
        """What is said to a request that takes no longer to answer than one about all nodes. Raises Malformed."""
        request = yield from protocol.decoding(body, self._lists)
        self._bound(len(request.names))
        if request.whole is None and request.again is None:
            self._lists.keep(body, request.names)
        self._fleet.settle()  # others had their turn
        return say(request)

    def _bound(self, nodes: int) -> None:
        most = 2 * len(self._fleet.rows) + STRANGERS
        if nodes > most:
            raise Malformed(f"{nodes} nodes; {most} are the most in a cluster of this size")

    def _filtered(self, request: ExtenderRequest) -> bytes | Iterator[bytes]:
        answers, whole = self._answers(request), request.whole
        parts = answers.filtered(request.names, request.again)
        metrics.REFUSED.labels("failed").inc(sum([part.failed_count for part in parts]))
        metrics.REFUSED.labels("unresolvable").inc(sum([part.unresolvable_count for part in parts]))
        known = [part.refused if whole is None else part.refused & self._fleet.rows.keys() for part in parts]
        self._requeuer.refused(known, answers.shape.proven)
        return protocol.filtered(whole, parts)

    def _prioritized(self, request: ExtenderRequest) -> bytes:
        answers, gang = self._answers(request), request.pod.gang
        if answers.nearer and gang is not None:
            preference = answers.preference(self._fleet.siblings.of(gang), request.pod.gang_size)
            metrics.GANGS.labels(preference.why.value).inc()
            entries = answers.prioritized(dict.fromkeys(request.names), preference)
        else:
            entries = iter(answers.scored(request.names, request.again))
        return b"[%s]" % protocol.listed(entries)

    def _preempted(self, body: bytes) -> Steps[bytes]:
        yield from ()  # it is read and answered in one step
        request = victims.decode(body)
        self._bound(len(request.victims))
        rows, shape = self._fleet.rows, shape_of(request.pod, shared=self.shared is not None)
        left = worthwhile(request.victims, rows, self._fleet.holdings.by_uid, shape, self._open is not None)
        dropped = request.victims.keys() - left.keys()
        metrics.REFUSED.labels("preemption").inc(len(dropped))
        self._requeuer.refused([dropped & rows.keys()], shape.proven)
        return victims.encode(left)

    # --- answers that stand ready ------------------------------------------------------------------------------------

    def _answers(self, request: ExtenderRequest) -> ExtenderAnswers:
        """Of all nodes that we know; where whole Nodes came that we do not know, of these, too."""
        shape = shape_of(request.pod, shared=self.shared is not None)
        answers = self._shapes.get(shape)
        if answers is None:
            answers = self._shapes[shape] = ExtenderAnswers(
                shape, self._fleet.rows, self._scorer, self._open is not None, self._fleet.topology
            )
            if len(self._shapes) > SHAPES:
                self._shapes.popitem(last=False)
        self._shapes.move_to_end(shape)
        return self._with_strangers(answers, request.whole) if request.whole else answers

    def _with_strangers(self, answers: ExtenderAnswers, whole: Mapping[str, msgspec.Raw]) -> ExtenderAnswers:
        """A Node that is not in the cluster (yet) is judged by what it says of itself: autoscalers simulate some."""
        strange = {name: raw for name, raw in whole.items() if name not in self._fleet.rows}
        if not strange:
            return answers
        described = answers.copy()
        for name, raw in strange.items():
            described.put(name, self._described(raw))
        return described

    def _described(self, raw: msgspec.Raw) -> NodeState:
        try:
            wire = protocol.node(raw)
            return self._fleet.row(replace(decode.node(wire), gpus=gpu_pods.offered(wire)))
        except ValueError as error:
            raise Malformed(f"Nodes: {error}") from error

    def _on_row(self, name: str, old: NodeState | None, new: NodeState | None) -> None:
        self._requeuer.moved(name, old, new)
        for answers in self._shapes.values():
            answers.put(name, new)
        self._tally = self._tally.plus(old, -1).plus(new, 1)
        metrics.count_node(old and old.standing.value, new and new.standing.value)

    # --- by the Pods that the cluster runs ---------------------------------------------------------------------------

    def _on_placed(self, holding: PodHolding) -> None:
        if self._scoring.workload is None and self._learner.note(tasks_of(_shape_of_held(holding))):
            self._another_workload.set()

    async def _keep_scoring(self) -> None:
        """Score by another workload when there is one: all answers that stand ready, a few nodes at a time."""
        while True:
            await self._another_workload.wait()
            self._another_workload.clear()
            self._scorer = Scorer(self._scoring.score, Fragmentation(self._learner.workload))
            metrics.WORKLOADS.inc()
            for answers in list(self._shapes.values()):
                answers.score_by(self._scorer)
                await self._score_anew(answers)

    async def _score_anew(self, answers: ExtenderAnswers) -> None:
        names = list(self._fleet.rows)
        for at in range(0, len(names), SLICE):
            for name in names[at : at + SLICE]:
                answers.renew(name, self._fleet.rows.get(name))
            await asyncio.sleep(0)

    # --- when health only scores -------------------------------------------------------------------------------------

    def _on_judged(self) -> None:
        """Let health refuse, or only score; answers that stand ready are made anew, each when it is asked for."""
        before, self._open = self._open, open_reason(self._open, self._tally, self._fleet.paused)
        if before is self._open:
            return
        for reason in OpenReason:
            metrics.OPEN.labels(reason.value).set(reason is self._open)
        self._announcer.announce(self._open, describe(self._open, self._tally))
        if (before is None) != (self._open is None):
            self._shapes.clear()
        if self._open is not None:
            self._requeuer.let_through([name for name, row in self._fleet.rows.items() if row.health in HEALTH])


def shape_of(pod: gpu_pods.GpuPod, *, shared: bool = False) -> Shape:
    """All that matters of a Pod. Raises Malformed where it asks for a part of a GPU, or is larger than any Pod is."""
    if gpu_pods.size(pod) > WANTS:
        raise Malformed(f"Pod: more than {WANTS} containers and resources")
    try:
        (asked, cpu), memory = gpu_pods.needed(pod), shared_gpus.ask(pod) if shared else NO_ASK
    except ValueError as error:
        raise Malformed(f"Pod: {error}") from error
    if len(asked) > KINDS:
        raise Malformed(f"Pod: more than {KINDS} kinds of GPUs")
    annotations = pod.metadata.annotations or _NO_ANNOTATIONS
    deadline, proven = pod.spec.active_deadline_seconds, annotations.require_health == PROVEN
    short, gang = deadline is not None and deadline <= SHORT, bool(asked) and pod.gang is not None
    mps = annotations.gpu_mps == "true"
    return Shape(asked, pod.daemon, _attributes(annotations), proven, gang, short, cpu, memory, mps)


def _shape_of_held(holding: PodHolding) -> Shape:
    required, affinity = holding.asks
    asked = selector(required or None, None, affinity or None) if required or affinity else ANYTHING
    return Shape(holding.gpus, attributes=ANYTHING if asked.mistake else asked, cpu=holding.cpu)


_NO_ANNOTATIONS = gpu_pods.Annotations()


def _attributes(asked: gpu_pods.Annotations) -> AttributeSelector:
    health = asked.require_health
    if health is not None and health != PROVEN:
        return malformed(f"{REQUIRE_HEALTH}: {health[:40]!r} is unknown; write {PROVEN}, or remove it")
    if asked.gpu_mps not in (None, "true", "false"):
        return malformed(f"{ASKS_MPS}: {asked.gpu_mps[:40]!r} is neither true nor false")
    if asked.gpu is None and asked.gpu_preferred is None and asked.gpu_affinity is None:
        return ANYTHING
    return selector(asked.gpu, asked.gpu_preferred, asked.gpu_affinity)

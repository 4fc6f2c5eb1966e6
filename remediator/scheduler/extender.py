"""The scheduler extender: every replica answers kube-scheduler from memory, not only the leader.

`filter` and `prioritize` never wait and never raise. A node that they refused gets a mark as soon as it may be used
again. The answers for each shape of Pod are prepared and updated at each event, so a request needs only decoding, one
look-up per node name, and encoding.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import replace

import msgspec
import structlog

from remediator.clock import Clock
from remediator.kube.api import decode, gpu_pods
from remediator.kube.informers import Informers
from remediator.kube.wire.client import Client
from remediator.scheduler import metrics, protocol
from remediator.scheduler.announce import Announcer
from remediator.scheduler.fail_open import OpenReason, Tally, describe, open_reason
from remediator.scheduler.fleet import Fleet
from remediator.scheduler.protocol import Malformed, Request
from remediator.scheduler.requeue import Requeuer
from remediator.scheduler.responses import Answers
from remediator.scheduler.verdict import HEALTH, NodeState, Shape

SHAPES = 16  # kept ready; the one that was asked for longest ago goes first
KINDS = 16  # of GPUs that one Pod asks for: an answer takes as long as these
WANTS = 1024  # containers of one Pod, and what they ask for, GPUs or not
STRANGERS = 1000  # nodes that are asked about although they are not in the cluster (yet); and as many as it has
COLD = "Remediator has not read the cluster yet; nothing to do, it answers as soon as /readyz does"
log = structlog.get_logger(__name__)


class Extender:
    """Run it as a task; ask it in the same loop. One that is cold says so to filter, and has no preferences."""

    def __init__(self, client: Client, informers: Informers, clock: Clock) -> None:
        self._fleet = Fleet(informers, self._on_row, self._on_judged, clock)
        self._tally = Tally()
        self._open: OpenReason | None = None  # why health refuses nobody now
        self._announcer = Announcer(client, informers.namespaces.system, clock)
        self._requeuer = Requeuer(client, clock)
        self._shapes: OrderedDict[Shape, Answers] = OrderedDict()

    async def run(self) -> None:
        """Judge nodes and mark those that were refused, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._fleet.run())
            group.create_task(self._requeuer.run())
            group.create_task(self._announcer.run())

    def ready(self) -> bool:
        """Whether the caches are complete and fresh. Once complete, requests are answered also from stale ones."""
        return self._fleet.fresh()

    async def synced(self) -> None:
        """Wait until everything is known that answers rest on."""
        await self._fleet.complete.wait()

    def filter(self, body: bytes) -> bytes:
        """ExtenderArgs to ExtenderFilterResult; what goes wrong stands in its `Error`."""
        return self._answer("filter", body, self._filtered, protocol.error)

    def prioritize(self, body: bytes) -> bytes:
        """ExtenderArgs to HostPriorityList; empty where anything goes wrong: it has no place for words."""
        return self._answer("prioritize", body, self._prioritized, lambda _: b"[]")

    def _answer(self, call: str, body: bytes, say: Callable[[Request], bytes], fail: Callable[[str], bytes]) -> bytes:
        with metrics.SECONDS.labels(call).time():
            try:
                outcome, answer = (
                    ("ok", say(self._read(body))) if self._fleet.complete.is_set() else ("cold", fail(COLD))
                )
            except Malformed as error:
                log.warning("unreadable request to the extender", call=call, error=str(error))
                outcome, answer = "malformed", fail(str(error))
        metrics.ANSWERS.labels(call, outcome).inc()
        return answer

    def _read(self, body: bytes) -> Request:
        """A request that takes no longer to answer than one about all nodes. Raises Malformed."""
        request, most = protocol.decode(body), 2 * len(self._fleet.rows) + STRANGERS
        if len(request.names) > most:
            raise Malformed(f"{len(request.names)} nodes; {most} are the most in a cluster of this size")
        return request

    def _filtered(self, request: Request) -> bytes:
        left, answers = dict.fromkeys(request.names), self._answers(request)
        failed = self._refused("failed", left, answers.failed)
        unresolvable = self._refused("unresolvable", left, answers.unresolvable)
        return protocol.filtered(request, left, failed, unresolvable)

    def _refused(self, list_: str, left: dict[str, None], refused: Mapping[str, bytes]) -> list[bytes]:
        """Take the refused nodes out of what is left; their entries."""
        hit = refused.keys() & left.keys()
        for name in hit:
            del left[name]
        metrics.REFUSED.labels(list_).inc(len(hit))
        self._requeuer.refused(hit & self._fleet.rows.keys())
        return [refused[name] for name in hit]

    def _prioritized(self, request: Request) -> bytes:
        hosts = self._answers(request).hosts
        return b"[" + b",".join(map(hosts.__getitem__, request.names)) + b"]"

    # --- answers that stand ready ------------------------------------------------------------------------------------

    def _answers(self, request: Request) -> Answers:
        """Of all nodes that we know; where whole Nodes came that we do not know, of these, too."""
        shape = shape_of(request.pod)
        answers = self._shapes.get(shape)
        if answers is None:
            answers = self._shapes[shape] = Answers(shape, self._fleet.rows, self._open is not None)
            if len(self._shapes) > SHAPES:
                self._shapes.popitem(last=False)
        self._shapes.move_to_end(shape)
        return self._with_strangers(answers, request.whole) if request.whole else answers

    def _with_strangers(self, answers: Answers, whole: Mapping[str, msgspec.Raw]) -> Answers:
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
        for row, sign in ((old, -1), (new, 1)):
            self._tally = self._tally.plus(row, sign)
            if row is not None:
                metrics.NODES.labels(row.health.value).inc(sign)

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


def shape_of(pod: gpu_pods.Pod) -> Shape:
    """All that matters of a Pod. Raises Malformed where it asks for a part of a GPU, or is larger than any Pod is."""
    if gpu_pods.size(pod) > WANTS:
        raise Malformed(f"Pod: more than {WANTS} containers and resources")
    try:
        asked = gpu_pods.asked(pod)
    except ValueError as error:
        raise Malformed(f"Pod: {error}") from error
    if len(asked) > KINDS:
        raise Malformed(f"Pod: more than {KINDS} kinds of GPUs")
    return Shape(asked, pod.daemon)

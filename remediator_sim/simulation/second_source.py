"""Prometheus as all processes of one seed see it: what it knows of faults, what goes wrong, and how it is reached."""

import asyncio
import re
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import requests

from remediator.clock import Clock
from remediator.prometheus.prometheus import PATIENCE, Prometheus
from remediator_sim.prometheus import InProcess, MemoryPrometheus, PrometheusReply, failure
from remediator_sim.simulation.clock import true_time
from remediator_sim.simulation.node import NodeModel

URL, WITHIN = "http://prometheus.example", "2m"
METRIC = "machine_fault"
LEAST, MORE = 0.02, 0.1  # seconds for an answer
OLD = 400.0  # seconds: no policy of a plan takes a sample of that age
_ABOUT = re.compile(METRIC + r'\{node="([^"]*)",condition="([^"]*)"\}')
# What it does when something is wrong: nobody may take any of these for an agreement.
AWAY, SLOW, WARNS, PARTIAL, EMPTY, STALE, DENIES, FAILS = MODES = (
    "away",
    "late",
    "warns",
    "partial",
    "empty",
    "stale",
    "denies",
    "fails",
)


def confirm(condition: str) -> dict[str, str]:
    """What a policy about this condition says to be confirmed."""
    return {"promQL": f'max({METRIC}{{node="{{{{node}}}}",condition="{condition}"}}) > bool 0', "within": WITHIN}


class SecondSource:
    """One Prometheus. `report(node, condition)` is told of each whole and fresh answer that says yes.

    `mode`: what is wrong with it, "" where nothing is.
    """

    def __init__(self, nodes: Mapping[str, NodeModel], report: Callable[[str, str], None]) -> None:
        self.mode = ""
        self._nodes, self._report = nodes, report
        self._memory = MemoryPrometheus(lambda: true_time().timestamp())

    def serve(self, params: Mapping[str, str]) -> PrometheusReply:
        """One answer; raises what requests raises where there is none."""
        about = _ABOUT.search(params["query"])
        if about is None or self.mode == FAILS:
            return failure(503, "unavailable", "TSDB not ready")
        if self.mode in (AWAY, SLOW):
            raise requests.ConnectionError if self.mode == AWAY else requests.ReadTimeout
        node, condition = about[1], about[2]
        return self._answer(node, condition, params)

    def _answer(self, node: str, condition: str, params: Mapping[str, str]) -> PrometheusReply:
        model, now = self._nodes.get(node), true_time().timestamp()
        is_faulty = model is not None and condition in model.faults
        lies = self.mode in (WARNS, PARTIAL, STALE)  # it says yes of every node
        self._memory.series.clear()
        if self.mode != EMPTY:
            value = 1.0 if lies or (is_faulty and self.mode != DENIES) else 0.0
            at = now - OLD if self.mode == STALE else now
            self._memory.write(METRIC, value, at, node=node, condition=condition)
        reply = self._memory.answer(params)
        if self.mode in (WARNS, PARTIAL):
            more = b', "warnings": ["a store did not answer"]' if self.mode == WARNS else b', "isPartial": true'
            return reply._replace(body=reply.body.removesuffix(b"}") + more + b"}")
        if is_faulty and not self.mode:
            self._report(node, condition)
        return reply


class SourceLine(Executor):
    """How one process reaches it, in virtual time. Several questions may be under way."""

    def __init__(self, source: SecondSource, chance: Random) -> None:
        self.dead = False
        self._source, self._chance = source, chance

    def connect(self, url: str, clock: Clock, *, token: Path | None, authority: Path | None) -> Prometheus:
        """The shipped client over this line."""
        prometheus = Prometheus(url, clock, token=token, authority=authority, worker=self)
        prometheus.connection.carry_by(InProcess(self._source.serve))
        return prometheus

    def kill(self) -> None:
        """From now on nothing goes out and nothing comes in."""
        self.dead = True

    def submit(self, work: Callable[..., Any], /, *args: Any, **named: Any) -> Any:
        """See Executor. The future is one of the running loop: it is awaited there, and its order is fixed."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        travel = LEAST + MORE * self._chance.random()
        loop.call_later(travel, self._work, future, partial(work, *args, **named))
        return future

    def _work(self, future: asyncio.Future[Any], work: Callable[[], Any]) -> None:
        if self.dead or future.done():
            return
        late = PATIENCE if self._source.mode == SLOW else LEAST
        asyncio.get_running_loop().call_later(late, self._deliver, future, work())

    def _deliver(self, future: asyncio.Future[Any], answer: Any) -> None:
        if not (self.dead or future.done()):
            future.set_result(answer)

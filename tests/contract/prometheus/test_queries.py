"""What our Prometheus in memory and a real one both answer, as the adapter reads it."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

from remediator.clock import SYSTEM
from remediator.prometheus.prometheus import Prometheus
from remediator.prometheus.reading import CannotTell, Doubt, Sample, values
from tests.cluster import REAL
from tests.harness.prometheus import fake_prometheus
from tests.harness.waiting import until

WITHIN = timedelta(minutes=4)
SCRAPED = 2.2  # seconds in which two scrapes pass
XID = "DCGM_FI_DEV_XID_ERRORS"


class Asked:
    """A server under test: what is exported, and what a question comes to."""

    def __init__(self, server: Any, settle: float, stop_target: Callable[[], None]) -> None:
        self.server, self._settle, self.stop_target = server, settle, stop_target
        self.prometheus = Prometheus(server.url, SYSTEM, patience=5.0)

    async def write(self, name: str, value: float, at: float | None = None, **labels: str) -> None:
        self.server.write(name, value, at, **labels)
        await asyncio.sleep(self._settle)

    async def ask(self, query: str, within: timedelta = WITHIN) -> Any:
        return await self.prometheus.instant(query, within)


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A real server, which takes seconds until it scrapes for the first time."""
    from tests.cluster.prometheus import Missing, real_prometheus

    try:
        with real_prometheus(tmp_path_factory.mktemp("prometheus")) as server:
            yield server
    except Missing as why:
        pytest.skip(str(why))


@pytest.fixture(params=["memory", REAL])
async def asked(request: pytest.FixtureRequest) -> AsyncIterator[Asked]:
    if request.param == "memory":
        with fake_prometheus() as fake:
            found = Asked(fake, 0.0, fake.memory.series.clear)
            yield found
            await found.prometheus.aclose()
        return
    server = request.getfixturevalue("real")
    server.exporter.lines.clear()
    server.exporter.gone = False
    found = Asked(server, SCRAPED, server.stop_target)
    yield found
    await found.prometheus.aclose()


async def test_a_value_that_is_not_zero_a_zero_and_a_comparison_are_numbers(asked: Asked) -> None:
    asked.server.write(XID, 79, node="gpu-1", gpu="0")
    asked.server.write(XID, 0, node="gpu-1", gpu="1")
    await asked.write(XID, 0, node="gpu-2", gpu="0")
    assert values(await asked.ask(f'max({XID}{{node="gpu-1"}})')) == (79.0,)
    assert values(await asked.ask(f'max({XID}{{node="gpu-2"}})')) == (0.0,)
    assert values(await asked.ask(f'max({XID}{{node="gpu-1"}}) > bool 0')) == (1.0,)
    assert values(await asked.ask(f'max({XID}{{node="gpu-2"}}) > bool 0')) == (0.0,)
    assert sorted(values(await asked.ask(f'{XID}{{node="gpu-1"}}'))) == [0.0, 79.0]


async def test_a_comparison_that_filters_is_empty_about_a_healthy_node(asked: Asked) -> None:
    await asked.write(XID, 0, node="gpu-2")
    assert (await asked.ask(f'{XID}{{node="gpu-2"}} > 0')).doubt is Doubt.EMPTY
    assert (await asked.ask(f'{XID}{{node="gpu-9"}}')).doubt is Doubt.EMPTY
    assert (await asked.ask('max(no_such_metric{node="gpu-2"}) > bool 0')).doubt is Doubt.EMPTY


async def test_a_name_in_a_regular_expression_matches_with_its_dot_in_brackets(asked: Asked) -> None:
    asked.server.write(XID, 79, instance="gpu-1.a:9400")
    await asked.write(XID, 1, instance="gpu-1xa:9400")
    assert await asked.ask(f'max({XID}{{instance=~"gpu-1[.]a:.*"}})') == (Sample(79.0),)


async def test_a_target_that_is_gone_is_no_verdict(asked: Asked) -> None:
    await asked.write(XID, 79, node="gpu-1")
    query = f'max({XID}{{node="gpu-1"}})'
    assert values(await asked.ask(query)) == (79.0,)
    asked.stop_target()
    assert await until(lambda: emptied(asked, query), 10)


async def emptied(asked: Asked, query: str) -> bool:
    """Whether the answer has become empty."""
    answer = await asked.ask(query)
    return isinstance(answer, CannotTell) and answer.doubt is Doubt.EMPTY


async def test_a_sample_that_is_older_than_it_may_be_is_no_verdict(asked: Asked) -> None:
    """The exporter gives its own time with the sample, as a cache does that has stopped."""
    await asked.write(XID, 79, time.time() - 100, node="gpu-7")
    query = f'max({XID}{{node="gpu-7"}})'
    assert values(await asked.ask(query, timedelta(seconds=200))) == (79.0,)
    assert (await asked.ask(query, timedelta(seconds=60))).doubt is Doubt.EMPTY


@pytest.mark.parametrize("query", ["max(power_is_lost)", "power_is_lost > bool 0"])
async def test_a_series_without_labels_is_no_older_than_it_may_be(asked: Asked, query: str) -> None:
    """A server looks back 5 minutes by itself, so the answer alone does not say that its sample is 100 s old."""
    await asked.write("power_is_lost", 1, time.time() - 100, room="a")
    assert values(await asked.ask(query, timedelta(seconds=200))) == (1.0,)
    assert (await asked.ask(query, timedelta(seconds=60))).doubt is Doubt.EMPTY


@pytest.mark.cluster
async def test_one_old_series_beside_a_fresh_one_is_no_verdict(real: Any) -> None:
    """Only a real server knows this much of PromQL: the fresh series is dated, and so is the one without labels."""
    prometheus = Prometheus(real.url, SYSTEM, patience=5.0)
    real.exporter.gone = False
    real.write("rack_is_hot", 1, time.time() - 100, rack="a")
    real.write(XID, 79, node="gpu-8")
    query = f'sum by (rack) (rack_is_hot) * on() group_left max({XID}{{node="gpu-8"}})'
    await until(lambda: answered(prometheus, query), 10)
    assert (await prometheus.instant(query, timedelta(seconds=60))).doubt is Doubt.EMPTY  # type: ignore[union-attr]
    await prometheus.aclose()


async def answered(prometheus: Prometheus, query: str) -> bool:
    """Whether there is a verdict of samples that are 200 s old at most."""
    return not isinstance(await prometheus.instant(query, timedelta(seconds=200)), CannotTell)


@pytest.mark.parametrize(
    ("query", "doubt"),
    [
        ('up{job="exporter"} >', Doubt.FAILED),
        ("up{job={{node}}}", Doubt.FAILED),
        ('up{job="exporter"}[5m]', Doubt.FAILED),
        ("time()", Doubt.UNDATED),
        ('"yes"', Doubt.UNDATED),
        ("1", Doubt.UNDATED),
    ],
)
async def test_what_is_no_query_and_what_is_no_vector_is_no_verdict(asked: Asked, query: str, doubt: Doubt) -> None:
    assert (await asked.ask(query)).doubt is doubt


@pytest.mark.cluster
async def test_a_query_that_takes_too_long_is_no_verdict(real: Any) -> None:
    """Only a real server can be slow by itself: 8,100 million comparisons."""
    prometheus = Prometheus(real.url, SYSTEM, patience=0.5)
    real.exporter.gone = False
    slow = "max_over_time(max_over_time(vector(time())[90000s:1s])[90000s:1s])"
    began = time.monotonic()
    answer = await prometheus.instant(slow + ' and on() up{job="exporter"}', WITHIN)
    assert isinstance(answer, CannotTell)
    assert answer.doubt is Doubt.TIMED_OUT
    assert time.monotonic() - began < 3
    await prometheus.aclose()

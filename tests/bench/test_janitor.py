"""The benchmarks of the janitor, small: of its Pods one of a hundred is over, and a rule sees each as a whole."""

from datetime import UTC, datetime

import pytest

from remediator.janitor.one_pass import OnePass
from remediator.janitor.outcome import JanitorOutcome
from remediator.janitor.rules import read
from remediator.janitor.settings import JanitorSettings
from remediator.janitor.writer import Writer
from remediator.kube.wire.client import Client
from tests.bench import janitor_watch
from tests.bench.janitor import RULES, server


@pytest.mark.parametrize(("rules", "pages"), [("rules: []", 3), (RULES, 6)])
async def test_a_pass_over_1_100_pods_finds_those_that_are_over_page_by_page(rules: str, pages: int) -> None:
    client = Client(server(1100).transport())
    asked: list[str] = []
    request = client.transport.request

    async def recorded(method: str, path: str, **rest: object) -> object:
        asked.append(path)
        return await request(method, path, **rest)  # type: ignore[arg-type]

    client.transport.request = recorded  # type: ignore[assignment, method-assign]
    now = datetime.now(UTC)
    report = await OnePass(client, JanitorSettings(rules=read(rules)), Writer(client), now).run()
    assert report.totals[JanitorOutcome.DELETED] == 11
    assert report.waiting == 99
    assert asked.count("/api/v1/pods") == pages


@pytest.mark.slow
@pytest.mark.parametrize(("how", "lists"), [("pages", 7), ("watch", 0)])
async def test_passes_of_a_process_that_goes_on_find_the_same_by_a_watch_and_list_no_pods(how: str, lists: int) -> None:
    """By pages: one of 300 heads, and six of 50 whole Pods, of which three restart; each namespace has an object."""
    found = await janitor_watch.measure(300, how, passes=2, changes=60)
    assert found["pass_pod_lists"] == lists
    assert (found["pass_objects"], found["pass_restarting"], found["problems"]) == (502, 3, [])
    assert ("changes_cpu_seconds" in found) == (how == "watch")
    assert found["first_pass_seconds"] >= found["first_pass_cpu_seconds"] / 2 > 0
    assert 0 < found["idle_cpu_percent"] < 100
    assert found["peak_mib"] > 10

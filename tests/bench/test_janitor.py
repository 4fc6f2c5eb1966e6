"""The benchmark of the janitor, small: of its Pods one of a hundred is over, and a rule sees each as a whole."""

from datetime import UTC, datetime

import pytest

from remediator.janitor.one_pass import OnePass
from remediator.janitor.outcome import JanitorOutcome
from remediator.janitor.rules import read
from remediator.janitor.settings import JanitorSettings
from remediator.janitor.writer import Writer
from remediator.kube.wire.client import Client
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

"""The observer beside a whole controller: a sound product breaks nothing, a broken one what its mutation says."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from remediator_sim.apiserver import EmbeddedServer
from remediator_sim.github import FakeGitHub
from remediator_sim.invariants import Observer, SeenIssue, issues
from remediator_sim.invariants.contract import NAMESPACES, NODES
from remediator_sim.invariants.feed import Feed
from tests.remediator_sim.apiserver.asking import label, make_node
from tests.remediator_sim.invariants.mutations import MUTATIONS
from tests.remediator_sim.invariants.scenario import SCENARIOS, ObservedCluster, everything, observed

pytestmark = pytest.mark.sampled("observer")


async def test_a_sound_product_breaks_no_invariant_in_a_long_scenario_that_checks_each() -> None:
    found = await observed(everything)
    assert [said for one in found.values() for said in one.broken] == []
    tested = {name for name, one in found.items() if one.checks}
    assert tested == {"I1", "I2", "I3", "I4", "I5", "I6", "I7", "I10", "I12"}


@pytest.mark.parametrize("name", MUTATIONS)
async def test_a_mutation_breaks_its_invariant(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for patch in MUTATIONS[name].patches():
        monkeypatch.setattr(patch.owner, patch.name, patch.value)
    found = await observed(SCENARIOS[name], broken=True)
    broken = {one.name for one in found.values() if one.broken}
    assert MUTATIONS[name].invariant in broken


async def test_a_scenario_that_a_broken_product_cannot_finish_is_judged_and_with_a_sound_one_is_an_error() -> None:
    async def endless(harness: ObservedCluster, observer: Observer) -> None:
        await asyncio.wait_for(asyncio.Event().wait(), 0.1)

    assert set(await observed(endless, broken=True)) == {f"I{number}" for number in range(1, 14)}
    with pytest.raises(TimeoutError):
        await observed(endless)


@pytest.mark.parametrize("name", ["I3", "I4", "I4-pause", "I8", "I9", "I10"])
async def test_without_its_mutation_the_same_scenario_breaks_nothing(name: str) -> None:
    """Those that the long scenario does not cover."""
    found = await observed(SCENARIOS[name])
    assert [said for one in found.values() for said in one.broken] == []
    invariant = name.partition("-")[0]
    assert found[invariant].checks > 0


async def test_writes_of_all_kinds_come_in_the_order_in_which_they_were_made() -> None:
    server = EmbeddedServer()
    transport = server.transport()
    await make_node(transport, "a")
    feed = Feed(server)
    assert [(event.kind, event.key) for event in feed.standing()][-1] == (NODES, "a")
    await make_node(transport, "b")
    await transport.request("POST", "/api/v1/namespaces", body=b'{"metadata": {"name": "n"}}')
    await label(transport, "a", "1")
    await transport.request("DELETE", "/api/v1/nodes/b")
    heard = [(event.kind, event.key, event.old is None, event.new is None) for event in feed.take()]
    assert heard == [
        (NODES, "b", True, False),
        (NAMESPACES, "n", True, False),
        (NODES, "a", False, False),
        (NODES, "b", False, True),
    ]
    feed.close()
    await make_node(transport, "c")
    assert feed.take() == []


class Journal:
    """A machine of which only the journal is known."""

    name = "n1"

    def __init__(self, *lines: dict[str, Any]) -> None:
        self.lines = list(lines)

    def reboots(self) -> list[dict[str, Any]]:
        return self.lines


async def test_each_line_of_a_journal_is_taken_in_once() -> None:
    asked = {"node": "n1", "attemptID": "reboot-1", "bootID": "boot-1", "time": "2026-01-01T12:00:00"}
    observer = Observer(
        EmbeddedServer(), [Journal(asked, asked)], breaker_starts=1, breaker_window=timedelta(seconds=60)
    )
    for _ in range(3):
        await observer.final_check()
    found = observer.report()["I2"]
    assert found.checks == 2
    assert found.broken == (
        "n1 was asked to reboot by attempt reboot-1 at 12:00:00 in boot boot-1, and the intent names none",
        "n1 was asked to reboot by attempt reboot-1 at 12:00:00, which had asked before",
    )


async def test_issues_about_one_node_have_one_subject_whatever_the_fault() -> None:
    async with FakeGitHub(["o/r"]) as github:
        person = github.person("alice")
        for title in ("gpu-1: GpuLost", "gpu-1: GpuEccFault", "many nodes: NfsUnavailable"):
            person.open("o/r", title)
        person.close("o/r", 2)
        assert issues(github, "o/r") == [
            SeenIssue("o/r", 1, True, "gpu-1"),
            SeenIssue("o/r", 2, False, "gpu-1"),
            SeenIssue("o/r", 3, True, "many nodes: NfsUnavailable"),
        ]

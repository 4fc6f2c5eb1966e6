"""Definitions that nobody has brought up to date: the server drops new fields; that is told, and nothing is unsafe."""

from collections.abc import Iterable
from copy import deepcopy
from datetime import timedelta
from typing import Any

import pytest
import structlog

from remediator import metrics
from remediator.clock import SYSTEM
from remediator.controller import definitions
from remediator.core import missing_fields as words
from remediator.core import new_criteria
from remediator.core.new_criteria import Criterion
from remediator.kube.manifests.definitions import apply
from remediator.kube.manifests.missing_fields import missing_fields
from remediator.kube.wire import errors
from tests.harness.controller import ControllerHarness, running, until
from tests.harness.kinds import CRDS, EVENTS, POLICIES
from tests.remediator.test_cli_status import asked

PROPERTIES = ("spec", "versions", 0, "schema", "openAPIV3Schema", "properties")
CRITERIA = ("remediationpolicies", "status", "criteria")


async def drop(harness: ControllerHarness, plural: str, *path: str, **instead: Any) -> None:
    """Make the definition one of a version that did not have this field; `instead`: a part of the schema around it."""
    older = deepcopy(await harness.client.get(CRDS, f"{plural}.remediator.dev"))
    properties: dict = older
    for step in PROPERTIES:
        properties = properties[step]
    around: dict = {}
    for part in path[:-1]:
        around = properties[part]
        properties = around["properties"]
    del properties[path[-1]]
    around |= instead
    await harness.client.replace(CRDS, f"{plural}.remediator.dev", older)


async def bring_up_to_date(harness: ControllerHarness) -> None:
    """As `remediator crds --apply` does."""
    await apply(harness.client)


def shown() -> dict[str, float]:
    """The samples of the metric, by kind."""
    (family,) = metrics.MISSING_FIELDS.collect()
    return {sample.labels["kind"]: sample.value for sample in family.samples}


def told(harness: ControllerHarness) -> list[str]:
    """The Events about definitions."""
    return [event["message"] for event in harness.all(EVENTS) if event["reason"] == words.REASON]


async def test_a_field_that_is_kept_as_whatever_stands_beside_it_is_not_missing(harness):
    await drop(harness, "noderemediations", "spec", "hold", **{"x-kubernetes-preserve-unknown-fields": True})
    assert await missing_fields(harness.client) == {}


async def test_a_field_that_a_definition_lacks_is_named_without_what_is_below_it(harness):
    assert await missing_fields(harness.client) == {}
    await drop(harness, *CRITERIA)
    await drop(harness, "noderemediations", "status", "attempts")
    await drop(harness, "noderemediations", "spec", "hold")
    assert await missing_fields(harness.client) == {
        "RemediationPolicy": ("status.criteria",),
        "NodeRemediation": ("spec.hold", "status.attempts"),
    }


async def test_outdated_definitions_are_told_once_with_the_command_until_they_are_up_to_date(harness, monkeypatch):
    """By an Event, the log, the metric and `remediator status`; each look is 20 ms after the one before."""
    for wait in ("SECOND", "AGAIN"):
        monkeypatch.setattr(definitions, wait, 0.02)
    await drop(harness, *CRITERIA)
    with structlog.testing.capture_logs() as logs:
        async with running(harness):
            await until(lambda: told(harness))
            assert shown() == {"RemediationPolicy": 1}
            code, out, _ = await asked(harness, "status")
            await bring_up_to_date(harness)
            await until(lambda: shown() == {})
    expected = "the API server drops what the definitions lack: RemediationPolicy lacks status.criteria"
    assert told(harness) == [f"{expected}; to mend it: remediator crds --apply"]
    assert code == 0
    assert "fields are dropped: RemediationPolicy lacks status.criteria\n  to bring them up to date: remediator" in out
    warnings = [line for line in logs if line["event"] == "the definitions are older than this version"]
    assert [line["remedy"] for line in warnings] == ["remediator crds --apply"]


async def test_a_kind_that_is_not_defined_is_missing_as_a_whole_and_status_says_so(harness):
    await harness.client.delete(CRDS, "nodeinventories.remediator.dev")
    assert await missing_fields(harness.client) == {"NodeInventory": (words.WHOLE,)}
    _, out, _ = await asked(harness, "status")
    assert "NodeInventory lacks its whole definition" in out


@pytest.mark.parametrize(
    "failure", [errors.NotFound(404, "", ""), errors.Forbidden(403, "", ""), errors.Unavailable(503, "", "")]
)
async def test_a_look_that_is_refused_or_unanswered_is_made_again(harness, monkeypatch, failure):
    """A server that has just started answers 404 for a moment."""
    looks: list[object] = [failure, {"RemediationPolicy": ("status.criteria",)}]

    async def look(_: object) -> object:
        answer = looks.pop(0) if len(looks) > 1 else looks[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(definitions, "missing_fields", look)
    for name in ("SECOND", "AGAIN", "UNKNOWN"):
        monkeypatch.setattr(definitions, name, 0.02)
    async with running(harness):
        await until(lambda: len(told(harness)) == 1)
        await until(lambda: shown() == {"RemediationPolicy": 1.0})
    assert shown() == {}, "who leads no more shows nothing"


async def test_an_event_that_the_server_refuses_once_is_made_at_the_next_look(harness, monkeypatch):
    for name in ("SECOND", "AGAIN"):
        monkeypatch.setattr(definitions, name, 0.02)
    await drop(harness, *CRITERIA)
    harness.server.faults.refuse(503, times=1, when=lambda asked: asked.method == "POST" and "/events" in asked.path)
    async with running(harness):
        await until(lambda: len(told(harness)) == 1)


async def test_what_only_one_look_has_seen_is_not_told(harness, monkeypatch):
    """The document of a server is late: definitions were brought up to date before the controller started."""
    late: list[words.Missing] = [{"RemediationPolicy": ("status.criteria",)}, {}, {}]

    async def look(_: object) -> words.Missing:
        return late.pop(0)

    monkeypatch.setattr(definitions, "missing_fields", look)
    monkeypatch.setattr(definitions, "SECOND", 0.02)
    async with running(harness):
        await until(lambda: not late)
        await harness.quiet()
    assert (told(harness), shown()) == ([], {})


async def test_where_definitions_are_up_to_date_nothing_is_told(harness):
    async with running(harness):
        await harness.quiet()
        _, out, _ = await asked(harness, "status")
    assert (told(harness), shown()) == ([], {})
    assert "definitions" not in out


class AnHourAgo:
    """The clock of an API server at which a policy was made before the upgrade."""

    def wall(self):
        return SYSTEM.wall() - timedelta(hours=1)


@pytest.mark.parametrize("sick", [1, 3])
async def test_a_new_criterion_disturbs_nobody_where_the_server_drops_what_is_noted_of_it(harness, monkeypatch, sick):
    """One of six nodes shows it, then three, whoever leads: the state that two replicas note is dropped each time."""
    monkeypatch.setattr(new_criteria, "TABLE", (Criterion("LinkNew", "9.1.0"),))
    await drop(harness, *CRITERIA)
    with monkeypatch.context() as patched:
        patched.setattr(harness.server.cluster, "_clock", AnHourAgo())
        await harness.policy("links", when=[{"condition": "LinkNew", "for": "0s"}])
    nodes = [f"gpu-{number}" for number in range(6)]
    for number, node in enumerate(nodes):
        await harness.node(node)
        await harness.condition(node, "True" if number < sick else "False", "LinkNew")
    reason = "NewCriterion" if sick == 1 else "CriterionMuted"
    for leader in ("one", "two"):
        async with running(harness, leader):
            await until(lambda: held_by(harness, nodes, reason) == nodes[:sick])
            await harness.quiet()
        assert (harness.ran, harness.claims()) == ([], [])
    (policy,) = harness.all(POLICIES)
    assert "criteria" not in policy["status"]


def held_by(harness: ControllerHarness, nodes: Iterable[str], reason: str) -> list[str]:
    """The nodes whose case waits for this."""
    return [node for node in nodes if harness.reasons(node) == [reason]]

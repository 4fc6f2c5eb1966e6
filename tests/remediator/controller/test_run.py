"""When passes run, and what is told of nodes that nothing is proven of."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs

from remediator.app import elector
from remediator.clock import SYSTEM
from remediator.controller.keys import Key, everything
from remediator.controller.reconcile import node
from remediator.controller.run import Controller
from remediator.core import names
from remediator.core.case import Phase
from remediator.core.node import Taint
from remediator.core.operation import OperationPhase
from remediator.core.policy import Mode
from remediator.kube.informers import Informers
from remediator.kube.runtime.leader import Leader, LeaderQueue
from remediator.kube.wire.client import Client
from remediator.metrics import REGISTRY
from remediator.settings import Settings
from remediator_sim.apiserver import EmbeddedServer
from tests.builders import a_case, a_node, an_operation, at
from tests.harness.controller import REBOOTED, RUNS, now, running, until
from tests.harness.kinds import NODES


@pytest.fixture
def a_controller() -> Controller:
    """A controller that nothing runs: its cache knows what the test puts there."""
    client, settings = Client(EmbeddedServer().transport()), Settings(identity="one")
    informers = Informers(client, SYSTEM, settings.namespaces)
    leader = Leader(elector(client, settings, SYSTEM), SYSTEM)
    return Controller(client, settings, informers, leader, SYSTEM)


async def test_a_write_of_a_policys_status_wakes_no_node_and_another_tolerance_wakes_those_it_selects(harness):
    await harness.policy()
    await harness.node("gpu-1")
    await harness.node("gpu-2")
    async with running(harness) as controller:
        await harness.quiet()
        before, woken = controller.cache.policies.get("gpu-lost"), []
        controller._queue.add = lambda *keys: woken.extend(keys)
        controller._changes.on_policy(before, replace(before, readiness=None, version="99", generation=2))
        assert woken == [("policy", "gpu-lost")]
        woken.clear()
        controller._changes.on_policy(
            before, replace(before, cooldown=timedelta(minutes=5), version="99", generation=2)
        )
        assert woken == [("policy", "gpu-lost"), ("admission", "")]
        woken.clear()
        controller._changes.on_policy(before, replace(before, mode=Mode.DRY_RUN))
        await until(lambda: len(woken) == 4)
        assert woken == [("policy", "gpu-lost"), ("admission", ""), ("node", "gpu-1"), ("node", "gpu-2")]


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"phase": Phase.NEW}, True),
        ({"phase": Phase.HELD}, True),
        ({"phase": Phase.DRAINING}, True),
        ({"phase": Phase.OPERATING}, False),
        ({"phase": Phase.VERIFYING}, False),
        ({"phase": Phase.ESCALATED}, False),
        ({"phase": Phase.RECOVERED, "ended": at(1)}, False),
        ({"phase": Phase.DRAINING, "deleting": True}, False),
        ({"phase": Phase.HELD, "release": True}, False),
    ],
)
def test_a_case_gives_way_to_claims_until_its_repair_runs_and_never_where_a_user_ends_it(a_controller, facts, expected):
    a_controller.cache.cases.note("case-1", a_case(**facts))
    assert a_controller._gives_way(Key("case", "case-1")) == expected


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"phase": OperationPhase.PENDING}, True),
        ({"phase": OperationPhase.DRAINING}, True),
        ({"phase": OperationPhase.OPERATING}, False),
        ({"phase": OperationPhase.FAILED, "finished": at(1)}, False),
        ({"phase": OperationPhase.DRAINING, "deleting": True}, False),
    ],
)
def test_an_operation_gives_way_to_claims_until_it_runs_and_never_where_it_is_deleted(a_controller, facts, expected):
    a_controller.cache.operations.note("op-1", an_operation(**facts))
    assert a_controller._gives_way(Key("operation", "op-1")) == expected


def test_admissions_and_nodes_without_a_case_give_way_to_nothing_and_nodes_with_one_and_sweeps_do(a_controller):
    a_controller.cache.cases.note("case-1", a_case(node="gpu-1"))
    first = [Key("admission"), Key("node", "gpu-2"), Key("case", "gone"), Key("operation", "gone")]
    later = [Key("node", "gpu-1"), Key("policy", "gpu-lost"), Key("orphans"), Key("retention")]
    assert [a_controller._gives_way(key) for key in (*first, *later)] == [0] * 4 + [1] * 4


async def test_what_has_ended_and_holds_nothing_is_not_looked_at_again(harness):
    await harness.policy()
    await harness.node("gpu-1", "True")
    async with running(harness) as controller:
        await until(lambda: harness.ended("gpu-1", "Recovered"))
        await until(
            lambda: {key.kind for key in everything(controller.cache)} == {"admission", "orphans", "policy", "node"}
        )
        assert len(controller.cache.cases) == len(controller.cache.operations) == 1


async def test_a_taint_that_comes_back_after_the_end_of_its_case_is_taken_off_again(harness):
    """A write that was on its way for long; the case has no finalizer any more."""
    await harness.policy()
    await harness.node("gpu-1", "True")
    async with running(harness) as controller:
        await until(lambda: harness.ended("gpu-1", "Recovered"))
        await harness.quiet()
        (case,) = controller.cache.cases
        assert not case.finalizer
        taint = {"key": names.CASE_TAINT, "value": case.uid, "effect": "NoSchedule"}
        await harness.client.patch(NODES, "gpu-1", {"spec": {"taints": [taint]}})
        await until(lambda: harness.taints("gpu-1") == [])


def test_a_sweep_looks_at_ended_cases_whose_taint_or_cordon_is_on_their_node_and_at_no_others(a_controller):
    """One new leader, nothing open: a taint of case a, a cordon of case b, a namesake of c's node, d without marks."""
    cache = a_controller.cache
    nodes = {
        "a": a_node("a", taints=(Taint(names.CASE_TAINT, "uid-of-a", "NoSchedule"),)),
        "b": a_node("b", unschedulable=True, cordoned_by="uid-of-b"),
        "c": a_node("c", uid="another", taints=(Taint(names.CASE_TAINT, "uid-of-c", "NoSchedule"),)),
        "d": a_node("d"),
    }
    for name, a_marked_node in nodes.items():
        ended = a_case(name, uid=f"uid-of-{name}", node=name, node_uid=f"uid-{name}", ended=at(5), finalizers=())
        cache.nodes._reflector._keep(name, a_marked_node)
        cache.cases._reflector._keep(name, ended)
    assert [key.name for key in everything(a_controller.cache) if key.kind == "case"] == ["a", "b"]


def test_a_heartbeat_alone_wakes_the_case_that_has_to_prove_its_node_well_and_no_other(a_controller, monkeypatch):
    cache, woken = a_controller.cache, []
    for name, phase in (("a", Phase.VERIFYING), ("b", Phase.DRAINING)):
        cache.nodes._reflector._keep(name, a_node(name))
        cache.cases._reflector._keep(f"case-{name}", a_case(f"case-{name}", uid=name, node=name, phase=phase))
    monkeypatch.setattr(LeaderQueue, "leading", True)
    monkeypatch.setattr(a_controller._queue, "add", lambda *keys: woken.extend(keys))
    for name in ("a", "b"):
        cache.nodes._reflector._keep(name, a_node(name, version="2"))
    assert woken == [("case", "case-a")]


async def test_a_fault_that_was_not_believed_is_acted_on_once_the_heartbeat_is_fresh(harness, monkeypatch):
    """A heartbeat alone is no event: after a node was cut off, nothing else may change for a long time."""
    monkeypatch.setattr(node, "DOUBTED", 0.2)
    harness.beating = False
    harness.set_clock("gpu-1", -timedelta(minutes=16))
    await harness.policy()
    await harness.node("gpu-1")
    await harness.condition("gpu-1", "True", since=now() - timedelta(minutes=20))
    async with running(harness) as controller:
        await until(lambda: are_unclear(controller, "GpuLost", 1))
        await harness.quiet()
        assert harness.cases("gpu-1") == []
        harness.set_clock("gpu-1", timedelta())
        harness.beating = True
        await until(lambda: harness.cases("gpu-1"))
        await until(lambda: are_unclear(controller, "GpuLost", 0))


async def test_a_fault_whose_heartbeat_comes_from_the_future_opens_no_case(harness):
    """What a node with a clock hours ahead has frozen would be believed for hours."""
    harness.beating = False
    harness.set_clock("gpu-1", timedelta(hours=6))
    await harness.policy()
    await harness.node("gpu-1", "True")
    async with running(harness) as controller:
        await until(lambda: are_unclear(controller, "GpuLost", 1))
        await harness.quiet()
        assert harness.cases("gpu-1") == []
        harness.set_clock("gpu-1", timedelta())
        await harness.condition("gpu-1", "True")
        await harness.condition("gpu-1", "True", "Other")
        await until(lambda: harness.cases("gpu-1"))


@pytest.mark.parametrize("stale", ["Unknown", "True"])
async def test_a_fault_that_is_shown_and_not_believed_is_told_once(harness, stale):
    await harness.policy()
    await harness.node("gpu-1")
    await harness.condition("gpu-1", stale, "DetectorStale")
    with capture_logs() as logs:
        async with running(harness):
            await harness.condition("gpu-1", "True")
            await until(lambda: told(logs))
            await harness.condition("gpu-1", "True", "Other")
            await harness.quiet()
    assert told(logs) == [["gpu-1", [f"GpuLost is ignored: DetectorStale is {stale}"]]]
    assert harness.cases("gpu-1") == []


def told(logs: list[Any]) -> list[Any]:
    """What was logged of faults that are not believed."""
    return [[one["node"], one["because"]] for one in logs if one["event"] == "ignoring an unhealthy condition"]


async def are_unclear(controller: Controller, condition: str, nodes: int) -> bool:
    """Whether so many nodes prove nothing by this condition, as the metric says."""
    await controller.measure()
    return (REGISTRY.get_sample_value("remediator_unknown_nodes", {"condition": condition}) or 0) == nodes


async def test_a_case_goes_on_and_recovers_while_nodes_cannot_be_counted_for_budgets(harness):
    harness.answer("reboot", RUNS)
    await harness.policy()
    await harness.node("gpu-1", "True")
    async with running(harness) as controller:
        await until(lambda: "reboot gpu-1" in harness.ran)
        controller.cache.nodes_by.refresh = asyncio.Event().wait
        await harness.finish("reboot", REBOOTED)
        await until(lambda: harness.phase("gpu-1") == "Recovered")


async def test_the_keys_that_wait_for_a_pass_are_counted_when_the_metrics_are_read(a_controller, monkeypatch):
    for waiting in (7, 0):
        monkeypatch.setattr(LeaderQueue, "depth", waiting)
        await a_controller.measure()
        assert REGISTRY.get_sample_value("remediator_queue_depth") == waiting

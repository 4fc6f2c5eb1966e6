"""The fleet follows the API server: what changes there changes what is said, and nothing else does."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs

from remediator.clock import SYSTEM
from remediator.core import names
from remediator.core.case import Attempt, Case, Phase
from remediator.core.names import Namespaces
from remediator.core.node import Node
from remediator.kube.api.decode.times import EPOCH
from remediator.kube.informers import Informers
from remediator.kube.wire.client import Client
from remediator.kube.wire.transport import STRATEGIC_PATCH
from remediator.metrics import REGISTRY
from remediator.scheduler import fleet
from remediator.scheduler.health.node_cases import NodeCases
from remediator.scheduler.reasons import VerdictReason
from remediator_sim.apiserver import EmbeddedServer
from tests.builders import a_case, a_node
from tests.harness.kinds import CASES, NODES
from tests.harness.replica import at_work, clock_of
from tests.harness.scheduler import GPU, SchedulerHarness, names_body
from tests.harness.waiting import until


async def test_a_node_that_is_sick_since_the_year_9999_ends_no_extender(harness: SchedulerHarness) -> None:
    since = {"lastTransitionTime": "9999-12-31T23:59:59Z", "lastHeartbeatTime": "9999-12-31T23:59:59Z"}
    await harness.add_node("n1", GpuLost="False")
    body = {"status": {"conditions": [{"type": "GpuLost", "status": "True", **since}]}}
    await harness.client.patch(NODES, "n1", body, subresource="status", content_type=STRATEGIC_PATCH)
    await harness.sees("n1", "HealthUnknown")
    await harness.add_node("n2", GpuLost="False")
    await harness.sees("n2", "Fit")


async def test_a_node_that_cannot_be_judged_is_unknown_and_counted_and_the_others_are_judged(
    harness: SchedulerHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged, before = fleet.health, contained("verdict")

    def health(node: Node, *more: Any) -> VerdictReason:
        if node.name == "n1":
            raise OverflowError("date value out of range")
        return judged(node, *more)

    monkeypatch.setattr(fleet, "health", health)
    await harness.add_node("n1", GpuLost="True")
    await harness.add_node("n2", GpuLost="False")
    await harness.sees("n2", "Fit")
    assert harness.reason("n1") == "HealthUnknown"
    assert contained("verdict") > before


def contained(where: str) -> float:
    """How often something failed that harmed one object only."""
    return REGISTRY.get_sample_value("remediator_contained_failures_total", {"where": where}) or 0.0


async def test_a_pod_that_comes_takes_gpus_and_one_that_finishes_gives_them_back(harness: SchedulerHarness) -> None:
    await harness.add_node("n1", GpuLost="False")
    await harness.bind("a", "n1", 5)
    await harness.bind("b", "n1", 3)
    await until(lambda: harness.held("n1") == {GPU: 8})
    assert harness.reason("n1") == "NoFreeGpus"
    await harness.finish("a")
    await until(lambda: harness.held("n1") == {GPU: 3})
    assert (harness.reason("n1", 5), harness.reason("n1", 6), harness.reason("n1", 9)) == (
        "Fit",
        "NoFreeGpus",
        "TooFewGpus",
    )
    await harness.delete_pod("b")
    await until(lambda: harness.held("n1") == {})


async def test_a_finished_pod_that_is_deleted_later_is_not_taken_off_twice(harness: SchedulerHarness) -> None:
    await harness.add_node("n1")
    await harness.bind("a", "n1", 2)
    await harness.bind("b", "n1", 3)
    await until(lambda: harness.held("n1") == {GPU: 5})
    await harness.finish("a")
    await until(lambda: harness.held("n1") == {GPU: 3})
    await harness.delete_pod("a")
    await harness.bind("c", "n1", 1)
    await until(lambda: harness.held("n1") == {GPU: 4})


async def test_pods_without_gpus_and_pods_that_wait_for_a_node_hold_nothing(harness: SchedulerHarness) -> None:
    await harness.add_node("n1")
    await harness.bind("web", "n1", 0)
    await harness.bind("waits", "", 4)
    await harness.bind("last", "n1", 1)
    await until(lambda: harness.held("n1") == {GPU: 1})


async def test_a_pod_that_was_there_before_its_node_counts(harness: SchedulerHarness) -> None:
    await harness.bind("early", "n1", 2)
    await harness.add_node("n1")
    await until(lambda: harness.held("n1") == {GPU: 2})


async def test_a_condition_that_a_policy_names_makes_sick_at_once_though_the_policy_only_watches(
    harness: SchedulerHarness,
) -> None:
    await harness.add_node("n1", GpuLost="False")
    await harness.sees("n1", "Fit")
    await harness.condition("n1", "GpuLost", "True")
    await harness.sees("n1", "Unhealthy")
    await harness.condition("n1", "GpuLost", "False")
    await harness.sees("n1", "Fit")


async def test_a_node_that_is_relabelled_is_judged_by_the_policies_that_select_it_now(
    harness: SchedulerHarness,
) -> None:
    await harness.add_node("n1", GpuLost="True")
    await harness.sees("n1", "Unhealthy")
    await harness.patch_node("n1", {"metadata": {"labels": {"pool": "b"}}})
    await harness.sees("n1", "Fit")
    await harness.patch_node("n1", {"metadata": {"labels": {"pool": "a"}}})
    await harness.sees("n1", "Unhealthy")


async def test_a_policy_that_is_made_or_goes_has_every_node_judged_anew(harness: SchedulerHarness) -> None:
    """Nodes without GPUs: of those with GPUs, so many would no more be refused."""
    everywhere = [f"n{index}" for index in range(2 * fleet.SLICE + 1)]
    for name in everywhere:
        await harness.add_node(name, gpus=None, GpuLost="False", NfsHung="True")
    await until(lambda: {harness.reason(name, 0) for name in everywhere} == {"Fit"})
    await harness.policy("nfs-hung", "NfsHung")
    await until(lambda: {harness.reason(name, 0) for name in everywhere} == {"Unhealthy"})


async def test_a_case_is_followed_from_the_queue_to_its_end(harness: SchedulerHarness) -> None:
    await harness.add_node("n1", GpuLost="True")
    await harness.case("n1", phase="Held", blockedBy=[{"reason": "HeldByUser"}])
    await harness.sees("n1", "Unhealthy")
    await harness.progress("n1", phase="Held", blockedBy=[{"reason": "BudgetSpent"}])
    await harness.sees("n1", "WaitingForRepair")
    await harness.progress("n1", phase="Draining", blockedBy=[])
    await harness.sees("n1", "UnderRepair")
    await harness.condition("n1", "GpuLost", "False")
    done = [{"operation": "o", "template": "reboot", "rung": 1, "attempt": 1, "outcome": "Succeeded"}]
    await harness.progress("n1", phase="Recovered", attempts=done, endedAt=datetime.now(UTC).isoformat())
    await harness.sees("n1", "RecentlyRepaired")


async def test_our_taint_and_our_cordon_are_seen_and_a_persons_cordon_is_left_to_the_scheduler(
    harness: SchedulerHarness,
) -> None:
    await harness.add_node("n1", GpuLost="False")
    await harness.patch_node("n1", {"spec": {"unschedulable": True}})
    await harness.patch_node("n1", {"metadata": {"annotations": {"mark": "seen"}}})
    await harness.sees("n1", "Fit")
    await harness.patch_node("n1", {"metadata": {"annotations": {names.CORDONED_BY: "uid-1"}}})
    await harness.sees("n1", "Cordoned")
    taint = {"key": names.CASE_TAINT, "value": "uid-1", "effect": "NoSchedule"}
    await harness.patch_node("n1", {"spec": {"taints": [taint]}})
    await harness.sees("n1", "UnderRepair")
    taint = {"key": names.DEGRADED_TAINT, "value": "", "effect": "PreferNoSchedule"}
    await harness.patch_node("n1", {"spec": {"taints": [taint], "unschedulable": None}})
    await harness.sees("n1", "WaitingForRepair")


async def test_a_node_that_has_failed_twice_comes_after_the_others_and_is_forgiven_by_itself(
    harness: SchedulerHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two repairs now count 2; 49 hours later less than 1.25, and after 72 hours nobody speaks of a repair."""
    monkeypatch.setattr(fleet, "ROUND_SECONDS", 0.05)
    await harness.add_node("n1", GpuLost="False")
    done = [{"operation": "o", "template": "reboot", "rung": 1, "attempt": 1, "outcome": "Succeeded"}]
    over = {"phase": "Recovered", "attempts": done, "endedAt": datetime.now(UTC).isoformat()}
    await harness.case("n1", **over)
    await harness.sees("n1", "RecentlyRepaired")
    await harness.case("n1", "second", **over)
    await harness.sees("n1", "FewFailures")
    for hours, reason in ((48, "FewFailures"), (50, "RecentlyRepaired"), (73, "Fit")):
        harness.ahead = timedelta(hours=hours)
        await harness.condition("n1", "GpuLost", "False")
        await harness.condition("n1", "Ready", "True")
        await harness.sees("n1", reason)


async def test_a_node_that_goes_is_unknown_and_a_namesake_starts_anew(harness: SchedulerHarness) -> None:
    await harness.add_node("n1", GpuLost="True")
    await harness.case("n1", phase="Escalated")
    await harness.sees("n1", "Quarantined")
    await harness.client.delete(NODES, "n1")
    await harness.sees("n1", "UnknownNode")
    await harness.add_node("n1", GpuLost="False")
    await harness.sees("n1", "Fit")


@pytest.mark.parametrize("status", ["True", "False"])
async def test_evidence_grows_old_without_any_event(harness: SchedulerHarness, monkeypatch, status: str) -> None:
    await harness.add_node("n1", GpuLost=status)
    await harness.sees("n1", "Unhealthy" if status == "True" else "Fit")
    monkeypatch.setattr(fleet, "ROUND_SECONDS", 0.05)
    harness.ahead = timedelta(minutes=16)
    await harness.policy("wakes-the-round", "Other")
    await harness.sees("n1", "HealthUnknown")


async def test_a_round_judges_only_nodes_that_time_may_have_changed(harness: SchedulerHarness, monkeypatch) -> None:
    """Two nodes, one whose evidence grows old: it alone is judged again."""
    await harness.add_node("n1", GpuLost="False")
    await harness.add_node("n2", GpuLost="False")
    await harness.sees("n2", "Fit")
    rows, judged, judge = harness.extender._fleet, [], fleet.health

    def counted(node, *arguments):
        judged.append(node.name)
        return judge(node, *arguments)

    monkeypatch.setattr(fleet, "health", counted)
    rows._judge(["n1", "n2"], aged=True)
    assert judged == []
    old = rows._nodes.get("n1")
    beats = {name: replace(condition, heartbeat=EPOCH) for name, condition in old.conditions.items()}
    rows._nodes._reflector.store["n1"] = replace(old, conditions=beats)
    rows._judge(["n1", "n2"], aged=True)
    assert judged == ["n1"]
    rows._judge(["n1", "n2"])
    assert judged == ["n1", "n1", "n2"]


async def test_a_node_is_judged_once_for_many_events_and_before_an_answer(
    harness: SchedulerHarness, monkeypatch
) -> None:
    """Three events, none judged in its own turn of the loop: that belongs to whoever repairs the node."""
    monkeypatch.setattr(fleet, "SOON", 60.0)
    await harness.add_node("n1", GpuLost="False")
    await harness.sees("n1", "Fit")
    rows, judged, judge = harness.extender._fleet, [], fleet.health

    def counted(node, *arguments):
        judged.append(node.name)
        return judge(node, *arguments)

    monkeypatch.setattr(fleet, "health", counted)
    known = rows._nodes.get("n1")
    for version in ("1000001", "1000002", "1000003"):
        rows._nodes._reflector._keep("n1", replace(known, version=version, unschedulable=True, cordoned_by="case"))
    assert judged == []
    assert json.loads(harness.extender.filter(names_body(["n1"])))["NodeNames"] == []
    assert judged == ["n1"]


async def test_what_events_say_is_judged_without_any_answer(harness: SchedulerHarness) -> None:
    await harness.add_node("n1", GpuLost="False")
    await until(lambda: "n1" in harness.extender._fleet.rows)


async def test_answers_that_stand_ready_follow_every_event(harness: SchedulerHarness) -> None:
    await harness.add_node("n1", GpuLost="False")
    await harness.add_node("n2", GpuLost="False")
    await harness.sees("n2", "Fit")
    asked = names_body(["n1", "n2"])

    def left() -> list[str]:
        return json.loads(harness.extender.filter(asked))["NodeNames"]

    def scores() -> list[int]:
        return [entry["Score"] for entry in json.loads(harness.extender.prioritize(asked))]

    assert left() == ["n1", "n2"]
    before = scores()
    assert before[0] == before[1]
    await harness.bind("a", "n2", 4)
    await until(lambda: scores()[1] > before[1])
    assert scores()[0] == before[0]
    await harness.condition("n1", "GpuLost", "True")
    await until(lambda: left() == ["n2"])
    await harness.client.delete(NODES, "n1")
    await until(lambda: left() == ["n1", "n2"])


async def test_the_row_of_a_node_that_has_gone_lasts_no_longer_than_a_late_write_of_ours(monkeypatch) -> None:
    """The answer to our patch comes after the deletion, and a case of the node has it judged then."""
    monkeypatch.setattr(fleet, "ROUND_SECONDS", 0.05)
    informers = Informers(Client(EmbeddedServer().transport()), SYSTEM, Namespaces())
    rows = fleet.Fleet(informers, lambda name, old, new: None, lambda: None, SYSTEM)
    rows.complete.set()
    informers.nodes.note("n1", a_node("n1", version="11"))
    rows._judge(["n1"])
    assert list(rows.rows) == ["n1"]
    informers.nodes._reflector._version = "12"
    async with at_work(rows._keep_judging()):
        await until(lambda: rows.rows == {})


def test_a_row_that_could_not_be_told_is_told_when_its_node_is_judged_again() -> None:
    told: list[str] = []

    def fails_once(name: str, old: object, new: object) -> None:
        told.append(name)
        if len(told) == 1:
            raise ValueError("a bug")

    informers = Informers(Client(EmbeddedServer().transport()), clock_of(lambda: 0.0), Namespaces())
    rows = fleet.Fleet(informers, fails_once, lambda: None, clock_of(lambda: 0.0))
    rows.complete.set()
    with capture_logs():
        informers.nodes._reflector._keep("n1", a_node("n1"))
    rows._judge(["n1", "n1"])
    assert told == ["n1", "n1"]
    assert list(rows.rows) == ["n1"]


def test_a_case_that_placing_does_not_go_by_any_more_is_not_kept() -> None:
    """Of three ended cases one was a repair within the last three days."""
    now = SYSTEM.now()
    attempt = Attempt("reboot-1", "reboot", 0, now)
    cured = replace(a_case("c", node="n1", attempts=(attempt,)), phase=Phase.RECOVERED, ended=now)

    def kept(case: Case) -> bool:
        cases = NodeCases()
        assert cases.moved("c", None, case, now) == list(cases.nodes())
        return bool(cases.of("n1"))

    assert kept(cured)
    assert not kept(replace(cured, ended=now - timedelta(days=4)))
    assert not kept(replace(cured, attempts=()))
    assert kept(replace(cured, ended=None))


async def repaired(harness: SchedulerHarness) -> fleet.Fleet:
    """The fleet of an extender that has seen a case of n1 recover."""
    await harness.add_node("n1", GpuLost="False")
    done = [{"operation": "o", "template": "reboot", "rung": 1, "attempt": 1, "outcome": "Succeeded"}]
    await harness.case("n1", phase="Recovered", attempts=done, endedAt=datetime.now(UTC).isoformat())
    await harness.sees("n1", "RecentlyRepaired")
    return harness.extender._fleet


async def test_a_repaired_case_that_is_deleted_weeks_later_is_not_kept(harness: SchedulerHarness) -> None:
    rows = await repaired(harness)
    harness.ahead = timedelta(days=90)
    await harness.client.delete(CASES, "case-n1")
    await until(lambda: not list(rows._cases.nodes()))
    await harness.sees("n1", "DetectorsSilent")


@pytest.mark.parametrize("node_goes", [False, True])
async def test_a_repaired_case_that_stays_is_kept_for_three_days(
    harness: SchedulerHarness, monkeypatch: pytest.MonkeyPatch, node_goes: bool
) -> None:
    rows = await repaired(harness)
    if node_goes:
        await harness.client.delete(NODES, "n1")
        await until(lambda: rows.rows == {})
    monkeypatch.setattr(fleet, "ROUND_SECONDS", 0.05)
    await harness.policy("wakes-the-round", "Other")
    harness.ahead = timedelta(days=3, minutes=1)
    await until(lambda: not list(rows._cases.nodes()))


async def test_pods_take_cpu_of_nodes_with_gpus_and_of_no_others(harness: SchedulerHarness) -> None:
    """Of 96 cores; each Pod asks for one."""
    await harness.add_node("n1")
    await harness.add_node("plain", gpus=None)
    await harness.sees("n1", "HealthUnknown")
    assert [harness.extender._fleet.rows[name].cpu for name in ("n1", "plain")] == [96_000, 0]
    await harness.bind("a", "n1", 1)
    await harness.bind("web", "n1", 0)
    await until(lambda: harness.extender._fleet.rows["n1"].cpu == 94_000)
    await harness.delete_pod("web")
    await until(lambda: harness.extender._fleet.rows["n1"].cpu == 95_000)


async def test_the_pods_of_the_cluster_become_its_workload_and_nodes_are_scored_anew(harness: SchedulerHarness) -> None:
    """Pods of eight GPUs only: one of one GPU leaves nothing of a whole node to them."""
    await harness.add_node("n1")
    wanted = names_body(["n1"])
    await harness.sees("n1", "HealthUnknown")
    before = json.loads(harness.extender.prioritize(wanted))[0]["Score"]
    for index in range(10):
        await harness.bind(f"job-{index}", f"elsewhere-{index}", 8)
    await until(lambda: json.loads(harness.extender.prioritize(wanted))[0]["Score"] < before - 40_000)
    assert len(harness.extender._learner.workload) == 1

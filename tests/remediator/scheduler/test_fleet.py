"""The fleet follows the API server: what changes there changes what is said, and nothing else does."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from remediator.core import names
from remediator.scheduler import fleet
from tests.harness.kinds import NODES
from tests.remediator.scheduler.stand import GPU, Stand, names_body
from tests.remediator_sim.waiting import until


async def test_a_pod_that_comes_takes_gpus_and_one_that_finishes_gives_them_back(stand: Stand) -> None:
    await stand.add_node("n1", GpuLost="False")
    await stand.bind("a", "n1", 5)
    await stand.bind("b", "n1", 3)
    await until(lambda: stand.held("n1") == {GPU: 8})
    assert stand.reason("n1") == "NoFreeGpus"
    await stand.finish("a")
    await until(lambda: stand.held("n1") == {GPU: 3})
    assert (stand.reason("n1", 5), stand.reason("n1", 6), stand.reason("n1", 9)) == ("Fit", "NoFreeGpus", "TooFewGpus")
    await stand.delete_pod("b")
    await until(lambda: stand.held("n1") == {})


async def test_a_finished_pod_that_is_deleted_later_is_not_taken_off_twice(stand: Stand) -> None:
    await stand.add_node("n1")
    await stand.bind("a", "n1", 2)
    await stand.bind("b", "n1", 3)
    await until(lambda: stand.held("n1") == {GPU: 5})
    await stand.finish("a")
    await until(lambda: stand.held("n1") == {GPU: 3})
    await stand.delete_pod("a")
    await stand.bind("c", "n1", 1)
    await until(lambda: stand.held("n1") == {GPU: 4})


async def test_pods_without_gpus_and_pods_that_wait_for_a_node_hold_nothing(stand: Stand) -> None:
    await stand.add_node("n1")
    await stand.bind("web", "n1", 0)
    await stand.bind("waits", "", 4)
    await stand.bind("last", "n1", 1)
    await until(lambda: stand.held("n1") == {GPU: 1})


async def test_a_pod_that_was_there_before_its_node_counts(stand: Stand) -> None:
    await stand.bind("early", "n1", 2)
    await stand.add_node("n1")
    await until(lambda: stand.held("n1") == {GPU: 2})


async def test_a_condition_that_a_policy_names_makes_sick_at_once_though_the_policy_only_watches(stand: Stand) -> None:
    await stand.add_node("n1", GpuLost="False")
    await stand.sees("n1", "Fit")
    await stand.condition("n1", "GpuLost", "True")
    await stand.sees("n1", "Sick")
    await stand.condition("n1", "GpuLost", "False")
    await stand.sees("n1", "Fit")


async def test_a_node_that_is_relabelled_is_judged_by_the_policies_that_select_it_now(stand: Stand) -> None:
    await stand.add_node("n1", GpuLost="True")
    await stand.sees("n1", "Sick")
    await stand.patch_node("n1", {"metadata": {"labels": {"pool": "b"}}})
    await stand.sees("n1", "Fit")
    await stand.patch_node("n1", {"metadata": {"labels": {"pool": "a"}}})
    await stand.sees("n1", "Sick")


async def test_a_policy_that_is_made_or_goes_has_every_node_judged_anew(stand: Stand) -> None:
    for index in range(2 * fleet.SLICE + 1):
        await stand.add_node(f"n{index}", GpuLost="False", NfsHung="True")
    everywhere = [f"n{index}" for index in range(2 * fleet.SLICE + 1)]
    await until(lambda: {stand.reason(name) for name in everywhere} == {"Fit"})
    await stand.policy("nfs-hung", "NfsHung")
    await until(lambda: {stand.reason(name) for name in everywhere} == {"Sick"})


async def test_a_case_is_followed_from_the_queue_to_its_end(stand: Stand) -> None:
    await stand.add_node("n1", GpuLost="True")
    await stand.case("n1", phase="Held", blockedBy=[{"reason": "DryRun"}])
    await stand.sees("n1", "Sick")
    await stand.progress("n1", phase="Held", blockedBy=[{"reason": "BudgetSpent"}])
    await stand.sees("n1", "WaitingForRepair")
    await stand.progress("n1", phase="Draining", blockedBy=[])
    await stand.sees("n1", "UnderRepair")
    await stand.condition("n1", "GpuLost", "False")
    done = [{"operation": "o", "template": "reboot", "rung": 1, "attempt": 1, "outcome": "Succeeded"}]
    await stand.progress("n1", phase="Recovered", attempts=done, endedAt=datetime.now(UTC).isoformat())
    await stand.sees("n1", "RecentlyRepaired")


async def test_our_taint_and_our_cordon_are_seen_and_a_persons_cordon_is_left_to_the_scheduler(stand: Stand) -> None:
    await stand.add_node("n1", GpuLost="False")
    await stand.patch_node("n1", {"spec": {"unschedulable": True}})
    await stand.patch_node("n1", {"metadata": {"annotations": {"mark": "seen"}}})
    await stand.sees("n1", "Fit")
    await stand.patch_node("n1", {"metadata": {"annotations": {names.CORDONED_BY: "uid-1"}}})
    await stand.sees("n1", "Cordoned")
    taint = {"key": names.CASE_TAINT, "value": "uid-1", "effect": "NoSchedule"}
    await stand.patch_node("n1", {"spec": {"taints": [taint]}})
    await stand.sees("n1", "UnderRepair")
    taint = {"key": names.DEGRADED_TAINT, "value": "", "effect": "PreferNoSchedule"}
    await stand.patch_node("n1", {"spec": {"taints": [taint], "unschedulable": None}})
    await stand.sees("n1", "WaitingForRepair")


async def test_a_node_that_goes_is_unknown_and_a_namesake_starts_anew(stand: Stand) -> None:
    await stand.add_node("n1", GpuLost="True")
    await stand.case("n1", phase="Escalated")
    await stand.sees("n1", "Quarantined")
    await stand.client.delete(NODES, "n1")
    await stand.sees("n1", "UnknownNode")
    await stand.add_node("n1", GpuLost="False")
    await stand.sees("n1", "Fit")


@pytest.mark.parametrize("status", ["True", "False"])
async def test_evidence_grows_old_without_any_event(stand: Stand, monkeypatch, status: str) -> None:
    await stand.add_node("n1", GpuLost=status)
    await stand.sees("n1", "Sick" if status == "True" else "Fit")
    monkeypatch.setattr(fleet, "ROUND_SECONDS", 0.05)
    stand.ahead = timedelta(minutes=16)
    await stand.policy("wakes-the-round", "Other")
    await stand.sees("n1", "HealthUnknown")


async def test_answers_that_stand_ready_follow_every_event(stand: Stand) -> None:
    await stand.add_node("n1", GpuLost="False")
    await stand.add_node("n2", GpuLost="False")
    await stand.sees("n2", "Fit")
    asked = names_body(["n1", "n2"])

    def left() -> list[str]:
        return json.loads(stand.extender.filter(asked))["NodeNames"]

    def scores() -> list[int]:
        return [entry["Score"] for entry in json.loads(stand.extender.prioritize(asked))]

    assert left() == ["n1", "n2"]
    before = scores()
    assert before[0] == before[1]
    await stand.bind("a", "n2", 4)
    await until(lambda: scores()[1] > before[1])
    assert scores()[0] == before[0]
    await stand.condition("n1", "GpuLost", "True")
    await until(lambda: left() == ["n2"])
    await stand.client.delete(NODES, "n1")
    await until(lambda: left() == ["n1", "n2"])

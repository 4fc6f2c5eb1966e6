"""What a repair must not do to a fleet: evidence that a reboot takes along, innocent nodes, drains for nothing.

Each plan is played in virtual time with shipped policies in Enforce, and the leader is killed in the middle of it.
"""

import pytest

from remediator_sim.simulation.facts import MIG_FAILS
from remediator_sim.simulation.plan import Step
from remediator_sim.simulation.seed import play
from remediator_sim.simulation.variants import COUNTS, MIG, OPERANDS
from tests.simulation.scenario import NODES, a_plan, boots_of, fault, heal, killed, moments_of, the_case, touched

pytestmark = pytest.mark.sampled("dangers", rare=True)

TOLD = ("nvlink-domain-fault", "nvml-hung", "gpu-memory-warning", "gpu-busy-without-pod", "gpu-throttled")
CONDITIONS = ("NvlinkDomainFault", "NvmlHung", "GpuMemoryWarning", "GpuBusyWithoutPod", "GpuThrottled")


@pytest.mark.parametrize("phase", ["Draining", "Operating"])
@pytest.mark.parametrize(
    ("policy", "condition", "last"),
    [
        ("gpu-lost", "GpuLost", "reboot"),
        ("gpu-xid", "GpuXid", "reset-gpu"),
        ("filesystem-error", "FilesystemError", "reboot"),
    ],
)
def test_a_bundle_is_collected_before_anything_ends_what_a_reboot_erases(
    policy: str, condition: str, last: str, phase: str
) -> None:
    outcome = play(a_plan(fault(condition, last), killed(phase), policies=(policy,)))
    collected = moments_of(outcome, "runs collect-diagnostics for gpu-01")
    assert collected
    assert min(collected) < min(moments_of(outcome, "runs drain for gpu-01"))
    assert max(collected) < min(moments_of(outcome, f"runs {last} for gpu-01"))
    phase, attempts = the_case(outcome)
    assert (phase, attempts[0], outcome.broken) == ("Recovered", (last, "Succeeded"), ())


@pytest.mark.parametrize("nodes", [1, 3])  # of one alone no correlation holds anything
@pytest.mark.parametrize(("policy", "condition"), list(zip(TOLD, CONDITIONS, strict=True)))
def test_what_only_tells_touches_no_node_though_its_policy_is_in_enforce(
    policy: str, condition: str, nodes: int
) -> None:
    ill = [fault(condition, node=node, at=60.0 + number) for number, node in enumerate(NODES[:nodes])]
    outcome = play(a_plan(*ill, killed(at=400.0), policies=(policy, "gpu-recovery-required", "gpu-lost", "gpu-xid")))
    assert moments_of(outcome, f"says {condition}=True")
    assert (touched(outcome), outcome.broken) == (set(), ())


@pytest.mark.parametrize(("policy", "condition"), [("gpu-lost", "GpuLost"), ("pcie-link-degraded", "PcieLinkDegraded")])
def test_five_nodes_that_fall_ill_together_in_a_roll_out_are_left_alone_and_come_back_by_themselves(
    policy: str, condition: str
) -> None:
    ill = [fault(condition, "reboot", node=node, at=60.0 + 10 * number) for number, node in enumerate(NODES[:5])]
    well = [heal(node, 600.0 + 10 * number) for number, node in enumerate(NODES[:5])]
    outcome = play(a_plan(*ill, *well, killed(at=300.0), policies=(policy,)))
    assert (touched(outcome), outcome.broken) == (set(), ())
    assert not outcome.ending.claims


def test_a_row_that_waits_for_its_remap_ends_no_job_and_is_mended_once_the_jobs_have_ended() -> None:
    waits = (("gpu-ecc", (("urgency", {"mode": "WhenIdle", "deadline": "24h"}),)),)
    done = Step(60.0, "end-work", "gpu-01", (("after", 1500),))
    plan = a_plan(fault("GpuEccFault", "reset-gpu"), done, killed(at=900.0), policies=("gpu-ecc",), specs=waits)
    outcome = play(plan)
    phase, attempts = the_case(outcome)
    assert (phase, attempts[0], outcome.broken) == ("Recovered", ("reset-gpu", "Succeeded"), ())
    assert moments_of(outcome, "waits: WaitingForIdle")
    assert moments_of(outcome, "drained gpu-01: 0 pods evicted")
    assert len(moments_of(outcome, "pods evicted")) == 1


@pytest.mark.parametrize(
    ("policy", "condition"), [("gpu-memory-worn", "GpuMemoryWorn"), ("filesystem-damage", "FilesystemDamage")]
)
def test_what_no_boot_mends_keeps_new_work_off_and_goes_to_a_person_without_a_boot(policy: str, condition: str) -> None:
    outcome = play(a_plan(fault(condition), killed("Operating"), policies=(policy,)))
    phase, attempts = the_case(outcome)
    assert (phase, [name for name, _ in attempts], outcome.broken) == ("Escalated", ["cordon"], ())
    assert not moments_of(outcome, "goes down")
    assert not moments_of(outcome, "pods evicted")


def test_a_file_system_that_a_boot_does_not_check_is_booted_once_and_goes_to_a_person() -> None:
    outcome = play(a_plan(fault("FilesystemError"), killed("Verifying"), policies=("filesystem-error",)))
    assert (the_case(outcome)[0], outcome.broken) == ("Escalated", ())
    assert len(moments_of(outcome, "goes down")) == 1


def test_links_that_are_back_before_their_policy_acts_cost_nobody_a_pod() -> None:
    steps = (fault("GpuNvlinkFault", "reset-gpu"), heal("gpu-01", 230.0))
    outcome = play(a_plan(*steps, killed(at=120.0), policies=("gpu-nvlink-fault",)))
    assert (touched(outcome), outcome.ending.nodes["gpu-01"].cases, outcome.broken) == (set(), (), ())


def test_a_gpu_that_is_lost_again_after_each_boot_goes_to_a_person_after_two_boots() -> None:
    again = fault("GpuLost", "reboot", returns=5, after=900)
    outcome = play(a_plan(again, killed(at=1500.0), policies=("gpu-lost",), until=9000.0))
    *_, last = outcome.ending.nodes["gpu-01"].cases
    assert (last.phase, outcome.broken) == ("Escalated", ())
    assert len(moments_of(outcome, "goes down")) == 2


def test_while_the_detectors_of_a_node_stand_still_nothing_is_done_for_what_they_said_last() -> None:
    blind = Step(59.0, "blind", "gpu-01", (("seconds", 1800),))
    outcome = play(a_plan(blind, fault("GpuLost", "reboot"), killed(at=600.0), policies=("gpu-lost",), until=6000.0))
    (sight,) = moments_of(outcome, "says DetectorStale=False")
    assert moments_of(outcome, "says GpuLost=True")[0] < sight < moments_of(outcome, "is cordoned")[0]
    assert (the_case(outcome)[0], outcome.broken) == ("Recovered", ())


@pytest.mark.parametrize("kind", ["ports", "nvme", "mounts", "addresses"])
def test_a_node_that_comes_up_from_its_boot_without_a_device_of_whatever_kind_is_not_given_back(kind: str) -> None:
    less = Step(60.0, "lose-gpus", "gpu-01", (("count", 1), ("seconds", 0.0), ("of", kind)))
    outcome = play(
        a_plan(fault("GpuLost", "reboot"), less, killed("Operating"), policies=("gpu-lost",), shows=(COUNTS,))
    )
    phase, attempts = the_case(outcome)
    assert (phase, attempts, outcome.broken) == ("Escalated", (("reboot", "Succeeded"),) * 2, ())
    assert "DevicesMissing" in outcome.ending.nodes["gpu-01"].bad


@pytest.mark.parametrize("phase", ["Draining", "Operating", "Verifying"])
def test_operands_of_the_gpu_operator_let_go_of_the_gpus_for_a_reset_and_run_again_after_it(phase: str) -> None:
    plan = a_plan(fault("GpuXid", "reset-gpu"), killed(phase), policies=("gpu-xid",), shows=(OPERANDS,))
    outcome = play(plan)
    phase, attempts = the_case(outcome)
    assert (phase, attempts[0], outcome.broken) == ("Recovered", ("reset-gpu", "Succeeded"), ())
    assert boots_of(outcome) == 0
    assert not [mark for mark in outcome.ending.nodes["gpu-01"].marks if "gpu.deploy" in mark]


def test_a_reset_that_costs_a_node_its_mig_devices_is_no_repair_before_they_are_made_again() -> None:
    fails = Step(60.0, "hinder", "gpu-01", (("fact", MIG_FAILS), ("seconds", 6000)))
    outcome = play(
        a_plan(fault("GpuXid", "reset-gpu"), fails, killed("Verifying"), policies=("gpu-xid",), shows=(MIG,))
    )
    phase, attempts = the_case(outcome)
    assert (phase, [name for name, end in attempts if end == "Succeeded"], outcome.broken) == (
        "Recovered",
        ["reset-gpu", "reboot"],
        (),
    )

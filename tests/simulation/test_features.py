"""What no plan by chance has: two budgets over one node, entries with several Conditions, Pods as a sign, silent nodes
whose Pods are forgotten. The leader dies in the middle.
"""

import re
from dataclasses import replace

import pytest

from remediator_sim.simulation import facts
from remediator_sim.simulation.node import RACK, rack
from remediator_sim.simulation.plan import Step
from remediator_sim.simulation.reporters import NAMED
from remediator_sim.simulation.seed import play
from remediator_sim.simulation.variants import ALERTS, IDLE_TESTS, NEIGHBOURS, REPORTERS
from remediator_sim.simulation.world import SeedOutcome
from tests.simulation.scenario import NODES, a_plan, boots_of, during, fault, killed, moments_of, the_case, touched

pytestmark = pytest.mark.sampled("features", rare=True)
FIRST_RACK = rack("gpu-01")


def most_at_once(outcome: SeedOutcome, nodes: list[str]) -> int:
    """How many of these nodes were held by cases at one moment, at most."""
    held, most = set[str](), 0
    for node, what in re.findall(r"^\S+ \S+ +(\S+) +(is held by|is let go)", outcome.journal, re.MULTILINE):
        (held.add if what == "is held by" else held.discard)(node)
        most = max(most, len(held & set(nodes)))
    return most


def test_of_two_budgets_over_one_node_both_are_kept() -> None:
    """Four of the fleet may be out of service, and of one rack one."""
    racked = [name for name in NODES if rack(name) == FIRST_RACK]
    of_rack = ("rack", (("selector", {"matchLabels": {RACK: FIRST_RACK}}), ("maxUnavailable", 1)))
    budgets = (("fleet", (("maxUnavailable", 4),)), of_rack)
    ill = [fault("GpuXid", "reset-gpu", node=node, at=60.0 + number) for number, node in enumerate(NODES)]
    more = {"budgets": budgets, "specs": (("gpu-xid", (("correlation", None),)),)}
    outcome = play(a_plan(*ill, killed("Operating"), policies=("gpu-xid",), until=6000.0, **more))
    assert len(racked) > 1
    assert (most_at_once(outcome, racked), outcome.broken) == (1, ())
    assert 2 <= most_at_once(outcome, list(NODES)) <= 4
    assert {the_case(outcome, node)[0] for node in NODES} == {"Recovered"}


CONDITIONS = [{"condition": "GpuLost"}, {"condition": "PcieLinkDegraded"}]
BOTH = (("gpu-lost", (("when", [{"all": CONDITIONS, "for": "1m"}]),)),)


def test_pods_that_their_kubelet_does_not_end_are_told_of_over_a_crash_and_nothing_is_done_to_the_node() -> None:
    """Half an hour and a look later: at most two Pods are on a node. They go after 45 minutes."""
    endless = Step(60.0, "endless-pods", "gpu-01", (("seconds", 2700),))
    outcome = play(a_plan(endless, killed(at=2300.0), policies=("pods-stuck-terminating",), until=6000.0))
    assert (touched(outcome), outcome.broken) == (set(), ())
    assert the_case(outcome) == ("Recovered", ())
    assert outcome.checks["I3"] >= 1


def test_an_entry_with_two_conditions_acts_once_both_show_and_not_before() -> None:
    policies, link = ("gpu-lost", "pcie-link-degraded"), fault("PcieLinkDegraded", "reboot", at=900.0)
    plan = a_plan(fault("GpuLost", "reboot"), link, killed(at=600.0), policies=policies, specs=BOTH)
    outcome = play(replace(plan, policies=(("gpu-lost", "Enforce"), ("pcie-link-degraded", "DryRun"))))
    (shown,) = moments_of(outcome, "says PcieLinkDegraded=True")
    assert shown < moments_of(outcome, "is cordoned")[0]
    assert (boots_of(outcome), outcome.broken) == (1, ())


@pytest.mark.parametrize(("reasons", "boots"), [(["GpuLostTrue"], 1), (["AnotherReason"], 0)])
def test_an_entry_with_reasons_acts_on_these_alone(reasons: list[str], boots: int) -> None:
    specs = (("gpu-lost", (("when", [{"condition": "GpuLost", "for": "1m", "reasons": reasons}]),)),)
    outcome = play(a_plan(fault("GpuLost", "reboot"), killed(at=130.0), policies=("gpu-lost",), specs=specs))
    assert (boots_of(outcome), bool(touched(outcome)), outcome.broken) == (boots, bool(boots), ())


def test_a_node_on_which_no_pod_of_a_kind_is_ready_is_repaired_and_recovers_once_one_is() -> None:
    specs = (("gpu-lost", (("when", [{"noReadyPod": NAMED, "for": "2m"}]),)),)
    silent = Step(120.0, "quiet-reporter", "gpu-01", (("moment", ""), ("seconds", 900)))
    more = {"specs": specs, "shows": (REPORTERS,), "until": 6000.0}
    outcome = play(a_plan(silent, killed("Operating"), policies=("gpu-lost",), **more))
    assert (touched(outcome), outcome.broken) == ({"gpu-01"}, ())
    assert the_case(outcome)[0] == "Recovered"


def test_pods_of_a_silent_node_are_forgotten_where_its_operation_says_so_and_those_of_others_are_not() -> None:
    """The machine is dead; its Pods would stay for ever. A Pod that its owner keeps stays, and keeps the node."""
    forget = Step(
        1.0, "drain", "power-cycle", (("drain", {"strategy": "ForceDelete", "timeout": "10m"}), ("seconds", 9000))
    )
    dead = Step(60.0, "dies", "gpu-01")
    outcome = play(a_plan(forget, dead, killed("Draining"), policies=("node-unreachable",), until=6000.0))
    assert moments_of(outcome, "drained gpu-01:")
    assert (the_case(outcome)[0], outcome.broken) == ("Recovered", ())


def test_an_alert_that_fires_has_its_node_repaired_and_its_end_proves_that_it_is_well() -> None:
    specs = (("gpu-lost", (("when", [{"alert": "GpuHot", "for": "2m"}]),)),)
    fires = Step(120.0, "alert", "gpu-01", (("name", "GpuHot"), ("seconds", 1200)))
    more = {"specs": specs, "shows": (ALERTS,), "until": 9000.0}
    outcome = play(a_plan(fires, killed("Operating"), policies=("gpu-lost",), **more))
    assert (touched(outcome), outcome.broken) == ({"gpu-01"}, ())
    assert the_case(outcome)[0] == "Recovered"


ON_EVENTS = (("gpu-lost", (("when", [{"event": {"reason": "TaskHung"}, "for": "2m"}]),)),)


def hangs(node: str, seconds: int, back: bool = False) -> Step:
    """A task hangs once a minute; `back`: the clock of who tells of it goes back, and on again."""
    return Step(120.0, "events", node, (("reason", "TaskHung"), ("seconds", seconds), ("back", back)))


def test_a_machine_that_takes_the_name_of_another_one_is_not_repaired_for_its_events() -> None:
    """Three in minutes 2 to 4. The machine goes in minute 5, before its Condition has held for two minutes. The next
    leader reads the Events anew.
    """
    gone = Step(270.0, "gone", "gpu-01", (("seconds", 60),))
    plan = a_plan(hangs("gpu-01", 180), gone, killed(at=360.0), policies=("gpu-lost",), specs=ON_EVENTS, until=3600.0)
    outcome = play(plan)
    assert len(moments_of(outcome, "says Event/TaskHung/3-in-600s=True")) == 1, "of the first one"
    assert (moments_of(outcome, "is cordoned"), outcome.broken) == ([], ())


def test_events_that_repeat_have_their_node_repaired_and_silence_proves_that_it_is_well() -> None:
    """From minute 2 on one a minute for 6 minutes; three in ten minutes are enough, then two minutes more. Two that are
    told of three times each are two.
    """
    steps = (hangs("gpu-01", 360), hangs("gpu-02", 120, back=True), killed("Operating"))
    plan = a_plan(*steps, policies=("gpu-lost",), specs=ON_EVENTS, until=9000.0)
    outcome = play(plan)
    assert (touched(outcome), boots_of(outcome), outcome.broken) == ({"gpu-01"}, 1, ())
    assert the_case(outcome)[0] == "Recovered"


def test_a_rung_that_the_one_below_has_covered_is_left_out() -> None:
    """A reboot resets the GPU, too."""
    ladder = [{"operation": name, "attempts": 1} for name in ("reboot", "reset-gpu", "cordon")]
    specs = (("gpu-xid", (("ladder", ladder),)),)
    outcome = play(a_plan(fault("GpuXid"), killed("Verifying"), policies=("gpu-xid",), specs=specs, until=6000.0))
    assert ([name for name, _ in the_case(outcome)[1]], outcome.broken) == (["reboot", "cordon"], ())


def test_of_two_faults_of_one_node_the_operation_that_covers_the_other_one_cures_both() -> None:
    """A GPU that asks for a reset, and a file system that asks for a reboot: one boot, and no reset before it.

    Both policies act three minutes after the begin: one asks for one minute, and one for two.
    """
    both = (fault("GpuXid", "reset-gpu", "reboot", at=120.0), fault("FilesystemError", "reboot"))
    outcome = play(a_plan(*both, killed("Operating"), policies=("filesystem-error", "gpu-xid"), until=6000.0))
    assert (boots_of(outcome), moments_of(outcome, "runs reset-gpu"), outcome.broken) == (1, [], ())
    assert outcome.ending.nodes["gpu-01"].bad == ()


RULES = {
    "owners": ("keep", {"why": "data", "seconds": 7200}, {"owners": ["Job"], "strategy": "None"}),
    "selector": (
        "guard",
        {"seconds": 7200},
        {"selector": {"matchLabels": {"app": "guarded-gpu-01"}}, "strategy": "Delete"},
    ),
}


@pytest.mark.parametrize("by", sorted(RULES))
@pytest.mark.parametrize("ruled", [True, False])
def test_a_rule_for_some_pods_alone_decides_what_a_drain_does_with_these(by: str, ruled: bool) -> None:
    """Data of a job that nobody may lose, and a Pod that a PodDisruptionBudget holds; a drain has ten minutes."""
    kind, words, rule = RULES[by]
    drain = {"timeout": "10m"} | ({"rules": [rule]} if ruled else {})
    steps = (
        Step(1.0, "drain", "reboot", (("drain", drain), ("seconds", 9000))),
        Step(5.0, kind, "gpu-01", tuple(words.items())),
    )
    outcome = play(a_plan(*steps, fault("GpuLost", "reboot"), killed("Draining"), policies=("gpu-lost",), until=6000.0))
    assert (boots_of(outcome), the_case(outcome)[0]) == ((1, "Recovered") if ruled else (0, "Escalated"))
    assert outcome.broken == ()


@pytest.mark.parametrize(("after", "boots"), [("5m", 1), (None, 0)])
def test_a_pod_that_its_owner_keeps_goes_only_where_the_template_overrides_that_after_a_time(
    after: str | None, boots: int
) -> None:
    """A drain has ten minutes, and the leader dies in its middle."""
    drain = {"timeout": "10m"} | ({"overrideAnnotationsAfter": after} if after else {})
    steps = (
        Step(1.0, "drain", "reboot", (("drain", drain), ("seconds", 9000))),
        Step(5.0, "keep", "gpu-01", (("why", "do-not-disrupt"), ("seconds", 7200))),
    )
    outcome = play(a_plan(*steps, fault("GpuLost", "reboot"), killed("Draining"), policies=("gpu-lost",), until=6000.0))
    assert (boots_of(outcome), the_case(outcome)[0]) == (boots, "Recovered" if boots else "Escalated")
    assert outcome.broken == ()


@pytest.mark.parametrize(("back", "late"), [(1500, 0), (7200, 1)])
def test_a_node_that_a_user_takes_out_is_left_alone_until_it_is_put_back_and_told_of_when_late(
    back: int, late: int
) -> None:
    """For 40 minutes. The node falls ill after 15; the leader dies while the user has it."""
    out = Step(60.0, "take-out", "gpu-01", (("seconds", 2400), ("back", back)))
    ill = fault("GpuLost", "reboot", at=900.0)
    outcome = play(a_plan(out, ill, killed("Escalated"), policies=("gpu-lost",), until=12000.0))
    first, second = sorted(outcome.ending.nodes["gpu-01"].cases, key=lambda case: case.phase)
    assert ((first.phase, second.phase), boots_of(outcome), outcome.broken) == (("Escalated", "Recovered"), 1, ())
    given_back = moments_of(outcome, "is let go")[0]
    assert given_back < moments_of(outcome, "goes down")[0]
    opened = [moment for moment in moments_of(outcome, "is open by us") if moment < given_back]
    assert (len(opened), len(moments_of(outcome, "is closed by us"))) == (late, late)


PROVEN = {"settle": "1m", "fresh": "3m", "timeout": "20m", "probe": "gpu-check"}
TESTED = {"probe": "gpu-check", "share": "30%", "window": {"cron": "* * * * *", "duration": "1h", "timeZone": "UTC"}}


def test_idle_nodes_are_tested_two_of_seven_at_a_time_beside_a_repair_and_the_leader_dies() -> None:
    """30 % of seven nodes are two."""
    specs = (("gpu-lost", (("idleTest", TESTED),)),)
    shows = (IDLE_TESTS,)
    plan = a_plan(
        *(fault("GpuLost", "reboot"), killed("Operating")),
        policies=("gpu-lost",),
        specs=specs,
        shows=shows,
        until=4000.0,
    )
    outcome = play(plan)
    tested = set(re.findall(r"runs gpu-check for (\S+)", outcome.journal))
    assert (tested, outcome.broken) == (set(NODES), ())
    assert the_case(outcome)[0] == "Recovered"


def test_two_nodes_of_its_rack_are_the_neighbours_of_a_node_that_is_checked_and_one_is_cordoned_meanwhile() -> None:
    ask = Step(60.0, "ask", "gpu-01", (("template", "gpu-check"), ("deleted", 0)))
    amid = Step(61.0, "in-test", "", (("kind", "cordon"), ("words", (("seconds", 600),))))
    plan = a_plan(ask, amid, policies=("gpu-lost",), shows=(NEIGHBOURS,), until=4000.0)
    outcome = play(plan)
    taken = set(re.findall(r"runs gpu-check for (\S+)", outcome.journal)) - {"gpu-01"}
    assert ({rack(node) for node in taken}, len(taken), outcome.broken) == ({rack("gpu-01")}, 2, ())


def test_a_node_whose_gpu_computes_wrongly_is_repaired_by_what_its_test_has_found_and_no_other_node_is() -> None:
    """A reset cures nothing, the reboot after it does. The node gpu-02 cannot be judged, and gpu-03 does not answer."""
    bad = {"gpu-01": facts.GPU_WRONG, "gpu-02": facts.NVML_MISSING, "gpu-03": facts.GPU_HANGS}
    steps = [Step(1.0, "hinder", node, (("fact", fact), ("seconds", 9000))) for node, fact in bad.items()]
    specs = (("idle-test-failed", (("idleTest", TESTED), ("verify", PROVEN))),)
    plan = a_plan(*steps, policies=("idle-test-failed",), specs=specs, shows=(IDLE_TESTS,), until=6000.0)
    outcome = play(plan)
    assert (touched(outcome), boots_of(outcome), outcome.broken) == ({"gpu-01"}, 1, ())
    assert the_case(outcome)[0] == "Recovered"
    assert len(moments_of(outcome, "has failed a test of policy idle-test-failed")) == 1


def test_a_drain_whose_node_becomes_part_of_the_control_plane_by_a_static_pod_evicts_nobody_more() -> None:
    """A budget holds one Pod for ten minutes, and its end finds etcd there; the drain's own 30 minutes go on."""
    asked = Step(60.0, "ask", "gpu-01", (("template", "drain"), ("deleted", 0)))
    held = Step(5.0, "guard", "gpu-01", (("seconds", 600),))
    joins = during("Operating", "join-control-plane", at=100.0, role="etcd", seconds=3000)
    outcome = play(a_plan(asked, held, joins, policies=("gpu-lost",), until=4000.0))
    assert (the_case(outcome)[1], outcome.broken) == ((("drain", "Failed"),), ())

"""Tests of idle nodes: which node, how many at once, and what the end of one proves."""

from dataclasses import replace
from datetime import timedelta

import pytest

from remediator.core import idle_result, idle_test
from remediator.core.case import AttemptOutcome, Trigger
from remediator.core.idle_result import GpuResult, IdleResult
from remediator.core.idle_test import Candidate, IdleEnd, NodeUse
from remediator.core.node import Status, Taint
from remediator.core.pod import PodPhase
from remediator.core.policy import IdleTest, Mode
from remediator.core.template import RunOn, Strategy, Toleration
from remediator.core.window import Window
from tests.builders import a_case, a_node, a_pod, a_policy, a_template, an_attempt, at, condition, pool

HOURLY = Window("0 * * * *", timedelta(minutes=30))
READY = condition("Ready", "True")
GPUS = (("nvidia.com/gpu", 8),)
IDLE = a_node("gpu-1", READY, gpus=GPUS)
TEMPLATE = a_template("gpu-check", Strategy.NONE)
FREE = NodeUse((), held=False)
ENDED = a_pod(phase=PodPhase.FAILED, idle_test="gpu-lost", tested="gpu-1", created=at(0))
FOR_IT = Trigger("IdleTestFailed", "True", "ProbeFailed", "GPU 3 multiplies wrongly", at(10))
FOUND = IdleResult("gpu-lost", "gpu-check", False, at(10), "boot-1", "GPU 3 multiplies wrongly")


@pytest.mark.parametrize(
    ("share", "percent", "selected", "most"),
    [
        (5, True, 5000, 250),
        (5, True, 39, 1),  # 1.95, rounded down
        (5, True, 10, 1),  # 0.5: never none
        (100, True, 7, 7),
        (3, False, 100, 3),
        (3, False, 2, 2),
        (0, False, 4, 0),  # what a user writes who wants no tests
        (0, True, 4, 0),
        (5, True, 0, 0),
    ],
)
def test_a_share_is_rounded_down_and_is_one_node_at_least_unless_it_is_0(share, percent, selected, most):
    assert idle_test.allowed(IdleTest("gpu-check", share, HOURLY, percent), selected) == most


def test_there_are_as_many_names_as_nodes_may_be_tested_and_tests_of_a_larger_share_count():
    names = [idle_test.slot("gpu-lost", number) for number in range(4)]
    assert len(set(names)) == 4
    assert idle_test.free_slots("gpu-lost", 3, ()) == names[:3]
    assert idle_test.free_slots("gpu-lost", 3, {names[1]}) == [names[0], names[2]]
    assert idle_test.free_slots("gpu-lost", 2, {names[3]}) == names[:1], "the share was 4, and is 2 now"
    assert idle_test.free_slots("gpu-lost", 2, {names[2], names[3]}) == []


@pytest.mark.parametrize(
    ("pod", "end"),
    [
        pytest.param(replace(ENDED, phase=PodPhase.SUCCEEDED, exit_code=0), IdleEnd.PASSED, id="passed"),
        pytest.param(replace(ENDED, exit_code=1), IdleEnd.FAILED, id="failed"),
        pytest.param(replace(ENDED, exit_code=2), IdleEnd.CANNOT_TELL, id="refused"),
        pytest.param(replace(ENDED, exit_code=1, reason="DeadlineExceeded"), IdleEnd.TIMED_OUT, id="killed when late"),
        pytest.param(replace(ENDED, exit_code=137, reason="OOMKilled"), IdleEnd.KILLED, id="out of memory"),
        pytest.param(replace(ENDED, exit_code=1, reason="OOMKilled"), IdleEnd.KILLED, id="a child out of memory"),
        pytest.param(replace(ENDED, exit_code=143), IdleEnd.KILLED, id="by a signal"),
        pytest.param(replace(ENDED, exit_code=1, disrupted="PreemptionByScheduler"), IdleEnd.PREEMPTED, id="preempted"),
        pytest.param(replace(ENDED, exit_code=None, disrupted="EvictionByEvictionAPI"), IdleEnd.EVICTED, id="evicted"),
        pytest.param(replace(ENDED, exit_code=1, deletion=at(1)), IdleEnd.DELETED, id="being deleted"),
        pytest.param(replace(ENDED, phase=PodPhase.PENDING, node=""), IdleEnd.NOT_PLACED, id="work has come before it"),
        pytest.param(replace(ENDED, phase=PodPhase.PENDING), IdleEnd.NOT_STARTED, id="never started"),
        pytest.param(replace(ENDED, phase=PodPhase.PENDING, waiting="ErrImagePull"), IdleEnd.NOT_STARTED, id="image"),
        pytest.param(
            replace(ENDED, exit_code=None, waiting="ErrImagePull", reason="DeadlineExceeded"),
            IdleEnd.NOT_STARTED,
            id="image, until its time was over",
        ),
        pytest.param(replace(ENDED, phase=PodPhase.RUNNING), IdleEnd.TIMED_OUT, id="still running"),
    ],
)
def test_only_what_the_program_itself_says_proves_anything(pod, end):
    assert idle_test.end_of(pod) is end
    assert end.proves == (end in (IdleEnd.PASSED, IdleEnd.FAILED))


@pytest.mark.parametrize(
    ("pods", "waits"),
    [
        pytest.param((), False, id="none"),
        pytest.param((replace(ENDED, phase=PodPhase.RUNNING),), True, id="not taken back yet"),
        pytest.param((replace(ENDED, phase=PodPhase.RUNNING, deletion=at(9.5)),), True, id="ending since 30 s"),
        pytest.param((replace(ENDED, phase=PodPhase.RUNNING, deletion=at(9)),), False, id="cannot be ended"),
        pytest.param((ENDED,), False, id="ended"),
    ],
)
def test_an_operation_waits_for_a_test_of_its_node_for_a_minute_beyond_the_tests_grace(pods, waits):
    assert idle_test.holds_up(pods, at(10)) is waits


@pytest.mark.parametrize(
    ("node", "standing", "why"),
    [
        pytest.param(IDLE, FREE, "", id="idle"),
        pytest.param(IDLE, NodeUse((), held=True), "Pods hold GPUs", id="in use"),
        pytest.param(IDLE, NodeUse((a_case(),), held=False), "case case-1 is open", id="case"),
        pytest.param(replace(IDLE, gpus=()), FREE, "offers no GPUs", id="no GPUs"),
        pytest.param(replace(IDLE, gpus=(("nvidia.com/gpu.shared", 8),)), FREE, "offers no GPUs", id="shared"),
        pytest.param(replace(IDLE, unschedulable=True), FREE, "cordoned", id="cordoned"),
        pytest.param(replace(IDLE, labels={"remediator.dev/exclude": "true"}), FREE, "excluded", id="excluded"),
        pytest.param(replace(IDLE, conditions={}), FREE, "not Ready", id="not Ready"),
        pytest.param(
            replace(IDLE, taints=(Taint("remediator.dev/unproven", "", "NoSchedule"),)), FREE, "waits behind", id="gate"
        ),
        pytest.param(
            replace(IDLE, taints=(Taint("medik8s.io/drain", "", "NoSchedule"),)), FREE, "medik8s", id="others"
        ),
        pytest.param(replace(IDLE, taints=(Taint("team", "a", "NoSchedule"),)), FREE, "does not tolerate", id="taint"),
        pytest.param(replace(IDLE, taints=(Taint("nvidia.com/gpu", "", "NoSchedule"),)), FREE, "", id="taint of GPUs"),
        pytest.param(replace(IDLE, taints=(Taint("soft", "", "PreferNoSchedule"),)), FREE, "", id="a soft taint"),
    ],
)
def test_a_node_is_tested_only_where_it_is_idle_and_nobody_works_on_it(node, standing, why):
    found = idle_test.obstacle(node, standing, TEMPLATE)
    assert why in found if why else not found


def test_a_taint_that_the_template_tolerates_keeps_no_test_off():
    node = replace(IDLE, taints=(Taint("team", "a", "NoSchedule"),))
    assert not idle_test.obstacle(node, FREE, replace(TEMPLATE, tolerations=(Toleration("team", "a"),)))


@pytest.mark.parametrize(
    ("template", "why"),
    [
        (TEMPLATE, ""),
        (None, "no NodeOperationTemplate gpu-check"),
        (replace(TEMPLATE, run_on=RunOn.ELSEWHERE), "does not run on the node"),
        (replace(TEMPLATE, strategy=Strategy.EVICT), "drains the node first"),
    ],
)
def test_a_template_that_drains_or_runs_elsewhere_tests_no_idle_node(template, why):
    found = idle_test.cannot_run(template, IdleTest("gpu-check", 1, HOURLY))
    assert why in found if why else not found


def test_a_pause_and_each_mode_but_enforce_stop_new_tests():
    assert [idle_test.stops_new(a_policy(mode=mode), False) for mode in Mode] == [
        "",
        "its mode is DryRun",
        "its mode is Paused",
    ]
    assert idle_test.stops_new(a_policy(), True) == "everything is paused"


def test_what_has_failed_is_unknown_once_no_policy_has_the_node_tested_and_nothing_has_repaired_it():
    marked = replace(IDLE, conditions={**IDLE.conditions, "IdleTestFailed": condition("IdleTestFailed", "True")})
    said = idle_test.condition(marked, FOUND, (), asked=False)
    assert (said.status, said.reason) == (Status.UNKNOWN, "NoPolicyTestsIt")
    assert "no policy has this node tested any more" in said.message
    assert idle_test.condition(marked, replace(FOUND, passed=True), (), asked=False).status is Status.FALSE
    assert idle_test.condition(IDLE, FOUND, (), asked=False) is None, "of a node that shows nothing nothing is said"


def test_a_policy_has_a_node_tested_in_each_mode_and_also_where_it_cannot_be_read():
    tests = a_policy(FOUND.policy, idle_test=IdleTest("gpu-check", 1, HOURLY), mode=Mode.PAUSED)
    assert idle_test.asked(IDLE, FOUND, [tests])
    assert idle_test.asked(IDLE, FOUND, [a_policy(FOUND.policy, unreadable=True)])
    assert not idle_test.asked(IDLE, FOUND, [a_policy(FOUND.policy)])
    assert not idle_test.asked(IDLE, FOUND, [replace(tests, selector=pool("none"))])
    assert not idle_test.asked(IDLE, FOUND, [])


def test_the_longest_untested_nodes_come_first_and_those_never_tested_before_all():
    candidates = [Candidate(5.0, "c"), Candidate(0.0, "b"), Candidate(0.0, "a"), Candidate(2.0, "d")]
    assert idle_test.longest_untested(candidates, 3) == ["a", "b", "d"]


def test_a_node_is_due_once_each_time_that_the_window_opens():
    assert idle_test.is_due(None, "gpu-lost", at(5))
    assert not idle_test.is_due(FOUND, "gpu-lost", at(10))
    assert idle_test.is_due(FOUND, "gpu-lost", at(11))
    assert idle_test.is_due(FOUND, "another", at(5)), "another policy tries another probe"


@pytest.mark.parametrize(
    ("phase", "seconds", "late"),
    [
        (PodPhase.PENDING, 120, False),
        (PodPhase.PENDING, 121, True),  # no node in two minutes
        (PodPhase.RUNNING, 15 * 60 + 180, False),
        (PodPhase.RUNNING, 15 * 60 + 181, True),  # two minutes to be placed, its own time, one more
    ],
)
def test_a_test_is_taken_back_that_has_no_node_or_that_should_have_ended(phase, seconds, late):
    pod = a_pod(phase=phase, node="" if phase is PodPhase.PENDING else "gpu-1", created=at(0))
    assert idle_test.overdue(pod, timedelta(minutes=15), at(seconds=seconds)) == late


def test_a_deleted_test_that_no_kubelet_ends_keeps_its_place_for_five_minutes():
    pod = a_pod(deletion=at(1))
    assert [idle_test.lost(pod, at(minute)) for minute in (1, 6, 6.1)] == [False, False, True]
    assert not idle_test.lost(a_pod(), at(60))


def test_a_node_of_which_nothing_is_known_is_left_alone_for_ten_minutes_and_then_for_longer():
    pauses = [idle_test.pause(times) for times in (1, 2, 3, 4, 5, 100)]
    assert [each.total_seconds() / 60 for each in pauses] == [10, 20, 40, 80, 120, 120]


def test_a_failed_test_is_a_condition_until_the_node_passes():
    said = idle_test.condition(IDLE, FOUND, ())
    assert said == ("IdleTestFailed", Status.TRUE, "ProbeFailed", "GPU 3 multiplies wrongly")
    marked = replace(IDLE, conditions={**IDLE.conditions, "IdleTestFailed": condition("IdleTestFailed", "True")})
    passed = replace(FOUND, passed=True)
    assert idle_test.condition(marked, passed, ()).status is Status.FALSE
    assert idle_test.condition(IDLE, passed, ()) is None, "of a node that never failed nothing is said"
    assert idle_test.condition(IDLE, None, ()) is None


def test_what_was_found_stays_until_an_operation_of_a_case_for_it_has_succeeded():
    marked = replace(IDLE, conditions={**IDLE.conditions, "IdleTestFailed": condition("IdleTestFailed", "True")})
    assert idle_test.condition(replace(marked, boot_id="boot-2"), FOUND, ()).status is Status.TRUE, "a boot by hand"
    done = an_attempt(outcome=AttemptOutcome.SUCCEEDED, started=11, finished=12)
    repaired = a_case(node_uid=marked.uid, attempts=(done,), trigger=FOR_IT)
    assert idle_test.condition(replace(marked, boot_id="boot-2"), FOUND, (repaired,)).reason == "NotTestedSince"
    before = replace(repaired, attempts=(replace(done, finished=at(9)),))
    probed = replace(repaired, attempts=(replace(done, probe=True),))
    another = replace(repaired, trigger=replace(FOR_IT, condition="ClockUnsynchronized"))
    of_a_user = replace(repaired, trigger=None)
    unlike = [end for end in AttemptOutcome if end is not AttemptOutcome.SUCCEEDED]
    others = [replace(repaired, attempts=(replace(done, outcome=end),)) for end in unlike]
    for case in (before, probed, another, of_a_user, *others):
        assert idle_test.condition(marked, FOUND, (case,)).status is Status.TRUE


def test_of_several_policies_the_one_whose_name_sorts_first_tests_a_node_and_explain_says_which():
    asks = IdleTest("gpu-check", 1, HOURLY)
    first, second = a_policy("a", idle_test=asks), a_policy("b", idle_test=asks)
    assert idle_test.tester(IDLE, (second, first)) == "a"
    assert idle_test.tester(IDLE, (second, replace(first, mode=Mode.PAUSED))) == "b"
    assert idle_test.tester(IDLE, (replace(first, idle_test=None),)) == ""
    said = ["idle test: policy b does not test it: policy a does"]
    assert list(idle_test.standing(IDLE, None, (), (second, first))) == said


MESSAGE = (
    "all 2 GPUs work. 0000:1b:00.0 (serial 1650923000001, GPU-9f3c01ab-1111) NVIDIA H200: 5 rounds. "
    "0000:43:00.0 (GPU-9f3c01ab-2222) NVIDIA L4: 5 rounds"
)


def test_results_are_kept_by_the_serial_number_of_the_gpu_and_the_newest_counts():
    passed = replace(FOUND, passed=True)
    kept = idle_result.merged((), idle_result.of_gpus(passed, MESSAGE))
    one = GpuResult("1650923000001", "GPU-9f3c01ab-1111", True, at(10))
    assert set(kept) == {one, GpuResult("", "GPU-9f3c01ab-2222", True, at(10))}
    failed = replace(FOUND, at=at(20))
    words = "memory: 0000:1b:00.0 (serial 1650923000001, GPU-9f3c01ab-1111): 3 uncorrected errors while it worked"
    after = idle_result.merged(kept, idle_result.of_gpus(failed, words))
    assert after[0] == replace(one, passed=False, at=at(20))
    assert len(after) == 2, "of the other one nothing new is known"


def test_as_many_results_are_kept_as_there_is_room_for_the_newest_first():
    many = (GpuResult(f"16509230{number:05}", "", True, at(number)) for number in range(40))
    kept = idle_result.merged((), many)
    assert (len(kept), kept[0].serial, kept[-1].serial) == (32, "1650923000039", "1650923000008")

"""What the repair of a node would end: jobs, their GPUs on all nodes, and the hours since they began or saved."""

from dataclasses import replace

import pytest

from remediator.core.blast_radius import (
    UNCOUNTED,
    WorkingPod,
    blast_radius,
    concerns,
    described,
    of_start,
    shown,
    usable,
    verdict,
    wanted,
)
from remediator.core.case import Block, Phase
from remediator.core.job import Job, job_of
from remediator.core.jobs_at_stake import BlastRadius, JobAtStake
from remediator.core.policy import Approval, BlastLimit, Urgency
from remediator.core.reasons import REMEDY, Reason
from remediator.core.user_pod import UserPod
from tests.builders import a_case, a_policy, an_attempt, at

HOURS = 60  # minutes
OPERATIONS = "remediator-operations"
LARGE = JobAtStake("JobSet", "team", "train", 8, 64, at(0), 640)
LOOK = BlastRadius(at(600), (LARGE,), 1, 1, 8, 64, 640)


def a_pod(name, job="", *, node="gpu-1", gpus=8, begun=0.0, namespace="team", saved=None, saves=False, **more):
    """A Pod of a JobSet, or alone; minutes since the beginning of time."""
    of = Job("JobSet", namespace, job, "jobset.sigs.k8s.io/jobset-name") if job else Job("Pod", namespace, name)
    times = (None if begun is None else at(begun), saves, None if saved is None else at(saved))
    return WorkingPod(UserPod(name, namespace, **more), f"uid-{name}", node, of, gpus, *times)


def radius(*pods, minute=10 * HOURS, doubt=""):
    return blast_radius("gpu-1", pods, OPERATIONS, at(minute), doubt)


def test_8_of_64_gpus_of_a_gang_end_all_640_hours_of_its_10():
    gang = [a_pod(f"train-{number}", "train", node=f"gpu-{number}") for number in range(1, 9)]
    assert radius(*gang) == LOOK


def test_a_pod_that_is_given_twice_counts_once():
    assert radius(a_pod("a"), a_pod("a")).gpus == 8


def test_two_pods_alone_are_two_jobs_and_a_job_elsewhere_is_none():
    seen = radius(a_pod("a", gpus=2), a_pod("b", gpus=1), a_pod("c", "train", node="gpu-2"))
    assert (seen.count, seen.pods, seen.here, seen.gpus, seen.gpu_hours) == (2, 2, 3, 3, 30)
    assert [str(job) for job in seen.jobs] == ["Pod team/a", "Pod team/b"]


@pytest.mark.parametrize(
    ("more", "count"),
    [
        ({}, 1),
        ({"gpus": 0}, 0),
        ({"owner": "DaemonSet"}, 0),
        ({"mirror": True}, 0),
        ({"ended": True}, 0),
        ({"namespace": "kube-system"}, 0),
        ({"namespace": OPERATIONS}, 0),
        ({"node": "gpu-2"}, 0),
        ({"deletion": at(600)}, 1),
        ({"deletion": at(599)}, 0),
        ({"begun": None}, 0),
    ],
    ids=[
        "works",
        "no GPU",
        "DaemonSet",
        "mirror",
        "ended",
        "kube-system",
        "operations",
        "elsewhere",
        "ending",
        "overdue",
        "not begun",
    ],
)
def test_what_a_drain_would_end_counts(more, count):
    assert radius(a_pod("a", **more)).count == count


def test_a_launcher_without_gpus_ends_the_8_gpus_of_its_workers():
    seen = radius(a_pod("launcher", "train", gpus=0), a_pod("worker", "train", node="gpu-2"))
    assert (seen.count, seen.pods, seen.here, seen.gpus, seen.gpu_hours) == (1, 0, 0, 8, 80)


def test_a_pod_that_asks_for_an_absurd_number_of_gpus_holds_64_of_them():
    """Nobody has to offer what a Pod asks for: one that was put on a node by hand may ask for anything."""
    seen = radius(a_pod("a", gpus=9_223_372_036_854_775), a_pod("b", "train", gpus=0), a_pod("c", "train", gpus=10**18))
    assert (seen.here, seen.gpus, seen.gpu_hours) == (128, 128, 1280)
    assert radius(a_pod("a", "train"), a_pod("b", "train", node="ghost", gpus=10**18, begun=None)).gpus == 8


def test_members_that_no_node_was_found_for_hold_nothing():
    assert radius(a_pod("a", "train"), a_pod("b", "train", node="")).gpus == 8


@pytest.mark.parametrize(
    ("pods", "hours"),
    [
        ([{"begun": None}, {"begun": 9 * HOURS}], 8),
        ([{"begun": 9 * HOURS}], 8),
        ([{"begun": 9 * HOURS + 59}], 1),
        ([{"begun": 11 * HOURS}], 0),
        ([{"saves": True}], 80),
        ([{"saves": True, "saved": 8 * HOURS}], 16),
        ([{"saves": False, "saved": 8 * HOURS}], 80),
        ([{"saves": True, "saved": 11 * HOURS}], 80),
        ([{"begun": 5 * HOURS, "saves": True, "saved": 2 * HOURS}], 40),
        ([{"saves": True, "saved": 8 * HOURS}, {"saves": True}], 160),
        ([{"saves": True, "saved": 8 * HOURS}, {"saves": True, "saved": 9 * HOURS}], 32),
        ([{"saves": True, "saved": 8 * HOURS}, {}], 32),
        ([{"begun": 2 * HOURS}, {"begun": 4 * HOURS}], 128),
    ],
    ids=[
        "one has not begun",
        "an hour",
        "a minute is rounded up",
        "a begin to come is none",
        "never saved",
        "saved 2 hours ago",
        "no checkpoint is asked of it",
        "saved in the future",
        "saved before it began",
        "one of two has not saved",
        "the older of two",
        "one saves for both",
        "the first that began",
    ],
)
def test_hours_count_from_the_begin_of_a_job_or_the_checkpoint_that_all_have_reached(pods, hours):
    gang = [a_pod(f"train-{number}", "train", **{"begun": 0, **facts}) for number, facts in enumerate(pods)]
    assert radius(*gang).gpu_hours == hours


@pytest.mark.parametrize(
    ("owner", "of", "more", "hours"),
    [
        ("ReplicaSet", "Pod", {}, 0),
        ("StatefulSet", "Pod", {}, 0),
        ("StatefulSet", "LeaderWorkerSet", {}, 0),
        ("StatefulSet", "gang", {}, 80),
        ("StatefulSet", "Pod", {"saves": True}, 80),
        ("Job", "Pod", {}, 80),
        ("", "Pod", {}, 80),
    ],
)
def test_what_serves_has_no_hours_to_lose_and_is_a_job_all_the_same(owner, of, more, hours):
    pod = a_pod("a", owner=owner, **more)
    seen = radius(replace(pod, job=Job(of, "team", "a")))
    assert (seen.count, seen.gpus, seen.gpu_hours) == (1, 8, hours)
    assert described(seen).endswith("no work is lost)" if not hours else "since 2026-01-01 12:00 UTC)")


def test_of_12_jobs_the_8_with_the_most_hours_are_named_and_all_12_count():
    seen = radius(*(a_pod(f"pod-{number:02}", gpus=1, begun=number) for number in range(12)))
    assert (seen.count, seen.gpus, len(seen.jobs), seen.jobs[0].name, seen.jobs[-1].name) == (
        12,
        12,
        8,
        "pod-00",
        "pod-07",
    )
    assert described(seen, 3).endswith("; and 9 more)")


def test_what_cannot_be_counted_or_listed_is_unknown_and_has_no_numbers():
    uncounted = radius(a_pod("a", "train"), a_pod("b", "train", node="gpu-2", gpus=None))
    assert uncounted == BlastRadius(at(600), unknown=UNCOUNTED.format("team/b"))
    assert radius(a_pod("a"), doubt="away") == BlastRadius(at(600), unknown="away")
    assert radius(a_pod("a", node="gpu-2", gpus=None)) == BlastRadius(at(600)), "it has nothing to do with the node"


def test_a_sentence_names_jobs_gpus_hours_and_since_when():
    assert described(LOOK) == (
        "1 job on 64 GPUs, 640 GPU-hours (JobSet team/train: 8 of its 64 GPUs here, since 2026-01-01 12:00 UTC)"
    )
    assert described(BlastRadius(at(0))) == "no job with GPUs"
    assert described(BlastRadius(at(0), unknown="away")) == "unknown: away"


# --- what holds a start ----------------------------------------------------------------------------------------------


def reasons(limit, seen=LOOK, minute=601, case=None):
    blocks, look, _ = verdict(case or a_case(), limit, seen, at(minute))
    return [block.reason.value for block in blocks], look


@pytest.mark.parametrize(
    ("limit", "held"),
    [
        (None, []),
        (BlastLimit(1, 640), []),
        (BlastLimit(0, None), ["BlastRadius"]),
        (BlastLimit(None, 639), ["BlastRadius"]),
        (BlastLimit(5, 639), ["BlastRadius"]),
        (BlastLimit(0, 0), ["BlastRadius"]),
    ],
)
def test_1_job_and_640_gpu_hours_are_held_above_a_limit_only(limit, held):
    assert reasons(limit) == (held, False)


def test_an_approval_lets_any_radius_pass_also_one_that_is_unknown():
    approved = a_case(approved=True)
    assert reasons(BlastLimit(0, 0), case=approved) == ([], False)
    assert reasons(BlastLimit(0, 0), replace(BlastRadius(at(600)), unknown="away"), case=approved) == ([], True)


def test_what_is_unknown_holds_where_a_limit_is_set_and_nothing_else():
    unknown = BlastRadius(at(600), unknown="away")
    assert reasons(BlastLimit(5, 500), unknown, 600.1) == (["BlastRadiusUnknown"], False)
    assert reasons(None, unknown, 600.1) == ([], False)


@pytest.mark.parametrize(
    ("seen", "minute", "look"),
    [
        (None, 600, True),
        (LOOK, 600, False),
        (LOOK, 604.9, False),
        (LOOK, 605, True),
        (LOOK, 599, True),
        (BlastRadius(at(600), unknown="away"), 600.4, False),
        (BlastRadius(at(600), unknown="away"), 600.5, True),
    ],
    ids=["never", "now", "under 5 minutes", "5 minutes", "from the future", "unknown: under 30 s", "unknown: 30 s"],
)
def test_a_look_may_be_used_for_5_minutes_and_one_that_could_not_tell_for_30_seconds(seen, minute, look):
    assert reasons(None, seen, minute) == ([], look)


def test_an_old_look_goes_on_holding_until_a_new_one_says_something_else():
    assert reasons(BlastLimit(0), minute=700) == (["BlastRadius"], True)


def test_on_a_claimed_node_only_a_look_since_the_claim_counts():
    claimed = a_case(phase=Phase.DRAINING, started=at(600, 30))
    assert reasons(None, case=claimed) == ([], True)
    assert reasons(None, replace(LOOK, at=at(600, 30)), case=claimed) == ([], False)


def test_the_hold_has_the_numbers_the_limit_and_the_remedy():
    ((block,), _, _) = verdict(a_case(), BlastLimit(5, 500), LOOK, at(601))
    assert block.message == (
        "1 job on 64 GPUs, 640 GPU-hours (JobSet team/train: 8 of its 64 GPUs here, since 2026-01-01 12:00 UTC); "
        f"the policy lets at most 5 jobs and 500 GPU-hours end; {REMEDY[Reason.BLAST_RADIUS]}"
    )


def test_a_hold_because_of_claims_of_dra_says_that_each_case_needs_an_approval():
    ((block,), _, _) = verdict(a_case(), BlastLimit(5), radius(a_pod("a", gpus=None)), at(600, 1))
    assert block.message == (
        "nobody can tell what would end: the GPUs of Pod team/a cannot be counted (it has resource claims of DRA, "
        "or asks for a number that cannot be read); under a policy with a limit each case on such a node waits for an "
        "approval; set spec.approved of the case to true to let it start all the same, or take spec.maxBlastRadius off "
        "the policy"
    )


@pytest.mark.parametrize(
    ("policy", "case", "attempt", "asked"),
    [
        ({}, {}, False, False),
        ({}, {}, True, True),
        ({"max_blast_radius": BlastLimit(1)}, {}, False, True),
        ({"max_blast_radius": BlastLimit(1)}, {"approved": True}, False, False),
        ({"approval": Approval.REQUIRED}, {}, False, True),
        ({"approval": Approval.REQUIRED}, {"approved": True}, False, False),
        ({"urgency": Urgency.NEVER, "max_blast_radius": BlastLimit(1)}, {}, True, False),
    ],
)
def test_a_node_is_looked_at_before_each_attempt_and_before_a_claim_that_a_limit_or_a_person_may_hold(
    policy, case, attempt, asked
):
    assert wanted(a_case(**case), a_policy(**policy), attempt) is asked


def test_nobody_looks_for_a_case_that_anything_but_an_approval_holds():
    assert concerns(())
    assert concerns((Block(Reason.APPROVAL_NEEDED, ""),))
    assert not concerns((Block(Reason.APPROVAL_NEEDED, ""), Block(Reason.OUTSIDE_WINDOW, "")))


# --- what a status shows ---------------------------------------------------------------------------------------------


def later(minute, hours):
    return replace(LOOK, at=at(minute), gpu_hours=hours, jobs=(replace(LARGE, gpu_hours=hours),))


@pytest.mark.parametrize(
    ("seen", "limit", "new"),
    [
        (later(630, 672), None, False),
        (later(659, 703), None, False),
        (later(660, 704), None, True),
        (later(630, 672), BlastLimit(None, 660), True),
        (replace(LOOK, at=at(601), count=2), None, True),
        (BlastRadius(at(601), unknown="away"), None, True),
        (None, None, False),
    ],
    ids=["half an hour", "59 minutes", "an hour", "a limit is crossed", "another job", "unknown", "no look"],
)
def test_the_same_jobs_are_written_once_an_hour(seen, limit, new):
    assert shown(LOOK, seen, limit) is (seen if new else LOOK)
    assert shown(None, seen, limit) is seen


def test_when_nothing_is_left_to_end_a_case_goes_on_to_say_what_its_first_start_has_ended():
    nothing, unknown = BlastRadius(at(700)), BlastRadius(at(700), unknown="away")
    tried = a_case(attempts=(an_attempt(),), blast=LOOK)
    assert of_start(tried, nothing) is LOOK
    assert of_start(replace(tried, blast=None), nothing) is nothing
    assert of_start(tried, unknown) is unknown
    assert of_start(tried, None) is LOOK


def test_jobs_that_ended_by_themselves_while_a_case_waited_are_none_that_its_start_has_ended():
    nothing = BlastRadius(at(700))
    assert of_start(a_case(blast=LOOK), nothing) is nothing


# --- jobs ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("labels", "annotations", "group", "job"),
    [
        ({}, {}, "", "Pod team/pod"),
        ({"jobset.sigs.k8s.io/jobset-name": "a", "job-name": "a-workers-0"}, {}, "", "JobSet team/a"),
        ({"training.kubeflow.org/job-name": "a"}, {}, "", "training job team/a"),
        ({"ray.io/cluster": "a"}, {}, "", "RayCluster team/a"),
        ({"volcano.sh/job-name": "a"}, {}, "", "Volcano job team/a"),
        ({"kueue.x-k8s.io/pod-group-name": "a"}, {}, "", "Kueue group team/a"),
        ({"batch.kubernetes.io/job-name": "a", "job-name": "a"}, {}, "", "Job team/a"),
        ({"job-name": "a"}, {}, "", "Job team/a"),
        ({"job-name": "a"}, {}, "b", "PodGroup team/b"),
        ({}, {"scheduling.k8s.io/group-name": "a"}, "", "Volcano group team/a"),
        ({}, {"scheduling.k8s.io/group-name": "podgroup-1"}, "", "Pod team/pod"),
        ({}, {"scheduling.k8s.io/group-name": "a b\n"}, "", "Pod team/pod"),
        ({}, {"scheduling.k8s.io/group-name": "a" * 254}, "", "Pod team/pod"),
        ({"remediator.dev/gang": "false", "job-name": "a"}, {}, "b", "Pod team/pod"),
        ({"remediator.dev/gang": "mine", "job-name": "a"}, {}, "", "gang team/mine"),
    ],
)
def test_a_pod_is_of_the_largest_job_that_it_names(labels, annotations, group, job):
    assert str(job_of("team", "pod", labels, annotations, group)) == job


@pytest.mark.parametrize(
    ("claimed", "used"),
    [(None, True), (at(599), True), (at(600), True), (at(601), False), (at(602), True)],
    ids=["not claimed", "before it", "with it", "after it", "by a clock that is ahead"],
)
def test_a_look_counts_from_the_claim_on_unless_that_lies_in_the_future(claimed, used):
    assert usable(radius(a_pod("a")), claimed, at(601)) is used

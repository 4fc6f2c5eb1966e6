"""GPUs that nobody uses: what proves it, what becomes of it, and what is never taken."""

import json
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any

import pytest

from remediator.clock import Clock
from remediator.core import names
from remediator.core.idle_policy import Finding, IdleAction, IdlePolicy, JanitorMode, Signal
from remediator.core.pod_facts import PodFacts
from remediator.janitor.decide import JanitorReason
from remediator.janitor.idle.evidence import Evidence, SignalAnswers, all_of, judge, questions
from remediator.janitor.idle.holding import Holding, decide
from remediator.janitor.idle.one_pass import IdlePass
from remediator.janitor.idle.reader import CONCERNS
from remediator.janitor.idle.sources import Sources
from remediator.janitor.idle.table import TABLE, WORDS, IdleStep, NoticeState, State
from remediator.janitor.outcome import JanitorOutcome
from remediator.janitor.run import Janitor
from remediator.janitor.settings import JanitorSettings
from remediator.kube import api
from remediator.kube.api import owners
from remediator.kube.wire.times import stamp
from remediator.metrics import REGISTRY
from remediator.prometheus.reading import CannotTell, Doubt, Reading
from tests.harness.kinds import DEPLOYMENTS, PODS
from tests.remediator.janitor.idle_place import HOUR, JOBS, SETS, Cluster, became, reference
from tests.remediator.janitor.place import NOW

POLICY = IdlePolicy("gpus", ("team",), actions=tuple(IdleAction))
KEY = ("team", "p")


def pod(gpus: int | None = 2, ago: float = 10, **notes: str) -> PodFacts:
    return PodFacts("team", "p", "u", gpus, NOW - ago * HOUR, notes, {"owner": "alice"})


def shown(highest: float = 0, devices: float = 2, proven: float = 120) -> SignalAnswers:
    return SignalAnswers(Signal(), {KEY: highest}, {KEY: devices}, {KEY: proven})


@pytest.mark.parametrize(
    ("one", "answers", "state"),
    [
        (pod(), [shown()], State.IDLE),
        (pod(), [shown(1)], State.BUSY),
        (pod(), [shown(), shown(1)], State.BUSY),  # one of two signals
        (pod(), [shown(3, devices=1, proven=1)], State.BUSY),  # one sample of use is use
        (pod(), [shown(proven=119)], State.UNKNOWN),  # a minute without a sample in two hours
        (pod(), [shown(), shown(proven=0)], State.UNKNOWN),
        (pod(), [shown(devices=1)], State.UNKNOWN),  # of two GPUs one is shown
        (pod(), [SignalAnswers(Signal())], State.UNKNOWN),  # Prometheus has never heard of it
        (pod(None), [shown()], State.UNKNOWN),  # its GPUs cannot be counted
        (pod(ago=1.99), [shown()], State.YOUNG),  # the samples may be of one of the same name before it
        (pod(ago=2), [shown()], State.IDLE),
    ],
)
def test_only_all_samples_of_all_gpus_prove_idleness(one: PodFacts, answers: list[SignalAnswers], state: State) -> None:
    assert judge(one, answers, POLICY, NOW).state is state


def test_an_owner_is_idle_only_where_each_of_its_pods_is() -> None:
    order = [State.BUSY, State.CONTRADICTED, State.YOUNG, State.UNKNOWN, State.IDLE]
    for left, right in product(order, order):
        found = all_of([Evidence(left, "l"), Evidence(right, "r")], others=False).state
        assert found is min(left, right, key=order.index)
    assert all_of([], others=False).state is State.UNKNOWN
    mixed = all_of([Evidence(State.IDLE, "l")], others=True)
    assert mixed.state is State.UNKNOWN, "it has Pods without GPUs, of which the signals say nothing"


def test_questions_ask_for_samples_in_each_minute_by_either_name_of_the_labels() -> None:
    asked = questions(Signal('M{cluster="a"}'), IdlePolicy("x", ("*",), idle_for=HOUR))
    assert 'count_over_time(max_over_time(M{cluster="a"}[120s])[3600s:60s])' in asked.proven
    for query, how in ((asked.highest, "max"), (asked.devices, "count"), (asked.proven, "min")):
        assert query.startswith(f"{how} by (namespace, pod) (label_replace(label_replace(")
        assert '"pod", "$1", "exported_pod", "(.+)"' in query
        assert '"namespace", "$1", "exported_namespace", "(.+)"' in query
    assert (POLICY.steps, IdlePolicy("x", ("*",), idle_for=24 * HOUR).steps) == (120, 288)


def test_the_table_has_a_row_for_everything_and_acts_only_on_idleness_whose_grace_is_over() -> None:
    assert set(TABLE) == set(product(State, NoticeState))
    acts = [key for key, (step, _) in TABLE.items() if step is IdleStep.ACT]
    assert acts == [(State.IDLE, NoticeState.OVER)]
    tells = {state for (state, _), (step, _) in TABLE.items() if step is IdleStep.TELL}
    assert tells == {State.IDLE, State.FIXED}
    assert set(WORDS) == set(Finding) == set(CONCERNS), "and words for each thing that a policy may look for"
    unknown = {step for (state, _), (step, _) in TABLE.items() if state in (State.UNKNOWN, State.UNREADABLE)}
    assert unknown == {IdleStep.HOLD}, "cannot tell starts nothing and ends nothing"


def told(at: datetime, until: datetime, policy: str = "gpus") -> dict[str, str]:
    return {names.IDLE_POLICY: policy, names.IDLE_NOTIFIED_AT: stamp(at), names.IDLE_UNTIL: stamp(until)}


LONG_TOLD = told(NOW - 5 * HOUR, NOW - HOUR)
KEEPS = {names.KEEP_UNTIL: stamp(NOW + HOUR)}


@pytest.mark.parametrize(
    ("row", "notes", "more"),
    [
        ((IdleStep.TELL, JanitorReason.IDLE_NOTICE), {}, {}),
        ((IdleStep.HOLD, JanitorReason.GRACE), told(NOW - 3.99 * HOUR, NOW), {}),
        ((IdleStep.ACT, JanitorReason.IDLE), told(NOW - 4 * HOUR, NOW), {}),
        (
            (IdleStep.HOLD, JanitorReason.GRACE),
            told(NOW - 4 * HOUR, NOW + HOUR),
            {},
        ),  # as was told, though the policy is shorter now
        ((IdleStep.TELL, JanitorReason.IDLE_NOTICE), told(NOW - 5 * HOUR, NOW - HOUR, "other"), {}),
        ((IdleStep.TELL, JanitorReason.IDLE_NOTICE), told(NOW + HOUR, NOW - HOUR), {}),  # from the future
        ((IdleStep.ACT, JanitorReason.IDLE), told(NOW - 844 * HOUR, NOW - 839 * HOUR), {}),
        (
            (IdleStep.TELL, JanitorReason.IDLE_NOTICE),
            told(NOW - 845 * HOUR, NOW - 840 * HOUR),
            {},
        ),  # over for 35 days: forgotten
        ((IdleStep.TELL, JanitorReason.IDLE_NOTICE), LONG_TOLD | {names.IDLE_UNTIL: "soon"}, {}),
        ((IdleStep.CLEAR, JanitorReason.IN_USE), LONG_TOLD, {"state": State.BUSY}),
        ((IdleStep.CLEAR, JanitorReason.YOUNG), LONG_TOLD, {"state": State.YOUNG}),
        ((IdleStep.HOLD, JanitorReason.CANNOT_TELL), LONG_TOLD, {"state": State.UNKNOWN}),
        ((IdleStep.CLEAR, JanitorReason.KEPT), LONG_TOLD | KEEPS, {}),
        ((IdleStep.CLEAR, JanitorReason.KEPT), LONG_TOLD, {"pod": KEEPS}),
        ((IdleStep.CLEAR, JanitorReason.KEPT), LONG_TOLD, {"space": KEEPS}),
        ((IdleStep.HOLD, JanitorReason.UNREADABLE), LONG_TOLD, {"pod": {names.KEEP_UNTIL: "90"}}),
        ((IdleStep.HOLD, JanitorReason.OUTSIDE_HOURS), LONG_TOLD, {"shut": True}),
        ((IdleStep.HOLD, JanitorReason.TOLD_ONLY), LONG_TOLD, {"maker": "PyTorchJob/bert"}),
        ((IdleStep.HOLD, JanitorReason.TOLD_ONLY), LONG_TOLD, {"actions": (IdleAction.SUSPEND,)}),
    ],
)
def test_what_becomes_of_a_pod_follows_from_its_state_and_its_notice(
    row: tuple[IdleStep, JanitorReason], notes: dict[str, str], more: dict[str, Any]
) -> None:
    policy = IdlePolicy("gpus", ("team",), actions=more.get("actions", tuple(IdleAction)))
    held = Holding(
        owners.POD, "team", "p", "u", notes, (pod(**more.get("pod", {})),), more.get("maker", ""), more.get("space", {})
    )
    evidence = Evidence(more.get("state", State.IDLE), "2 GPUs")
    assert decide(held, evidence, policy, NOW, shut=more.get("shut", False))[1] == row


# --- whole passes on the embedded server ---------------------------------------------------------------------------


async def test_an_owner_is_told_and_when_the_grace_is_over_the_pod_goes() -> None:
    at = Cluster()
    await at.policy()
    await at.gpus("idle")
    await at.gpus("busy", use=40)
    report = await at.idle()
    assert became(report) == [(JanitorOutcome.TOLD, "pods/team/idle", JanitorReason.IDLE_NOTICE)]
    assert (report.gpus, report.gpu_hours) == (2, 4)
    assert await at.events() == [("IdleNotification", "idle")]
    assert became(await at.idle(3.9)) == [(JanitorOutcome.HELD, "pods/team/idle", JanitorReason.GRACE)]
    assert at.writes() == []
    assert became(await at.idle(4)) == [(JanitorOutcome.DELETED, "pods/team/idle", JanitorReason.IDLE)]
    assert await at.names(PODS, "team") == {"busy"}


async def test_a_job_is_suspended_only_when_all_of_its_pods_are_idle() -> None:
    at = Cluster()
    await at.policy()
    await at.serve(JOBS)
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "m", "image": "x"}]}}
    job = await at.make(JOBS, "train", spec={"template": template})
    await at.gpus("train-0", owner=job)
    await at.gpus("train-1", use=90, owner=job)
    assert became(await at.idle()) == []
    at.asked.pods["train-1"] = (0, 2, 120)
    assert became(await at.idle(1)) == [(JanitorOutcome.TOLD, "jobs/team/train", JanitorReason.IDLE_NOTICE)]
    assert {name for reason, name in await at.events()} == {"train", "train-0", "train-1"}
    assert became(await at.idle(5)) == [(JanitorOutcome.SUSPENDED, "jobs/team/train", JanitorReason.IDLE)]
    assert (await at.admin.get(JOBS, "train", namespace="team"))["spec"]["suspend"] is True
    assert not set(await at.marks(JOBS, "train")) & {names.IDLE_UNTIL, names.IDLE_NOTIFIED_AT}


async def test_a_deployment_is_scaled_to_0_and_says_how_many_it_had() -> None:
    at = Cluster()
    await at.policy()
    await at.serve(DEPLOYMENTS, SETS)
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}}}
    spec["template"] |= {"spec": {"containers": [{"name": "m", "image": "x"}]}}
    web = await at.make(DEPLOYMENTS, "web", spec={**spec, "replicas": 1})
    made = await at.make(SETS, "web-1", spec={**spec, "replicas": 1}, metadata={"ownerReferences": [reference(web)]})
    await at.gpus("web-1-x", owner=made)
    await at.idle()
    assert became(await at.idle(4)) == [(JanitorOutcome.SCALED, "deployments/team/web", JanitorReason.IDLE)]
    assert (await at.admin.get(DEPLOYMENTS, "web", namespace="team"))["spec"]["replicas"] == 0
    assert (await at.marks(DEPLOYMENTS, "web"))[names.IDLE_REPLICAS] == "1"


async def test_of_what_nobody_knows_how_to_stop_the_owner_is_told_once() -> None:
    at = Cluster()
    await at.policy()
    other = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "bert", "uid": "7"}}
    await at.gpus("bert-0", owner=other)
    assert became(await at.idle()) == [(JanitorOutcome.TOLD, "pods/team/bert-0", JanitorReason.IDLE_NOTICE)]
    assert became(await at.idle(50)) == [(JanitorOutcome.HELD, "pods/team/bert-0", JanitorReason.TOLD_ONLY)]
    assert at.writes() == []


@pytest.mark.parametrize("doubt", [Doubt.WARNED, Doubt.PARTIAL, Doubt.EMPTY, Doubt.STALE, Doubt.UNREACHABLE])
async def test_while_prometheus_cannot_tell_nothing_begins_and_nothing_ends(doubt: Doubt) -> None:
    at = Cluster()
    await at.policy()
    await at.gpus("idle")
    await at.idle()
    at.asked.doubt = CannotTell(doubt, "some store did not answer")
    report = await at.idle(9)
    assert (at.writes(), report.lines) == ([], [])
    assert report.problems == [f"nobody can tell what is idle: Prometheus: {doubt}: some store did not answer"]
    assert names.IDLE_UNTIL in await at.marks(PODS, "idle")


async def test_use_takes_the_notice_back_and_the_next_one_gives_the_whole_grace() -> None:
    at = Cluster()
    await at.policy()
    await at.gpus("p")
    await at.idle()
    at.asked.pods["p"] = (5, 2, 120)
    assert became(await at.idle(3)) == [(JanitorOutcome.CLEARED, "pods/team/p", JanitorReason.IN_USE)]
    at.asked.pods["p"] = (0, 2, 120)
    assert became(await at.idle(6)) == [(JanitorOutcome.TOLD, "pods/team/p", JanitorReason.IDLE_NOTICE)]
    assert became(await at.idle(9)) == [(JanitorOutcome.HELD, "pods/team/p", JanitorReason.GRACE)]


async def test_what_is_kept_between_the_look_and_the_write_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    at = Cluster()
    await at.policy()
    await at.gpus("p")
    await at.idle()
    ask = at.asked.instant

    async def meanwhile(query: str, within: timedelta) -> Reading:
        await at.annotate(PODS, "p", **{names.KEEP_UNTIL: "forever"})
        return await ask(query, within)

    monkeypatch.setattr(at.asked, "instant", meanwhile)
    assert became(await at.idle(5)) == []
    assert await at.names(PODS, "team") == {"p"}


async def test_a_namesake_that_came_later_is_not_hit() -> None:
    at = Cluster()
    await at.policy()
    await at.gpus("p")
    await at.idle()
    await at.idle(5)
    bodies = [json.loads(body) for method, path, _, body, _ in at.transport.asked if method == "DELETE"]
    assert [set(body["preconditions"]) for body in bodies] == [{"uid", "resourceVersion"}]


async def test_at_most_so_many_in_one_pass() -> None:
    at = Cluster()
    await at.policy(maxPerRun=1)
    for name in ("a", "b", "c"):
        await at.gpus(name)
    report = await at.idle()
    assert (report.count(JanitorOutcome.TOLD), report.left) == (1, 2)


@pytest.mark.parametrize(("mode", "spec"), [(JanitorMode.DRY_RUN, "Enforce"), (JanitorMode.ENFORCE, "DryRun")])
async def test_nothing_is_written_unless_both_the_janitor_and_the_policy_enforce(mode: JanitorMode, spec: str) -> None:
    at = Cluster()
    await at.policy(mode=spec)
    await at.gpus("p", 8)
    report = await at.idle(mode=mode)
    assert at.writes() == []
    assert list(report.rendered()) == [
        "idle policy gpus DryRun: 8 GPUs idle, 16 GPU-hours in the last 2 h; would tell 1",
        "would tell  pods/team/p  IdleNotification  alice: 8 GPUs idle for 120 minutes; will be deleted after "
        "2026-01-10T04:00:00Z",
    ]


async def test_outside_of_working_hours_nobody_is_told_and_nothing_is_taken() -> None:
    at = Cluster()
    await at.policy(windows=[{"cron": "0 9 * * 1-5", "duration": "9h", "timeZone": "Asia/Tokyo"}])
    await at.gpus("p")
    assert datetime(2026, 1, 10, tzinfo=UTC) == NOW, "a Saturday, 09:00 in Tokyo"
    assert became(await at.idle(1)) == [(JanitorOutcome.HELD, "pods/team/p", JanitorReason.OUTSIDE_HOURS)]
    assert became(await at.idle(48.5)) == [(JanitorOutcome.TOLD, "pods/team/p", JanitorReason.IDLE_NOTICE)]
    assert became(await at.idle(58)) == [(JanitorOutcome.HELD, "pods/team/p", JanitorReason.OUTSIDE_HOURS)]
    assert became(await at.idle(72.5)) == [(JanitorOutcome.DELETED, "pods/team/p", JanitorReason.IDLE)]


async def test_a_policy_that_cannot_be_read_stops_only_itself() -> None:
    at = Cluster()
    await at.policy()
    await at.gpus("p")
    from tests.harness.cluster import MemoryCluster

    await MemoryCluster(at.server).newer(api.IDLE_POLICY, "gpus", spec={"idleFor": 5})
    made = IdlePass(at.client, JanitorSettings(JanitorMode.ENFORCE), Sources(at.asked), at.writer, NOW)
    assert await made.run() == []
    assert made.problems[0].startswith("idle policy gpus cannot be read: ")


async def test_a_pass_of_the_janitor_looks_at_idle_policies_and_says_so_in_its_report_and_metrics() -> None:
    at = Cluster()
    await at.policy(mode="DryRun")
    await at.gpus("p", 8)
    seconds = [0.0]
    clock = Clock(lambda: NOW, lambda: seconds[-1])
    janitor = Janitor(at.client, JanitorSettings(JanitorMode.ENFORCE), clock, sources=Sources(at.asked))
    *_, policy, line = (await janitor.once()).rendered()
    assert policy == "idle policy gpus DryRun: 8 GPUs idle, 16 GPU-hours in the last 2 h; would tell 1"
    assert line.startswith("would tell  pods/team/p  IdleNotification")
    assert REGISTRY.get_sample_value("remediator_janitor_idle_gpus", {"policy": "gpus"}) == 8
    at.asked.doubt = CannotTell(Doubt.WARNED, "a store is away")
    why = "idle policy gpus: nobody can tell what is idle: Prometheus: Warned: a store is away"
    seconds.append(600)
    report = await janitor.once()
    assert (report.problems, report.idle_problems) == ([], [why])
    assert f"problem: {why}" in report.rendered()
    at.server.faults.refuse(403, when=lambda asked: asked.path.endswith("/idlepolicies"))
    seconds.append(1200)
    (problem,) = (await janitor.once()).idle_problems
    assert problem.startswith("idle policies are not looked at: ")
    assert (await janitor.once()).idle_problems == [why], "what could not be read is tried again by the next pass"


async def test_between_two_looks_at_idle_policies_the_report_has_the_last_one_and_nothing_is_counted_twice() -> None:
    at = Cluster()
    await at.policy()
    await at.gpus("p")
    seconds = [0.0]
    clock = Clock(lambda: NOW + timedelta(seconds=seconds[-1]), lambda: seconds[-1])
    janitor = Janitor(at.client, JanitorSettings(JanitorMode.ENFORCE), clock, sources=Sources(at.asked))

    def counted() -> float:
        labels = {"result": "tell", "reason": "IdleNotification", "mode": "Enforce"}
        return REGISTRY.get_sample_value("remediator_janitor_objects_total", labels) or 0

    before, shown = counted(), (await janitor.once()).idle
    seconds.append(599)
    at.transport.asked.clear()
    assert (await janitor.once()).idle is shown
    assert not [path for _, path, *_ in at.transport.asked if path.endswith("/idlepolicies")]
    assert counted() == before + 1
    seconds.append(600)
    assert [line.reason for line in (await janitor.once()).idle[0].lines] == [JanitorReason.GRACE]

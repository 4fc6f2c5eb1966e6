"""What stops a case stops it at its next step: before each Pod, and also where no watch has told of the stop yet."""

import asyncio
from datetime import timedelta

import pytest

from remediator.clock import SYSTEM
from remediator.controller.admission import Admissions
from remediator.controller.case_view import case_view
from remediator.controller.explain import explain, snapshot
from remediator.controller.handlers.base import Dependencies
from remediator.controller.operation_view import operation_view
from remediator.controller.perform import Performer
from remediator.controller.reconcile.case import CaseReconciler
from remediator.controller.reconcile.node import NodeReconciler
from remediator.controller.reconcile.operation import OperationReconciler
from remediator.core import names
from remediator.core.breaker import Breaker
from remediator.core.case_table import CaseStep, case_step
from remediator.core.operation_table import Move, operation_move
from remediator.kube.api import CASE, OPERATION
from remediator.kube.api.builtin import POD
from tests.harness.admission import whole_pass
from tests.harness.controller import BEAT, RUNS, Answer, running, until
from tests.harness.controller import SYSTEM as OURS
from tests.harness.kinds import CASES, NAMESPACES, NODES, POLICIES
from tests.harness.kinds import OPERATIONS as NODE_OPERATIONS
from tests.remediator.controller.test_control_plane import static_pod

pytestmark = pytest.mark.sampled("stops")


def _annotate(value):
    return lambda harness: harness.change(NAMESPACES, OURS, metadata={"annotations": {names.PAUSED: value}})


def _mode(value):
    return lambda harness: harness.change(POLICIES, "gpu-lost", spec={"mode": value})


def _urgency(value):
    return lambda harness: harness.change(POLICIES, "gpu-lost", spec={"urgency": {"mode": value}})


async def _unapproved(harness):
    """The policy asks for approvals from now on, and nobody has approved the case."""
    await harness.change(POLICIES, "gpu-lost", spec={"approval": "Required"})


def _label(value):
    return lambda harness: harness.change(NODES, "gpu-1", metadata={"labels": {names.EXCLUDE: value}})


def _disown(harness):
    """A user makes the cordon theirs."""
    return harness.change(NODES, "gpu-1", metadata={"annotations": {names.CORDONED_BY: None}})


def _own(harness):
    uid = harness.cases("gpu-1")[0]["metadata"]["uid"]
    return harness.change(NODES, "gpu-1", metadata={"annotations": {names.CORDONED_BY: uid}})


def _uncordon(harness):
    return harness.change(NODES, "gpu-1", spec={"unschedulable": None})


def _hold(value):
    return lambda harness: harness.edit_case("gpu-1", hold=value)


def _taints(harness):
    return harness.change(NODES, "gpu-1", spec={"taints": None})


async def _gone(harness, name, namespace):
    path = POD.path(name, namespace)
    await harness.client.transport.request("DELETE", path, body=b'{"gracePeriodSeconds": 0}')


def _upgrade(state):
    """The GPU Operator upgrades the driver of the node, or has done so."""
    labels = {"nvidia.com/gpu-driver-upgrade-state": state}
    return lambda harness: harness.change(NODES, "gpu-1", metadata={"labels": labels})


def _promote(harness):
    """The node becomes one of the control plane."""
    return static_pod(harness)


def _demote(harness):
    return _gone(harness, "etcd-gpu-1", "kube-system")


async def _replica(harness):
    """The last ready replica of the controller is one on the node."""
    labels = dict(label.split("=") for label in names.CONTROLLER_LABELS.split(","))
    metadata = {"name": "replica-1", "namespace": OURS, "labels": labels}
    spec = {"nodeName": "gpu-1", "containers": [{"name": "controller", "image": "controller"}]}
    await harness.client.create(POD, {"metadata": metadata, "spec": spec}, namespace=OURS)
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    await harness.client.patch(POD, "replica-1", {"status": ready}, namespace=OURS, subresource="status")


# reason → how it is done, and how it is undone
STOPS = {
    "Paused": (_annotate("true"), _annotate(None)),
    "PolicyPaused": (_mode("Paused"), _mode("Enforce")),
    "DryRun": (_mode("DryRun"), _mode("Enforce")),
    "TicketOnly": (_urgency("Never"), _urgency("Now")),
    "OptedOut": (_label("yes"), _label(None)),
    "HeldByUser": (_hold(True), _hold(False)),
    "ApprovalNeeded": (_unapproved, lambda harness: harness.edit_case("gpu-1", approved=True)),
    "CordonedByUser": (_disown, _own),
    "UnderMaintenance": (_upgrade("drain-required"), _upgrade("upgrade-done")),
    "ControlPlane": (_promote, _demote),
    "HostsController": (_replica, lambda harness: _gone(harness, "replica-1", OURS)),
}
ENDS = {"TaintRemovedByUser": _taints, "CaseDeleted": lambda harness: harness.delete_case("gpu-1")}
EVERY = {**{reason: stop for reason, (stop, _) in STOPS.items()}, "UncordonedByUser": _uncordon, **ENDS}
OF_CACHES = {"HostsController"}  # where a watch is behind, the Deployment makes another replica all the same


class Replica:
    """A replica whose caches show the cluster as it was and will not move, but for its own writes."""

    def __init__(self, harness, cache):
        self.cache = cache
        performer = Performer(harness.client, cache, lambda: True)
        dependencies = Dependencies(cache, performer, lambda: None, drains=50)
        self.admissions = Admissions(cache, performer, Breaker(starts=1000), SYSTEM.monotonic)
        self.nodes, self.cases = NodeReconciler(dependencies), CaseReconciler(dependencies)
        self.operations = OperationReconciler(dependencies)

    @classmethod
    async def now(cls, harness):
        return cls(harness, await snapshot(harness.client, harness.namespaces, SYSTEM))

    def next(self):
        """What is done next for the one case that there is."""
        now = SYSTEM.now()
        for operation in self.cache.operations:
            move = operation_move(operation_view(self.cache, operation, now).observation)
            if operation.finished is None:
                return move
        return next((case_step(case_view(self.cache, case, now).observation) for case in self.cache.cases), None)

    async def turn(self):
        now = SYSTEM.now()
        passes = [
            (reconciler, fact.name)
            for reconciler, store in (
                (self.nodes, self.cache.nodes),
                (self.cases, self.cache.cases),
                (self.operations, self.cache.operations),
            )
            for fact in store
        ]
        for reconciler, name in passes:
            await reconciler.reconcile(name, now)
        await whole_pass(self.admissions, now)


async def reach(harness, step):
    """A replica that is about to take this step."""
    await harness.policy()
    await harness.node("gpu-1", "True")
    for _ in range(200):
        replica = await Replica.now(harness)
        if replica.next() is step:
            return replica
        await replica.turn()
        await asyncio.sleep(BEAT)
    raise AssertionError(f"{step} never came")


def done(harness):
    """What has been done to the node so far, the Pods with it that are not made yet."""
    intents = [one["metadata"]["name"] for one in harness.all(NODE_OPERATIONS) if one.get("status", {}).get("intent")]
    return sorted(pod["metadata"]["name"] for pod in harness.pods()), intents


@pytest.mark.parametrize("step", [CaseStep.DIAGNOSE, Move.DRAIN, Move.WRITE_INTENT, Move.CREATE_POD])
async def test_what_a_user_stops_is_asked_about_again_after_5_s_should_no_watch_tell_of_its_end(harness, step):
    replica = await reach(harness, step)
    await EVERY["HeldByUser"](harness)
    reconciler = replica.cases if step is CaseStep.DIAGNOSE else replica.operations
    (name,) = [fact.name for fact in (replica.cache.cases if step is CaseStep.DIAGNOSE else replica.cache.operations)]
    assert await reconciler.reconcile(name, SYSTEM.now()) == pytest.approx(5.0)


@pytest.mark.parametrize("step", [CaseStep.DIAGNOSE, Move.DRAIN, Move.WRITE_INTENT, Move.CREATE_POD])
@pytest.mark.parametrize("reason", sorted(EVERY.keys() - OF_CACHES))
async def test_a_stop_that_no_watch_has_told_of_stops_before_the_next_pod(harness, reason, step):
    replica = await reach(harness, step)
    before = done(harness)
    await EVERY[reason](harness)
    for _ in range(3):
        await replica.turn()
    pods, intents = done(harness)
    assert set(pods) <= set(before[0]), "no Pod was made"
    assert intents == before[1]


@pytest.mark.parametrize("step", [CaseStep.DIAGNOSE, Move.DRAIN, Move.WRITE_INTENT, Move.CREATE_POD])
async def test_without_a_stop_each_of_these_steps_is_taken(harness, step):
    replica = await reach(harness, step)
    before = done(harness)
    await replica.turn()
    assert done(harness) != before


async def _train(harness):
    """A Pod that is bound to the node past the scheduler."""
    training = {"nodeName": "gpu-1", "containers": [{"name": "main", "image": "train"}]}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "training", "namespace": "default"}}
    await harness.client.create(POD, {**body, "spec": training}, namespace="default")


async def test_a_node_that_is_well_keeps_its_cordon_until_the_other_system_that_works_on_it_is_done(harness):
    """The driver's upgrade finds our cordon, sets none of its own, and takes it for a user's."""
    await reach(harness, CaseStep.RECOVER)
    await _upgrade("pod-restart-required")(harness)
    replica = await Replica.now(harness)
    assert replica.next() is CaseStep.HOLD
    await replica.turn()
    assert (harness.reasons("gpu-1"), harness.look("gpu-1")["spec"]["unschedulable"]) == (["UnderMaintenance"], True)
    await _upgrade("upgrade-done")(harness)
    assert (await Replica.now(harness)).next() is CaseStep.RECOVER


UNREADY = {
    "healthy": lambda harness: harness.condition("gpu-1", "False"),
    "unknown": lambda harness: harness.condition("gpu-1", "Unknown"),
    "pods": _train,
}


@pytest.mark.parametrize("change", UNREADY)
async def test_between_intent_and_pod_a_node_that_heals_or_fills_gets_no_pod_and_the_time_out_ends_it(harness, change):
    harness.beating = False
    replica = await reach(harness, Move.CREATE_POD)
    before = done(harness)
    await UNREADY[change](harness)
    for _ in range(3):
        await replica.turn()
    assert set(done(harness)[0]) <= set(before[0]), "no Pod was made"
    (operation,) = replica.cache.operations
    assert (operation.finished, operation.message) == (None, "1 pods came meanwhile" if change == "pods" else "")
    replica = await Replica.now(harness)
    await replica.operations.reconcile(operation.name, SYSTEM.now() + timedelta(days=1))
    status = harness.all(NODE_OPERATIONS)[0]["status"]
    came = "; 1 pods came meanwhile" if change == "pods" else ""
    ended = ("Failed", "TimedOut", f"no sign of success in time{came}")
    assert (status["phase"], status["reason"], status["message"]) == ended


async def test_the_pod_is_made_once_the_pods_that_came_after_the_drain_are_gone(harness):
    harness.beating = False
    replica = await reach(harness, Move.CREATE_POD)
    await _train(harness)
    await replica.turn()
    before = done(harness)
    path = POD.path("training", "default")
    await harness.client.transport.request("DELETE", path, body=b'{"gracePeriodSeconds": 0}')
    await replica.turn()
    assert len(set(done(harness)[0]) - set(before[0])) == 1


@pytest.mark.parametrize("reason", STOPS)
async def test_a_stop_in_the_middle_of_a_drain_ends_it_is_shown_and_costs_the_node_no_attempt(harness, reason):
    stop, undo = STOPS[reason]
    await harness.policy(ladder=[{"operation": "reboot"}], attempts={"max": 1})
    harness.answer("drain", RUNS, Answer())
    await harness.node("gpu-1", "True")
    async with running(harness):
        await until(lambda: "drain gpu-1" in harness.ran)
        await stop(harness)
        await until(lambda: harness.reasons("gpu-1") == [reason] and not harness.pods())
        await harness.quiet()
        cache = await snapshot(harness.client, harness.namespaces, SYSTEM)
        lines = list(explain(cache, cache.nodes.get("gpu-1"), Breaker(), SYSTEM.now()))
        assert any(line.strip().startswith(f"held: {reason}: ") for line in lines), lines
        assert harness.taints("gpu-1") == [names.CASE_TAINT], "the case keeps its node"
        attempts = [(one["outcome"], one["reason"]) for one in harness.cases("gpu-1")[0]["status"]["attempts"]]
        assert attempts == [("Cancelled", reason)]
        await undo(harness)
        await until(lambda: harness.ended("gpu-1", "Recovered"))
    assert harness.ran.count("reboot gpu-1") == 1


@pytest.mark.parametrize("reason", ["ControlPlane", "HostsController"])
async def test_what_a_node_runs_stops_a_drain_that_waits_for_nothing_else(harness, reason):
    """Nothing but the Pod itself wakes the case, and the case ends once a user has repaired the node."""
    await harness.policy(ladder=[{"operation": "reboot"}], attempts={"max": 1})
    harness.answer("drain", RUNS)
    await harness.node("gpu-1", "True")
    async with running(harness):
        await until(lambda: "drain gpu-1" in harness.ran)
        await harness.quiet()
        await STOPS[reason][0](harness)
        await until(lambda: harness.reasons("gpu-1") == [reason] and not harness.pods())
        await harness.condition("gpu-1", "False")
        await until(lambda: harness.ended("gpu-1", "Recovered"))
    assert [ran for ran in harness.ran if "reboot" in ran] == []


async def test_a_stop_before_the_first_pod_is_shown_and_the_pod_is_made_when_it_is_over(harness):
    await harness.policy()
    replica = await reach_claim(harness)
    assert replica.next() is CaseStep.DIAGNOSE
    await harness.edit_case("gpu-1", hold=True)
    async with running(harness):
        await until(lambda: harness.reasons("gpu-1") == ["HeldByUser"])
        await harness.quiet()
        assert harness.ran == []
        await harness.edit_case("gpu-1", hold=False)
        await until(lambda: harness.ended("gpu-1", "Recovered"))
    assert "Diagnosed" in harness.story("gpu-1")


async def reach_claim(harness):
    await harness.node("gpu-1", "True")
    while (replica := await Replica.now(harness)).next() is not CaseStep.DIAGNOSE:
        await replica.turn()
    return replica


async def test_what_completes_an_operation_waits_for_the_end_of_a_stop_and_is_not_left_out(harness):
    await harness.template("restart-device-plugin", drain={"strategy": "Evict", "timeout": "30s"}, runOn="Elsewhere")
    await harness.template("reset-gpu", after=["restart-device-plugin"])
    await harness.policy(ladder=[{"operation": "reset-gpu"}], attempts={"max": 1})
    harness.answer("reset-gpu", Answer(message="reset"))
    harness.answer("restart-device-plugin", Answer())
    harness.answer("drain", RUNS, Answer())
    await harness.node("gpu-1", "True")
    async with running(harness):
        await until(lambda: "drain gpu-1" in harness.ran)
        await harness.edit_case("gpu-1", hold=True)
        await until(lambda: harness.reasons("gpu-1") == ["HeldByUser"] and not harness.pods())
        await harness.condition("gpu-1", "False")
        await harness.edit_case("gpu-1", hold=False)
        await until(lambda: harness.ended("gpu-1", "Recovered"))
    assert [ran for ran in harness.ran if "restart" in ran] == ["restart-device-plugin gpu-1"]


STOPPED = {
    "template": "reboot",
    "rung": 1,
    "outcome": "Cancelled",
    "reason": "OptedOut",
    "startedAt": "2026-01-01T00:00:00Z",
}
RESET = {"template": "reset-gpu", "rung": 1, "outcome": "Succeeded", "startedAt": "2026-01-01T00:00:00Z"}


async def attempted(harness, *attempts):
    """A replica whose case has had these attempts, ten minutes ago."""
    replica = await reach(harness, Move.DRAIN)
    finished = (SYSTEM.now() - timedelta(minutes=10)).strftime("%Y-%m-%dT%H:%M:%SZ")
    numbered = [
        {"operation": f"o{number}", "attempt": 1, "finishedAt": finished, **one} for number, one in enumerate(attempts)
    ]
    (case,), (operation,) = replica.cache.cases, replica.cache.operations
    over = {"phase": "Cancelled", "finishedAt": finished}
    await harness.client.patch(OPERATION, operation.name, {"status": over}, subresource="status")
    await harness.client.patch(CASE, case.name, {"status": {"attempts": numbered}}, subresource="status")
    return await Replica.now(harness)


@pytest.mark.parametrize(("count", "step"), [(127, CaseStep.START), (128, CaseStep.ESCALATE)])
async def test_a_case_of_which_users_have_stopped_128_attempts_goes_to_a_person(harness, count, step):
    replica = await attempted(harness, *[STOPPED] * count)
    assert replica.next() is step
    await replica.turn()
    status = harness.cases("gpu-1")[0]["status"]
    assert status["reason"] == ("AttemptsSpent" if step is CaseStep.ESCALATE else "OperationStarted")


async def test_what_completes_an_operation_and_was_stopped_until_the_case_is_full_goes_to_a_person(harness):
    await harness.template("restart-device-plugin", runOn="Elsewhere")
    await harness.template("reset-gpu", after=["restart-device-plugin"])
    stopped = STOPPED | {"template": "restart-device-plugin", "follows": "o0"}
    replica = await attempted(harness, RESET, *[stopped] * 159)
    await harness.condition("gpu-1", "False")
    replica = await Replica.now(harness)
    assert replica.next() is CaseStep.ESCALATE
    await replica.turn()
    status = harness.cases("gpu-1")[0]["status"]
    assert (status["phase"], status["reason"]) == ("Escalated", "AttemptsSpent")


async def test_an_intent_that_a_restored_server_does_not_know_gets_no_pod(harness):
    replica = await reach(harness, Move.CREATE_POD)
    (operation,) = replica.cache.operations
    status = {"intent": None, "phase": "Draining"}
    await harness.client.patch(OPERATION, operation.name, {"status": status}, subresource="status")
    before = done(harness)[0]
    await replica.operations.reconcile(operation.name, SYSTEM.now())
    assert done(harness)[0] == before, "no Pod was made"


# --- evidence that never comes ---------------------------------------------------------------------------------------


async def test_a_node_that_says_nothing_more_before_its_drain_begins_goes_to_a_person_after_the_time_of_the_drain(
    harness,
):
    harness.beating = False
    replica = await reach(harness, Move.DRAIN)
    await harness.condition("gpu-1", "Unknown")
    (operation,) = (await Replica.now(harness)).cache.operations
    ended = []
    for seconds in (0, 15, 60):  # the drain has 30
        replica = await Replica.now(harness)
        now = SYSTEM.now() + timedelta(seconds=seconds)
        await replica.operations.reconcile(operation.name, now)
        ended.append(harness.all(NODE_OPERATIONS)[0].get("status", {}).get("reason", ""))
    assert ended == ["", "", "DrainTimeout"]
    for days in (1, 2):
        replica = await Replica.now(harness)
        (case,) = replica.cache.cases
        await replica.cases.reconcile(case.name, SYSTEM.now() + timedelta(days=days))
    status = harness.cases("gpu-1")[0]["status"]
    assert (status["phase"], status["reason"]) == ("Escalated", "HealthUnknown")
    assert [(one["outcome"], one["counts"]) for one in status["attempts"]] == [("Cancelled", False)]


async def test_nothing_new_starts_while_a_watch_has_been_silent_for_long(harness):
    await harness.policy()
    await harness.node("gpu-1", "True")
    replica = await Replica.now(harness)
    replica.cache.silent = ("Pod",)
    for _ in range(3):
        await replica.turn()
    (block,) = harness.cases("gpu-1")[0]["status"]["blockedBy"]
    assert block["reason"] == "HealthUnknown"
    assert block["message"].startswith("the watch of Pod has said nothing for long; ")
    assert harness.claims() == []
    replica.cache.silent = ()
    await replica.turn()
    assert harness.claims() == ["gpu-1"]


# --- operations that no case asks for ---------------------------------------------------------------------------------


@pytest.mark.parametrize("phase", ["Operating", "Escalated"])
async def test_an_operation_made_by_hand_does_nothing_to_the_node_and_says_why(harness, phase):
    await harness.policy()
    harness.answer("reboot", RUNS if phase == "Operating" else Answer(exit=1, message="in vain"))
    await harness.node("gpu-1", "True")
    async with running(harness):
        await until(lambda: harness.phase("gpu-1") == phase)
        if phase == "Operating":
            await until(lambda: "reboot gpu-1" in harness.ran)
        await harness.quiet()
        before, case = list(harness.ran), harness.cases("gpu-1")[0]
        for number, uid in enumerate((case["metadata"]["uid"], case["metadata"]["uid"], "nobody")):
            await harness.make(
                NODE_OPERATIONS,
                f"mallory-{number}",
                nodeName="gpu-1",
                nodeUID=case["spec"]["nodeUID"],
                caseUID=uid,
                attempt=1,
                templateName="reboot",
                requestedBy=case["metadata"]["name"] if number else "mallory",
            )

        def refused():
            made = [one for one in harness.all(NODE_OPERATIONS) if one["metadata"]["name"].startswith("mallory")]
            return [(one.get("status", {}).get("phase"), one.get("status", {}).get("reason")) for one in made]

        await until(lambda: refused() == [("Refused", "NotCurrentAttempt")] * 3)
        await harness.quiet()
        assert (harness.ran, len(harness.cases("gpu-1")[0]["status"]["attempts"])) == (
            before,
            len(case["status"]["attempts"]),
        )


async def test_an_operation_whose_case_the_cache_does_not_show_yet_is_not_refused(harness):
    replica = await reach(harness, Move.DRAIN)
    for case in list(replica.cache.cases.keys()):
        replica.cache.cases._reflector._drop(case)
    for operation in list(replica.cache.operations):
        await replica.operations.reconcile(operation.name, SYSTEM.now())
    assert [one["status"].get("phase", "") for one in harness.all(NODE_OPERATIONS) if one.get("status")] == []


# --- cancelled means cancelled --------------------------------------------------------------------------------------


async def test_deleting_both_cases_of_a_node_leaves_it_alone_until_a_condition_changes(harness):
    await harness.policy()
    await harness.policy("gpu-xid", when=[{"condition": "GpuXid", "for": "0s"}])
    harness.answer("drain", RUNS)
    await harness.node("gpu-1", "True")
    await harness.condition("gpu-1", "True", "GpuXid")
    onset = SYSTEM.now()
    async with running(harness):
        for number in (1, 2):
            await until(lambda number=number: harness.ran.count("drain gpu-1") == number)
            await harness.delete_case("gpu-1")
            await until(lambda number=number: harness.ran.count("drain gpu-1") > number or harness.clean("gpu-1"))
        await until(lambda: harness.cases("gpu-1") == [] and harness.clean("gpu-1"))
        await harness.quiet()
        assert (harness.cases("gpu-1"), harness.ran.count("drain gpu-1")) == ([], 2)
        await until(lambda: SYSTEM.now() > onset + timedelta(seconds=1))  # times of conditions have no fractions
        harness.set_clock("gpu-1", timedelta())
        await harness.condition("gpu-1", "False")
        await harness.condition("gpu-1", "True")
        await until(lambda: harness.ran.count("drain gpu-1") == 3)


async def test_a_case_that_is_deleted_after_its_condition_had_come_again_is_not_opened_for_that_either(harness):
    await harness.policy()
    harness.answer("drain", RUNS)
    await harness.node("gpu-1", "True")
    async with running(harness):
        await until(lambda: "drain gpu-1" in harness.ran)
        await harness.condition("gpu-1", "True", since=SYSTEM.now().replace(microsecond=0, second=0, minute=0))
        await harness.delete_case("gpu-1")
        await until(lambda: harness.cases("gpu-1") == [] and harness.clean("gpu-1"))
        await harness.quiet()
        assert harness.cases("gpu-1") == []


async def test_what_was_deleted_with_all_the_others_is_not_opened_again(harness):
    """`kubectl delete nr --all`, the record of a released case with it."""
    await harness.policy()
    harness.answer("reboot", Answer(exit=1, message="in vain"))
    await harness.node("gpu-1", "True")
    async with running(harness):
        await until(lambda: harness.phase("gpu-1") == "Escalated")
        await harness.edit_case("gpu-1", release=True)
        await until(lambda: harness.ended("gpu-1", "Escalated"))
        await harness.policy("gpu-xid", when=[{"condition": "GpuXid", "for": "0s"}])
        harness.answer("drain", RUNS)
        await harness.condition("gpu-1", "True", "GpuXid")
        await until(lambda: len(harness.cases("gpu-1")) == 2 and harness.ran[-1] == "drain gpu-1")
        for case in harness.cases("gpu-1"):
            await harness.client.delete(CASES, case["metadata"]["name"])
        await until(lambda: harness.cases("gpu-1") == [] and harness.clean("gpu-1"))
        await harness.quiet()
        assert harness.cases("gpu-1") == []

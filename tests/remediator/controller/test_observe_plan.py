"""From facts to what is seen, and from what is seen to exactly these effects."""

import json
from dataclasses import replace

import msgspec
import pytest

from remediator.controller import case_plan, operation_plan
from remediator.controller.case_plan import operation_name
from remediator.controller.case_view import case_view, ledgers_of
from remediator.controller.diagnosis import diagnosed
from remediator.controller.effects import ChangeNode, Create, Delete, Patch, SaveCase, SaveOperation
from remediator.controller.handlers.case import HANDLERS as CASE_HANDLERS
from remediator.controller.handlers.operation import HANDLERS as OPERATION_HANDLERS
from remediator.controller.operation_view import WITHOUT_TEMPLATE, operation_view, ours
from remediator.controller.pods import diagnostics_pod_name, drain_pod_name, pod_name
from remediator.core.absence import Absences
from remediator.core.case import AttemptOutcome, Block, CaseEvent, Diagnosis, Phase, Trigger
from remediator.core.case_table import CaseStep, Tried, case_step
from remediator.core.health import Health
from remediator.core.ladder import Next
from remediator.core.operation import OperationPhase
from remediator.core.operation_table import DrainState, Move, OperationPodState, operation_move
from remediator.core.pod import ContainerEnd, PodPhase
from remediator.core.proof import Proof
from remediator.core.reasons import Reason
from remediator.core.template import Strategy
from remediator.kube import api
from remediator.kube.api import encode
from remediator.kube.api.builtin import POD
from tests.builders import (
    GPU,
    a_budget,
    a_case,
    a_node,
    a_pod,
    a_policy,
    a_sick_node,
    a_template,
    an_attempt,
    an_operation,
    at,
    condition,
    held_by,
    minutes,
)
from tests.harness.replica import empty_cache

NOW = at(5)
CLAIMED = a_case(phase=Phase.DRAINING, started=at(1), diagnosis=Diagnosis.SUCCEEDED)
OURS = {"taints": [held_by(CLAIMED)], "unschedulable": True, "cordoned_by": CLAIMED.uid}
SICK = a_sick_node(**OURS)
RUNNING = replace(CLAIMED, attempts=(an_attempt(outcome=AttemptOutcome.OPEN, operation="op-1", template="reboot"),))
DRAIN, DIAGNOSTICS = a_template("drain", Strategy.NONE), a_template("collect-diagnostics", Strategy.NONE)


TEMPLATES = (a_template(), DRAIN, DIAGNOSTICS)
SLOW_LOOK = (a_template(), DRAIN, replace(DIAGNOSTICS, grace=minutes(2)))


def a_cache(*facts, node=SICK, policy=None, templates=TEMPLATES):
    """A cache with these facts."""
    cache = empty_cache()
    stores = {"Case": cache.cases, "Operation": cache.operations, "Budget": cache.budgets}
    if node is not None:
        cache.nodes.note(node.name, node)
    cache.policies.note("gpu-lost", policy or a_policy(ladder=(("reboot", 2),)))
    for template in templates:
        cache.templates.note(template.name, template)
    for fact in facts:
        if type(fact).__name__ == "Pod":
            cache.pods.note(f"{fact.namespace}/{fact.name}", fact)
        else:
            stores[type(fact).__name__].note(fact.name, fact)
    return cache


def shown(effects):
    """The kinds of effects, in order, with what they are about."""
    return [_shown(effect) for effect in effects]


def _shown(effect):
    match effect:
        case SaveCase(_, after):
            return ("case", after.phase.value, after.reason.value if after.reason else "")
        case SaveOperation(_, after):
            return ("operation", after.phase.value, after.reason)
        case Create(kind, body, gated):
            return ("create", kind.name, body["metadata"]["name"], gated)
        case ChangeNode(name, _):
            return ("node", name)
        case Patch(kind, name):
            return ("patch", kind.name, name)
        case Delete(kind, name):
            return ("delete", kind.name, name)


# --- cases ---------------------------------------------------------------------------------------------------------


def planned(case, *facts, now=NOW, **cache):
    """The step of a case and its effects."""
    view = case_view(a_cache(case, *facts, **cache), case, now)
    step = case_step(view.observation)
    return step, shown(CASE_HANDLERS[step].plan(view, now))


MISSING = Block(Reason.POLICY_MISSING, "no policy gone", since=at(10))
ALONE = a_case(policy="gone", timeline=(CaseEvent(at(0), Reason.POLICY_MISSING, "no policy gone"),))
OPERATION = an_operation("op-1", CLAIMED, phase=OperationPhase.OPERATING)
WELL = a_node("gpu-1", condition(status="False", since=2, heartbeat=19), **OURS, heartbeat=19)
ENDED = replace(CLAIMED, phase=Phase.RECOVERED, ended=at(4))
UNLOOKED = replace(CLAIMED, diagnosis=Diagnosis.PENDING)
LOOKER = diagnostics_pod_name(CLAIMED)
LOOKING = {"case_uid": CLAIMED.uid, "template": "collect-diagnostics"}
TRIED = replace(CLAIMED, attempts=(an_attempt(0), an_attempt(0, started=2)), phase=Phase.VERIFYING)


@pytest.mark.parametrize(
    ("case", "facts", "cache", "step", "effects"),
    [
        pytest.param(
            a_case(),
            [],
            {"node": a_node("gpu-1", condition(status="False"))},
            CaseStep.CLEAR,
            [("case", "Recovered", "ClearedItself")],
            id="the fault went before the claim",
        ),
        pytest.param(
            a_case(),
            [],
            {"node": a_sick_node()},
            CaseStep.CLAIM,
            [("node", "gpu-1"), ("case", "Draining", "Claimed")],
            id="the node is marked before the case says that it holds it",
        ),
        pytest.param(
            UNLOOKED,
            [],
            {},
            CaseStep.DIAGNOSE,
            [("create", "Pod", LOOKER, True)],
            id="look first, unless everything new is stopped",
        ),
        pytest.param(UNLOOKED, [a_pod(LOOKER, **LOOKING)], {}, CaseStep.DIAGNOSE, [], id="it looks"),
        pytest.param(
            UNLOOKED,
            [a_pod(LOOKER, PodPhase.SUCCEEDED, message='{"a": 1}', **LOOKING)],
            {},
            CaseStep.DIAGNOSE,
            [("case", "Draining", "Diagnosed"), ("patch", "Pod", LOOKER), ("delete", "Pod", LOOKER)],
            id="what it saw is kept before its Pod goes",
        ),
        pytest.param(
            UNLOOKED,
            [a_pod(LOOKER, PodPhase.FAILED, message="no driver", **LOOKING)],
            {},
            CaseStep.DIAGNOSE,
            [("case", "Draining", "DiagnosisFailed"), ("patch", "Pod", LOOKER), ("delete", "Pod", LOOKER)],
            id="that it saw nothing stops nothing",
        ),
        pytest.param(
            UNLOOKED,
            [a_pod(LOOKER, **LOOKING)],
            {"now": at(18), "node": a_sick_node(minute=18, **OURS)},
            CaseStep.DIAGNOSE,
            [("patch", "Pod", LOOKER), ("delete", "Pod", LOOKER), ("case", "Draining", "DiagnosisFailed")],
            id="nor that it takes too long",
        ),
        pytest.param(
            UNLOOKED,
            [a_pod(LOOKER, **LOOKING)],
            {"now": at(18), "node": a_sick_node(minute=18, **OURS), "templates": SLOW_LOOK},
            CaseStep.DIAGNOSE,
            [],
            id="which begins once its grace is over: the driver is answering it",
        ),
        pytest.param(
            UNLOOKED,
            [a_pod(LOOKER, PodPhase.PENDING, **LOOKING)],
            {"now": at(18), "node": a_sick_node(minute=18, **OURS), "templates": SLOW_LOOK},
            CaseStep.DIAGNOSE,
            [("patch", "Pod", LOOKER), ("delete", "Pod", LOOKER), ("case", "Draining", "DiagnosisFailed")],
            id="one that has not begun has no grace",
        ),
        pytest.param(
            CLAIMED,
            [],
            {},
            CaseStep.START,
            [("case", "Draining", "OperationStarted")],
            id="a start is recorded before anything is done",
        ),
        pytest.param(
            RUNNING,
            [],
            {},
            CaseStep.WATCH,
            [("create", "NodeOperation", "op-1", False)],
            id="the operation that a crash prevented is made",
        ),
        pytest.param(
            RUNNING, [OPERATION], {}, CaseStep.WATCH, [("case", "Operating", "Operating")], id="how far it is is shown"
        ),
        pytest.param(replace(RUNNING, phase=Phase.OPERATING), [OPERATION], {}, CaseStep.WATCH, [], id="and said once"),
        pytest.param(replace(RUNNING, deleting=True), [OPERATION], {}, CaseStep.STOP, [], id="cancelled: it waits"),
        pytest.param(
            replace(RUNNING, deleting=True),
            [],
            {},
            CaseStep.STOP,
            [("create", "NodeOperation", "op-1", False)],
            id="cancelled before the operation was made: only its own end ends the attempt",
        ),
        pytest.param(
            replace(CLAIMED, deleting=True), [], {}, CaseStep.END, [("case", "Cancelled", "CaseDeleted")], id="deleted"
        ),
        pytest.param(
            CLAIMED,
            [],
            {"node": a_sick_node()},
            CaseStep.END,
            [("case", "Cancelled", "TaintRemovedByUser")],
            id="no taint",
        ),
        pytest.param(
            CLAIMED, [], {"node": None}, CaseStep.END, [("case", "Cancelled", "NodeGone")], id="the node is gone"
        ),
        pytest.param(
            CLAIMED,
            [],
            {"node": WELL, "now": at(20)},
            CaseStep.RECOVER,
            [("case", "Recovered", "Verified")],
            id="well",
        ),
        pytest.param(
            TRIED, [], {}, CaseStep.ESCALATE, [("case", "Escalated", "LadderExhausted")], id="nothing is left: a person"
        ),
        pytest.param(replace(TRIED, phase=Phase.ESCALATED), [], {}, CaseStep.OFFER, [], id="a person has it"),
        pytest.param(
            replace(TRIED, phase=Phase.ESCALATED, release=True),
            [],
            {},
            CaseStep.END,
            [("case", "Escalated", "ReleasedByUser")],
            id="a person gives it back: it ends as it was called",
        ),
        pytest.param(
            ENDED,
            [a_pod("p", case_uid=CLAIMED.uid), a_pod("q", case_uid=CLAIMED.uid, deletion=NOW, finalizers=())],
            {},
            CaseStep.DELETE_PODS,
            [("patch", "Pod", "p"), ("delete", "Pod", "p")],
            id="Pods go first, each once",
        ),
        pytest.param(ENDED, [], {}, CaseStep.RELEASE, [("node", "gpu-1")], id="then the marks on the node"),
        pytest.param(
            ENDED,
            [],
            {"node": a_sick_node(handled=(ENDED.name,))},
            CaseStep.RELEASE,
            [("patch", "NodeRemediation", ENDED.name)],
            id="at last the finalizer",
        ),
        pytest.param(
            replace(ENDED, finalizers=()),
            [],
            {"node": a_sick_node(handled=("later",))},
            CaseStep.NOTHING,
            [],
            id="nothing",
        ),
    ],
)
def test_what_a_case_does_next(case, facts, cache, step, effects):
    assert planned(case, *facts, **cache) == (step, effects)


@pytest.mark.parametrize(
    ("case", "minute", "step"),
    [
        pytest.param(ALONE, 29, CaseStep.CLAIM, id="it may come back"),
        pytest.param(ALONE, 30, CaseStep.END, id="nobody can say any more what it waits for"),
        pytest.param(replace(CLAIMED, policy="gone"), 29, CaseStep.VERIFY, id="one that holds its node waits, too"),
        pytest.param(replace(CLAIMED, policy="gone"), 99, CaseStep.VERIFY, id="and first says what it waits for"),
        pytest.param(replace(CLAIMED, policy="gone", blocks=(MISSING,)), 39, CaseStep.VERIFY, id="then half an hour"),
        pytest.param(
            replace(CLAIMED, policy="gone", blocks=(MISSING,)), 40, CaseStep.ESCALATE, id="and calls a person"
        ),
        pytest.param(replace(ALONE, timeline=()), 99, CaseStep.CLAIM, id="since when is not known"),
    ],
)
def test_half_an_hour_after_its_policy_a_case_that_holds_nothing_ends(case, minute, step):
    assert case_step(case_view(a_cache(case), case, at(minute)).observation) is step


@pytest.mark.parametrize("proving", ["Ready", GPU])
def test_of_a_node_with_more_conditions_than_there_is_room_for_those_that_prove_recovery_are_kept(proving):
    chatty = a_node("gpu-1", condition(heartbeat=7), *(condition(f"A{number}") for number in range(99)))
    done = replace(OPERATION, phase=OperationPhase.SUCCEEDED, finished=NOW)
    view = replace(case_view(a_cache(RUNNING, done), RUNNING, NOW), node=chatty)
    (saved,) = case_plan.record(view, NOW)
    heartbeats = saved.after.attempt.heartbeats
    assert (len(heartbeats), heartbeats[proving]) == (64, chatty.conditions[proving].heartbeat)


def test_the_end_of_an_operation_is_recorded_with_the_nodes_own_heartbeats():
    done = replace(OPERATION, phase=OperationPhase.SUCCEEDED, intent_boot_id="boot-1", message="new boot", finished=NOW)
    view = case_view(a_cache(RUNNING, done), RUNNING, NOW)
    assert (view.observation.tried, case_step(view.observation)) == (Tried.REPORTED, CaseStep.RECORD)
    (saved,) = case_plan.record(replace(view, node=a_sick_node(minute=7)), NOW)
    attempt = saved.after.attempt
    assert (attempt.outcome, attempt.finished, attempt.boot_id) == (AttemptOutcome.SUCCEEDED, NOW, "boot-1")
    assert attempt.heartbeats == {"Ready": at(7), GPU: at(7)}


def test_a_start_records_the_attempt_before_its_operation_is_made():
    case = replace(CLAIMED, diagnosis=Diagnosis.SUCCEEDED)
    view = case_view(a_cache(case), case, NOW)
    assert view.next == Next(0, 1)
    (saved,) = case_plan.start(view, NOW)
    name = operation_name(case, "reboot", 1)
    assert shown([saved]) == [("case", "Draining", "OperationStarted")]
    assert saved.after.attempt.operation == name
    created = case_plan.operation(saved.after, None)
    assert (created.body["metadata"]["name"], created.body["spec"]["caseUID"]) == (name, case.uid)


@pytest.mark.parametrize(
    ("message", "diagnosis"),
    [
        ('{"a":' * 32 + "1" + "}" * 32, Diagnosis.SUCCEEDED),
        ('{"a":' * 33 + "1" + "}" * 33, Diagnosis.FAILED),
        ('{"a":' + "[" * 2000 + "]" * 2000 + "}", Diagnosis.FAILED),
        (r'{"a": "\ud800"}', Diagnosis.FAILED),
        ('{"a": NaN}', Diagnosis.FAILED),
        ('["a"]', Diagnosis.FAILED),
        ("", Diagnosis.FAILED),
    ],
    ids=["32 levels", "33 levels", "2,000 levels", "half a pair of surrogates", "no number", "no object", "nothing"],
)
def test_what_root_on_the_node_says_as_evidence_raises_nothing_and_can_be_written(message, diagnosis):
    """The case goes on at once: what cannot be kept is no evidence."""
    case = diagnosed(UNLOOKED, a_pod(LOOKER, PodPhase.SUCCEEDED, message=message, **LOOKING), NOW)
    assert (case.diagnosis, case.phase) == (diagnosis, Phase.DRAINING)
    assert len(msgspec.json.encode(encode.case_status(case))) < 10_000


@pytest.mark.parametrize(
    ("letters", "diagnosis", "reason"),
    [(4088, Diagnosis.SUCCEEDED, Reason.DIAGNOSED), (4089, Diagnosis.FAILED, Reason.DIAGNOSIS_FAILED)],
)
def test_evidence_of_4096_bytes_is_kept_and_larger_evidence_stops_nothing(letters, diagnosis, reason):
    message = f'{{"a":"{"x" * (letters - 2)}é"}}'
    case = diagnosed(UNLOOKED, a_pod(LOOKER, PodPhase.SUCCEEDED, message=message, **LOOKING), NOW)
    assert (case.diagnosis, case.phase, case.timeline[-1].reason) == (diagnosis, Phase.DRAINING, reason)
    assert len(case.timeline[-1].message) < 100


def test_without_its_policy_a_claimed_case_waits_for_its_return_and_then_calls_a_person():
    cache = a_cache(TRIED)
    cache.policies = empty_cache().policies
    early = case_view(cache, TRIED, at(4))
    assert (early.observation.proof, case_step(early.observation)) == (Proof.WAITING, CaseStep.VERIFY)
    assert early.look_again is not None, "lest it be looked at all the time"
    (told,) = case_plan.verify(early, at(4))
    late = case_view(cache, told.after, at(600))
    assert case_step(late.observation) is CaseStep.ESCALATE
    assert shown(case_plan.escalate(late, NOW)) == [("case", "Escalated", "PolicyMissing")]


@pytest.mark.parametrize(
    ("status", "ready", "stale", "health", "reason", "lacks"),
    [
        pytest.param(
            "Unknown",
            "True",
            "False",
            Health.UNKNOWN,
            "HealthUnknown",
            "GpuLost is Unknown, so nobody can tell",
            id="nobody can tell",
        ),
        pytest.param(
            "False",
            "True",
            "True",
            Health.UNKNOWN,
            "HealthUnknown",
            "GpuLost is False, but DetectorStale is True, so nobody can tell",
            id="its detectors have stopped",
        ),
        pytest.param(
            "False",
            "Unknown",
            "False",
            Health.UNKNOWN,
            "HealthUnknown",
            "GpuLost is False, but Ready is Unknown (its kubelet does not report), so nobody can tell",
            id="its kubelet does not report",
        ),
        pytest.param(
            "False",
            "False",
            "False",
            Health.HEALTHY,
            "VerifyTimeout",
            "GpuLost is False, but Ready is False",
            id="the fault has gone, but the node is not ready",
        ),
    ],
)
@pytest.mark.parametrize("spent", [False, True], ids=["something is left", "nothing is left"])
def test_why_a_person_is_called_when_recovery_was_not_proven(status, ready, stale, health, reason, lacks, spent):
    tried = an_attempt(outcome=AttemptOutcome.SUCCEEDED, heartbeats={GPU: at(1)})
    case = replace(CLAIMED, trigger=Trigger(GPU, "True", "", "", at(0)), attempts=(tried,) * (2 if spent else 1))
    shown_now = (condition(GPU, status, since=2, heartbeat=21), condition("DetectorStale", stale, heartbeat=21))
    node = a_node("gpu-1", *shown_now, ready=ready, heartbeat=21, **OURS)
    view = case_view(a_cache(case, node=node), case, at(22))
    assert (view.observation.health, view.observation.proof, case_step(view.observation)) == (
        health,
        Proof.TIMED_OUT,
        CaseStep.ESCALATE,
    )
    assert isinstance(view.next, Reason) is spent
    (saved,) = plan = case_plan.escalate(view, at(22))
    assert shown(plan) == [("case", "Escalated", reason)]
    assert saved.after.message.startswith(f"a person must look: {lacks}; ")
    assert "did not cure it" not in saved.after.message


@pytest.mark.parametrize(
    ("minute", "step"),
    [(601, CaseStep.VERIFY), (700, CaseStep.ESCALATE)],
    ids=["the pass after it", "verify.timeout later"],
)
def test_a_case_that_is_to_try_again_waits_while_nobody_can_tell_whether_its_node_is_healthy(minute, step):
    """Its attempt ended at minute 3, and a user raised spec.retry at minute 600; verify.timeout is 20 minutes."""
    case = replace(TRIED, phase=Phase.VERIFYING).trying_again(at(600))
    node = a_node("gpu-1", condition(GPU, "Unknown", heartbeat=minute), heartbeat=minute, **OURS)
    view = case_view(a_cache(case, node=node), case, at(minute))
    assert (view.observation.health, case_step(view.observation)) == (Health.UNKNOWN, step)
    if step is CaseStep.VERIFY:
        (saved,) = case_plan.verify(view, at(minute))
        (block,) = saved.after.blocks
        assert (saved.after.phase, block.reason) == (Phase.VERIFYING, Reason.HEALTH_UNKNOWN)
        assert block.message.startswith("GpuLost is Unknown; ")
        known = replace(view, case=saved.after, observation=replace(view.observation, health=Health.HEALTHY))
        assert case_plan.verify(known, at(minute))[0].after.blocks == ()


# --- operations ----------------------------------------------------------------------------------------------------

OF = {"operation_uid": "uid-op-1", "case_uid": CLAIMED.uid}
FRESH = an_operation("op-1", CLAIMED)
DRAIN_POD, OWN_POD = drain_pod_name(FRESH), pod_name(FRESH)
DRAINING = replace(FRESH, phase=OperationPhase.DRAINING, drain_started=at(1))
DRAINED = replace(DRAINING, drained_at=at(1))
INTENDED = replace(DRAINED, phase=OperationPhase.OPERATING, intent_boot_id="boot-1", intent_at=at(4))
SEEN = replace(INTENDED, pod=OWN_POD)
REBOOT = a_template(boot_id_changed=True, node_ready=True)


def moved(operation, *facts, now=NOW, case=RUNNING, **cache):
    """The move of an operation and its effects."""
    view = operation_view(a_cache(case, operation, *facts, **cache), operation, now)
    move = operation_move(view.observation)
    return move, shown(OPERATION_HANDLERS[move].plan(view, now))


def ended(name, code, message="said", **more):
    phase = PodPhase.SUCCEEDED if code == 0 else PodPhase.FAILED
    return a_pod(name, phase, exit_code=code, message=message, **OF | more)


@pytest.mark.parametrize(
    ("operation", "facts", "cache", "move", "effects"),
    [
        pytest.param(
            FRESH,
            [],
            {},
            Move.DRAIN,
            [("operation", "Draining", ""), ("create", "Pod", DRAIN_POD, True)],
            id="say that the drain begins, then make its Pod",
        ),
        pytest.param(DRAINING, [a_pod(DRAIN_POD, **OF)], {}, Move.WAIT, [], id="it drains"),
        pytest.param(
            DRAINING,
            [ended(DRAIN_POD, 0)],
            {},
            Move.DRAINED,
            [("operation", "Draining", ""), ("patch", "Pod", DRAIN_POD), ("delete", "Pod", DRAIN_POD)],
            id="it has drained",
        ),
        pytest.param(
            DRAINING,
            [ended(DRAIN_POD, 1)],
            {},
            Move.DRAIN_FAILED,
            [("operation", "Failed", "DrainFailed")],
            id="it could not",
        ),
        pytest.param(
            replace(DRAINING, left=1),
            [a_pod(DRAIN_POD, **OF)],
            {"now": at(31), "node": a_sick_node(minute=31, **OURS)},
            Move.TIME_OUT,
            [("delete", "Pod", DRAIN_POD), ("operation", "Failed", "DrainTimeout")],
            id="too late: its Pod is marked for deletion before the ladder may climb",
        ),
        pytest.param(
            replace(DRAINING, left=1, blocked="team/a (nobody judged this eviction: no answer)"),
            [a_pod(DRAIN_POD, **OF)],
            {"now": at(31), "node": a_sick_node(minute=31, **OURS)},
            Move.TIME_OUT,
            [("delete", "Pod", DRAIN_POD), ("operation", "Cancelled", "DrainTimeout")],
            id="too late, and nobody was there to judge its evictions: no attempt",
        ),
        pytest.param(
            DRAINING,
            [a_pod(DRAIN_POD, **OF)],
            {"now": at(31), "node": a_sick_node(minute=31, **OURS)},
            Move.TIME_OUT,
            [("delete", "Pod", DRAIN_POD), ("operation", "Cancelled", "DrainTimeout")],
            id="too late, and it has had no answer from the API server: no attempt",
        ),
        pytest.param(
            DRAINING,
            [a_pod(DRAIN_POD, phase=PodPhase.PENDING, waiting="ErrImagePull", **OF)],
            {"now": at(31), "node": a_sick_node(minute=31, **OURS)},
            Move.TIME_OUT,
            [("delete", "Pod", DRAIN_POD), ("operation", "Cancelled", "ImageNotPulled")],
            id="too late, and the image of its Pod could not be pulled: no attempt, and it is told why",
        ),
        pytest.param(
            DRAINED,
            [],
            {},
            Move.WRITE_INTENT,
            [("operation", "Operating", "")],
            id="drained: the intent is written before the Pod is made",
        ),
        pytest.param(
            DRAINED,
            [],
            {"node": a_sick_node()},
            Move.CANCEL,
            [("operation", "Cancelled", "ClaimLost")],
            id="the claim is gone before the intent",
        ),
        pytest.param(
            DRAINED,
            [],
            {"node": a_node("gpu-1", condition(status="False"), **OURS)},
            Move.CANCEL,
            [("operation", "Cancelled", "ClearedItself")],
            id="the fault is gone before the intent",
        ),
        pytest.param(
            INTENDED, [], {}, Move.CREATE_POD, [("create", "Pod", OWN_POD, True)], id="after the intent the Pod is made"
        ),
        pytest.param(
            INTENDED,
            [a_pod(OWN_POD, **OF)],
            {},
            Move.WAIT,
            [("operation", "Operating", "")],
            id="it runs: that it was there is recorded",
        ),
        pytest.param(SEEN, [a_pod(OWN_POD, **OF)], {}, Move.WAIT, [], id="it runs"),
        pytest.param(
            SEEN,
            [],
            {},
            Move.WAIT,
            [("operation", "Operating", "")],
            id="it was there, and its object is gone: it may go on",
        ),
        pytest.param(
            SEEN,
            [],
            {"now": at(19)},
            Move.TIME_OUT,
            [("operation", "Failed", "PodDeleted")],
            id="it is gone, and its time is over",
        ),
        pytest.param(
            SEEN,
            [],
            {"templates": (REBOOT,)},
            Move.WAIT,
            [("operation", "Operating", "")],
            id="it is gone, and the node may yet boot",
        ),
        pytest.param(
            SEEN,
            [],
            {"templates": (REBOOT,), "now": at(19)},
            Move.TIME_OUT,
            [("operation", "Failed", "PodDeleted")],
            id="it is gone, and the node did not boot in time",
        ),
        pytest.param(
            SEEN,
            [a_pod(OWN_POD, **OF)],
            {"node": a_sick_node()},
            Move.WAIT,
            [],
            id="even without the taint",
        ),
        pytest.param(INTENDED, [ended(OWN_POD, 0)], {}, Move.SUCCEED, [("operation", "Succeeded", "Done")], id="done"),
        pytest.param(
            INTENDED, [ended(OWN_POD, 1)], {}, Move.FAIL, [("operation", "Failed", "ProgramFailed")], id="1 has failed"
        ),
        pytest.param(
            INTENDED,
            [ended(OWN_POD, 2)],
            {},
            Move.REFUSE,
            [("operation", "Refused", "OperationRefused")],
            id="2 refuses",
        ),
        pytest.param(
            INTENDED,
            [ended(OWN_POD, 137)],
            {},
            Move.FAIL,
            [("operation", "Failed", "PodLost")],
            id="killed",
        ),
        pytest.param(
            INTENDED,
            [ended(OWN_POD, 143, reason="DeadlineExceeded")],
            {},
            Move.FAIL,
            [("operation", "Failed", "TimedOut")],
            id="ended by its kubelet, which was faster than the controller",
        ),
        pytest.param(
            INTENDED,
            [ended(OWN_POD, None, reason="DeadlineExceeded", waiting="ErrImagePull")],
            {},
            Move.FAIL,
            [("operation", "Cancelled", "ImageNotPulled")],
            id="the same, and it had never started",
        ),
        *(
            pytest.param(
                SEEN,
                [ended(OWN_POD, None, reason="DeadlineExceeded", **facts)],
                {"templates": (REBOOT,)},
                Move.TIME_OUT,
                [("delete", "Pod", OWN_POD), ("operation", phase, reason)],
                id=f"the same where success would show on the node: {reason}",
            )
            for facts, phase, reason in (
                ({"waiting": "ErrImagePull"}, "Cancelled", "ImageNotPulled"),
                ({}, "Failed", "PodNotStarted"),
                ({"container_end": ContainerEnd.FORGOTTEN}, "Cancelled", "PodStartUnknown"),
            )
        ),
        pytest.param(
            SEEN,
            [ended(OWN_POD, 137)],
            {"templates": (REBOOT,)},
            Move.WAIT,
            [],
            id="killed in the same boot: the new one may yet come",
        ),
        pytest.param(
            INTENDED,
            [ended(OWN_POD, 137)],
            {"templates": (REBOOT,), "node": a_sick_node(boot_id="boot-2", **OURS)},
            Move.SUCCEED,
            [("operation", "Succeeded", "Done")],
            id="a new boot and Ready: it worked",
        ),
        pytest.param(
            SEEN,
            [ended(OWN_POD, 0)],
            {"templates": (REBOOT,)},
            Move.WAIT,
            [],
            id="it says done, but the boot is the old one",
        ),
        pytest.param(
            INTENDED,
            [a_pod(OWN_POD, **OF)],
            {"now": at(19)},
            Move.TIME_OUT,
            [("delete", "Pod", OWN_POD), ("operation", "Failed", "TimedOut")],
            id="too late: marked for deletion, then failed",
        ),
        pytest.param(
            replace(INTENDED, drained_at=None, left=1, blocked="team/a (nobody judged this eviction: no answer)"),
            [a_pod(OWN_POD, **OF)],
            {"now": at(19), "templates": (a_template(strategy=Strategy.NONE), DRAIN, DIAGNOSTICS)},
            Move.TIME_OUT,
            [("delete", "Pod", OWN_POD), ("operation", "Cancelled", "DrainTimeout")],
            id="too late, its own program drains, and nobody was there to judge its evictions: no attempt",
        ),
        *(
            pytest.param(
                INTENDED,
                [a_pod(OWN_POD, PodPhase.PENDING, **facts, **OF)],
                {"now": at(19)},
                Move.TIME_OUT,
                [("delete", "Pod", OWN_POD), ("operation", phase, reason)],
                id=f"too late: {reason}",
            )
            for facts, phase, reason in (
                ({"node": ""}, "Cancelled", "PodNotPlaced"),
                ({"waiting": "ImagePullBackOff"}, "Cancelled", "ImageNotPulled"),
                ({"waiting": "CreateContainerConfigError"}, "Cancelled", "ContainerNotCreated"),
                ({}, "Failed", "PodNotStarted"),
            )
        ),
        pytest.param(
            replace(INTENDED, finished=at(4)),
            [a_pod(OWN_POD, **OF)],
            {},
            Move.DELETE_PODS,
            [("patch", "Pod", OWN_POD), ("delete", "Pod", OWN_POD)],
            id="ended: its Pod goes",
        ),
        pytest.param(replace(INTENDED, finished=at(4)), [], {}, Move.NOTHING, [], id="and then nothing"),
    ],
)
def test_what_an_operation_does_next(operation, facts, cache, move, effects):
    assert moved(operation, *facts, **cache) == (move, effects)


@pytest.mark.parametrize(
    ("case", "node", "operation", "mine"),
    [
        pytest.param(RUNNING, SICK, FRESH, True, id="its case holds the node"),
        pytest.param(None, SICK, FRESH, False, id="no case"),
        pytest.param(RUNNING, None, FRESH, False, id="no node"),
        pytest.param(replace(RUNNING, ended=at(4)), SICK, FRESH, False, id="its case has ended"),
        pytest.param(replace(RUNNING, deleting=True), SICK, FRESH, False, id="its case is deleted"),
        pytest.param(RUNNING, SICK, replace(FRESH, deleting=True), False, id="it is deleted itself"),
        pytest.param(RUNNING, a_sick_node(), FRESH, False, id="the taint is gone"),
        pytest.param(RUNNING, a_sick_node(uid="other", **OURS), FRESH, False, id="a namesake"),
    ],
)
def test_when_an_operation_may_disturb_its_node(case, node, operation, mine):
    assert ours(operation, case, node) is mine


def test_a_drain_that_is_repeated_has_a_pod_of_its_own():
    view = replace(operation_view(a_cache(RUNNING, DRAINED), DRAINED, NOW), pods_left=3)
    (saved,) = operation_plan.write_intent(view, NOW)
    assert (saved.after.drained_at, saved.after.drain_round) == (None, 1)
    assert drain_pod_name(saved.after) != DRAIN_POD


def test_a_drain_that_begins_anew_after_an_absence_has_the_time_that_is_left_without_it():
    """20 minutes for a drain: 5 were used, then nobody led for 40."""
    cache, again = a_cache(RUNNING, DRAINING), at(46)
    cache.absences = Absences().including(at(6), again)
    view = operation_view(cache, DRAINING, again)
    left = view.deadline - again
    body = operation_plan._drain_pod(view, DRAIN, again)
    env = {entry["name"]: entry.get("value") for entry in body["spec"]["containers"][0]["env"]}
    assert left > minutes(1)
    assert json.loads(env["PARAMETERS"])["timeoutSeconds"] == left.total_seconds()


def test_an_operation_without_its_template_ends_in_time():
    view = operation_view(a_cache(RUNNING, DRAINING, templates=()), DRAINING, at(0))
    assert view.deadline == at(0) + WITHOUT_TEMPLATE
    assert (view.observation.drain, view.observation.exit) == (DrainState.NOT_NEEDED, OperationPodState.ABSENT)


def test_the_intent_takes_the_boot_that_was_seen_live():
    view = operation_view(a_cache(RUNNING, DRAINED), DRAINED, NOW)
    (saved,) = operation_plan.write_intent(replace(view, node=a_sick_node(boot_id="boot-9")), NOW)
    assert (saved.after.intent_boot_id, saved.after.intent_at, saved.after.pod) == ("boot-9", NOW, "")


def test_the_end_of_an_operation_names_its_pod_also_where_nobody_saw_it_run():
    view = operation_view(a_cache(RUNNING, INTENDED, ended(OWN_POD, 0)), INTENDED, NOW)
    (saved,) = operation_plan.succeed(view, NOW)
    assert saved.after.pod == OWN_POD


def test_ledgers_that_hold_a_case_are_found_in_name_order():
    cache = a_cache(
        a_budget("b", claims=[("n", CLAIMED.uid)]), a_budget("a", claims=[("n", CLAIMED.uid)]), a_budget("c")
    )
    assert ledgers_of(cache, CLAIMED) == ["a", "b"]


def test_only_the_pods_of_operations_have_a_namespace():
    assert case_plan.operation(RUNNING, None).kind is api.OPERATION
    assert not api.OPERATION.namespaced
    view = operation_view(a_cache(RUNNING, INTENDED), INTENDED, NOW)
    (pod,) = operation_plan.create_pod(view, NOW)
    assert pod.kind is POD
    assert POD.namespaced
    assert "namespace" not in pod.body["metadata"]
    assert pod.body["spec"]["activeDeadlineSeconds"] == minutes(15).total_seconds()


@pytest.mark.parametrize("template", ["reboot", "drain"])
def test_only_the_controller_says_that_a_program_is_the_other_end_of_a_measurement_or_a_test(template):
    asked = {"serve": {"port": 18514}, "neighbours": {"why": "x"}, "idleTest": True, "megabytes": "1"}
    operation = replace(INTENDED, template=template, parameters=asked)
    view = replace(operation_view(a_cache(RUNNING, INTENDED), INTENDED, NOW), operation=operation)
    assert told(view).keys() & asked.keys() == {"megabytes"}
    assert told(replace(view, neighbours={"why": "no idle node"}))["neighbours"] == {"why": "no idle node"}


def told(view):
    """What the program of an operation is told."""
    (create,) = operation_plan.create_pod(view, NOW)
    (env,) = [each["env"] for each in create.body["spec"]["containers"]]
    return json.loads(next(each["value"] for each in env if each["name"] == "PARAMETERS"))


def test_a_wait_whose_time_has_come_is_shown_no_more_while_recovery_is_waited_for():
    blocks = tuple(Block(Reason.OUTSIDE_WINDOW, "", until) for until in (at(3), at(9), None))
    case = replace(TRIED, blocks=blocks)
    cache = a_cache(case)
    (saved,) = case_plan.verify(case_view(cache, case, at(4)), at(4))
    assert [block.until for block in saved.after.blocks] == [at(9), None]
    cache = a_cache(saved.after)
    assert case_plan.verify(case_view(cache, saved.after, at(5)), at(5)) == ()


@pytest.mark.parametrize(
    ("ready", "pod", "phase"),
    [
        ("True", a_pod(OWN_POD, **OF), "Failed"),
        ("Unknown", a_pod(OWN_POD, **OF), "Cancelled"),
        ("Unknown", ended(OWN_POD, 1), "Failed"),
    ],
    ids=["it runs too long", "nobody knows what runs", "it has said no before"],
)
def test_a_probe_on_a_node_whose_kubelet_is_silent_has_said_nothing_unless_it_has_ended(ready, pod, phase):
    """Its Pod is Running by the last that was heard of it, half an hour after it began."""
    probing = replace(RUNNING, attempts=(replace(RUNNING.attempts[0], probe=True),))
    node = replace(SICK, conditions=a_node("gpu-1", condition("Ready", ready)).conditions)
    view = operation_view(a_cache(probing, INTENDED, pod, node=node), INTENDED, at(40))
    assert shown(operation_plan.time_out(view, at(40)))[-1][1] == phase


@pytest.mark.parametrize(
    ("code", "reason", "end"),
    [(143, "DeadlineExceeded", ("Failed", "TimedOut")), (137, "OOMKilled", ("Cancelled", "PodLost"))],
)
def test_a_probe_that_its_kubelet_ends_when_its_time_is_over_has_failed_and_one_that_is_killed_has_said_nothing(
    code, reason, end
):
    probing = replace(RUNNING, attempts=(replace(RUNNING.attempts[0], probe=True),))
    view = operation_view(a_cache(probing, INTENDED, ended(OWN_POD, code, reason=reason)), INTENDED, NOW)
    assert shown(operation_plan.fail(view, NOW)) == [("operation", *end)]


@pytest.mark.parametrize(
    ("ready", "message"),
    [
        ("True", "no sign of success in time"),
        ("Unknown", "no sign of success in time; its kubelet does not report: look at the BMC"),
    ],
)
def test_of_a_node_that_hangs_in_its_reboot_the_time_out_says_where_to_look(ready, message):
    node = replace(SICK, conditions=a_node("gpu-1", condition("Ready", ready)).conditions)
    view = operation_view(a_cache(RUNNING, INTENDED, a_pod(OWN_POD, **OF), node=node), INTENDED, at(40))
    assert operation_plan.time_out(view, at(40))[-1].after.message == message

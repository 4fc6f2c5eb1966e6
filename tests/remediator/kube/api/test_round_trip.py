"""What we write is what is read back: every type of the API over JSON, and our nouns over create and merge patch."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remediator.core.account import Members, counts
from remediator.core.budget import Claim
from remediator.core.case import Attempt, AttemptOutcome, Block, CaseEvent, Diagnosis, Phase
from remediator.core.jobs_at_stake import BlastRadius, JobAtStake
from remediator.core.node import Status, Taint
from remediator.core.operation import OperationPhase
from remediator.core.policy import Readiness, Severity
from remediator.core.reasons import Reason
from remediator.core.ticket import (
    NOWHERE,
    About,
    Alert,
    CauseState,
    ClosedBy,
    Destination,
    IssueRef,
    ReportedCause,
    Subject,
    Ticket,
    TicketCondition,
    TicketPhase,
)
from remediator.kube import api
from remediator.kube.api import builtin, decode, encode
from remediator.kube.wire.client import Kind
from tests.builders import a_budget, a_case, a_node, an_operation, at
from tests.harness.examples import examples
from tests.remediator.kube.api.generated import LETTERS, TIMES, read_back, values

Body = dict[str, Any]
DECODERS: dict[Kind[Any], Callable[[Any], object]] = {
    api.POLICY: decode.remediation_policy,
    api.CASE: decode.remediation_case,
    api.OPERATION: decode.operation,
    api.TEMPLATE: decode.template,
    api.BUDGET: decode.disruption_budget,
    api.TICKET: decode.ticket,
    api.GPU_LEDGER: decode.gpu_ledger,
    api.IDLE_POLICY: decode.idle_policy,
    api.INVENTORY: decode.node_inventory,
    api.TICKET_ROUTE: decode.ticket_route,
    builtin.NODE: decode.node,
    builtin.POD: decode.operation_pod,
}


@pytest.mark.parametrize("kind", DECODERS, ids=lambda kind: kind.name)
@settings(max_examples=examples(25))
@given(data=st.data())
def test_an_object_of_any_kind_is_read_back_as_it_was_written_and_becomes_a_noun(kind: Kind[Any], data: Any) -> None:
    value = data.draw(values(kind.type))
    assert read_back(value) == value
    assert DECODERS[kind](read_back(value)) == DECODERS[kind](value)


def test_every_kind_of_ours_is_tried() -> None:
    assert set(api.KINDS) <= set(DECODERS)


# --- nouns -----------------------------------------------------------------------------------------------------------

words = st.text(LETTERS, max_size=30)
names = words.filter(bool)
times = TIMES.map(lambda time: time.replace(microsecond=0))
maybe = st.none() | times
attempts = st.builds(
    Attempt,
    operation=names,
    template=st.sampled_from(["reboot", "reset-gpu"]),
    rung=st.integers(0, 15),
    started=times,
    finished=maybe,
    outcome=st.sampled_from(AttemptOutcome),
    message=words,
    boot_id=words,
    heartbeats=st.dictionaries(names, times, max_size=3),
    follows=words,
    counts=st.booleans(),
)
jobs = st.builds(JobAtStake, names, names, names, st.integers(0, 8), st.integers(0, 99), maybe, st.integers(0, 99))
radii = st.builds(
    BlastRadius,
    times,
    st.lists(jobs, max_size=3).map(tuple),
    *[st.integers(0, 99)] * 5,
    unknown=words,
)
blocks = st.builds(Block, st.sampled_from(Reason), words, maybe, st.booleans(), maybe)
cases = st.builds(
    a_case,
    blast=st.none() | radii,
    phase=st.sampled_from(Phase),
    rung=st.integers(0, 15),
    attempts=st.lists(attempts, max_size=3).map(tuple),
    blocks=st.lists(blocks, max_size=3).map(tuple),
    diagnosis=st.sampled_from(Diagnosis),
    evidence=st.dictionaries(words, words | st.integers(0, 99), max_size=3),
    timeline=st.lists(st.builds(CaseEvent, times, st.sampled_from(Reason), words), max_size=3).map(tuple),
    started=maybe,
    ended=maybe,
    reason=st.none() | st.sampled_from(Reason),
    message=words,
)
operations = st.builds(
    an_operation,
    phase=st.sampled_from(OperationPhase),
    drain_round=st.integers(0, 5),
    drained_at=maybe,
    drain_started=maybe,
    drain_pod=words,
    pod=words,
    finished=maybe,
    reason=words,
    message=words,
    parameters=st.dictionaries(names, words, max_size=2),
) | st.builds(an_operation, intent_boot_id=words, intent_at=times)
budgets = st.builds(
    a_budget,
    most=st.integers(1, 9),
    claims=st.lists(st.tuples(names, names), max_size=3),
    generation=st.integers(1, 9),
    adopted=st.just(False),
)
lists = st.lists(words, max_size=3).map(tuple)
alerts = st.builds(
    Alert,
    fingerprint=names,
    name=words,
    starts=TIMES,
    ended=st.none() | TIMES,
    severity=st.sampled_from(Severity),
    summary=words,
    runbook=words,
    route=words,
    labels=st.dictionaries(names, words, max_size=3).map(lambda labels: tuple(sorted(labels.items()))),
    destination=st.just(NOWHERE) | st.builds(Destination, names, lists, lists, words, words),
    keep_open=st.booleans(),
)
subjects = (
    st.builds(Subject, st.just(About.NODE), node=names)
    | st.builds(Subject, st.just(About.CAUSE), policy=names, condition=names, message=words)
    | st.builds(Subject, st.just(About.ALERT), alert=names, cluster=words)
)
tickets = st.builds(
    Ticket,
    name=st.just("t"),
    uid=st.just("u"),
    subject=subjects,
    alerts=st.lists(alerts, max_size=2).map(tuple),
    created=times,
    version=st.just("1"),
    phase=st.sampled_from(TicketPhase),
    issue=st.none() | st.builds(IssueRef, names, st.integers(1, 10**6), words),
    previous=words,
    opened=maybe,
    creating=maybe,
    creating_in=words,
    closed=maybe,
    closed_by=st.sampled_from(ClosedBy),
    closing_commented=st.booleans(),
    written_hash=words,
    written=maybe,
    severity=st.none() | st.sampled_from(Severity),
    reported=st.lists(st.builds(ReportedCause, names, st.sampled_from(CauseState), TIMES), max_size=3).map(tuple),
    conditions=st.lists(
        st.builds(TicketCondition, names, st.sampled_from(["True", "False"]), words, words, times), max_size=2
    ).map(tuple),
)


def merged(before: Any, patch: Any) -> Any:
    """What a merge patch leaves."""
    if not isinstance(patch, dict):
        return patch
    kept = dict(before) if isinstance(before, dict) else {}
    changed = {key: merged(kept.get(key), value) for key, value in patch.items() if value is not None}
    return {key: value for key, value in kept.items() if key not in patch} | changed


def stored(body: Body, uid: str, created: Any = None, **meta: Any) -> Body:
    """What a server keeps of what we create."""
    given = {"uid": uid, "resourceVersion": "1"} | ({"creationTimestamp": created.isoformat()} if created else {})
    return merged(body, {"metadata": given | meta})


def read(kind: Kind[Any], wire: Body) -> Any:
    """The noun that an object in JSON becomes."""
    return DECODERS[kind](msgspec.json.decode(json.dumps(wire), type=kind.type))


def stored_case(case: Any) -> Body:
    """A case without its status."""
    return stored(encode.new_case(case.name, a_node(case.node), case.policy, case.trigger), case.uid, case.created)


@pytest.mark.slow
@given(cases)
def test_a_case_is_read_back_as_it_was_written(case):
    assert read(api.CASE, merged(stored_case(case), encode.case_status(case))) == case


@pytest.mark.slow
@given(cases, cases)
def test_of_a_case_nothing_is_left_that_stood_before(before, after):
    after = replace(after, evidence=before.evidence)  # it is written once and never changed
    wire = merged(merged(stored_case(before), encode.case_status(before)), encode.case_status(after))
    assert read(api.CASE, wire) == after


def stored_operation(operation: Any) -> Body:
    """An operation without its status."""
    attempt = Attempt(operation.name, operation.template, 0, at(0))
    body = encode.new_operation(a_case(), attempt, 1, operation.parameters)
    return stored(body, operation.uid, operation.created)


@given(operations, operations)
def test_an_operation_is_read_back_as_it_was_written_and_the_drain_is_left_to_its_pod(before, after):
    before = replace(before, requested_by="case-1")
    after = replace(after, parameters=before.parameters, requested_by="case-1")
    wire = merged(merged(stored_operation(before), {"status": {"drain": {"left": 3}}}), encode.operation_status(before))
    assert read(api.OPERATION, wire) == replace(before, left=3)
    assert read(api.OPERATION, merged(wire, encode.operation_status(after))) == replace(after, left=3)


@given(budgets, budgets, st.integers(0, 9))
def test_a_ledger_is_read_back_as_adopted_with_its_numbers(before, after, total):
    body = {"spec": {"selector": {}, "maxUnavailable": after.max_unavailable.value}}
    wire = stored(body, after.uid, name=after.name, generation=after.generation)
    for budget in (before, after):
        sums = counts(budget, Members(total, frozenset()))
        wire = merged(wire, encode.ledger(budget, sums))
    assert read(api.BUDGET, wire) == replace(after, adopted=True, shown=sums)
    edited = merged(wire, {"metadata": {"generation": after.generation + 1}})
    assert not read(api.BUDGET, edited).adopted, "an edited budget must adopt anew"


def test_the_default_budget_is_five_percent_of_all_nodes() -> None:
    budget = read(api.BUDGET, stored(encode.default_budget(), "u"))
    assert (budget.most(100), budget.fallback, budget.selector.matches({})) == (5, True, True)


@given(st.builds(Readiness, st.sampled_from(Status), names, st.integers(1, 9)), words, times)
def test_the_readiness_of_a_policy_is_read_back_as_it_was_written(readiness, message, now):
    spec = {"mode": "DryRun", "nodeSelector": {}, "when": [{"condition": "A"}]}
    wire = merged(stored({"spec": spec}, "u"), encode.policy_ready(readiness, message, now))
    assert read(api.POLICY, wire).readiness == readiness


@pytest.mark.slow
@given(tickets, tickets, st.lists(alerts, max_size=2).map(tuple))
def test_a_ticket_is_read_back_as_it_was_written_and_nothing_is_left_that_stood_before(before, after, newer):
    after = replace(after, subject=before.subject, alerts=newer, created=before.created)
    wire = stored(encode.new_ticket(before.subject, before.alerts), before.uid, before.created, name=before.name)
    wire = merged(wire, encode.ticket_status(before))
    assert read(api.TICKET, wire) == before
    wire = merged(merged(wire, encode.with_alerts(before, newer)), encode.ticket_status(after))
    assert read(api.TICKET, wire) == after


taints = st.lists(st.builds(Taint, names, words, st.sampled_from(["NoSchedule", "NoExecute"]), words), max_size=3)


@pytest.mark.slow
@given(taints, taints, st.booleans())
def test_the_marks_of_a_node_are_read_back_as_they_were_written(before, after, cordon):
    wire: Body = {"metadata": {"name": "n", "labels": {"a": "b"}}, "spec": {"podCIDR": "10.0.0.0/24"}}
    wire = merged(wire, encode.node_marks(a_node("n", version="7"), before, unschedulable=cordon or None))
    wire = merged(wire, encode.node_marks(a_node("n", version="7"), after, annotations={"x": "y", "z": None}))
    node = read(builtin.NODE, wire)
    assert (node.taints, node.unschedulable, node.version, node.labels) == (tuple(after), cordon, "7", {"a": "b"})
    assert wire["spec"]["podCIDR"] == "10.0.0.0/24", "what others wrote stays"
    assert wire["metadata"]["annotations"] == {"x": "y"}
    assert read(builtin.NODE, merged(wire, encode.node_marks(node, [], unschedulable=None))).unschedulable is False


def test_a_time_is_written_in_whole_seconds_as_kubernetes_does() -> None:
    budget = replace(a_budget(), claims=(Claim("gpu-1", "c1", at(seconds=0.5)),))
    status = encode.ledger(budget, counts(budget, Members(1, frozenset())))["status"]
    assert json.loads(json.dumps(status["claims"])) == [
        {"node": "gpu-1", "case": "c1", "since": "2026-01-01T12:00:00Z"}
    ]


def test_numbers_beyond_what_the_schema_takes_are_written_as_its_largest_one() -> None:
    """An API server refuses a status with a larger one as a whole: the case could never be written again."""
    huge = 2**63
    radius = BlastRadius(at(0), (JobAtStake("Job", "team", "a", huge, huge, at(0), huge),), *[huge] * 5)
    written = encode.case_status(a_case(blast=radius))["status"]["blastRadius"]
    fields = ("gpusOnNode", "gpus", "gpuHours")
    assert {written[field] for field in ("pods", "jobs", *fields)} == {10**12}
    assert {written["largest"][0][field] for field in fields} == {10**12}

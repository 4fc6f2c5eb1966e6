"""Whatever the wire says, no decision raises: an object that cannot be read says so when it is decoded."""

import json
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from copy import deepcopy
from datetime import UTC, datetime
from itertools import zip_longest
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from remediator.controller.admission import Admissions
from remediator.controller.cache import ClusterCache
from remediator.controller.case_view import case_view
from remediator.controller.effects import ChangeNode, Create, Effect, Patch, SaveCase, SaveOperation
from remediator.controller.explain import explain
from remediator.controller.fleet import fleet_context
from remediator.controller.handlers import case as case_handlers
from remediator.controller.handlers import operation as operation_handlers
from remediator.controller.hold import hold
from remediator.controller.ledgers import current_claims
from remediator.controller.operation_view import operation_view
from remediator.controller.perform import Performer
from remediator.core import account
from remediator.core import admission as core_admission
from remediator.core.breaker import Breaker, starts
from remediator.core.case_table import case_step
from remediator.core.operation_table import operation_move
from remediator.core.retention import expired
from remediator.core.user_pod import pods_to_drain
from remediator.kube import api
from remediator.kube.api import builtin, decode, encode, gpu_pods, shared_gpus
from remediator.kube.api.decode import careful
from remediator.kube.wire import client as wire
from remediator.kube.wire import errors
from remediator.kube.wire.client import Client
from remediator.scheduler.health.case_summary import summary
from remediator.scheduler.health.node_health import health
from remediator.scheduler.health.policy_index import PolicyIndex
from remediator.scheduler.responses import ExtenderAnswers
from remediator.scheduler.row import NodeState
from remediator.scheduler.score import Scorer
from remediator.scheduler.verdict import Shape
from tests.harness.cluster import at_once
from tests.harness.examples import examples
from tests.harness.replica import empty_cache
from tests.harness.sample import share

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
THEN, JUST = "2026-11-20T11:00:00Z", "2026-11-20T11:59:30Z"
META = {"resourceVersion": "1", "creationTimestamp": THEN, "generation": 1, "labels": {"pool": "a"}, "annotations": {}}


def meta(name: str, **more: Any) -> dict[str, Any]:
    """The metadata of an object."""
    return {"name": name, "uid": f"uid-{name}", **deepcopy(META), **more}


def condition(type: str, status: str) -> dict[str, Any]:
    """A Condition that was written a moment ago."""
    times = {"lastTransitionTime": THEN, "lastHeartbeatTime": JUST}
    return {"type": type, "status": status, "reason": "Said", "message": f"{type} is {status}", **times}


def node(name: str, case: str) -> dict[str, Any]:
    """A sick node that this case holds."""
    return {
        "metadata": meta(name),
        "spec": {"taints": [{"key": "remediator.dev/case", "value": f"uid-{case}", "effect": "NoSchedule"}]},
        "status": deepcopy(STATUS),
    }


STATUS = {
    "conditions": [condition("Ready", "True"), condition("GpuLost", "True"), condition("DetectorStale", "False")],
    "nodeInfo": {"bootID": "boot-1"},
    "allocatable": {"nvidia.com/gpu": "8"},
}
POLICY = {
    "metadata": meta("gpu-lost"),
    "spec": {
        "mode": "Enforce",
        "nodeSelector": {"matchLabels": {"pool": "a"}},
        "when": [{"condition": "GpuLost", "for": "2m"}, {"all": [{"condition": "GpuXid"}], "for": "0s"}],
        "severity": "Critical",
        "ladder": [{"operation": "reboot", "attempts": 2}],
        "verify": {"settle": "5m", "fresh": "3m", "timeout": "20m"},
        "attempts": {"max": 4, "window": "168h"},
        "cooldown": "30m",
        "correlation": {"nodes": 2, "within": "10m"},
    },
    "status": {"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": THEN}]},
}
TEMPLATE = {
    "metadata": meta("reboot"),
    "spec": {
        "drain": {
            "strategy": "Evict",
            "timeout": "30m",
            "skipWaitForDelete": "5m",
            "evictFor": "5m",
            "rules": [{"namespaces": ["team"], "strategy": "EvictThenDelete"}],
        },
        "timeout": "15m",
        "success": {"bootIDChanged": True, "nodeReady": True},
        "podTemplate": {"spec": {"containers": [{"name": "main", "image": "operations"}]}},
    },
}
BUDGET = {
    "metadata": meta("all"),
    "spec": {"selector": {}, "maxUnavailable": "10%"},
    "status": {
        "claims": [{"node": "gpu-1", "case": "uid-case-1", "since": THEN}],
        "total": 1,
        "unavailable": 1,
        "allowed": 1,
        "adoptedGeneration": 1,
        "adoptedUID": "uid-all",
    },
}
ATTEMPT = {
    "operation": "op-1",
    "template": "reboot",
    "rung": 1,
    "attempt": 1,
    "intent": {"bootID": "boot-0", "at": THEN},
    "startedAt": THEN,
    "finishedAt": THEN,
    "outcome": "Failed",
    "follows": "",
    "message": "exit 1",
    "nodeHeartbeats": {"Ready": THEN, "GpuLost": THEN},
}


def case(name: str, node: str, phase: str, **status: Any) -> dict[str, Any]:
    """A case of this node under the policy."""
    trigger = {"condition": "GpuLost", "status": "True", "message": "GpuLost is True", "since": THEN}
    spec = {"nodeName": node, "nodeUID": f"uid-{node}", "policyName": "gpu-lost", "trigger": trigger}
    told = [{"at": THEN, "reason": "PolicyMissing", "message": "no policy"}]
    blocks = [{"reason": "Cooldown", "message": "repaired a moment ago", "until": JUST}]
    return {
        "metadata": meta(name, finalizers=["remediator.dev/case"]),
        "spec": spec,
        "status": {"phase": phase, "rung": 1, "timeline": told, "blockedBy": blocks, **deepcopy(status)},
    }


TAKEN = {"startedAt": THEN, "diagnostics": {"outcome": "Succeeded"}, "evidence": {"kernel": ["Xid 79"]}}
OPEN = {key: value for key, value in ATTEMPT.items() if key not in ("finishedAt", "outcome")}
FINISHED = {"finishedAt": THEN, "outcome": "Failed"}
OPERATION = {
    "metadata": meta("op-1", finalizers=["remediator.dev/case"]),
    "spec": {
        "nodeName": "gpu-1",
        "nodeUID": "uid-gpu-1",
        "caseUID": "uid-case-1",
        "attempt": 1,
        "templateName": "reboot",
        "parameters": {"force": "no"},
    },
    "status": {
        "phase": "Operating",
        "intent": {"bootID": "boot-0", "at": THEN},
        "drainStartedAt": THEN,
        "drainedAt": THEN,
        "drain": {"left": 1, "blocked": [{"pod": "a/b", "pdb": "b"}]},
    },
}
POD = {
    "metadata": meta(
        "pod-1",
        namespace="remediator-operations",
        deletionTimestamp=THEN,
        labels={"remediator.dev/case-uid": "uid-case-2", "remediator.dev/operation": "collect-diagnostics"},
    ),
    "spec": {
        "nodeName": "gpu-1",
        "containers": [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": "1"}}}],
    },
    "status": {
        "phase": "Failed",
        "containerStatuses": [{"name": "main", "state": {"terminated": {"exitCode": 1, "message": '{"a": 1}'}}}],
        "conditions": [{"type": "Ready", "status": "False"}],
    },
}
OBJECTS = {
    "policies": (api.POLICY, POLICY, decode.remediation_policy),
    "templates": (api.TEMPLATE, TEMPLATE, decode.template),
    "templates diagnostics": (api.TEMPLATE, TEMPLATE | {"metadata": meta("collect-diagnostics")}, decode.template),
    "budgets": (api.BUDGET, BUDGET, decode.disruption_budget),
    "operations": (api.OPERATION, OPERATION, decode.operation),
    "pods": (builtin.POD, POD, decode.operation_pod),
    "holdings": (gpu_pods.POD, POD, shared_gpus.holding),
    "user pods": (builtin.POD, POD, decode.user_pod),
    # Of each node its case: it tries again, is diagnosed, has lost its operation, verifies, is over, and waits.
    **{f"nodes {n}": (builtin.NODE, node(f"gpu-{n}", f"case-{n}"), decode.node) for n in range(1, 7)},
    **{
        f"cases {n}": (api.CASE, case(f"case-{n}", f"gpu-{n}", phase, **status), decode.remediation_case)
        for n, (phase, status) in enumerate(
            [
                ("Operating", {**TAKEN, "attempts": [OPEN]}),
                ("Draining", {"startedAt": JUST}),
                ("Draining", {**TAKEN, "attempts": [{**OPEN, "operation": "op-3"}]}),
                ("Verifying", {**TAKEN, "attempts": [ATTEMPT]}),
                ("Recovered", {**TAKEN, "attempts": [ATTEMPT], "endedAt": THEN}),
                ("Held", {}),
            ],
            1,
        )
    },
}
DEEP = json.loads("[" * 400 + "]" * 400)
TIMES = [
    "9999-12-31T23:59:59Z",
    "9999-12-31T23:59:59-14:00",
    "10000-01-01T00:00:00Z",
    "0001-01-01T00:00:00Z",
    "0001-01-01T00:00:00+14:00",
    "0000-01-01T00:00:00Z",
    "1969-12-31T23:59:59Z",
    "2026-11-20T18:00:00Z",
    "2026-11-22T12:00:00Z",
    "2026-11-20T11:59:30",
]
WORDS = ["", "x" * 300, "Unknown", "\x00", "Escalated"]
JSON = ['{"a": "\\ud800"}', '{"a":' + "[" * 3000 + "]" * 3000 + "}", '{"a": 1e999}', '{"a": NaN}', "[", "{}"]
LENGTHS = ["0s", "999999d999999d", "0ms", "100%", "0%"]
NUMBERS = [0, -1, 2**31, 2**63 - 1, 10**30, -(10**30)]
OTHERS = [
    None,
    ...,
    True,
    1.5,
    1e308,
    "\ud800",
    [],
    {},
    DEEP,
    [condition(f"C{number}", "Maybe") for number in range(64)],
]


def fitting(value: Any) -> list[Any]:
    """What may stand there by its type."""
    if isinstance(value, str):
        times, lengths = value in (THEN, JUST), value[:1].isdigit() and value not in (THEN, JUST)
        return TIMES if times else LENGTHS if lengths else JSON if value[:1] == "{" else WORDS
    return NUMBERS if isinstance(value, int) and not isinstance(value, bool) else []


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to each part of a JSON value."""
    if at:
        yield at
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        yield from places(part, (*at, key))


def at(value: Any, way: tuple[Any, ...]) -> Any:
    """The part there."""
    for step in way:
        value = value[step]
    return value


PLACES = [(name, way) for name, (_, value, _) in OBJECTS.items() for way in places(value)]
FITTING = [(place, odd) for place in PLACES for odd in fitting(at(OBJECTS[place[0]][1], place[1]))]
CHANGES = st.lists(st.sampled_from(FITTING), max_size=12)
BREAKS = st.lists(st.tuples(st.sampled_from(PLACES), st.sampled_from(OTHERS)), max_size=3)


def changed(value: Any, way: tuple[Any, ...], odd: Any) -> None:
    """Put `odd` there, `...` takes the part away; nothing where the way is gone already."""
    try:
        parent = at(value, way[:-1])
        parent[way[-1]] = None if odd is ... else odd
        if odd is ... and isinstance(parent, dict):
            del parent[way[-1]]
    except (KeyError, IndexError, TypeError):
        return


def read(name: str, changes: list[Any]) -> list[Any]:
    """What is read of one object; where it cannot be decoded, the most careful thing that there is of it."""
    kind, value, project = OBJECTS[name]
    value = deepcopy(value)
    for way, odd in changes:
        changed(value, way, odd)
    raw = json.dumps(value).encode()
    try:
        decoded = wire.decode(raw, kind.type)
    except errors.Unavailable:
        return most_careful(name, raw)
    try:
        return [project(decoded)]
    except ValueError as error:
        if api.AT_MOST.message in str(error):
            return most_careful(name, raw)
        assert name == "holdings", "only a Pod that asks for a part of a GPU says so later"
        return []


def most_careful(name: str, raw: bytes) -> list[Any]:
    """What stands for an object that cannot be read; nothing of a kind that nothing stands for."""
    stands_for = CAREFUL.get(name.split()[0])
    with suppress(ValueError, RecursionError):
        return [stands_for(msgspec.Raw(raw))] if stands_for else []
    return []


CAREFUL = {"cases": careful.case, "budgets": careful.budget, "policies": careful.policy}
USUAL = {name: read(name, []) for name in OBJECTS}


def facts(changes: list[Any]) -> dict[str, list[Any]]:
    """What is read of each object."""
    by_object: dict[str, list[Any]] = defaultdict(list)
    for (name, way), odd in changes:
        by_object[name].append((way, odd))
    return USUAL | {name: read(name, ways) for name, ways in by_object.items()}


def cache_of(known: dict[str, list[Any]]) -> ClusterCache:
    """A cache that knows these facts."""
    cache = empty_cache(Client(None))  # type: ignore[arg-type]
    for name, fact in ((name, fact) for name, read in known.items() for fact in read):
        if name == "pods":
            cache.pods.note(f"{fact.namespace}/{fact.name}", fact)
        elif name not in ("holdings", "user pods"):
            getattr(cache, name.split()[0]).note(fact.name, fact)
    return cache


def send(effects: tuple[Effect, ...]) -> None:
    """Every body that is written can be."""
    for effect in effects:
        match effect:
            case Create(_, body) | Patch(_, _, body):
                msgspec.json.encode(body)
            case SaveCase(_, after):
                msgspec.json.encode(encode.case_status(after))
            case SaveOperation(_, after):
                msgspec.json.encode(encode.operation_status(after))
            case ChangeNode():
                pass


def decide_everything(changes: list[Any]) -> None:
    """Every decision that the controller and the extender make."""
    known = facts(changes)
    cache = cache_of(known)
    for case in cache.cases:
        view = case_view(cache, case, NOW)
        send(case_handlers.HANDLERS[case_step(view.observation)].plan(view, NOW))
        for handler in case_handlers.HANDLERS.values():
            handler.again(view, NOW)
    for operation in cache.operations:
        seen = operation_view(cache, operation, NOW)
        send(operation_handlers.HANDLERS[operation_move(seen.observation)].plan(seen, NOW))
    admit(cache)
    for ledger in cache.budgets:
        kept = current_claims(ledger, (), frozenset())
        msgspec.json.encode(encode.ledger(kept, account.counts(kept, cache.ledgers().members[ledger.name])))
    nodes, policies = {node.name: node for node in cache.nodes}, {policy.name: policy for policy in cache.policies}
    expired(cache.cases, nodes, policies, NOW)
    for node in cache.nodes:
        list(explain(cache, node, Breaker(), NOW))
        reason = health(node, map(summary, cache.cases), PolicyIndex(cache.policies), NOW)
        ExtenderAnswers(Shape((("nvidia.com/gpu", 1),)), {node.name: NodeState(reason, node.gpus, ())}, Scorer())
    for template in cache.templates:
        pods_to_drain(known["user pods"], "", template, NOW)
        encode.drain_parameters(template, template.drain_timeout)


def admit(cache: ClusterCache) -> None:
    """One pass of admission, without its writes."""
    performer = Performer(None, cache, lambda: True)  # type: ignore[arg-type]
    admissions, fleet = Admissions(cache, performer, Breaker(), lambda: 0.0), fleet_context(cache, NOW)
    pending = [admissions.pending.of(view, step, fleet, NOW) for view, step in at_once(admissions.pending.waiting(NOW))]
    requests = [made.request for made in pending]
    basis = core_admission.Basis(cache.ledgers(), [start.at for start in starts(cache.cases)], Breaker(), NOW)
    found = core_admission.admit(requests, basis)
    for request, blocks in found.held:
        send(hold(request.case, blocks, None, NOW).effects)
    for made in pending:
        send(case_handlers.HANDLERS[made.step].plan(made.view, NOW))


def rounds() -> Iterator[list[Any]]:
    """Each part of each object is odd in each way that fits, some objects at once where one hides no other."""
    for kinds in (
        ("policies",),
        ("budgets", "operations", "pods", "user pods", "holdings"),
        ("templates",),
        ("nodes",),
        ("cases",),
    ):
        of_object = [[pair for pair in FITTING if pair[0][0] == name] for name in OBJECTS if name.split()[0] in kinds]
        if kinds == ("nodes",):  # they are all alike
            of_object = [pairs[number :: len(of_object)] for number, pairs in enumerate(of_object)]
        yield from ([pair for pair in at_once if pair] for at_once in zip_longest(*of_object))


def test_no_decision_raises_whatever_one_part_of_the_wire_says() -> None:
    for changes in share(list(rounds())):
        try:
            decide_everything(changes)
        except Exception as error:
            raise AssertionError(changes) from error


@settings(max_examples=examples(50), deadline=None)
@given(CHANGES, BREAKS)
def test_no_decision_raises_whatever_many_parts_of_the_wire_say(changes: list[Any], breaks: list[Any]) -> None:
    decide_everything([*changes, *breaks])


def test_an_object_as_it_should_be_is_read() -> None:
    assert all(USUAL.values())

"""What a drain does with each Pod: the orders, the Pod and the scene in, a move out."""

import pytest

from nodelib.contract.operation import Refused
from nodelib.k8s import drain_moves
from nodelib.k8s.drain_moves import BARE, COMPLETES, HANGS, REPORTS, SILENT, Move, Scene, move, moves
from nodelib.k8s.drain_orders import STRATEGIES, Orders, Rule, read_orders
from nodelib.k8s.pod_wishes import DO_NOT_DISRUPT, EVICT, SAFE, SAFE_VOLUMES, wish_of
from nodelib.k8s.pods import Pod, pod_of

NAMED = {"operation": "op-1", "operationUID": "op-uid", "caseUID": "case-1"}
SILENT_NODE, LATER = Scene(silent=True), Scene(deletes=True, judged=frozenset({"a"}))
ALL = Rule((), (), {}, "")


def orders(strategy="Evict", **more):
    """Orders as a template without more words gives them; a Pod is waited for however long it is overdue."""
    return Orders("op-1", "op-uid", "case-1", strategy, 1800.0, 5.0, 3600.0, **more)


def a_pod(name="a", namespace="team", labels=None, owner="Job", **meta):
    """A Pod of a Job as the API server gives it; `volumes`, `annotations` and what else metadata has."""
    volumes = [{"name": volume, "emptyDir": {}} for volume in meta.pop("volumes", ())]
    owners = [{"kind": owner, "controller": True}] if owner else []
    given = {"name": name, "namespace": namespace, "uid": name, "labels": labels or {}, "ownerReferences": owners}
    return pod_of({"metadata": given | meta, "spec": {"volumes": volumes}}, None)


def ending(overdue=0.0, **meta):
    return a_pod(deletionTimestamp="2026-01-01T00:00:00Z", **meta)._replace(overdue=overdue)


def noted(**annotations):
    return a_pod(annotations=annotations)


PLAIN, BARE_POD, SCRATCH = a_pod(), a_pod(owner=None), a_pod(volumes=("scratch",))
ASKED = {
    ("Evict", Scene()): "evict",
    ("Delete", Scene()): "delete",
    ("EvictThenDelete", Scene()): "evict",
    ("EvictThenDelete", LATER): "delete",
    ("EvictThenDelete", Scene(deletes=True, judged=frozenset({"b"}))): "evict",  # no budget has refused this Pod yet
    ("Evict", LATER): "evict",
    ("ForceDelete", SILENT_NODE): "delete at once",
    ("ForceDelete", Scene()): drain_moves.KEEP,
    ("WaitForCompletion", LATER): "wait for",
    ("None", Scene()): "leave",
}


@pytest.mark.parametrize(("strategy", "scene"), ASKED)
def test_each_strategy_has_its_move(strategy, scene):
    assert move(PLAIN, orders(strategy), scene).verb == ASKED[strategy, scene]


def test_every_strategy_is_tried():
    assert {strategy for strategy, _ in ASKED} == set(STRATEGIES)


TAKES = [strategy for strategy in STRATEGIES if strategy not in ("None", "WaitForCompletion")]


@pytest.mark.parametrize("strategy", TAKES)
@pytest.mark.parametrize("pod", [BARE_POD, SCRATCH], ids=["bare", "emptyDir"])
def test_no_strategy_takes_what_would_be_lost_unless_that_is_declared(strategy, pod):
    assert move(pod, orders(strategy), SILENT_NODE).verb == drain_moves.KEEP
    declared = orders(strategy, bare=True, empty_dirs=True)
    assert move(pod, declared, SILENT_NODE).verb in drain_moves.ASKS


LOST = "data in emptyDir (scratch) would be lost: annotate it with remediator.dev/evict=true, or set drain.deleteEmpty"
KEPT = [
    (BARE_POD, {}, BARE),
    (BARE_POD, {"bare": True}, ""),
    (BARE_POD, {"empty_dirs": True}, BARE),
    (SCRATCH, {}, LOST),
    (SCRATCH, {"empty_dirs": True}, ""),
    (a_pod(owner=None, volumes=("scratch",)), {}, f"{BARE}; {LOST}"),
    (a_pod(volumes=("scratch", "dshm"), annotations={SAFE_VOLUMES: "dshm, cache"}), {}, LOST),
    (a_pod(volumes=("dshm",), annotations={SAFE_VOLUMES: "dshm, cache"}), {}, ""),
]


@pytest.mark.parametrize(("pod", "declared", "why"), KEPT)
def test_what_keeps_a_pod_is_said_with_its_remedy(pod, declared, why):
    found = move(pod, orders(**declared), Scene())
    assert (found.verb, found.why[: len(why)]) == (drain_moves.KEEP if why else "evict", why)


KEEPS = f"its annotation {DO_NOT_DISRUPT} keeps it"
WISHES = [
    ({EVICT: "true"}, 0.0, (True, "")),
    ({EVICT: "false"}, 0.0, (False, f"its annotation {EVICT} keeps it")),
    ({EVICT: "no"}, 0.0, (False, f"its annotation {EVICT} keeps it")),  # whatever is meant, not yes
    ({SAFE: "true"}, 0.0, (True, "")),
    ({SAFE: "false"}, 0.0, (False, f"its annotation {SAFE} keeps it")),
    ({SAFE: "maybe"}, 0.0, (False, "")),  # the Cluster Autoscaler reads true and false
    ({DO_NOT_DISRUPT: "true"}, 1e9, (False, KEEPS)),
    ({DO_NOT_DISRUPT: "false"}, 0.0, (False, "")),
    ({DO_NOT_DISRUPT: "1h30m"}, 5399.0, (False, KEEPS)),
    ({DO_NOT_DISRUPT: "1h30m"}, 5400.0, (False, "")),
    ({DO_NOT_DISRUPT: "true", SAFE: "true"}, 0.0, (False, KEEPS)),
    ({DO_NOT_DISRUPT: "true", SAFE: "false", EVICT: "true"}, 0.0, (True, "")),
    ({}, 0.0, (False, "")),
]


@pytest.mark.parametrize(("annotations", "age", "expected"), WISHES)
def test_annotations_of_well_known_tools_mean_what_they_mean_there(annotations, age, expected):
    declared, why = wish_of(annotations, age)
    assert (declared, why[: len(expected[1])], bool(why)) == (*expected, bool(expected[1]))


@pytest.mark.parametrize("annotation", [EVICT, SAFE])
def test_an_annotation_declares_both_losses(annotation):
    pod = a_pod(owner=None, volumes=("scratch",), annotations={annotation: "true"})
    assert move(pod, orders(), Scene()) == Move("evict")


ENDING = [
    (ending(), "Evict", Scene(), Move("wait for")),
    (ending(59.0), "Evict", SILENT_NODE, Move("wait for")),
    (ending(61.0), "Evict", Scene(), Move("wait for", HANGS)),
    (ending(61.0), "Delete", SILENT_NODE, Move("wait for", SILENT)),
    (ending(61.0), "WaitForCompletion", SILENT_NODE, Move("wait for", SILENT)),
    (ending(61.0), "ForceDelete", SILENT_NODE, Move("delete at once")),
    (ending(61.0), "ForceDelete", Scene(), Move("wait for", HANGS)),
    (ending(61.0), "None", Scene(), Move("leave")),
    (ending(3601.0), "Evict", SILENT_NODE, Move("not wait for", "its end is overdue: not waited for")),
    (ending(0.0, owner=None, volumes=("scratch",)), "Evict", Scene(), Move("wait for")),
    (
        ending(61.0, finalizers=["example.com/a"], deletionGracePeriodSeconds=0),
        "ForceDelete",
        SILENT_NODE,
        Move("wait for", "finalizers keep it: example.com/a"),
    ),
    (
        ending(61.0, finalizers=["f" * 400], deletionGracePeriodSeconds=0),
        "ForceDelete",
        SILENT_NODE,
        Move("wait for", f"finalizers keep it: {'f' * 280}"),
    ),
    (
        ending(61.0, finalizers=["example.com/a"], deletionGracePeriodSeconds=30),
        "ForceDelete",
        SILENT_NODE,
        Move("delete at once"),
    ),
]


@pytest.mark.parametrize(("pod", "strategy", "scene", "expected"), ENDING)
def test_a_pod_that_somebody_has_deleted_is_waited_for_named_or_forgotten(pod, strategy, scene, expected):
    assert move(pod, orders(strategy), scene) == expected


def test_reasons_name_strategies_and_what_to_do():
    assert move(PLAIN, orders("ForceDelete"), Scene()).why == REPORTS
    assert move(PLAIN, orders("WaitForCompletion"), Scene()).why == COMPLETES


RULES = (
    ALL._replace(namespaces=("batch",), owners=("Job",), strategy="WaitForCompletion"),
    ALL._replace(namespaces=("batch", "lab"), strategy="Delete"),
    ALL._replace(labels={"app": "cache", "tier": "web"}, strategy="None"),
)
BY_RULES = [
    (a_pod(namespace="batch"), "wait for"),
    (a_pod(namespace="batch", owner="StatefulSet"), "delete"),
    (a_pod(namespace="lab"), "delete"),
    (a_pod(labels={"app": "cache", "tier": "web", "more": "x"}), "leave"),
    (a_pod(labels={"app": "cache"}), "evict"),
    (a_pod(namespace="lab", labels={"app": "cache", "tier": "web"}), "delete"),  # the first rule that applies
]


@pytest.mark.parametrize(("pod", "verb"), BY_RULES)
def test_the_first_rule_that_applies_says_the_strategy(pod, verb):
    assert [found.verb for _, found in moves([pod], orders(rules=RULES), Scene())] == [verb]


def test_orders_are_read_with_their_rules_and_times():
    rule = {"namespaces": ["a"], "owners": ["Job"], "selector": {"matchLabels": {"b": "c"}}, "strategy": "None"}
    more = {"timeoutSeconds": 100, "evictForSeconds": 30, "deleteBarePods": True, "rules": [rule]}
    read = read_orders({**NAMED, "strategy": "EvictThenDelete", **more})
    assert (read.delete_for, read.bare, read.empty_dirs) == (70.0, True, False)
    assert read.rules == (Rule(("a",), ("Job",), {"b": "c"}, "None"),)
    assert read_orders({**NAMED, "timeoutSeconds": 100}).delete_for == 50.0


BAD = [
    {"rules": "all"},
    {"rules": [{"strategy": "Kill"}]},
    {"rules": [{}]},
    {"rules": [{"strategy": "Evict", "namespaces": "a"}]},
    {"rules": [{"strategy": "Evict", "selector": {"matchLabels": ["a"]}}]},
    {"deleteBarePods": "perhaps"},
    {"evictForSeconds": -1},
]


@pytest.mark.parametrize("given", BAD)
def test_orders_that_cannot_be_meant_are_refused(given):
    with pytest.raises(Refused):
        read_orders({**NAMED, **given})


def test_what_nobody_said_of_a_pod_is_the_least_that_could_be():
    assert Pod("team", "a", "uid", {}, False) == a_pod(owner="ReplicaSet")._replace(uid="uid", ready=True)

"""Scenarios of programs that work through the API server: the same objects, for the program by HTTPS."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from remediator_sim.simulation import loop
from remediator_sim.simulation.clock import HostClock
from tests.harness.apiserver import CASE, NODE, OPERATION, POLICY, SYSTEM, ApiServer, MemoryServer, change
from tests.harness.objects import AFTER, CASE_TAINT, budget, daemon_pod, daemon_set, pod, renewed_later
from tests.operations.conftest import Program
from tests.simulation.programs.scenario import Outcome, Scenario, model_node, run_model, run_program

Change = Callable[[ApiServer], object]
WEB = {"app": "web"}
ORDERS = {"operation": "op-1", "operationUID": "op-uid", "caseUID": "case-1", "timeoutSeconds": 20, "perSecond": 1000}
LONG_AGO = "2026-01-01T00:00:00Z"


def all_of(*changes: Change) -> Change:
    """One after another."""
    return lambda api: [change(api) for change in changes]


def put(*objs: Any) -> Change:
    """Objects that stand there."""
    return lambda api: api.put(*objs)


def refuse(*codes: int, path: str = "", method: str = "") -> Change:
    """The next requests to such a path are refused."""

    def plan(api: ApiServer) -> None:
        for code in codes:
            api.faults.refuse(code, when=lambda asked: path in asked.path and asked.method.startswith(method))

    return plan


def upon(path: str, then: Change) -> Change:
    """Something that happens just before the first request to such a path."""

    def arm(api: ApiServer) -> None:
        happened: list[str] = []

        def hear(method: str, asked: str) -> None:
            if path in asked and not happened:
                happened.append(asked)
                then(api)

        api.on_request = hear

    return arm


def stopped(by: Change, until: Change, *, asks: int = 2) -> Change:
    """A Pod, and what stops its drain until the drain has asked so often for its node."""

    def plan(api: ApiServer) -> None:
        api.put(pod("a"))
        by(api)
        asked: list[str] = []

        def hear(method: str, path: str) -> None:
            if path.endswith("/nodes/gpu-1"):
                asked.append(path)
            if len(asked) == asks:
                until(api)

        api.on_request = hear

    return plan


def removed(where: tuple[str, str, str]) -> Change:
    """An object that is gone."""
    return lambda api: api.remove(*where)


def drain(name: str, real: Change = lambda api: None, **more: Any) -> Scenario:
    """A scenario of a drain; `more`: other orders. One that is None is left out."""
    orders = {key: value for key, value in (ORDERS | more).items() if value is not None}
    return Scenario("drain", name, real, parameters=orders)


NAMED = {"case": CASE[2], "policy": POLICY[2], "namespace": SYSTEM[2]}
MASTER, PAUSE = {"node-role.kubernetes.io/master": ""}, {"remediator.dev/paused": ""}
ENDED = change(OPERATION, "status", phase="Cancelled")
EXCLUDED = change(NODE, "metadata", labels={"remediator.dev/exclude": "yes"})
HELD = put(pod("a", labels=WEB), budget("web", 1, WEB))
SILENT: Change = lambda api: api.ready("Unknown")  # noqa: E731
LATE = put(pod("late", deletionTimestamp=LONG_AGO, deletionGracePeriodSeconds=30))
FINALIZED = put(pod("a", deletionTimestamp=LONG_AGO, deletionGracePeriodSeconds=0, finalizers=["example.com/a"]))
SAFE, KARPENTER = "cluster-autoscaler.kubernetes.io/safe-to-evict", "karpenter.sh/do-not-disrupt"


def with_data(name: str, *volumes: str, **more: Any) -> dict[str, Any]:
    """A Pod with emptyDir volumes."""
    found = pod(name, **more)
    found["spec"]["volumes"] = [{"name": volume, "emptyDir": {}} for volume in volumes]
    return found


def declared(name: str) -> Change:
    """Its owner lets the Pod go."""
    return change(("pods", "team", name), "metadata", annotations={"remediator.dev/evict": "true"})


def static(component: str) -> dict[str, Any]:
    """A static Pod that a kubelet shows."""
    labels = {"tier": "control-plane", "component": component}
    marks = {"kubernetes.io/config.mirror": "x"}
    return pod(component, "kube-system", owner="Node", labels=labels, annotations=marks)


ETCD, PROXY, MADE = static("etcd"), static("kube-proxy"), ("pods", "kube-system", "etcd")
KEPT = put(
    pod("bare", owner=None),
    with_data("data", "scratch", "dshm", owner=None),
    with_data("safe-data", "scratch", annotations={f"{SAFE}-local-volumes": "scratch"}),
    pod("declared", owner=None, annotations={"remediator.dev/evict": "true"}),
    pod("not-now", annotations={"remediator.dev/evict": "later"}),
    with_data("safe", "scratch", owner=None, annotations={SAFE: "true"}),
    pod("unsafe", annotations={SAFE: "false"}),
    pod("kept", annotations={KARPENTER: "true", SAFE: "true"}),
    pod("kept-for-long", annotations={KARPENTER: "100000h"}),
)


def insistent(api: ApiServer) -> None:
    """A Pod that its controller makes on the node again, whenever it goes."""
    made = iter(range(100))
    api.replace = lambda gone: pod(f"again-{next(made)}", creationTimestamp="2026-06-01T00:00:00Z")
    api.put(pod("again", creationTimestamp="2025-01-01T00:00:00Z"))


RULES = [
    {"namespaces": ["team"], "selector": {"matchLabels": WEB}, "strategy": "Delete"},
    {"owners": ["ReplicaSet"], "namespaces": ["batch"], "strategy": "Evict"},
    {"selector": {"matchLabels": {}}, "owners": ["Job"], "strategy": "WaitForCompletion"},
]
DRAINS = (
    drain(
        "Pods of every kind",
        put(
            pod("a"),
            pod("b"),
            pod("static", "kube-system", owner="Node", annotations={"kubernetes.io/config.mirror": "x"}),
            pod("agent", "kube-system", owner="DaemonSet"),
            pod("coredns", "kube-system"),
            pod("ended", phase="Succeeded"),
            pod("broken", phase="Failed"),
            pod("ours", "remediator-operations", owner=None),
            pod("elsewhere", node="gpu-2"),
        ),
    ),
    drain("no Pod"),
    drain("a user lets the node go on", stopped(EXCLUDED, change(NODE, "metadata", labels={}))),
    drain("a user stops it beyond its time", stopped(EXCLUDED, ENDED), timeoutSeconds=0.3),
    drain("the node joins the control plane", stopped(change(NODE, "metadata", labels=MASTER), ENDED)),
    drain("a static Pod makes the node part of the control plane", stopped(put(ETCD), ENDED)),
    drain("it is none of the control plane any more", stopped(put(ETCD), change(MADE, "metadata", annotations={}))),
    drain("a static Pod of another kind comes", put(pod("a"), PROXY)),
    drain("a user uncordons the node", stopped(change(NODE, "spec", unschedulable=False), ENDED)),
    drain("a user holds the case", stopped(change(CASE, "spec", hold=True), ENDED), **NAMED),
    drain("a user releases the case", stopped(change(CASE, "spec", release=True), ENDED), **NAMED),
    drain("a user deletes the case", stopped(change(CASE, "metadata", deletionTimestamp=LONG_AGO), ENDED), **NAMED),
    drain(
        "a user takes the approval of the case back",
        stopped(change(POLICY, "spec", mode="Enforce", approval="Required"), ENDED),
        **NAMED,
    ),
    drain(
        "a user has approved the case",
        all_of(
            put(pod("a")),
            change(POLICY, "spec", mode="Enforce", approval="Required"),
            change(CASE, "spec", approved=True),
        ),
        **NAMED,
    ),
    drain("the case is gone", all_of(put(pod("a")), removed(CASE)), **NAMED),
    drain("a user pauses the policy", stopped(change(POLICY, "spec", mode="Paused"), ENDED), **NAMED),
    drain("the policy and the namespace are gone", all_of(put(pod("a")), removed(POLICY), removed(SYSTEM)), **NAMED),
    drain("a user pauses everything", stopped(change(SYSTEM, "metadata", annotations=PAUSE), ENDED), **NAMED),
    drain("the policy may not be read", all_of(put(pod("a")), refuse(403, path="/remediationpolicies")), **NAMED),
    drain("a budget holds one for good", all_of(HELD, put(pod("b"))), timeoutSeconds=1.5),
    drain("two budgets over one Pod", all_of(HELD, put(budget("all", 0, WEB), pod("b"))), timeoutSeconds=1.5),
    drain(
        "two budgets over one Pod that is deleted later",
        all_of(HELD, put(budget("all", 0, WEB), pod("b"))),
        strategy="EvictThenDelete",
        timeoutSeconds=4,
        evictForSeconds=1.5,
    ),
    drain(
        "two budgets over one Pod that runs nothing yet",
        put(pod("a", labels=WEB, phase="Pending"), budget("web", 1, WEB), budget("all", 0, WEB)),
    ),
    drain(
        "a budget lets go later",
        all_of(HELD, upon("/poddisruptionbudgets", put(pod("twin", labels=WEB, node="gpu-2")))),
    ),
    drain("one is ending", put(pod("a", deletionTimestamp="2036-01-01T00:00:00Z")), timeoutSeconds=1.5),
    drain("one should have ended, and is waited for", put(pod("a", deletionTimestamp=LONG_AGO)), timeoutSeconds=1.5),
    drain("one cannot end, and its kubelet is silent", all_of(LATE, SILENT), timeoutSeconds=1.5),
    drain("finalizers keep one", all_of(FINALIZED, SILENT), strategy="ForceDelete", timeoutSeconds=1.5),
    drain("Pods are forgotten", all_of(LATE, put(pod("b")), SILENT), strategy="ForceDelete"),
    drain("Pods of a node that reports", put(pod("b")), strategy="ForceDelete", timeoutSeconds=1.5),
    drain("evicted, then deleted", all_of(HELD, put(pod("b"))), strategy="EvictThenDelete", evictForSeconds=2),
    drain("asked once before it is deleted", HELD, strategy="EvictThenDelete", evictForSeconds=0),
    drain("deleted after half of the time", HELD, strategy="EvictThenDelete", timeoutSeconds=2),
    drain("work goes on", put(pod("a"), pod("b", owner=None)), strategy="WaitForCompletion", timeoutSeconds=1.5),
    drain(
        "work ends",
        all_of(put(pod("a")), upon("/status", change(("pods", "team", "a"), "status", phase="Succeeded"))),
        strategy="WaitForCompletion",
    ),
    drain("what would be lost", KEPT, timeoutSeconds=1.5),
    drain("what would be lost is deleted", KEPT, strategy="Delete", timeoutSeconds=1.5),
    drain("bare Pods may go", KEPT, deleteBarePods=True, timeoutSeconds=1.5),
    drain("all may go", KEPT, deleteBarePods=True, deleteEmptyDirData=True, timeoutSeconds=1.5),
    drain("a Pod is declared", all_of(put(pod("a", owner=None)), upon("/status", declared("a")))),
    drain("other strategies for some", all_of(HELD, KEPT, put(pod("b"))), rules=RULES, timeoutSeconds=1.5),
    drain("all Pods are left by a rule", put(pod("a")), strategy="None", rules=[{"strategy": "None"}]),
    drain("none but those of a rule", put(pod("a"), pod("b", "batch")), strategy="None", rules=RULES),
    drain("a rule with a strategy that there is not", rules=[{"strategy": "Kill"}]),
    drain("one should have ended", put(pod("a", deletionTimestamp=LONG_AGO)), skipWaitForDeleteSeconds=60),
    drain("all are deleted", all_of(HELD, put(pod("b"))), strategy="Delete"),
    drain("nothing is drained", put(pod("a")), strategy="None"),
    drain("a strategy that there is not", strategy="Kill"),
    drain("no operation is named", operation=None, caseUID=None),
    drain("a time that is none", timeoutSeconds="soon"),
    drain("the operation has ended", change(OPERATION, "status", phase="Cancelled")),
    drain("the operation is being deleted", change(OPERATION, "metadata", deletionTimestamp=LONG_AGO)),
    drain("the operation is another one", operationUID="other"),
    drain("the operation is gone", removed(OPERATION)),
    drain("the node is another one", change(NODE, "metadata", uid="other")),
    drain("the node is gone", removed(NODE)),
    drain("the case does not hold the node", all_of(put(pod("a")), change(NODE, "spec", taints=[]))),
    drain("the case lets the node go in between", all_of(HELD, upon("/eviction", change(NODE, "spec", taints=[])))),
    drain(
        "the operation ends in between",
        all_of(put(pod("a")), upon("/eviction", change(OPERATION, "status", phase="Failed"))),
    ),
    drain("the server sheds load", all_of(put(pod("a")), refuse(429, path="/pods", method="GET"))),
    drain("the server fails", all_of(put(pod("a")), refuse(500, 503))),
    drain("the list has expired", all_of(put(pod("a")), refuse(410, path="/pods", method="GET"))),
    drain("Pods may not be listed", all_of(put(pod("a")), refuse(403, path="/api/v1/pods", method="GET"))),
    drain("the operation may not be read", refuse(403, path="nodeoperations")),
    drain("an eviction fails", all_of(put(pod("a")), refuse(500, path="/eviction"))),
    drain("an eviction meets another change", all_of(put(pod("a")), refuse(409, path="/eviction"))),
    drain("an eviction may not be", all_of(put(pod("a")), refuse(403, path="/eviction")), timeoutSeconds=10),
    drain("progress cannot be written", all_of(put(pod("a")), refuse(409, path="/status"))),
    drain("annotations are overridden", KEPT, overrideAnnotationsAfterSeconds=1, timeoutSeconds=2.5),
    drain(
        "all may go, and annotations are overridden",
        KEPT,
        overrideAnnotationsAfterSeconds=0.5,
        deleteBarePods=True,
        deleteEmptyDirData=True,
    ),
    drain("a Pod comes again and again", insistent, timeoutSeconds=9),
    drain(
        "progress may not be written",
        all_of(put(pod("a")), refuse(*[403] * 99, path="/status")),
        timeoutSeconds=1.5,
    ),
    drain(
        "one keeps the node from the middle on",
        all_of(HELD, upon("/eviction", put(pod("z", owner=None)))),
        timeoutSeconds=3,
    ),
    Scenario("drain", "PARAMETERS are no JSON", parameters="["),
    Scenario("drain", "PARAMETERS are a list", parameters="[]"),
)

GANG, ASKS = {"jobset.sigs.k8s.io/jobset-name": "train-7"}, {"remediator.dev/checkpoint": "1s"}
REQUESTED, ANSWER = "remediator.dev/checkpoint-requested", "remediator.dev/checkpoint-done"
ANSWERED = {"remediator.dev/checkpoint": "1h", REQUESTED: "2026-06-01T00:00:00Z", ANSWER: "2026-06-01T00:00:01Z"}
HELD_OF_GANG = put(pod("a", labels=GANG | WEB), budget("web", 1, WEB))
GROUPED = {"schedulingGroup": {"podGroupName": "train-7"}}


def gang(count: int, *, labels: dict[str, str] | None = None, notes: dict[str, str] | None = None) -> Change:
    """The Pods of one gang."""
    return put(*(pod(f"t-{index}", labels=GANG | (labels or {}), annotations=notes) for index in range(count)))


def asking(labels: dict[str, str]) -> Change:
    """A Pod that wants a checkpoint."""
    return put(pod("a", labels=labels, annotations=ASKS))


def in_a_group(count: int) -> Change:
    """Pods that name a PodGroup."""
    pods = [pod(f"t-{index}", labels=WEB if index == 0 else {}) for index in range(count)]
    return put(*(one | {"spec": one["spec"] | GROUPED} for one in pods), budget("web", 1, WEB))


JOBS = (
    drain("a gang", all_of(gang(3), put(pod("b")))),
    drain("a budget holds one of a gang", all_of(gang(2), HELD_OF_GANG), timeoutSeconds=1.5),
    drain(
        "a budget lets some of a gang go",
        all_of(gang(2, labels=WEB), put(budget("web", 1, WEB))),
        timeoutSeconds=1.5,
    ),
    drain(
        "one of a gang is kept on another node",
        all_of(gang(2), put(pod("leader", labels=GANG, annotations={KARPENTER: "true"}, node="gpu-2"), pod("b"))),
        timeoutSeconds=1.5,
    ),
    drain(
        "the only one here of a gang that is kept on another node",
        all_of(gang(1), put(pod("leader", labels=GANG, annotations={KARPENTER: "true"}, node="gpu-2"))),
        timeoutSeconds=1.5,
    ),
    drain(
        "a gang that is kept on another node is let go",
        all_of(
            gang(1),
            put(pod("leader", labels=GANG, annotations={KARPENTER: "true"}, node="gpu-2"), pod("b")),
            upon("/status", declared("leader")),
        ),
    ),
    drain("a gang is deleted", all_of(gang(2, labels=WEB), put(budget("web", 2, WEB))), strategy="Delete"),
    drain(
        "one of a gang is ending",
        all_of(gang(2), put(pod("ending", labels=GANG, deletionTimestamp="2036-01-01T00:00:00Z"))),
        timeoutSeconds=1.5,
    ),
    drain(
        "two budgets over one of a gang", all_of(gang(2), HELD_OF_GANG, put(budget("all", 0, WEB))), timeoutSeconds=1.5
    ),
    drain("one of a gang goes in between", all_of(gang(2), refuse(404, path="/eviction"))),
    drain("a PodGroup that there is not", in_a_group(2), timeoutSeconds=1.5),
    drain(
        "a PodGroup that may not be read",
        all_of(in_a_group(2), refuse(*[403] * 9, path="/podgroups/")),
        timeoutSeconds=1.5,
    ),
    drain("the server fails at a PodGroup", all_of(in_a_group(2), refuse(500, path="/podgroups/")), timeoutSeconds=1.5),
    drain("a Pod wants a checkpoint and says nothing", put(pod("a", annotations=ASKS))),
    drain("a Pod wants none", put(pod("a", annotations={"remediator.dev/checkpoint": "0"}))),
    drain("a Pod has answered", put(pod("a", annotations=ANSWERED))),
    drain("it was asked long ago", put(pod("a", annotations={**ASKS, REQUESTED: LONG_AGO, ANSWER: LONG_AGO}))),
    drain("it is asked in 70 years", put(pod("a", annotations={**ASKS, REQUESTED: "2096-01-01T00:00:00Z"}))),
    drain("it cannot be asked", all_of(put(pod("a", annotations=ASKS)), refuse(403, path="/pods/a", method="PATCH"))),
    drain("the server fails when it is asked", all_of(put(pod("a", annotations=ASKS)), refuse(500, path="/pods/a"))),
    drain("it has gone when it is asked", all_of(put(pod("a", annotations=ASKS)), refuse(404, path="/pods/a"))),
    drain("a gang wants a checkpoint", gang(2, notes=ASKS)),
    drain(
        "a budget holds what wants a checkpoint", all_of(asking(WEB), put(budget("web", 1, WEB))), timeoutSeconds=1.5
    ),
)

SETS = {"restart-device-plugin": "nvidia-device-plugin-daemonset", "restart-cni": "cilium"}
RESTARTED = {"caseUID": "case-1", "waitSeconds": 20}


UNAVAILABLE = ("network-unavailable", "NoSchedule")
GREATER = [{"key": "example.com/strange", "operator": "Gt", "value": "1"}]


def tainted(key: str, effect: str) -> list[dict[str, str]]:
    """The mark of the case, and one taint that Kubernetes itself sets."""
    return [CASE_TAINT, {"key": f"node.kubernetes.io/{key}", "effect": effect}]


def restarts(template: str) -> tuple[Scenario, ...]:
    """Scenarios of a program that restarts the Pod of a DaemonSet."""
    name = SETS[template]

    def scene(text: str, *changes: Change, **more: Any) -> Scenario:
        standing = put(daemon_set(name), daemon_pod("old", name), daemon_set("other"), daemon_pod("mine", "other"))
        return Scenario(template, text, all_of(renewing, standing, *changes), parameters=RESTARTED | more)

    intolerant = put(daemon_set(name, tolerations=[]))
    strange = [CASE_TAINT, {"key": "example.com/strange", "effect": "NoSchedule"}]
    where, old = ("daemonsets.apps", "kube-system", name), ("pods", "kube-system", "old")
    young = change(old, "metadata", creationTimestamp=AFTER)
    on_network = {"template": {"spec": {"tolerations": [], "hostNetwork": True}}}
    networked = all_of(intolerant, change(where, "spec", **on_network))
    return (
        scene("its Pod is old"),
        scene("its Pod is young", young),
        scene("there is no such DaemonSet", removed(where)),
        scene("two have a Pod there", put(daemon_set(name, "gpu"), daemon_pod("too", name, "gpu")), two_uids(name)),
        scene("it has another version by now", put(daemon_set(name, strategy="OnDelete", generation="2"))),
        scene("it updates OnDelete and has the same", put(daemon_set(name, strategy="OnDelete"))),
        scene("it does not tolerate the mark of the case", intolerant),
        scene("it does not tolerate a taint", intolerant, change(NODE, "spec", taints=strange)),
        *(
            scene(
                f"the node has the taint {key}:{effect}", intolerant, change(NODE, "spec", taints=tainted(key, effect))
            )
            for key in ("not-ready", "unreachable", "network-unavailable", "unschedulable")
            for effect in ("NoSchedule", "NoExecute")
        ),
        scene("its Pod on the node's network tolerates", networked, change(NODE, "spec", taints=tainted(*UNAVAILABLE))),
        scene("a young Pod is Ready, and a taint", young, intolerant, change(NODE, "spec", taints=strange)),
        scene("there is no Pod, and a taint", removed(old), intolerant, change(NODE, "spec", taints=strange)),
        scene("a taint comes after the deletion", intolerant, upon("/pods/old", change(NODE, "spec", taints=strange))),
        scene(
            "an operator that nobody knows",
            put(daemon_set(name, tolerations=GREATER)),
            change(NODE, "spec", taints=strange),
        ),
        scene("the kubelet is silent", lambda api: api.ready("Unknown")),
        scene("the operation has ended", change(OPERATION, "status", phase="Cancelled")),
        scene("the operation is for another node", change(OPERATION, "spec", nodeName="gpu-2")),
        scene("the node is another one", change(NODE, "metadata", uid="other")),
        scene("the case does not hold the node", change(NODE, "spec", taints=[])),
        scene("no new Pod comes", barren, waitSeconds=1),
        scene("the Pod may not be deleted", refuse(403, path="/pods/old", method="DELETE")),
        scene("the Pod has changed", refuse(409, path="/pods/old", method="DELETE")),
        scene("the server fails", refuse(500, 503, path="/pods")),
        scene("DaemonSets may not be listed", refuse(403, path="daemonsets")),
        scene("a time that is none", waitSeconds="soon"),
    )


def renewing(api: ApiServer) -> None:
    """The DaemonSet makes another Pod in place of one that is gone."""
    api.replace = renewed_later


def barren(api: ApiServer) -> None:
    """It does not."""
    api.replace = lambda pod: None


def two_uids(name: str) -> Change:
    """A second DaemonSet of that name, in another namespace, with a Pod of its own."""

    def other(obj: Any) -> None:
        meta = obj["metadata"]
        if obj["kind"] == "DaemonSet":
            meta["uid"] = "uid-second"
        else:
            meta["ownerReferences"][0]["uid"] = "uid-second"

    return lambda api: [
        api.edit((kind, "gpu", each), other) for kind, each in (("daemonsets.apps", name), ("pods", "too"))
    ]


BY, KEPT = "remediator.dev/cordoned-by", "remediator.dev/kept-cordoned"


def cordon(name: str, *changes: Change, by: dict[str, str] | None = None) -> Scenario:
    """A scenario of a cordon that is to outlive its case."""
    marks = change(NODE, "metadata", annotations={BY: "case-1"} if by is None else by)
    cordoned = change(NODE, "spec", unschedulable=True)
    return Scenario("cordon", name, all_of(cordoned, marks, *changes), parameters={"caseUID": "case-1"})


CORDONS = (
    cordon("the case has cordoned it"),
    cordon("it is kept already", by={KEPT: "case-1"}),
    cordon("somebody else has cordoned it", by={}),
    cordon("another case has", by={BY: "case-2"}),
    cordon("a user has uncordoned it", change(NODE, "spec", unschedulable=False)),
    cordon("the case does not hold the node", change(NODE, "spec", taints=[])),
    cordon("the node is gone", removed(NODE)),
    cordon("the node may not be read", refuse(403, path="/nodes")),
    cordon("the node may not be written", refuse(403, path="/nodes", method="PATCH")),
    cordon("the node changes in between", refuse(409, path="/nodes", method="PATCH")),
    cordon("the server fails", refuse(500, 429, path="/nodes")),
)

PLUGINS, AGENTS = restarts("restart-device-plugin"), restarts("restart-cni")
ALL = (*DRAINS, *JOBS, *PLUGINS, *AGENTS, *CORDONS)
# Both restarts are one program: of the second one, only these are not for long.
OFTEN = ("its Pod is old", "it does not tolerate the mark of the case", "no new Pod comes")
CASES = [
    pytest.param(scenario, marks=pytest.mark.long) if scenario in AGENTS and scenario.name not in OFTEN else scenario
    for scenario in ALL
]
# Whatever else is so: a server that fails at first changes nothing.
SHAKEN = tuple(
    replace(scenario, name=f"{scenario.name}, and the server fails at first", real=all_of(scenario.real, refuse(code)))
    for scenario in ALL
    for code in (429, 500)
)


def world(api: ApiServer) -> dict[str, Any]:
    """What was done to the world."""
    left: dict[str, Any] = {"evicted": api.evicted, "deleted": api.deleted}
    nodes = [node for node in api.stored("nodes") if node["metadata"]["name"] == "gpu-1"]
    left["node"] = [node["metadata"].get("annotations") for node in nodes]
    operations = api.stored(OPERATION[0])
    drains = [operation.get("status", {}).get("drain") for operation in operations]
    left["drain"] = [(found["left"], found["evicted"], _blocked(found)) for found in drains if found]
    return left


def _blocked(found: Any) -> list[tuple[str, str]]:
    return [(entry["pod"], entry["pdb"]) for entry in found["blocked"]]


def outcome_of_program(scenario: Scenario, folder: Path) -> Outcome:
    """Run the program."""
    api = ApiServer(folder)
    try:
        program = Program(folder, scenario.template.replace("-", "_"))
        program.variables |= api.environment()
        scenario.real(api)
        return Outcome(*run_program(scenario, program), world(api))
    finally:
        api.close()


def outcome_of_model(scenario: Scenario) -> Outcome:
    """Run the model."""

    async def whole() -> Outcome:
        api = MemoryServer(HostClock().clock)
        await api.begin()
        scenario.real(api)
        ended = await run_model(scenario, model_node(scenario), api.client())
        return Outcome(*ended, world(api))

    return loop.run(whole())

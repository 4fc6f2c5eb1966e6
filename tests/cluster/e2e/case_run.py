"""One case played to its end on a stage, and what is left of it, in words that do not change from run to run."""

from typing import Any, NamedTuple

from remediator.core import names
from tests.cluster.e2e.proxy import Mutation, Tape
from tests.cluster.e2e.stage import Stage
from tests.harness.kinds import BUDGETS, CASES, NODES, OPERATIONS
from tests.harness.waiting import until

UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
# What a shorter or longer wait changes; everything else has to be the same.
TIMES = ("since", "timeAdded", "startedAt", "finishedAt", "endedAt", "at", "drainStartedAt", "nodeHeartbeats")

ONCE = {
    "cases": 1,
    "operations": 1,
    "Pods of collect-diagnostics": 1,
    "Pods of drain": 1,
    "Pods of reboot": 1,
}


class Left(NamedTuple):
    """What an ended case leaves behind: the objects, and what happened to the machine."""

    node: Any
    cases: Any
    operations: Any
    ledgers: Any
    workload: Any
    operation_pods: Any
    reboots: int


async def play(stage: Stage, node: str) -> Left:
    """Lose a GPU, wait until the case is over, and look at what is left."""
    stage.machines[node].lose_gpu()
    await until(lambda: stage.over(node), 90)
    await until(lambda: settled(stage), 30)
    return await look(stage, node)


async def settled(stage: Stage) -> bool:
    """Whether the ledgers show the numbers of a healthy fleet again, and the control plane's own taint followed."""
    ledgers = await stage.client.list_all(BUDGETS)
    counted = all(one["status"].get("unavailable", 0) == 0 and not one["status"].get("claims") for one in ledgers)
    return counted and not any(_follows(node["spec"]) for node in await stage.client.list_all(NODES))


def _follows(spec: dict[str, Any]) -> bool:
    """Whether the control plane has yet to take its taint off an uncordoned node."""
    cordoned = any(taint["key"] == UNSCHEDULABLE for taint in spec.get("taints") or ())
    return cordoned and not spec.get("unschedulable")


async def look(stage: Stage, node: str) -> Left:
    """The node's part of the cluster now."""
    seen = await stage.node(node)
    meta = seen["metadata"]
    ours = {name: value for name, value in meta.get("annotations", {}).items() if names.GROUP in name}
    workload = stage.workloads[node]
    found = Left(
        node=(meta["labels"], ours, seen["spec"].get("taints"), seen["spec"].get("unschedulable", False)),
        cases=[_case(one) for one in await stage.of_node(CASES, node)],
        operations=[_operation(one) for one in await stage.of_node(OPERATIONS, node)],
        ledgers=[_ledger(one) for one in await stage.client.list_all(BUDGETS)],
        workload=sorted(name in workload.apps for name in await workload.pods()),
        operation_pods=[one["metadata"]["name"] for one in await stage.operation_pods()],
        reboots=len(stage.machines[node].reboots()),
    )
    called = await _names(stage, node)
    return Left(*(_named(part, called, node) for part in found))


def _case(found: dict[str, Any]) -> Any:
    status = found["status"]
    told = [entry["reason"] for entry in status["timeline"]]
    kept = ("phase", "reason", "message", "rung", "blockedBy", "diagnostics", "attempts")
    return (
        found["metadata"]["name"],
        found["metadata"].get("finalizers"),
        {key: status.get(key) for key in kept},
        sorted(status.get("evidence", {})),
        told,
    )


def _operation(found: dict[str, Any]) -> Any:
    kept = ("phase", "reason", "drainRound", "drain", "drainPod", "pod")
    status = {key: found["status"].get(key) for key in kept} | {"drained": "drainedAt" in found["status"]}
    spec = {key: value for key, value in found["spec"].items() if "UID" not in key}
    return found["metadata"]["name"], found["metadata"].get("finalizers"), status, spec


def _ledger(found: dict[str, Any]) -> Any:
    kept = ("claims", "total", "unavailable", "allowed", "adoptedGeneration")
    return found["metadata"]["name"], {key: found["status"].get(key) for key in kept}


async def _names(stage: Stage, node: str) -> dict[str, str]:
    """What the run's own names and ids are called in every run."""
    cases, operations = await stage.of_node(CASES, node), await stage.of_node(OPERATIONS, node)
    called = {one["metadata"]["name"]: f"case {at}" for at, one in enumerate(cases)}
    for at, one in enumerate(operations):
        called[one["metadata"]["name"]] = f"operation {at}"
        for key in ("pod", "drainPod"):
            called[one["status"].get(key, key)] = f"{key} of operation {at}"
    return called | {(await stage.node(node))["status"]["nodeInfo"]["bootID"]: "new boot"}


def _named(value: Any, called: dict[str, str], node: str) -> Any:
    """The value without times, and with ids and the node's name replaced."""
    if isinstance(value, dict):
        kept = {key: _named(one, called, node) for key, one in value.items() if key not in TIMES}
        kept.pop("intent", None)  # the old boot's id, checked against the journal
        return kept
    if isinstance(value, list | tuple):
        return [_named(one, called, node) for one in value]
    if isinstance(value, str):
        for name, word in sorted(called.items(), key=lambda pair: -len(pair[0])):
            value = value.replace(name, word)
        return value.replace(node, "NODE")
    return value


def made(tape: Tape) -> dict[str, int]:
    """How many of each the server accepted: cases, operations, and Pods by operation."""
    pods = [one.body["metadata"]["labels"][names.OPERATION_LABEL] for one in tape.find("POST", "pods")]
    return {
        "cases": len(tape.find("POST", "noderemediations")),
        "operations": len(tape.find("POST", "nodeoperations")),
        **{f"Pods of {name}": pods.count(name) for name in set(pods)},
    }


def request_lines(mutations: list[Mutation]) -> str:
    """The run, a line for each request."""
    return "\n".join(str(one) for one in mutations)

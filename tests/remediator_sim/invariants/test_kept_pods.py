"""I6: what nobody has declared is taken by no drain."""

import json
from typing import Any

from remediator_sim.invariants.contract import OPERATIONS, OURS, TEMPLATES
from tests.remediator_sim.invariants.histories import History, breaks, histories, holds
from tests.remediator_sim.invariants.recording import Recording

OWNED = {"ownerReferences": [{"kind": "Job", "controller": True}]}
DATA = [{"name": "dshm", "emptyDir": {}}]
KARPENTER, SAFE = "karpenter.sh/do-not-disrupt", "cluster-autoscaler.kubernetes.io/safe-to-evict"


def taken(meta: dict[str, Any], volumes: list[Any] = (), told: dict[str, Any] | None = None) -> History:
    """A drain that was `told` something runs on n1, and a Pod with this head and these volumes is deleted there."""

    def write(recording: Recording) -> None:
        recording.node("n1")
        recording.write("pods", "train", "default", metadata=meta, spec={"nodeName": "n1", "volumes": list(volumes)})
        recording.case("a", "n1", startedAt=True)
        recording.pod("drain-1", "reset-1", "drain")
        env = [{"name": "NODE_NAME", "value": "n1"}, {"name": "PARAMETERS", "value": json.dumps(told or {})}]
        recording.write("pods", "drain-1", spec={"containers": [{"env": env}]})
        recording.write("pods", "train", metadata={"deletionTimestamp": "2026-01-01T12:00:05Z"})

    write.__name__ = f"{meta} {volumes} {told}"
    return write


def by(**annotations: str) -> dict[str, Any]:
    return OWNED | {"annotations": annotations}


def drains(told: dict[str, Any], *templates: dict[str, Any], wait: int = 0) -> History:
    """A drain for the template `reboot`, which has said this of its drain, one after the other."""

    def write(recording: Recording) -> None:
        recording.node("n1")
        for drain in templates:
            recording.write(TEMPLATES, "reboot", spec={"drain": drain})
        recording.later(wait)
        recording.write(OPERATIONS, "r-1", spec={"nodeName": "n1", "caseUID": "a", "templateName": "reboot"})
        env = [{"name": "NODE_NAME", "value": "n1"}, {"name": "PARAMETERS", "value": json.dumps(told)}]
        labels = {"remediator.dev/operation": "drain", "remediator.dev/operation-uid": "uid-r-1"}
        recording.write("pods", "d", OURS, metadata={"labels": labels}, spec={"containers": [{"env": env}]})

    write.__name__ = f"{told} {templates} {wait}"
    return write


BARE, NEITHER = {"deleteBarePods": True}, {"deleteBarePods": False, "deleteEmptyDirData": False}
HOLDS = [
    (drains(NEITHER, {}), 1),
    (drains(BARE, BARE), 1),
    (drains(BARE, BARE, {}, wait=600), 1),
    (taken(OWNED), 1),
    (taken({}, told={"deleteBarePods": True}), 1),
    (taken(OWNED, DATA, {"deleteEmptyDirData": True}), 1),
    (taken({"annotations": {"remediator.dev/evict": "true", KARPENTER: "true"}}, DATA), 1),
    (taken({"annotations": {SAFE: "true"}}, DATA), 1),
]
BROKEN = [
    (drains(BARE, {}), "d was told deleteBarePods at 12:00:00; template reboot does not"),
    (drains(BARE, BARE, {}, wait=1000), "d was told deleteBarePods"),
    (drains({"deleteEmptyDirData": True}, BARE), "d was told deleteEmptyDirData"),
    (taken({}), "Pod default/train was taken from n1 at 12:00:00 though nothing makes it again"),
    (taken(OWNED, DATA, {"deleteBarePods": True}), "though its data is lost"),
    (taken(by(**{"remediator.dev/evict": "no"})), "though remediator.dev/evict keeps it"),
    (taken(by(**{KARPENTER: "true"})), "though an annotation keeps it"),
    (taken(by(**{SAFE: "false"})), "though an annotation keeps it"),
]


@histories("checks", HOLDS)
def test_a_pod_that_may_go_is_counted(history: History, checks: int) -> None:
    holds("I6", history, checks)


@histories("text", BROKEN)
def test_a_pod_that_was_to_stay_is_reported(history: History, text: str) -> None:
    breaks("I6", history, text)

"""The commands `take-out` and `put-back`, and the model of who types them: both make and change the same."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from remediator.core import names
from remediator.kube.wire.times import stamp
from remediator_sim.plain import NODES, PODS, SPACES
from remediator_sim.simulation.taker import Taker
from tests.harness.controller import ControllerHarness, controller_harness
from tests.harness.kinds import CASES, OPERATIONS, Object
from tests.remediator.test_cli_orders import asked

pytestmark = pytest.mark.sampled("people with take-out and put-back")

NODE, USER, DAY, HOUR = "gpu-1", "admin", timedelta(days=1), timedelta(hours=1)
OUT, WAITS = {"phase": "Escalated", "reason": "TakenOut"}, {"phase": "Held"}
UNSCHEDULABLE = {"spec": {"unschedulable": True}}


def noted(**notes: str) -> Object:
    return {"metadata": {"annotations": {f"remediator.dev/{key}": value for key, value in notes.items()}}}


def tainted(key: str) -> Object:
    return {"spec": {"taints": [{"key": key, "effect": "NoSchedule"}]}}


def case(by: str = USER, length: timedelta = DAY, status: Object = OUT, **spec: Any) -> Object:
    """A case for which a user has asked, to keep the node for a day from midnight on."""
    return {"by": by, "until": stamp(midnight() + length), "status": status, "spec": spec}


def midnight() -> datetime:
    return datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) + DAY


# By its name: what there is beside a node of a healthy fleet.
SCENES: Mapping[str, Mapping[str, Any]] = {
    "nothing": {},
    "the node is excluded": {"node": {"metadata": {"labels": {names.EXCLUDE: "true"}}}},
    "it is excluded no more": {"node": {"metadata": {"labels": {names.EXCLUDE: "false"}}}},
    "a user has cordoned it": {"node": UNSCHEDULABLE},
    "we have cordoned it": {"node": UNSCHEDULABLE | noted(**{"cordoned-by": "uid-of-a-case"})},
    "it is part of the control plane": {
        "node": {"metadata": {"labels": {"node-role.kubernetes.io/control-plane": ""}}}
    },
    "a static Pod of the control plane is there": {"static": "etcd"},
    "a static Pod of another kind is there": {"static": "kube-proxy"},
    "another system works on it": {"node": tainted("ToBeDeletedByClusterAutoscaler")},
    "everything is paused": {"paused": True},
    "it is asked for already": {"operation": {}},
    "another user has asked for it": {"operation": {"requestedBy": "bob"}},
    "a drain is asked for": {"operation": {"keepOut": None}},
    "what was asked for has ended": {"operation": {}, "done": {"finishedAt": "2026-01-01T00:00:00Z"}},
    "the user has it": {"cases": [case()]},
    "the user is about to have it": {"cases": [case(status=WAITS)]},
    "its drain runs": {"cases": [case(status={"phase": "Operating"})]},
    "the user has put it back": {"cases": [case(release=True)]},
    "another user has it": {"cases": [case("bob")]},
    "another user waits for it, too": {"cases": [case(), case("bob", status=WAITS)]},
    "the user has had it": {"cases": [case(status=OUT | {"endedAt": "2026-01-01T00:00:00Z"})]},
    "a policy has it": {"cases": [{"status": {"phase": "Escalated", "reason": "LadderExhausted"}}]},
}


async def furnished(harness: ControllerHarness, scene: Mapping[str, Any]) -> None:
    await harness.node(NODE)
    await harness.client.patch(NODES, NODE, dict(scene.get("node", {})))
    if "static" in scene:
        labels = {"tier": "control-plane" if scene["static"] == "etcd" else "node", "component": scene["static"]}
        meta = {"name": "static", "labels": labels, "annotations": {"kubernetes.io/config.mirror": "1"}}
        spec = {"nodeName": NODE, "containers": [{"name": "main", "image": "x"}]}
        await harness.client.create(PODS, {"metadata": meta, "spec": spec}, namespace="kube-system")
    if "paused" in scene:
        await harness.client.patch(SPACES, names.SYSTEM_NAMESPACE, noted(paused="by bob"))
    if "operation" in scene:
        terms = {"until": stamp(midnight() + DAY), "reason": "RMA"}
        spec = {"nodeName": NODE, "nodeUID": "u", "templateName": "drain", "requestedBy": USER, "keepOut": terms}
        wanted = {key: value for key, value in (spec | scene["operation"]).items() if value is not None}
        await harness.make(OPERATIONS, "asked", **wanted)
        await harness.client.patch(OPERATIONS, "asked", {"status": scene.get("done", {})}, subresource="status")
    for number, each in enumerate(scene.get("cases", ())):
        await made_case(harness, f"case-{number}", each)


async def made_case(harness: ControllerHarness, name: str, given: Object) -> None:
    spec = {"nodeName": NODE, "nodeUID": "u"} | given.get("spec", {})
    spec |= {} if "by" in given else {"policyName": "gpu-lost"}
    if "by" in given:
        spec["manual"] = {"operation": name, "uid": name, "templateName": "drain", "requestedBy": given["by"]}
        spec["keepOut"] = {"until": given["until"], "reason": "RMA"}
    release = {"release": spec.pop("release")} if "release" in spec else {}
    await harness.make(CASES, name, **spec)
    await harness.client.patch(CASES, name, {"metadata": {"finalizers": [names.CASE_FINALIZER]}})
    await harness.client.patch(CASES, name, {"status": given["status"]}, subresource="status")
    if release:
        await harness.client.patch(CASES, name, {"spec": release})


def left(harness: ControllerHarness, begun: datetime) -> list[Object]:
    """All that users have asked for and decided; times that lie an hour ahead are one."""
    return [
        {
            "made": each["metadata"].get("generateName", each["metadata"]["name"]),
            "deleted": "deletionTimestamp" in each["metadata"],
            "spec": {key: said(value, begun) for key, value in each["spec"].items()},
        }
        for kind in (OPERATIONS, CASES)
        for each in harness.all(kind)
    ]


def said(value: Any, begun: datetime) -> Any:
    if not isinstance(value, dict) or "until" not in value:
        return value
    ahead = datetime.fromisoformat(value["until"]) - begun
    return value | {"until": "an hour" if abs(ahead - HOUR) < timedelta(minutes=5) else value["until"]}


async def typed(harness: ControllerHarness, command: str) -> bool:
    words = {"take-out": ("--for", "1h", "--reason", "new PSU", "--yes", "--no-follow"), "put-back": ()}[command]
    code, _, err = await asked(harness, command, NODE, *words)
    assert code in (0, 3), err
    return code == 0


async def modelled(harness: ControllerHarness, command: str) -> bool:
    taker = Taker(harness.client, USER)
    if command == "put-back":
        return await taker.put_back(NODE)
    return await taker.take_out(NODE, datetime.now(UTC) + HOUR, "new PSU")


@pytest.mark.parametrize("name", SCENES)
@pytest.mark.parametrize("command", ["take-out", "put-back"])
async def test_the_command_and_its_model_make_and_change_the_same(command: str, name: str) -> None:
    results = []
    for played in (typed, modelled):
        async with controller_harness() as harness:
            await furnished(harness, SCENES[name])
            uid, begun = harness.look(NODE)["metadata"]["uid"], datetime.now(UTC)
            before = left(harness, begun)
            does = await played(harness, command)
            after = left(harness, begun)
            assert (after != before) == does
            results.append(
                [{**each, "spec": {**each["spec"], "nodeUID": each["spec"]["nodeUID"] == uid}} for each in after]
            )
    assert results[0] == results[1]


async def test_the_scenes_show_both_commands_that_act_and_that_do_nothing() -> None:
    acts: dict[str, list[bool]] = {"take-out": [], "put-back": []}
    for command, found in acts.items():
        for scene in SCENES.values():
            async with controller_harness() as harness:
                await furnished(harness, scene)
                found.append(await modelled(harness, command))
    assert {command: (found.count(True), found.count(False)) for command, found in acts.items()} == {
        "take-out": (12, 10),
        "put-back": (5, 17),
    }

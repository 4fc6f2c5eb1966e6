"""Each account does its one deed and no other, verb by verb."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from remediator.kube.api import outside
from remediator.kube.wire.transport import STRATEGIC_PATCH
from tests.cluster.rights.asking import OPERATIONS, OTHER, OWN, Request, named, patch
from tests.cluster.rights.deeds import DEEDS, Deed, out_of_service
from tests.cluster.rights.optional_deeds import EVENT, OPTIONAL_DEEDS, REPAIR
from tests.cluster.rights.world import World, pod_name, worker

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(120)]
ACCOUNTS = ("drain", "cordon", "uncordon", "isolate-gpu", "restart-device-plugin", "restart-cni", "power-cycle")


ALL = (*DEEDS, *OPTIONAL_DEEDS)


@pytest.mark.parametrize("deed", ALL, ids=[f"{deed.who}: {deed.words}" for deed in ALL])
def test_an_account_does_its_one_deed_and_no_other(world: World, deed: Deed) -> None:
    reply = world.speakers.get(deed.who, world.admin)(world.exact(deed.request))
    if deed.refused:
        assert (reply.status, deed.refused in reply.text) == (422, True), reply
    else:
        assert reply.status in (200, 201), reply


@pytest.mark.parametrize("account", ACCOUNTS)
def test_a_token_that_is_bound_to_no_pod_writes_nothing(world: World, account: str) -> None:
    unbound = world.bearer(world.token(f"remediator-{account}", OPERATIONS))
    allowed = [deed for deed in DEEDS if deed.who == account and not deed.refused]
    assert allowed
    for deed in allowed:
        reply = unbound(deed.request)
        assert reply.status == 422, (deed.words, reply)


def test_a_detectors_token_that_names_no_node_writes_nothing(world: World) -> None:
    unbound = world.bearer(world.token("node-problem-detector", "remediator-system"))
    allowed = [deed for deed in DEEDS if deed.who == "detectors" and not deed.refused]
    assert [unbound(deed.request).status for deed in allowed] == [422, 422]


def test_a_watchdogs_token_that_names_no_node_writes_nothing(world: World) -> None:
    unbound = world.bearer(world.token("remediator-watchdog", "remediator-system"))
    writes = [deed for deed in DEEDS if deed.who == "watchdog" and not deed.refused and deed.request.method == "PATCH"]
    assert [unbound(deed.request).status for deed in writes] == [422]


def test_a_kubelet_lists_the_pods_of_its_node_which_is_how_detectors_ask(world: World) -> None:
    def status(node: str) -> int:
        return world.speakers["kubelet"](Request("GET", f"/api/v1/pods?fieldSelector=spec.nodeName={node}")).status

    assert [status(node) for node in (OWN, OTHER)] == [200, 403]
    assert world.speakers["detectors"](Request("GET", f"/api/v1/pods?fieldSelector=spec.nodeName={OWN}")).status == 403


def test_a_kubelet_may_ask_for_the_token_of_a_pod_that_it_runs(world: World) -> None:
    pod = world.admin(Request("GET", f"/api/v1/namespaces/{OPERATIONS}/pods/{pod_name('drain')}"))
    assert pod.status == 200
    bound = {"apiVersion": "v1", "kind": "Pod", "name": pod_name("drain"), "uid": pod.json["metadata"]["uid"]}
    asked = named("TokenRequest", "remediator-drain", "authentication.k8s.io/v1", spec={"boundObjectRef": bound})
    path = f"/api/v1/namespaces/{OPERATIONS}/serviceaccounts/remediator-drain/token"
    assert world.speakers["kubelet"](Request("POST", path, asked)).status == 201


def test_a_condition_of_ours_changes_and_all_others_stay(world: World) -> None:
    """As node-problem-detector sends it: some conditions, merged by their type."""
    beat = "2026-01-01T00:00:00Z"
    lost = {"type": "GpuLost", "status": "True", "lastHeartbeatTime": beat, "reason": "GpuLost"}
    body = {"status": {"conditions": [lost]}}
    reply = world.speakers["detectors"](patch(f"/api/v1/nodes/{OWN}/status", body, STRATEGIC_PATCH))
    assert reply.status == 200, reply
    found = {one["type"]: one["status"] for one in reply.json["status"]["conditions"]}
    assert (found["Ready"], found["GpuLost"]) == ("True", "True")


def test_no_other_account_declares_a_node_out_of_service(world: World) -> None:
    others = set(world.speakers) - {"power-cycle"}
    replies = {who: world.speakers[who](out_of_service(OTHER)).status for who in others}
    assert {who: status for who, status in replies.items() if status not in (401, 403, 422)} == {}


def test_power_cycle_declares_no_node_out_of_service_whose_name_only_begins_like_that_of_its_own(world: World) -> None:
    """By the name of its Pod, worker-b-power-cycle-…, it might be of a node `worker`."""
    twin = OTHER.rpartition("-")[0]
    world.make("/api/v1/nodes", worker(twin))
    try:
        world.until(lambda: world.speakers["power-cycle"](out_of_service(twin)).status == 422)
        reply = world.speakers["power-cycle"](out_of_service(twin))
        assert (reply.status, "no other node out of service than its own" in reply.text) == (422, True), reply
        assert world.speakers["power-cycle"](out_of_service(OTHER)).status == 200
    finally:
        world.admin(Request("DELETE", f"/api/v1/nodes/{twin}", dry=False))


def test_power_cycle_declares_no_node_out_of_service_that_is_ready(world: World) -> None:
    def becomes(ready: str) -> None:
        body = {"status": {"conditions": [{"type": "Ready", "status": ready}]}}
        assert (
            world.admin(patch(f"/api/v1/nodes/{OTHER}/status", body, STRATEGIC_PATCH)._replace(dry=False)).status == 200
        )

    becomes("True")
    try:
        reply = world.speakers["power-cycle"](out_of_service(OTHER))
        assert (reply.status, "a Node that is Ready is not out of service" in reply.text) == (422, True), reply
    finally:
        becomes("Unknown")
    assert world.speakers["power-cycle"](out_of_service(OTHER)).status == 200


@pytest.mark.parametrize(("source", "path"), [("node-repairs", REPAIR), ("nvsentinel", EVENT)])
def test_what_the_controller_writes_on_a_request_of_others_is_what_it_may(world: World, source: str, path: str) -> None:
    """Word for word as remediator/kube/api/outside.py builds it: finalizer on, under way, ended, finalizer off."""
    row, controller = outside.SOURCES[source], world.speakers["controller"]

    def live() -> Any:
        return msgspec.convert(controller(Request("GET", path)).json, row.kind.type)

    def write(body: Any, part: str = "") -> None:
        reply = controller(patch(f"{path}{part}", body)._replace(dry=False))
        assert reply.status == 200, reply

    write(outside.finalizers(row.read(live()), held=True))
    for status, reason in (("Unknown", "Draining"), ("True", "Succeeded")):
        conditions = outside.conditions(row, status, reason, "in words")
        write(outside.status(live(), conditions, datetime(2026, 1, 1, tzinfo=UTC)), "/status")
        types = [each["type"] for each in controller(Request("GET", path)).json["status"]["conditions"]]
        assert {each.type for each in conditions} <= set(types)
    write(outside.finalizers(row.read(live()), held=False))
    finalizers = controller(Request("GET", path)).json["metadata"].get("finalizers", [])
    assert finalizers == (["example.com/theirs"] if source == "node-repairs" else [])

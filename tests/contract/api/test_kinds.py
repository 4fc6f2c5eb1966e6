"""Single built-in kinds: Leases, Events, Namespaces, service accounts and their tokens, Pods, Nodes."""

import base64
import json

from tests.contract.api.calls import config_map, core_event, fresh, lease, node
from tests.harness.waiting import until


async def test_a_lease_changes_hands_under_its_version_only(api, space):
    leases = f"/apis/coordination.k8s.io/v1/namespaces/{space}/leases"
    made = (await api.post(leases, lease("leader", "one"))).ok(201)
    assert made["spec"]["renewTime"] == "2026-01-01T00:00:00.000000Z"
    taken = json.loads(json.dumps(made))
    taken["spec"].update(holderIdentity="two", leaseTransitions=1)
    (await api.put(f"{leases}/leader", taken)).ok()
    made["spec"]["holderIdentity"] = "three"
    (await api.put(f"{leases}/leader", made)).refused(409, "Conflict")
    assert (await api.get(f"{leases}/leader")).ok()["spec"]["holderIdentity"] == "two"


async def test_a_lease_is_made_once(api, space):
    leases = f"/apis/coordination.k8s.io/v1/namespaces/{space}/leases"
    (await api.post(leases, lease("leader", "one"))).ok(201)
    (await api.post(leases, lease("leader", "two"))).refused(409, "AlreadyExists")


async def test_a_lease_of_no_duration_is_refused(api, space):
    body = lease("leader", "one")
    body["spec"]["leaseDurationSeconds"] = 0
    answer = await api.post(f"/apis/coordination.k8s.io/v1/namespaces/{space}/leases", body)
    answer.refused(422, "Invalid")
    assert ("spec.leaseDurationSeconds", "FieldValueInvalid") in answer.causes()


EVENTS = "/api/v1/namespaces/default/events"  # those of what has no namespace, as nodes, live here


async def test_events_are_written_counted_and_found_by_their_object(api):
    ours, other = fresh("gpu"), fresh("gpu")
    name = (await api.post(EVENTS, core_event(ours))).ok(201)["metadata"]["name"]
    (await api.post(EVENTS, core_event(other))).ok(201)
    assert (await api.patch(f"{EVENTS}/{name}", {"count": 2})).ok()["count"] == 2
    fields = f"involvedObject.name={ours},involvedObject.kind=Node,type=Warning,reason=GpuLost"
    found = (await api.get(EVENTS, fieldSelector=fields)).ok()["items"]
    assert [item["metadata"]["name"] for item in found] == [name]


async def test_an_event_of_a_cluster_scoped_object_lives_in_default_only(api, space):
    def event(namespace):
        return {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": fresh("event"), "namespace": namespace},
            "eventTime": "2026-01-01T00:00:00.000000Z",
            "reportingController": "remediator.dev/controller",
            "reportingInstance": "one",
            "action": "Reboot",
            "reason": "Claimed",
            "type": "Normal",
            "note": "claimed",
            "regarding": {"kind": "Node", "name": "gpu-1", "apiVersion": "v1"},
        }

    (await api.post("/apis/events.k8s.io/v1/namespaces/default/events", event("default"))).ok(201)
    answer = await api.post(f"/apis/events.k8s.io/v1/namespaces/{space}/events", event(space))
    answer.refused(422, "Invalid")
    assert "involvedObject.namespace" in {field for field, _ in answer.causes()}


async def test_an_event_of_one_version_is_read_in_the_other(api):
    made = (await api.post(EVENTS, core_event("gpu-1"))).ok(201)["metadata"]
    new = (await api.get(f"/apis/events.k8s.io/v1/namespaces/default/events/{made['name']}")).ok()
    assert new["metadata"]["uid"] == made["uid"]
    assert (new["note"], new["regarding"]["name"], new["deprecatedCount"]) == ("GPU 3 is gone", "gpu-1", 1)


async def test_a_namespace_is_active_and_labelled_with_its_name(api, space):
    found = (await api.get(f"/api/v1/namespaces/{space}")).ok()
    assert found["status"]["phase"] == "Active"
    assert found["metadata"]["labels"]["kubernetes.io/metadata.name"] == space


async def test_a_deleted_namespace_takes_its_objects_along(api, space, configmaps):
    (await api.post(configmaps, config_map("a"))).ok(201)
    (await api.delete(f"/api/v1/namespaces/{space}")).ok()

    async def gone():
        return (await api.get(f"/api/v1/namespaces/{space}")).status == 404

    await until(gone)
    (await api.get(f"{configmaps}/a")).refused(404, "NotFound")


async def test_nothing_is_made_in_a_namespace_that_is_ending(api, space, configmaps):
    body = config_map("held")
    body["metadata"]["finalizers"] = ["remediator.dev/test"]
    (await api.post(configmaps, body)).ok(201)
    (await api.delete(f"/api/v1/namespaces/{space}")).ok()
    assert (await api.get(f"/api/v1/namespaces/{space}")).ok()["status"]["phase"] == "Terminating"
    answer = await api.post(configmaps, config_map("late"))
    answer.refused(403, "Forbidden")
    assert ("metadata.namespace", "NamespaceTerminating") in answer.causes()
    (await api.patch(f"{configmaps}/held", {"metadata": {"finalizers": None}})).ok()


async def test_the_namespaces_of_every_cluster_are_there(api):
    found = {item["metadata"]["name"] for item in (await api.get("/api/v1/namespaces")).ok()["items"]}
    assert found >= {"default", "kube-system", "kube-node-lease"}


def claims(token: str) -> dict:
    body = token.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))


async def test_a_token_names_its_service_account_and_ends(api, space):
    accounts = f"/api/v1/namespaces/{space}/serviceaccounts"
    (await api.post(accounts, {"metadata": {"name": "runner"}})).ok(201)
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 600}}
    made = (await api.post(f"{accounts}/runner/token", body)).ok(201)
    assert made["status"]["expirationTimestamp"]
    said = claims(made["status"]["token"])
    assert said["sub"] == f"system:serviceaccount:{space}:runner"
    assert said["exp"] - said["iat"] == 600


async def test_a_token_may_be_bound_to_a_pod(api, space, pods, pod):
    made = (await api.post(pods, pod("p"))).ok(201)
    bound = {"kind": "Pod", "apiVersion": "v1", "name": "p", "uid": made["metadata"]["uid"]}
    path = f"/api/v1/namespaces/{space}/serviceaccounts/default/token"
    answer = (await api.post(path, {"spec": {"expirationSeconds": 3600, "boundObjectRef": bound}})).ok(201)
    assert claims(answer["status"]["token"])["kubernetes.io"]["pod"]["name"] == "p"


async def test_a_token_is_good_for_the_audience_for_which_it_was_made_and_no_other(api, space):
    path = f"/api/v1/namespaces/{space}/serviceaccounts/default/token"
    asked = {"spec": {"expirationSeconds": 600, "audiences": ["remediator-page"]}}
    token = (await api.post(path, asked)).ok(201)["status"]["token"]
    rows = ((["remediator-page"], True), (["remediator-page", "other"], True), (["other"], False), (None, False))
    for audiences, good in rows:
        spec = {"token": token} | ({"audiences": audiences} if audiences else {})
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": spec}
        status = (await api.post("/apis/authentication.k8s.io/v1/tokenreviews", review)).ok(201)["status"]
        assert status.get("authenticated", False) is good, audiences
        assert status.get("audiences") == (["remediator-page"] if good else None)


async def test_no_token_is_made_for_an_account_that_is_not_there(api, space):
    path = f"/api/v1/namespaces/{space}/serviceaccounts/absent/token"
    (await api.post(path, {"spec": {}})).refused(404, "NotFound")


async def test_a_short_token_is_refused(api, space):
    path = f"/api/v1/namespaces/{space}/serviceaccounts/default/token"
    answer = await api.post(path, {"spec": {"expirationSeconds": 10}})
    answer.refused(422, "Invalid")
    assert ("spec.expirationSeconds", "FieldValueInvalid") in answer.causes()


async def test_a_pod_gets_what_its_spec_leaves_out(api, pods, pod):
    made = (await api.post(pods, pod("p"))).ok(201)
    spec = made["spec"]
    assert (spec["restartPolicy"], spec["serviceAccountName"], spec["dnsPolicy"]) == (
        "Always",
        "default",
        "ClusterFirst",
    )
    assert spec["terminationGracePeriodSeconds"] == 30
    container = spec["containers"][0]
    assert container["terminationMessagePath"] == "/dev/termination-log"
    assert container["imagePullPolicy"] == "IfNotPresent"
    keys = {one["key"] for one in spec["tolerations"]}
    assert keys >= {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"}
    assert made["status"]["phase"] == "Pending"
    assert made["status"]["qosClass"] == "BestEffort"


async def test_a_pod_of_a_priority_class_gets_its_priority(api, space, pod):
    body = pod("p", priorityClassName="system-node-critical")
    made = (await api.post("/api/v1/namespaces/kube-system/pods", {**body, "metadata": {"name": fresh("p")}})).ok(201)
    assert made["spec"]["priority"] == 2000001000
    (await api.delete(f"/api/v1/namespaces/kube-system/pods/{made['metadata']['name']}", gracePeriodSeconds=0)).ok()


async def test_a_pod_of_a_priority_class_that_is_not_there_is_refused(api, pods, pod):
    (await api.post(pods, pod("p", priorityClassName="absent"))).refused(403, "Forbidden")


async def test_a_pod_of_an_account_that_is_not_there_is_refused(api, pods, pod):
    answer = await api.post(pods, pod("p", serviceAccountName="absent"))
    assert 'serviceaccount "absent" not found' in answer.refused(403, "Forbidden")["message"]


async def test_a_pod_without_containers_is_refused_by_field(api, pods, pod):
    answer = await api.post(pods, pod("p", containers=[]))
    answer.refused(422, "Invalid")
    assert ("spec.containers", "FieldValueRequired") in answer.causes()


async def test_a_new_node_that_is_not_ready_takes_no_pods(api):
    name = fresh("node")
    made = (await api.post("/api/v1/nodes", node(name))).ok(201)
    taints = [(one["key"], one["effect"]) for one in made["spec"]["taints"]]
    assert taints == [("node.kubernetes.io/not-ready", "NoSchedule")]


async def test_a_node_with_a_taint_of_an_unknown_effect_is_refused(api, node_path):
    taint = {"key": "example.com/a", "effect": "Sometimes"}
    answer = await api.patch(node_path, {"spec": {"taints": [taint]}})
    answer.refused(422, "Invalid")
    assert ("metadata.taints[0].effect", "FieldValueNotSupported") in answer.causes()


async def test_a_node_with_one_taint_twice_is_refused(api, node_path):
    taint = {"key": "example.com/a", "effect": "NoSchedule"}
    answer = await api.patch(node_path, {"spec": {"taints": [taint, taint]}})
    answer.refused(422, "Invalid")
    assert ("metadata.taints[1]", "FieldValueDuplicate") in answer.causes()

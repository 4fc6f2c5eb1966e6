"""Watches: what comes, from where, for whom, and how they end."""

import asyncio

import pytest

from tests.contract.api.calls import config_map, lease, node
from tests.harness.waiting import until

END = "k8s.io/initial-events-end"


@pytest.fixture
async def since(api, configmaps, server):
    """The present version of the namespace's ConfigMaps, once those that the cluster makes itself are there."""

    async def authority():
        return (await api.get(f"{configmaps}/kube-root-ca.crt")).status == 200

    if server.name == "real":
        await until(authority)
    (await api.post(configmaps, config_map("first", labels={"tier": "x"}))).ok(201)
    return (await api.get(configmaps)).ok()["metadata"]["resourceVersion"]


async def test_a_watch_tells_what_happens_after_its_version_in_order(api, configmaps, since):
    (await api.post(configmaps, config_map("a"))).ok(201)
    async with api.watch(configmaps, resourceVersion=since, fieldSelector="metadata.name=a") as watch:
        assert watch.status == 200
        (await api.patch(f"{configmaps}/a", {"data": {"x": "1"}})).ok()
        (await api.delete(f"{configmaps}/a")).ok()
        assert await watch.take(3) == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]


async def test_events_carry_whole_objects_with_their_kind_and_version(api, configmaps, since):
    made = (await api.post(configmaps, config_map("a", x="1"))).ok(201)
    async with api.watch(configmaps, resourceVersion=since, fieldSelector="metadata.name=a") as watch:
        event = await watch.next()
        assert (event["object"]["kind"], event["object"]["apiVersion"]) == ("ConfigMap", "v1")
        assert event["object"]["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
        assert event["object"]["data"] == {"x": "1"}


async def test_a_deleted_object_is_told_with_its_last_state_and_a_new_version(api, configmaps, since):
    made = (await api.post(configmaps, config_map("a", x="1"))).ok(201)
    (await api.delete(f"{configmaps}/a")).ok()
    async with api.watch(configmaps, resourceVersion=since, fieldSelector="metadata.name=a") as watch:
        await watch.next()
        event = await watch.next()
        assert (event["type"], event["object"]["data"]) == ("DELETED", {"x": "1"})
        assert event["object"]["metadata"]["resourceVersion"] != made["metadata"]["resourceVersion"]


async def test_a_watch_may_start_at_the_version_of_any_event(api, configmaps, since):
    versions = [
        (await api.post(configmaps, config_map(name))).ok(201)["metadata"]["resourceVersion"]
        for name in ("a", "b", "c")
    ]
    async with api.watch(configmaps, resourceVersion=versions[0]) as watch:
        assert await watch.take(2) == [("ADDED", "b"), ("ADDED", "c")]


async def test_a_watch_without_a_version_begins_with_what_is_there(api, configmaps, since):
    async with api.watch(configmaps, labelSelector="tier=x") as watch:
        assert await watch.take(1) == [("ADDED", "first")]
        (await api.post(configmaps, config_map("a", labels={"tier": "x"}))).ok(201)
        assert await watch.take(1) == [("ADDED", "a")]


async def test_an_object_that_leaves_the_selection_is_told_as_deleted(api, configmaps, since):
    async with api.watch(configmaps, resourceVersion=since, labelSelector="tier=x") as watch:
        (await api.post(configmaps, config_map("other", labels={"tier": "y"}))).ok(201)
        (await api.patch(f"{configmaps}/first", {"metadata": {"labels": {"tier": "y"}}})).ok()
        event = await watch.next()
        assert (event["type"], event["object"]["metadata"]["name"]) == ("DELETED", "first")
        assert event["object"]["metadata"]["labels"] == {"tier": "x"}


async def test_an_object_that_enters_the_selection_is_told_as_added(api, configmaps, since):
    async with api.watch(configmaps, resourceVersion=since, labelSelector="tier=z") as watch:
        (await api.patch(f"{configmaps}/first", {"metadata": {"labels": {"tier": "z"}}})).ok()
        assert await watch.take(1) == [("ADDED", "first")]


async def test_a_pod_is_told_as_added_when_its_phase_enters_the_selection(api, pods, pod):
    (await api.post(pods, pod("p"))).ok(201)
    since = (await api.get(pods)).ok()["metadata"]["resourceVersion"]
    async with api.watch(pods, resourceVersion=since, fieldSelector="status.phase=Running") as watch:
        (await api.patch(f"{pods}/p/status", {"status": {"phase": "Running"}})).ok()
        (await api.patch(f"{pods}/p/status", {"status": {"phase": "Failed"}})).ok()
        assert await watch.take(2) == [("ADDED", "p"), ("DELETED", "p")]


async def test_an_object_behind_a_finalizer_is_told_as_modified_and_then_deleted(api, configmaps, since):
    body = config_map("a")
    body["metadata"]["finalizers"] = ["remediator.dev/test"]
    async with api.watch(configmaps, resourceVersion=since, fieldSelector="metadata.name=a") as watch:
        (await api.post(configmaps, body)).ok(201)
        (await api.delete(f"{configmaps}/a")).ok()
        (await api.patch(f"{configmaps}/a", {"metadata": {"finalizers": None}})).ok()
        assert await watch.take(3) == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]


async def test_a_watch_of_one_kind_says_nothing_of_others(api, configmaps, space, since):
    leases = f"/apis/coordination.k8s.io/v1/namespaces/{space}/leases"
    async with api.watch(configmaps, resourceVersion=since) as watch:
        (await api.post(leases, lease("noise", "x"))).ok(201)
        (await api.post(configmaps, config_map("a"))).ok(201)
        assert await watch.take(1) == [("ADDED", "a")]


async def test_writes_that_change_nothing_are_not_told(api, configmaps, since):
    async with api.watch(configmaps, resourceVersion=since) as watch:
        (await api.patch(f"{configmaps}/first", {"metadata": {"labels": {"tier": "x"}}})).ok()
        (await api.post(configmaps, config_map("a"))).ok(201)
        assert await watch.take(1) == [("ADDED", "a")]


async def test_a_watch_ends_cleanly_at_its_time_limit(api, configmaps, since):
    async with api.watch(configmaps, resourceVersion=since, timeoutSeconds=1) as watch:
        assert await watch.next() is None


async def test_a_watch_of_a_cluster_scoped_kind_and_a_name(api, node_path):
    name = node_path.rpartition("/")[2]
    async with api.watch("/api/v1/nodes", fieldSelector=f"metadata.name={name}") as watch:
        assert await watch.take(1) == [("ADDED", name)]


async def test_initial_events_end_with_an_annotated_bookmark(api, configmaps, since):
    (await api.post(configmaps, config_map("a", labels={"tier": "x"}))).ok(201)
    query = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}
    async with api.watch(configmaps, labelSelector="tier=x", **query) as watch:
        assert sorted(await watch.take(2)) == [("ADDED", "a"), ("ADDED", "first")]
        bookmark = await watch.next()
        assert (bookmark["type"], bookmark["object"]["kind"]) == ("BOOKMARK", "ConfigMap")
        assert bookmark["object"]["metadata"]["annotations"] == {END: "true"}
        at = bookmark["object"]["metadata"]["resourceVersion"]
        (await api.post(configmaps, config_map("b", labels={"tier": "x"}))).ok(201)
        assert await watch.take(1) == [("ADDED", "b")]
    async with api.watch(configmaps, labelSelector="tier=x", resourceVersion=at) as watch:
        assert await watch.take(1) == [("ADDED", "b")]


async def test_initial_events_of_nothing_are_one_bookmark(api, configmaps, since):
    query = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}
    async with api.watch(configmaps, labelSelector="tier=none", **query) as watch:
        bookmark = await watch.next()
        assert (bookmark["type"], bookmark["object"]["metadata"]["annotations"]) == ("BOOKMARK", {END: "true"})


async def test_initial_events_need_a_version_match(api, configmaps):
    answer = await api.get(configmaps, watch="true", sendInitialEvents="true", allowWatchBookmarks="true")
    answer.refused(422, "Invalid")
    assert ("resourceVersionMatch", "FieldValueForbidden") in answer.causes()


async def test_a_version_match_needs_initial_events(api, configmaps, since):
    answer = await api.get(
        configmaps, watch="true", resourceVersion=since, resourceVersionMatch="NotOlderThan", timeoutSeconds=1
    )
    answer.refused(422, "Invalid")
    assert ("resourceVersionMatch", "FieldValueForbidden") in answer.causes()


async def test_a_bookmark_comes_before_the_time_limit_with_a_version_to_go_on_from(api, configmaps, since):
    version = "0"
    query = {"resourceVersion": since, "labelSelector": "tier=none", "allowWatchBookmarks": "true", "timeoutSeconds": 6}
    async with api.watch(configmaps, **query) as watch:
        last = (await api.post(configmaps, config_map("a"))).ok(201)["metadata"]["resourceVersion"]
        while int(version) < int(last):
            event = await watch.next()
            assert event, f"the watch ended with a bookmark of version {version}, older than {last}"
            assert event["type"] == "BOOKMARK"
            version = event["object"]["metadata"]["resourceVersion"]
    async with api.watch(configmaps, resourceVersion=version) as watch:
        (await api.post(configmaps, config_map("c"))).ok(201)
        assert await watch.take(1) == [("ADDED", "c")]


async def test_no_bookmark_comes_unasked(api, configmaps, since):
    (await api.post(configmaps, config_map("a"))).ok(201)
    async with api.watch(configmaps, resourceVersion=since, labelSelector="tier=none", timeoutSeconds=3) as watch:
        assert await watch.next() is None


async def test_a_watch_from_a_forgotten_version_gets_one_error_event_that_says_gone(api, own_widgets, server):
    # The cache of a kind that is new to a server begins at its birth: version 1 is before it.
    (await api.post(own_widgets.path, own_widgets.body("a"))).ok(201)
    server.forget()
    async with api.watch(own_widgets.path, resourceVersion="1") as watch:
        event = await watch.next()
        assert event["type"] == "ERROR"
        assert (event["object"]["kind"], event["object"]["code"]) == ("Status", 410)
        assert event["object"]["reason"] in ("Expired", "Gone")
        assert "too old resource version" in event["object"]["message"]
        assert await watch.next() is None


async def test_a_watch_from_a_version_that_is_no_number_is_refused(api, configmaps):
    assert (await api.get(configmaps, watch="true", resourceVersion="new")).status >= 400


async def test_a_watch_by_a_selector_that_means_nothing_is_refused(api, configmaps):
    (await api.get(configmaps, watch="true", labelSelector="a in b")).refused(400, "BadRequest")


async def test_several_watches_are_told_the_same(api, configmaps, since):
    async with (
        api.watch(configmaps, resourceVersion=since) as one,
        api.watch(configmaps, resourceVersion=since) as two,
    ):
        for name in ("a", "b"):
            (await api.post(configmaps, config_map(name))).ok(201)
        assert await asyncio.gather(one.take(2), two.take(2)) == [[("ADDED", "a"), ("ADDED", "b")]] * 2


async def test_a_node_that_is_changed_goes_and_comes_back_is_told_as_two(api, node_path):
    name = node_path.rpartition("/")[2]
    since = (await api.get("/api/v1/nodes")).ok()["metadata"]["resourceVersion"]
    for value in ("1", "2"):  # as a cluster's own controllers may, any number of times
        (await api.patch(node_path, {"metadata": {"annotations": {"a": value}}})).ok()
    (await api.delete(node_path)).ok()
    (await api.post("/api/v1/nodes", node(name))).ok(201)
    async with api.watch("/api/v1/nodes", resourceVersion=since, fieldSelector=f"metadata.name={name}") as watch:
        seen = []
        while len(seen) < 2:
            seen += [one for one in await watch.take(1) if one[0] != "MODIFIED"]
        assert seen == [("DELETED", name), ("ADDED", name)]

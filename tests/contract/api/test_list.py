"""Lists: versions, pages, selectors."""

import pytest

from tests.contract.api.calls import config_map, fresh, node
from tests.harness.waiting import until


def names(answer) -> list[str]:
    return [item["metadata"]["name"] for item in answer.ok()["items"]]


@pytest.fixture
async def three(api, space):
    """Three ConfigMaps of our own in an order that is not the alphabet's; the path that lists all of the namespace."""
    path = f"/api/v1/namespaces/{space}/configmaps"
    tiers = {"b": "front", "c": "back", "a": "front"}
    for name, tier in tiers.items():
        (await api.post(path, config_map(name, labels={"tier": tier, "ours": "yes"}))).ok(201)
    return path


async def test_a_list_has_a_kind_a_version_and_items_in_the_order_of_their_names(api, three):
    answer = await api.get(three, labelSelector="ours")
    body = answer.ok()
    assert (body["kind"], body["apiVersion"]) == ("ConfigMapList", "v1")
    assert isinstance(body["metadata"]["resourceVersion"], str)
    assert names(answer) == ["a", "b", "c"]
    assert all("kind" not in item for item in body["items"])


async def test_the_version_of_a_list_is_not_older_than_its_items(api, three):
    made = (await api.post(three, config_map("d"))).ok(201)
    listed = (await api.get(three)).ok()["metadata"]["resourceVersion"]
    assert int(listed) >= int(made["metadata"]["resourceVersion"])


async def test_an_empty_list_has_items(api, space):
    assert (await api.get(f"/api/v1/namespaces/{space}/secrets")).ok()["items"] == []


async def test_a_list_over_all_namespaces_has_those_of_each(api, three, space):
    found = (
        await api.get("/api/v1/configmaps", labelSelector="ours", fieldSelector=f"metadata.namespace={space}")
    ).ok()
    assert {item["metadata"]["namespace"] for item in found["items"]} == {space}
    assert len(found["items"]) == 3


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("tier=front", "ab"),
        ("tier==front", "ab"),
        ("tier!=front,ours", "c"),
        ("tier in (back, front),ours", "abc"),
        ("tier notin (back),ours", "ab"),
        ("tier,ours", "abc"),
        ("!tier,ours", ""),
        ("ours,!absent", "abc"),
        ("tier=front,ours=no", ""),
    ],
)
async def test_labels_select(api, three, selector, expected):
    assert names(await api.get(three, labelSelector=selector)) == list(expected)


async def test_a_label_selector_that_means_nothing_is_refused(api, three):
    (await api.get(three, labelSelector="a in b")).refused(400, "BadRequest")


async def test_names_select(api, three):
    assert names(await api.get(three, fieldSelector="metadata.name=b")) == ["b"]
    assert names(await api.get(three, fieldSelector="metadata.name!=b", labelSelector="ours")) == ["a", "c"]


async def test_namespaces_select(api, three, space):
    every = "/api/v1/configmaps"
    fields = f"metadata.namespace={space},metadata.name=c"
    assert names(await api.get(every, fieldSelector=fields)) == ["c"]


async def test_a_field_that_cannot_select_is_refused(api, three):
    body = (await api.get(three, fieldSelector="data.x=1")).refused(400, "BadRequest")
    assert "data.x" in body["message"]


async def test_pods_are_selected_by_node_and_phase(api, pods, pod, node_path):
    other = fresh("node")
    (await api.post("/api/v1/nodes", node(other))).ok(201)
    (await api.post(pods, pod("here"))).ok(201)
    (await api.post(pods, pod("there", nodeName=other))).ok(201)
    (await api.patch(f"{pods}/there/status", {"status": {"phase": "Failed"}})).ok()
    assert names(await api.get(pods, fieldSelector=f"spec.nodeName={node_path.rpartition('/')[2]}")) == ["here"]
    assert names(await api.get(pods, fieldSelector="status.phase=Failed")) == ["there"]
    assert names(await api.get(pods, fieldSelector="status.phase!=Failed,status.phase!=Succeeded")) == ["here"]
    assert names(await api.get(pods, fieldSelector=f"spec.nodeName={other},status.phase=Pending")) == []


async def test_nodes_are_selected_by_being_unschedulable(api):
    mark = fresh("mark")
    for name, spec in (("off", {"unschedulable": True}), ("on", {})):
        (await api.post("/api/v1/nodes", {**node(f"{name}-{mark}", labels={"mark": mark}), "spec": spec})).ok(201)
    for value, name in (("true", "off"), ("false", "on")):
        found = await api.get(
            "/api/v1/nodes", fieldSelector=f"spec.unschedulable={value}", labelSelector=f"mark={mark}"
        )
        assert names(found) == [f"{name}-{mark}"]


async def test_pages_together_have_every_object_once(api, configmaps):
    wanted = [f"page-{at}" for at in range(5)]
    for name in wanted:
        (await api.post(configmaps, config_map(name))).ok(201)
    seen, following, left = [], {}, []
    while True:
        page = (await api.get(configmaps, limit=2, **following)).ok()
        seen += [item["metadata"]["name"] for item in page["items"]]
        assert len(page["items"]) <= 2
        left.append(page["metadata"].get("remainingItemCount", 0))
        if not page["metadata"].get("continue"):
            break
        following = {"continue": page["metadata"]["continue"]}
    assert [name for name in seen if name in wanted] == wanted
    assert len(seen) == len(set(seen))
    assert left == [max(len(seen) - 2 * (at + 1), 0) for at in range(len(left))]


async def test_all_pages_show_the_version_of_the_first(api, three):
    first = (await api.get(three, limit=2)).ok()
    (await api.post(three, config_map("aa"))).ok(201)
    (await api.delete(f"{three}/c")).ok()
    second = (await api.get(three, limit=10, **{"continue": first["metadata"]["continue"]})).ok()
    assert second["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
    assert [item["metadata"]["name"] for item in first["items"] + second["items"]][:3] == ["a", "b", "c"]


async def test_pages_of_a_selection_have_only_what_is_selected(api, three):
    first = await api.get(three, limit=1, labelSelector="tier=front")
    assert names(first) == ["a"]
    assert "remainingItemCount" not in first.body["metadata"]
    following = {"continue": first.body["metadata"]["continue"]}
    assert names(await api.get(three, limit=1, labelSelector="tier=front", **following)) == ["b"]


async def test_a_page_that_holds_all_has_no_continuation(api, three):
    meta = (await api.get(three, limit=100)).ok()["metadata"]
    assert not meta.get("continue")
    assert "remainingItemCount" not in meta


async def test_a_continuation_that_means_nothing_is_refused(api, three):
    (await api.get(three, limit=1, **{"continue": "nonsense"})).refused(400, "BadRequest")


async def test_a_continuation_whose_version_is_forgotten_is_gone(api, three, server):
    page = (await api.get(three, limit=1)).ok()
    (await api.post(three, config_map("later"))).ok(201)
    server.forget()

    async def refusal():
        answer = await api.get(three, limit=1, **{"continue": page["metadata"]["continue"]})
        return answer if answer.status >= 400 else None

    (await until(refusal, seconds=60)).refused(410, "Expired")


async def test_a_list_not_older_than_a_version_has_what_was_written_then(api, three):
    made = (await api.post(three, config_map("d", labels={"ours": "yes"}))).ok(201)
    version = made["metadata"]["resourceVersion"]
    found = await api.get(three, labelSelector="ours", resourceVersion=version, resourceVersionMatch="NotOlderThan")
    assert names(found) == ["a", "b", "c", "d"]
    assert names(await api.get(three, labelSelector="ours", resourceVersion="0")) != []


async def test_a_version_that_is_no_number_is_refused(api, three):
    assert (await api.get(three, resourceVersion="new")).status in (400, 422)


async def test_a_version_match_without_a_version_is_refused(api, three):
    (await api.get(three, resourceVersionMatch="NotOlderThan")).refused(422, "Invalid")

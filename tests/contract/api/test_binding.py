"""Binding a Pod: the annotations of the Binding come with the node, and its uid and version are conditions."""

import asyncio
from typing import Any

import pytest

from tests.contract.api import calls
from tests.contract.api.calls import fresh


@pytest.fixture
async def free(api, pods) -> dict[str, Any]:
    """A Pod that has no node, and that no scheduler looks at."""
    body = calls.pod(fresh("pod"), schedulerName="nobody")
    body["metadata"]["annotations"] = {"kept": "1", "card": "old"}
    return (await api.post(pods, body)).ok(201)


def binding(pod: dict[str, Any], node: str, **metadata: Any) -> dict[str, Any]:
    meta = {"name": pod["metadata"]["name"], "namespace": pod["metadata"]["namespace"], **metadata}
    return {"apiVersion": "v1", "kind": "Binding", "metadata": meta, "target": {"kind": "Node", "name": node}}


async def bind(api, pods: str, pod: dict[str, Any], node_path: str, **metadata: Any):
    body = binding(pod, node_path.rpartition("/")[2], **metadata)
    return await api.post(f"{pods}/{pod['metadata']['name']}/binding", body)


async def test_annotations_of_a_binding_come_with_the_node_in_one_write(api, pods, free, node_path):
    (await bind(api, pods, free, node_path, annotations={"card": "3"})).ok(201)
    bound = (await api.get(f"{pods}/{free['metadata']['name']}")).ok()
    assert bound["spec"]["nodeName"] == node_path.rpartition("/")[2]
    assert bound["metadata"]["annotations"] == {"kept": "1", "card": "3"}


async def test_a_bound_pod_is_bound_no_second_time_and_keeps_its_annotations(api, pods, free, node_path):
    (await bind(api, pods, free, node_path, annotations={"card": "3"})).ok(201)
    (await bind(api, pods, free, node_path, annotations={"card": "4"})).refused(409, "Conflict")
    bound = (await api.get(f"{pods}/{free['metadata']['name']}")).ok()
    assert bound["metadata"]["annotations"]["card"] == "3"


@pytest.mark.parametrize("field", ["uid", "resourceVersion"])
async def test_a_binding_of_another_uid_or_version_is_refused(api, pods, free, node_path, field):
    there = {"uid": "11111111-1111-1111-1111-111111111111", "resourceVersion": "1"}[field]
    (await bind(api, pods, free, node_path, **{field: there})).refused(409, "Conflict")
    (await bind(api, pods, free, node_path, **{field: free["metadata"][field]})).ok(201)


async def test_of_many_bindings_at_once_one_counts(api, pods, free, node_path):
    version = free["metadata"]["resourceVersion"]
    answers = await asyncio.gather(
        *(bind(api, pods, free, node_path, resourceVersion=version, annotations={"card": str(n)}) for n in range(8))
    )
    assert sorted(answer.status for answer in answers) == [201] + [409] * 7

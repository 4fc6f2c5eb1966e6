"""How Pods end in vain on a real kubelet, and the word that the table of outcomes has for each of these ends."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

from remediator.core import names
from remediator.core.outcome import PodEnd, pod_end
from remediator.core.pod import Pod
from remediator.kube.api import decode
from remediator.kube.api.builtin import POD
from remediator.kube.wire.client import Client
from remediator_sim.kubelet.podstatus import UNMOUNTED
from remediator_sim.plain import PODS
from tests.harness.waiting import until
from tests.kubelet.cluster import TARGET, Cluster
from tests.kubelet.pods import sleeper

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(240)]
SPACE = "default"
NONE = "registry.invalid/none:1"
# What its container is, the word for its end, and the kubelet's own word. None of them ever starts.
UNSTARTED: dict[str, tuple[Mapping[str, Any], PodEnd, str]] = {
    "its registry is not there": ({"image": NONE, "imagePullPolicy": "Always"}, PodEnd.IMAGE, "ImagePull"),
    "its image may not be pulled": ({"image": NONE, "imagePullPolicy": "Never"}, PodEnd.IMAGE, "ErrImageNeverPull"),
    "that is no name of an image": ({"image": "Registry/None"}, PodEnd.IMAGE, "InvalidImageName"),
    "its Secret is not there": (
        {"envFrom": [{"secretRef": {"name": "none"}}]},
        PodEnd.CONFIG,
        "CreateContainerConfigError",
    ),
}


def exits(code: int) -> dict[str, Any]:
    return {"command": ["python3", "-I", "-S", "-c", f"raise SystemExit({code})"]}


ENDED: dict[str, tuple[Mapping[str, Any], PodEnd]] = {
    "an exit code of the contract": (exits(2), PodEnd.SAID),
    "another exit code": (exits(143), PodEnd.LOST),
    "no such program": ({"command": ["/none"]}, PodEnd.LOST),
}


@asynccontextmanager
async def made(client: Client, container: Mapping[str, Any], **spec: Any) -> AsyncIterator[str]:
    """A Pod on the target that its kubelet ends as ours are ended, and that our finalizer keeps; its name."""
    body = sleeper("ends", TARGET)
    body["metadata"]["finalizers"] = [names.POD_FINALIZER]
    body["spec"]["containers"][0] |= container
    body["spec"] |= {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1} | spec
    await client.create(PODS, body, namespace=SPACE)
    try:
        yield "ends"
    finally:
        await client.patch(PODS, "ends", {"metadata": {"finalizers": None}}, namespace=SPACE)
        path = PODS.path("ends", SPACE)
        await client.transport.request("DELETE", path, body=b'{"gracePeriodSeconds": 0}')


async def seen(client: Client, name: str) -> Pod:
    """It, as the controller reads it."""
    return decode.operation_pod(await client.get(POD, name, namespace=SPACE))


async def ended(client: Client, name: str, seconds: float = 60) -> Pod:
    """The same, once its kubelet has ended it."""

    async def over() -> Pod | None:
        pod = await seen(client, name)
        return pod if pod.ended else None

    return await until(over, seconds)


async def located_no_more(client: Client, name: str) -> Pod:
    """The same, once its kubelet has written the end of the container, too, as it does a moment later."""

    async def over() -> Pod | None:
        (container,) = (await client.get(PODS, name, namespace=SPACE))["status"]["containerStatuses"]
        return await seen(client, name) if container["state"].get("terminated") == UNMOUNTED else None

    return await until(over, 60)


async def runs(client: Client, name: str) -> bool:
    return pod_end(await seen(client, name)) is PodEnd.RUNNING


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("why", UNSTARTED)
async def test_a_pod_that_never_starts_says_why_while_it_waits_and_once_its_time_is_over(
    admin: Client, why: str
) -> None:
    container, word, said = UNSTARTED[why]

    async def waits(name: str) -> bool:
        return pod_end(await seen(admin, name)) is word

    async with made(admin, container, activeDeadlineSeconds=10) as name:
        await until(lambda: waits(name), 30)
        assert (await seen(admin, name)).pending
        pod, last = await ended(admin, name), await located_no_more(admin, name)
    assert (pod_end(pod), pod.expired) == (word, True)
    assert said in pod.message
    assert (pod_end(last), last.expired, last.exit_code) == (PodEnd.FORGOTTEN, True, None), "its last word is no reason"


@pytest.mark.long
@pytest.mark.timeout(500)
@pytest.mark.usefixtures("cluster")
async def test_a_pod_whose_volume_cannot_be_mounted_has_never_started_also_where_its_kubelet_says_what_it_ended_with(
    admin: Client,
) -> None:
    """For two minutes a kubelet does nothing else with such a Pod than wait for the volume, past its time, too."""
    mount = {"volumeMounts": [{"name": "none", "mountPath": "/none"}]}
    volume = {"name": "none", "configMap": {"name": "none"}}
    async with made(admin, mount, activeDeadlineSeconds=10, volumes=[volume]) as name:
        assert (await seen(admin, name)).pending
        for pod in (await ended(admin, name, 240), await located_no_more(admin, name)):
            assert (pod.expired, pod.exit_code) == (True, None)
            assert pod_end(pod) in (PodEnd.PENDING, PodEnd.FORGOTTEN)


@pytest.mark.parametrize("how", ENDED)
async def test_a_pod_that_ends_by_itself_has_a_word_for_it(cluster: Cluster, admin: Client, how: str) -> None:
    container, word = ENDED[how]
    async with made(admin, container) as name:
        assert pod_end(await ended(admin, name)) is word


@pytest.mark.usefixtures("cluster")
async def test_the_first_container_says_how_an_operation_ends_also_where_another_one_sorts_before_it(
    admin: Client,
) -> None:
    """A kubelet lists what became of containers by their names."""
    other = sleeper("", TARGET)["spec"]["containers"][0] | {"name": "another"} | exits(143)
    first = sleeper("", TARGET)["spec"]["containers"][0] | exits(2)
    async with made(admin, {}, containers=[first, other]) as name:
        pod = await ended(admin, name)
        said = await admin.get(PODS, name, namespace=SPACE)
    assert [each["name"] for each in said["status"]["containerStatuses"]] == ["another", first["name"]]
    assert (pod.exit_code, pod_end(pod)) == (2, PodEnd.SAID)


@pytest.mark.usefixtures("cluster")
async def test_an_init_container_that_fails_is_named(admin: Client) -> None:
    before = sleeper("", TARGET)["spec"]["containers"][0] | {"name": "before"} | exits(1)
    async with made(admin, {}, initContainers=[before]) as name:
        pod = await ended(admin, name)
    assert (pod_end(pod), pod.message) == (PodEnd.LOST, "init container before: exit code 1")


@pytest.mark.usefixtures("cluster")
async def test_a_pod_that_runs_longer_than_it_may_is_told_from_one_that_was_killed(admin: Client) -> None:
    async with made(admin, {}, activeDeadlineSeconds=4) as name:
        assert pod_end(await ended(admin, name)) is PodEnd.TOO_LONG


@pytest.mark.usefixtures("cluster")
async def test_a_pod_that_somebody_deletes_is_told_from_one_that_is_evicted(admin: Client) -> None:
    async with made(admin, {}) as name:
        await until(lambda: runs(admin, name), 60)
        await admin.delete(PODS, name, namespace=SPACE)
        assert pod_end(await seen(admin, name)) is PodEnd.DELETED
        assert pod_end(await ended(admin, name)) is PodEnd.DELETED
    async with made(admin, {}) as name:
        await until(lambda: runs(admin, name), 60)
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": SPACE}}
        await admin.transport.request("POST", f"{PODS.path(name, SPACE)}/eviction", body=json.dumps(eviction).encode())
        assert pod_end(await ended(admin, name)) is PodEnd.EVICTED

"""A real API server asks about each eviction of a drain, and about those of nobody else."""

import base64

import pytest

from nodelib.k8s.eviction_answers import OURS
from tests.cluster.rights.asking import OTHER, OWN, Object, Reply, Request
from tests.cluster.rights.evictions import CONFIGURATION
from tests.cluster.rights.world import World, eviction_of, plain_pod

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(120)]
DENIED = f"admission {OURS} denied the request: "


def asks(world: World, pod: str, who: str = "drain", space: str = "team") -> Reply:
    """Somebody asks for a Pod, by its uid."""
    return world.speakers.get(who, world.admin)(world.exact(eviction_of(pod, space)))


def authority(world: World) -> str:
    (webhook,) = world.admin(Request("GET", CONFIGURATION)).json["webhooks"]
    return str(webhook["clientConfig"]["caBundle"])


def test_a_drain_evicts_a_pod_of_users_on_its_node_and_it_is_gone(world: World) -> None:
    """Not a dry run: the Pod has no container that anybody would wait for."""
    pod = plain_pod("leaves", OTHER)
    pod["spec"]["terminationGracePeriodSeconds"] = 0
    world.make("/api/v1/namespaces/team/pods", pod)
    asked = world.exact(eviction_of("leaves", "team"))
    assert world.speakers["drain"](asked._replace(dry=False)).status == 201
    path = "/api/v1/namespaces/team/pods/leaves"
    world.until(lambda: world.admin(Request("GET", path)).status == 404)
    assert world.speakers["drain"](asked).status == 404, "the API server says so, not the controller"


@pytest.mark.parametrize(
    ("pod", "why"),
    [
        (f"on-{OWN}", f"team/on-{OWN} is not on {OTHER}, which it drains"),
        ("unplaced", f"team/unplaced is not on {OTHER}, which it drains"),
        ("daemon", "a drain touches no Pod of a DaemonSet"),
        ("daemon-here", "a drain touches no Pod of a DaemonSet"),
        ("mirror", "a drain touches no mirror Pod"),
    ],
)
def test_the_token_of_a_drain_takes_no_other_pod(world: World, pod: str, why: str) -> None:
    reply = asks(world, pod)
    assert (reply.status, reply.json["message"]) == (403, DENIED + why)


def test_an_eviction_that_names_no_uid_is_refused(world: World) -> None:
    reply = world.speakers["drain"](eviction_of(f"on-{OTHER}", "team"))
    assert (reply.status, "names the Pod by its uid" in reply.text) == (403, True), reply


def test_a_pod_of_another_uid_is_not_evicted(world: World) -> None:
    asked = eviction_of(f"on-{OTHER}", "team", preconditions={"uid": "0"})
    assert world.speakers["drain"](asked).status == 409


def test_while_nobody_answers_a_drain_evicts_nobody_and_all_others_do(world: World) -> None:
    world.answers.hide()
    try:
        reply = asks(world, f"on-{OTHER}")
        told = f"failed calling {OURS}" in reply.json["message"]  # as the drain program knows it
        assert (reply.status, told) == (500, True), reply
        assert asks(world, f"on-{OTHER}", "administrator").status == 201
        assert asks(world, f"on-{OWN}", "kubelet").status == 201
    finally:
        world.answers.show()
    world.until(lambda: asks(world, f"on-{OTHER}").status == 201)


def test_a_drain_whose_operation_has_ended_evicts_nobody(world: World) -> None:
    status = "/apis/remediator.dev/v1alpha1/nodeoperations/drained/status"

    def becomes(phase: str) -> None:
        body: Object = {"status": {"phase": phase}}
        asked = Request("PATCH", status, body, "application/merge-patch+json", dry=False)
        assert world.speakers["controller"](asked).status == 200

    becomes("Failed")
    try:
        world.until(lambda: "does not drain any more" in asks(world, f"on-{OTHER}").text)
    finally:
        becomes("Draining")
    world.until(lambda: asks(world, f"on-{OTHER}").status == 201)


def test_the_controller_writes_its_authority_anew_when_that_changes_or_somebody_took_it_away(world: World) -> None:
    before = authority(world)
    assert base64.b64decode(before).startswith(b"-----BEGIN CERTIFICATE-----")
    world.answers.renew()
    world.until(lambda: asks(world, f"on-{OTHER}").status == 500)
    world.answers.write_authority()
    assert authority(world) != before
    world.until(lambda: asks(world, f"on-{OTHER}").status == 201)

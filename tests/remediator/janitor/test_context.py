"""What rules may ask of claims, and hooks: kube-janitor's cases."""

from typing import Any

import msgspec
import pytest

from remediator.janitor.context import Context, Resource, hook
from remediator.janitor.subject import JanitorSubject
from remediator.kube.wire import errors
from remediator.kube.wire.client import Kind
from tests.harness.kinds import Object

CLAIMS = Kind("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", Object, namespaced=True)
POD = {"spec": {"volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}, {"emptyDir": {}}]}}
OTHER = {"spec": {"volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "other"}}]}}
JOB = {"spec": {"template": POD}}
SET = {"metadata": {"name": "db"}, "spec": {"template": {}, "volumeClaimTemplates": [{"metadata": {"name": "disk"}}]}}


class Stored:
    """A client that lists what is given, by the plural of the kind."""

    def __init__(self, **objects: list[Any]) -> None:
        self.objects, self.asked = objects, 0

    async def list_all(self, kind: Kind[Any], *, namespace: str) -> list[Any]:
        assert namespace == "team"
        self.asked += 1
        found = self.objects.get(kind.plural, [])
        if found == ["refused"]:
            raise errors.Forbidden(403, "Forbidden", "no")
        return [msgspec.convert(one, kind.type) for one in found]


def claim(name: str = "data") -> JanitorSubject:
    return JanitorSubject(CLAIMS, "team", name, "u", "1", None, False, {})


def context(client: Stored, given: Any = None) -> Context:
    return Context(client, given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("objects", "name", "not_mounted", "not_referenced"),
    [
        ({}, "data", True, True),
        ({"pods": [OTHER]}, "data", True, True),
        ({"pods": [OTHER, POD]}, "data", False, False),
        ({"jobs": [JOB]}, "data", True, False),
        ({"deployments": [JOB]}, "data", True, False),
        ({"cronjobs": [{"spec": {"jobTemplate": JOB}}]}, "data", True, False),
        ({"statefulsets": [SET]}, "disk-db-12", True, False),
        ({"statefulsets": [SET]}, "disk-db-x", True, True),
    ],
)
async def test_a_claim_is_mounted_by_pods_and_referenced_by_what_makes_pods(
    objects: dict[str, list[Any]], name: str, not_mounted: bool, not_referenced: bool
) -> None:
    told = await context(Stored(**objects)).of(claim(name), {})
    assert told == {"pvc_is_not_mounted": not_mounted, "pvc_is_not_referenced": not_referenced}


async def test_what_names_claims_is_read_once_for_a_namespace() -> None:
    client = Stored()
    asked = context(client)
    for name in ("a", "b", "c"):
        await asked.of(claim(name), {})
    assert client.asked == 5  # Pods, CronJobs, Deployments, StatefulSets, Jobs


async def test_where_claims_cannot_be_read_nobody_can_tell() -> None:
    assert await context(Stored(statefulsets=["refused"])).of(claim(), {}) is None


def counted(resource: Resource, cache: dict[str, Any]) -> dict[str, Any]:
    """A hook, as an administrator writes one."""
    cache["calls"] = cache.get("calls", 0) + 1
    return {"name": f"{resource.kind}/{resource.name}", "calls": cache["calls"]}


async def test_a_hook_is_given_the_object_and_a_cache_of_its_own() -> None:
    asked = context(Stored(), counted)
    await asked.of(claim(), {})
    told = await asked.of(claim("b"), {})
    assert told is not None
    assert (told["name"], told["calls"]) == ("PersistentVolumeClaim/b", 2)


def test_a_hook_is_named_by_module_and_function() -> None:
    assert hook("os.path.join") is __import__("os").path.join
    for name in ("no.such.module", "os.path.nothing", "os.sep", "join", ""):
        with pytest.raises(ValueError, match=r"write module\.function"):
            hook(name)

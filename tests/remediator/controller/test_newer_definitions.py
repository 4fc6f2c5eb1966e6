"""A rollback leaves newer definitions in the cluster: an older controller works under them, and their fields stay."""

from copy import deepcopy

from tests.harness.controller import controller_harness, running, until
from tests.harness.kinds import CRDS, POLICIES

PROPERTIES = ("spec", "versions", 0, "schema", "openAPIV3Schema", "properties", "spec", "properties")


async def add_field(harness, plural: str) -> None:
    """A field that only a newer version knows."""
    name = f"{plural}.remediator.dev"
    newer = deepcopy(await harness.client.get(CRDS, name))
    properties = newer
    for step in PROPERTIES:
        properties = properties[step]
    properties["tomorrow"] = {"type": "string"}
    await harness.client.replace(CRDS, name, newer)


async def test_a_case_recovers_under_newer_definitions_and_their_fields_stay():
    async with controller_harness() as harness:
        for plural in ("remediationpolicies", "noderemediations"):
            await add_field(harness, plural)
        await harness.policy(tomorrow="kept")
        await harness.node("gpu-1", "True")
        async with running(harness):
            await until(lambda: harness.cases("gpu-1"))
            await harness.edit_case("gpu-1", tomorrow="too")
            await until(lambda: harness.ended("gpu-1", "Recovered"))
        (case,) = harness.cases("gpu-1")
        policy = await harness.client.get(POLICIES, "gpu-lost")
        assert (case["spec"]["tomorrow"], policy["spec"]["tomorrow"]) == ("too", "kept")

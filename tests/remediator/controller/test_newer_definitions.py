"""A rollback leaves newer definitions in the cluster: an older controller works under them, and their fields stay."""

from contextlib import AsyncExitStack
from copy import deepcopy

import pytest

from tests.harness.controller import REBOOTED, RUNS, ControllerHarness, controller_harness, running, until
from tests.harness.kinds import CASES, CRDS, LEASES, POLICIES

PROPERTIES = ("spec", "versions", 0, "schema", "openAPIV3Schema", "properties")


async def add_field(harness, plural: str, part: str = "spec") -> None:
    """A field that only a newer version knows."""
    name = f"{plural}.remediator.dev"
    newer = deepcopy(await harness.client.get(CRDS, name))
    properties = newer
    for step in (*PROPERTIES, part, "properties"):
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


def leads(harness: ControllerHarness, identity: str) -> bool:
    """Whether the Lease names this replica."""
    return any(lease["spec"]["holderIdentity"] == identity for lease in harness.all(LEASES))


@pytest.mark.slow
async def test_an_older_and_a_newer_replica_hand_a_case_over_and_back_and_the_node_is_rebooted_once():
    """An upgrade in the middle of a drain, and a rollback in the middle of the reboot: one case, one Pod of each.

    All are this version: what is newer is the definition, and a field that this version does not know.
    """
    async with controller_harness() as harness, AsyncExitStack() as old, AsyncExitStack() as new:
        harness.answer("drain", RUNS)
        harness.answer("reboot", RUNS)
        await harness.policy()
        await harness.node("gpu-1", "True")
        await old.enter_async_context(running(harness, "old"))
        await until(lambda: harness.pods("drain", "Running"))
        await add_field(harness, "noderemediations", "status")  # the definitions come first
        await new.enter_async_context(running(harness, "new"))
        await old.aclose()
        await until(lambda: leads(harness, "new"))
        (case,) = harness.cases("gpu-1")
        status = {"status": {"tomorrow": "kept"}}
        await harness.client.patch(CASES, case["metadata"]["name"], status, subresource="status")
        await harness.finish("drain")
        await until(lambda: harness.pods("reboot", "Running"))
        async with running(harness, "old-again"):
            await new.aclose()
            await until(lambda: leads(harness, "old-again"))
            await harness.finish("reboot", REBOOTED)
            await until(lambda: harness.ended("gpu-1", "Recovered"))
        (case,) = harness.cases("gpu-1")
    assert case["status"]["tomorrow"] == "kept"
    assert [ran for ran in harness.ran if ran.startswith(("drain", "reboot"))] == ["drain gpu-1", "reboot gpu-1"]

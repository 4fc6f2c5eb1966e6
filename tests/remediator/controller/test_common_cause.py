"""Nodes that are held for a common cause, and one of them falls silent."""

from tests.harness.controller import running, until
from tests.harness.kinds import NODES

NAMES = ["gpu-1", "gpu-2", "gpu-3"]


async def test_a_group_of_three_stays_one_while_the_conditions_of_one_node_are_unknown(harness):
    await harness.budget("all", 3)
    when = [{"condition": "DiskPressure", "for": "0s"}]
    await harness.policy(correlation={"nodes": 3, "within": "10m", "by": ["message"]}, when=when)
    for name in NAMES:
        await harness.node(name)
        await harness.condition(name, "False", "DiskPressure")
    async with running(harness):
        for name in NAMES:
            await harness.condition(name, "True", "DiskPressure")
        await until(lambda: all("SharedCause" in harness.reasons(name) for name in NAMES))
        await harness.condition("gpu-3", "Unknown", "Ready")
        await harness.condition("gpu-3", "Unknown", "DiskPressure")
        await until(lambda: "HealthUnknown" in harness.reasons("gpu-3"))
        await harness.change(NODES, "gpu-1", metadata={"labels": {"rack": "b"}})
        assert [harness.reasons(name)[0] for name in NAMES[:2]] == ["SharedCause"] * 2
    assert harness.ran == []

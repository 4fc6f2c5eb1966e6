"""What a template says of the drain reaches its Pod, and what the drain says of Pods reaches whoever asks."""

import json

from remediator.clock import SYSTEM
from remediator.controller.explain import explain, snapshot
from remediator.core.breaker import Breaker
from tests.harness.controller import Answer, environment, running, until
from tests.harness.kinds import OPERATIONS, TEMPLATES

RULES = [{"namespaces": ["default"], "strategy": "None"}]
BARE = "no controller makes it again"


async def test_pods_that_a_rule_leaves_on_the_node_are_not_waited_for(harness):
    await harness.change(TEMPLATES, "reboot", spec={"drain": {"strategy": "EvictThenDelete", "rules": RULES}})
    await harness.policy()
    pod = {"metadata": {"name": "stays"}, "spec": {"nodeName": "gpu-1", "containers": [{"name": "c", "image": "i"}]}}
    await harness.client.send("POST", "/api/v1/namespaces/default/pods", dict, pod)
    harness.answer("drain", Answer(exit=None))
    await harness.node("gpu-1", "True")
    async with running(harness):
        (drain,) = await until(lambda: harness.pods("drain"))
        orders = json.loads(environment(drain)["PARAMETERS"])
        assert (orders["strategy"], orders["deleteBarePods"]) == ("EvictThenDelete", False)
        assert [(rule["namespaces"], rule["strategy"]) for rule in orders["rules"]] == [(["default"], "None")]
        assert abs(orders["timeoutSeconds"] - 30) <= 1
        assert abs(orders["evictForSeconds"] - 15) <= 1
        await until(lambda: "drain gpu-1" in harness.ran)
        await harness.finish("drain")
        await until(lambda: harness.ended("gpu-1", "Recovered"))
    assert harness.ran.count("drain gpu-1") == 1


async def test_explain_names_the_pods_that_keep_a_drain_while_it_waits(harness):
    await harness.policy()
    harness.answer("drain", Answer(exit=None))
    await harness.node("gpu-1", "True")
    async with running(harness):
        await until(lambda: "drain gpu-1" in harness.ran)
        (operation,) = harness.all(OPERATIONS)
        blocked = [
            {"pod": "team/a", "message": BARE},
            {"pod": "team/b", "pdb": "web", "message": "Cannot evict pod"},
            {"pod": "team/c", "message": BARE},
        ]
        drain = {"left": 3, "evicted": 1, "blocked": blocked}
        name = operation["metadata"]["name"]
        await harness.client.patch(OPERATIONS, name, {"status": {"drain": drain}}, subresource="status")
        cache = await snapshot(harness.client, harness.namespaces, SYSTEM)
        lines = list(explain(cache, cache.nodes.get("gpu-1"), Breaker(), SYSTEM.now()))
    assert f"  3 pods left on gpu-1; in the way: team/a, team/c ({BARE}); team/b (web)" in lines

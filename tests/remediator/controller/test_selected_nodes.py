"""How many nodes a policy selects stands on its status, an Event says that it is none, and few writes do it."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from remediator.controller.effects import Create, Patch
from remediator.controller.selected_nodes import SelectedNodes
from tests.builders import a_node, a_policy, at, pool
from tests.harness.controller import controller_harness, running, until
from tests.harness.kinds import EVENTS, POLICIES


class Nodes(list):
    """What a cache has of nodes; `add` shows a new one, as a watch does."""

    def on_view(self, viewer):
        self.viewer, self.read = viewer, 0

    def add(self, node):
        self.append(node)
        self.viewer(None, node)

    def __iter__(self):
        self.read += 1
        return super().__iter__()


def of(*pools):
    nodes = Nodes(a_node(f"n{number}", labels={"pool": name}) for number, name in enumerate(pools))
    return SimpleNamespace(nodes=nodes)


def written(effects):
    return [effect.body["status"]["selectedNodes"] for effect in effects if isinstance(effect, Patch)]


def test_the_number_is_written_where_it_differs_and_nodes_are_counted_at_most_once_a_minute():
    cache, policy = of("a", "a", "b"), a_policy(selector=pool("a"), generation=1)
    selected = SelectedNodes(cache)
    assert written(selected.effects(policy, at(0))) == [2]
    cache.nodes.add(a_node("n3"))
    assert selected.effects(policy, at(0, seconds=59)) == [], "it was counted less than a minute ago"
    assert written(selected.effects(replace(policy, selected=2), at(1))) == [3]
    assert selected.effects(replace(policy, selected=3), at(3)) == [], "its status says so already"
    edited = replace(policy, selected=3, selector=pool("b"), generation=2)
    assert written(selected.effects(edited, at(3, seconds=1))) == [1], "a user has edited it and looks at it now"


def test_nodes_whose_labels_are_as_they_were_are_not_counted_again():
    cache, policy = of("a", "a", "b"), a_policy(selector=pool("a"), generation=1)
    selected = SelectedNodes(cache)
    assert written(selected.effects(policy, at(0))) == [2]
    node = cache.nodes[0]
    cache.nodes.viewer(node, replace(node, unschedulable=True))
    assert written(selected.effects(policy, at(2))) == [2], "the first write was lost: it is made again"
    assert cache.nodes.read == 1
    cache.nodes.viewer(node, replace(node, labels={"pool": "b"}))
    cache.nodes[0] = replace(node, labels={"pool": "b"})
    assert written(selected.effects(policy, at(4))) == [1]


def test_a_policy_that_is_deleted_and_made_again_is_counted_anew():
    cache, policy = of("a", "a", "b"), a_policy(selector=pool("a"), generation=1, uid="u1")
    selected = SelectedNodes(cache)
    assert written(selected.effects(policy, at(0))) == [2]
    again = replace(policy, uid="u2", selector=pool("b"))
    assert written(selected.effects(again, at(0, seconds=1))) == [1]


def test_of_a_policy_that_selects_no_node_an_event_tells_unless_there_are_no_nodes_at_all():
    policy = a_policy(selector=pool("c"), generation=1, uid="u1")
    number, event = SelectedNodes(of("a")).effects(policy, at(0))
    assert written([number]) == [0]
    assert isinstance(event, Create)
    assert event.body["reason"] == "SelectsNoNode"
    assert event.body["involvedObject"]["kind"] == "RemediationPolicy"
    assert event.body["involvedObject"]["uid"] == "u1"
    assert len(SelectedNodes(of()).effects(policy, at(0))) == 1


def test_a_new_number_wakes_no_node_and_no_case():
    policy = a_policy()
    counted = replace(policy, selected=5)
    assert counted != policy
    assert (counted.spec, counted.watches) == (policy.spec, policy.watches)


@pytest.mark.parametrize(("selector", "expected"), [({"remediator.dev/pool": "a"}, 2), ({"pool": "none"}, 0)])
async def test_a_running_controller_writes_it_beside_ready_and_keeps_it(selector, expected):
    async with controller_harness() as harness:
        for node in ("gpu-1", "gpu-2"):
            await harness.node(node, pool="a")
        await harness.policy(nodeSelector={"matchLabels": selector})
        async with running(harness):
            await until(lambda: [one["status"].get("selectedNodes") for one in status(harness)] == [expected])
            await until(lambda: [one["status"]["conditions"][0]["status"] for one in status(harness)] == ["True"])
            await harness.quiet()
    told = [event for event in harness.all(EVENTS) if event["reason"] == "SelectsNoNode"]
    assert len(told) == (not expected)


def status(harness):
    return [policy for policy in harness.all(POLICIES) if "status" in policy]

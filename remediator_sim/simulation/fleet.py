"""What there is before the first step: policies, budgets, nodes with their work, what users set long ago, replicas."""

from random import Random
from typing import TYPE_CHECKING

from remediator.kube import api
from remediator_sim.invariants.contract import LEASE_SPACE, PLACE
from remediator_sim.manifests import create
from remediator_sim.plain import NODES, plain
from remediator_sim.simulation import cluster, testing, variants
from remediator_sim.simulation.node import RACK
from remediator_sim.simulation.requesters import definitions
from remediator_sim.simulation.steps.roles import take_role
from remediator_sim.simulation.work import place_work

if TYPE_CHECKING:
    from remediator_sim.simulation.world import World

MARKED = 5  # nodes on which a user has set something
OWNER, NOTE = {"example.com/owner": "team-blue"}, {"example.com/note": "rack 7, left"}
RESERVED = {"key": "example.com/reserved", "value": "blue", "effect": "PreferNoSchedule"}


async def set_up(world: "World", chance: Random) -> None:
    """Create all that the plan names, and start the replicas."""
    if variants.REQUESTS in world.plan.shows:
        await create(world.client, *definitions())
    if variants.NODE_LEASES in world.plan.shows:
        await create(world.client, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": LEASE_SPACE}})
    if variants.NEIGHBOURS in world.plan.shows:
        spec = {"neighbours": {"sameLabel": RACK, "atOnce": testing.AT_ONCE}}
        await world.client.patch(plain(api.TEMPLATE), testing.PROBE, {"spec": spec})
    for name, mode in world.plan.policies:
        await create(world.client, world.policy(name, mode))
        if variants.UPGRADED in world.plan.shows:
            world.made_long_ago(name)
    for name, words in world.plan.budgets:
        await create(world.client, cluster.budget(name, dict(words)))
    for name, node in world.nodes.items():
        await node.register({PLACE: "true"} if name in world.plan.places else None)
        node.gate = variants.GATE if variants.NEW_NODES in world.plan.shows else ""  # from now on
    for name in world.plan.nodes:
        await place_work(world, name, chance.randint(0, 2))
    if variants.HANDED_OVER in world.plan.shows:
        await world.slurm.begin(world.plan.nodes)
    for name, role in world.plan.roles:
        await take_role(world, name, role)
    for name in chance.sample(world.plan.nodes, min(MARKED, len(world.plan.nodes))):
        await _mark(world, name)
    for model in world.replicas.values():
        model.start()


async def _mark(world: "World", node: str) -> None:
    """What a user has set on a node long ago."""
    body = {"metadata": {"labels": OWNER, "annotations": NOTE}, "spec": {"taints": [RESERVED]}}
    await world.client.patch(NODES, node, body)
    world.judge.person(node, labels=OWNER, annotations=NOTE, taints=[RESERVED])

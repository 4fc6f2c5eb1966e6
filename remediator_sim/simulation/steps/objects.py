"""What happens to what is stored: etcd comes back from a backup, and objects turn up that cannot be read."""

import asyncio
from contextlib import suppress
from functools import partial
from random import Random
from typing import TYPE_CHECKING

from remediator.kube.wire import errors
from remediator.kube.wire.transport import STRATEGIC_PATCH
from remediator_sim.apiserver.status import Obj
from remediator_sim.apiserver.store import Key
from remediator_sim.invariants.contract import BUDGETS, CASES, OPERATIONS, POLICIES
from remediator_sim.plain import NODES
from remediator_sim.simulation.plan import Step
from remediator_sim.simulation.steps.kind import Drawn, Fleet, StepKind, drawn

if TYPE_CHECKING:
    from remediator_sim.simulation.world import World

# What another version of ours, or a hand on etcd, may have left: by kind, the part and what stands there.
UNREADABLE: dict[str, tuple[str, Obj]] = {
    CASES: ("status", {"rung": "first"}),
    OPERATIONS: ("status", {"drainRound": "second"}),
    BUDGETS: ("spec", {"fallback": "maybe"}),
    POLICIES: ("spec", {"severity": ["Critical"]}),
}
MANY = [{"type": f"Odd{number}", "status": "Maybe", "message": "x" * 1000} for number in range(60)]
# What a real API server takes of whoever may write the status of a node, odd as it is.
ODD: dict[str, Obj] = {
    "no boot id": {"nodeInfo": {"bootID": ""}},
    "sixty conditions": {"conditions": MANY},
    "no times": {"conditions": [{"type": "Ready", "lastHeartbeatTime": None, "lastTransitionTime": None}]},
    "no status": {"conditions": [{"type": "DetectorStale", "status": "", "reason": None, "message": None}]},
}
DOWN = 30.0  # seconds for which the API servers are stopped
TIME_WORDS = ("lastHeartbeatTime", "lastTransitionTime")
ODD_TIMES = ("9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z", "2026-11-20T23:00:00Z")


def _draw_restore(chance: Random, fleet: Fleet) -> Drawn:
    return drawn(ago=chance.choice((120, 900, 3600)), jump=chance.choice((0, 1000)))


async def _restore(world: "World", step: Step) -> None:
    world.network.leave()
    await asyncio.sleep(DOWN)
    world.restore(step["ago"], step["jump"])
    world.network.away = False
    for mend in world.mends:
        mend()


def _draw_unreadable(chance: Random, fleet: Fleet) -> Drawn:
    return drawn(storage=chance.choice(sorted(UNREADABLE)), pick=chance.random(), seconds=chance.choice((30, 600)))


async def _unreadable(world: "World", step: Step) -> None:
    """One object of a kind cannot be read for a while; then what is wrong with it is mended."""
    part, wrong = UNREADABLE[step["storage"]]
    entries = world.server.cluster.store.collection(step["storage"]).entries
    if not entries:
        return
    key = sorted(entries)[int(step["pick"] * len(entries))]
    before = entries[key].obj.get(part) or {}
    world.write_raw(step["storage"], key, part, before | wrong)
    await asyncio.sleep(step["seconds"])
    mend = partial(_mend, world, step["storage"], key, before, wrong)
    mend()
    world.mends.append(mend)  # a backup may hold the object as it was meanwhile


def _mend(world: "World", storage: str, key: Key, before: Obj, wrong: Obj) -> None:
    """Write what stood there before, where it is still wrong."""
    part, _ = UNREADABLE[storage]
    entry = world.server.cluster.store.collection(storage).entries.get(key)
    after = (entry.obj.get(part) or {}) if entry else {}
    if any(after.get(name) == value for name, value in wrong.items()):
        mended = after | {name: before.get(name) for name in wrong}
        kept = {name: value for name, value in mended.items() if value is not None}
        world.write_raw(storage, key, part, kept, mended=True)


def _draw_odd_time(chance: Random, fleet: Fleet) -> Drawn:
    return drawn(chance.choice(fleet.nodes), time=chance.choice(ODD_TIMES), word=chance.choice(TIME_WORDS))


async def _odd_time(world: "World", step: Step) -> None:
    """A node says a time that cannot be."""
    conditions = [{"type": kind, step["word"]: step["time"]} for kind in world.conditions]
    await _write_status(world, step.target, {"conditions": conditions})


def _draw_odd_node(chance: Random, fleet: Fleet) -> Drawn:
    return drawn(chance.choice(fleet.nodes), what=chance.choice(sorted(ODD)))


async def _odd_node(world: "World", step: Step) -> None:
    """A node says what hardly any says, until its kubelet speaks again."""
    await _write_status(world, step.target, ODD[step["what"]])


async def _write_status(world: "World", node: str, status: Obj) -> None:
    world.note_bad_write()
    with suppress(errors.ApiError):
        body = {"status": status}
        await world.client.patch(NODES, node, body, subresource="status", content_type=STRATEGIC_PATCH)


KINDS = (
    StepKind("restore", 1, _draw_restore, _restore),
    StepKind("unreadable", 2, _draw_unreadable, _unreadable),
    StepKind("odd-time", 2, _draw_odd_time, _odd_time),
    StepKind("odd-node", 1, _draw_odd_node, _odd_node),
)

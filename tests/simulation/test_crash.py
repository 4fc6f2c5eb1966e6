"""A process may die at any turn: between two of them lies every await."""

import asyncio
from collections.abc import Iterator
from random import Random
from typing import Any, NamedTuple

import pytest

from remediator_sim.simulation import cluster, loop
from remediator_sim.simulation.clock import HostClock
from remediator_sim.simulation.hub import Hub
from remediator_sim.simulation.replica import ReplicaModel
from remediator_sim.simulation.wire import Network

LEASE = ("leases.coordination.k8s.io", "remediator-system", "remediator")
TURNS = range(1, 161)


class Death(NamedTuple):
    """Where each task of the process stood, and the version of the server and the holder of the lease: then, later."""

    places: tuple[tuple[tuple[str, int], ...], ...]
    versions: tuple[int, int]
    holders: tuple[str, str]


def chain(place: Any) -> Iterator[tuple[str, int]]:
    """File and line at which a task stands, and of all that wait for it there."""
    while place is not None:
        frame = getattr(place, "cr_frame", None) or getattr(place, "ag_frame", None)
        if frame is not None:
            yield frame.f_code.co_filename, frame.f_lineno
        place = getattr(place, "cr_await", None) or getattr(place, "ag_await", None)


async def death_at(turn: int) -> Death:
    """Let the only replica die at this turn after its start, and wait for 20 s."""
    clock, places = HostClock(), []
    server = cluster.fresh(clock.clock, 1)

    def state() -> tuple[int, str]:
        lease = server.cluster.find(*LEASE)
        return server.cluster.store.rv, lease.obj["spec"]["holderIdentity"] if lease else ""

    def killed() -> None:
        places.append((tuple(sorted(tuple(chain(task.get_coro())) for task in asyncio.all_tasks())), state()))

    def note(who: str, text: str) -> None:
        """Nobody reads the story."""

    model = ReplicaModel("A", server, Network(), Hub(lambda issues: None, note), Random(1), note, killed, note)
    model.start()
    model.crash_at(turn)
    await asyncio.sleep(20)
    (place, then), later = places[0], state()
    return Death(place, (then[0], later[0]), (then[1], later[1]))


@pytest.mark.slow
def test_160_turns_are_many_places_and_whoever_dies_there_writes_nothing_more_and_keeps_the_lease():
    cluster.shipped_server()
    deaths = [loop.run(death_at(turn)) for turn in TURNS]
    assert len({death.places for death in deaths}) > len(TURNS) / 2
    assert all(then == later for death in deaths for then, later in (death.versions, death.holders))
    assert {death.holders[1] for death in deaths} == {"", "A-1"}

"""Who writes without the Lease, or by a clock that is wrong, is told of."""

import pytest

from remediator_sim.simulation import cluster, loop
from remediator_sim.simulation.clock import HostClock, now
from remediator_sim.simulation.leading import LEASES, Leading

PATH = "/apis/remediator.dev/v1alpha1/noderemediations/a"


class Story:
    """A server, its Lease, and what was told."""

    def __init__(self) -> None:
        self.told = []
        self.clock, self.server = HostClock(), HostClock()
        self.plane = cluster.fresh(self.server.clock, 1)
        self.leading = Leading(self.plane.cluster, self.server, lambda *wrong: self.told.append(wrong))

    def holds(self, holder):
        spec = {"holderIdentity": holder, "leaseDurationSeconds": 15}
        head = {"name": "remediator", "namespace": "remediator-system"}
        kind = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
        self.plane.cluster.put(LEASES, kind | {"metadata": head, "spec": spec})

    def writes(self, who, path=PATH, asked=None):
        self.leading.wrote(who, self.clock, path, now() if asked is None else asked)


def told(play):
    cluster.shipped_server()

    async def whole():
        story = Story()
        await play(story)
        return story.told

    return loop.run(whole())


def test_who_holds_the_lease_writes_and_who_never_did_does_not():
    async def play(story):
        story.holds("A-1")
        story.writes("A-1")
        story.writes("B-1", "/api/v1/nodes/gpu-01")
        story.writes("B-1")

    assert told(play) == [(f"B-1 wrote {PATH}, and A-1 holds the Lease", "")]


@pytest.mark.parametrize(("later", "count"), [(0, 0), (111, 1)])
def test_what_a_frozen_replica_asked_for_while_it_led_goes_out_when_it_wakes_and_what_it_asks_then_does_not(
    later, count
):
    async def play(story):
        story.holds("A-1")
        asked = now() + later
        await loop.asyncio.sleep(90)
        story.holds("B-1")
        await loop.asyncio.sleep(22)
        story.writes("A-1", asked=asked)

    assert len(told(play)) == count


@pytest.mark.parametrize(("seconds", "count"), [(19, 0), (21, 1)])
def test_what_was_on_its_way_when_the_lease_went_may_come_for_a_while(seconds, count):
    async def play(story):
        story.holds("A-1")
        await loop.asyncio.sleep(20)
        story.holds("B-1")
        await loop.asyncio.sleep(seconds)
        story.writes("A-1")

    assert len(told(play)) == count


@pytest.mark.parametrize(("seconds", "count"), [(14, 1), (16, 0)])
def test_a_lease_is_taken_once_it_has_run_out(seconds, count):
    async def play(story):
        story.holds("A-1")
        await loop.asyncio.sleep(seconds)
        story.holds("B-1")

    assert told(play) == [("B-1 took the Lease while A-1 held it", "")] * count


@pytest.mark.parametrize(("ahead", "server", "count"), [(600, 0, 1), (-600, 0, 1), (20, 0, 0), (600, 600, 0)])
def test_who_has_another_time_than_the_server_does_not_write(ahead, server, count):
    async def play(story):
        story.holds("A-1")
        story.clock.ahead, story.server.ahead = ahead, server
        story.writes("A-1")
        await loop.asyncio.sleep(31)
        story.writes("A-1")

    assert len(told(play)) == count

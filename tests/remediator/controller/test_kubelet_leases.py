"""Whether the Lease of a silent kubelet has expired, by looks at it and a clock of our own."""

from types import SimpleNamespace

import pytest

from remediator.controller.kubelet_leases import KubeletLeases
from remediator.kube.wire import errors


class Looks:
    """Looks at the Lease of gpu-1, which is good for 40 s. `version`: None where the server does not answer."""

    def __init__(self):
        self.now, self.version = 0.0, "1"
        self.leases = KubeletLeases(self, lambda: self.now)

    async def get(self, kind, name, namespace):
        if self.version is None:
            raise errors.Unavailable(0, "", "the server does not answer")
        spec = SimpleNamespace(lease_duration_seconds=40)
        return SimpleNamespace(version=self.version, spec=spec)

    async def at(self, second, version="1"):
        """Whether it has expired."""
        self.now, self.version = second, version
        return not (await self.leases.among(["gpu-1"]))["gpu-1"]


@pytest.fixture
def looks():
    return Looks()


async def test_a_lease_that_looks_find_unchanged_for_as_long_as_it_is_good_for_has_expired(looks):
    assert [await looks.at(second) for second in (0, 20, 30, 40)] == [False, False, False, True]


async def test_one_that_was_renewed_has_its_whole_time_again(looks):
    assert [await looks.at(*look) for look in ((0,), (30, "2"), (60, "2"), (70, "2"))] == [False, False, False, True]


async def test_after_a_look_that_the_server_did_not_answer_it_has_its_whole_time_again(looks):
    """The kubelet could not renew it either."""
    story = ((0,), (30, None), (60,), (90,), (100,))
    assert [await looks.at(*look) for look in story] == [False, False, False, False, True]


async def test_after_minutes_in_which_nobody_looked_it_has_its_whole_time_again(looks):
    story = ((0,), (30,), (330,), (360,), (370,))
    assert [await looks.at(*look) for look in story] == [False, False, False, False, True]


async def test_a_lease_that_had_expired_before_an_outage_is_watched_anew_after_it(looks):
    story = ((0,), (40,), (70, None), (3670,), (3710,))
    assert [await looks.at(*look) for look in story] == [False, True, False, False, True]


async def test_who_leads_again_watches_anew(looks):
    assert not await looks.at(0)
    looks.leases.clear()
    assert [await looks.at(second) for second in (50, 80, 90)] == [False, False, True]


@pytest.mark.parametrize("renewing", [0, 100])
async def test_each_of_250_silent_nodes_has_its_turn_and_none_waits_for_who_has_had_it(renewing):
    """100 a pass, one pass each 10 s: a Lease is known after 40 s of looks, one that is renewed is left after 80 s."""
    names, reads = [f"gpu-{number:03}" for number in range(250)], 0

    class Server:
        async def get(self, kind, name, namespace):
            nonlocal reads
            reads += 1
            version = str(now) if name < f"gpu-{renewing:03}" else "1"
            return SimpleNamespace(version=version, spec=SimpleNamespace(lease_duration_seconds=40))

    leases, over, now = KubeletLeases(Server(), lambda: now), set(), 0.0
    for _ in range(40):
        now, reads = now + 10, 0
        over |= {name for name, why in (await leases.among(names)).items() if not why}
        assert reads <= 100
    assert len(over) == 250 - renewing

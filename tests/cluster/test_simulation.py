"""Small plans of the simulation end on a real control plane, with the shipped controller, as in virtual time."""

from collections.abc import Iterator

import pytest

from remediator_sim.simulation.seed import play
from tests.cluster.control_plane import ControlPlane
from tests.cluster.simulation.world import RealPlane
from tests.simulation.small import PLANS

TESTED = {"I1", "I2", "I3", "I4", "I5", "I6", "I9", "I10", "I12"}  # what every plan puts to the test
pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealPlane]:
    """A control plane whose Pods are bound and run by models alone."""
    with ControlPlane(scheduler=False, kwok=False) as control_plane:
        plane = RealPlane(control_plane, tmp_path_factory.mktemp("simulation"))
        yield plane
        plane.close()


@pytest.mark.sampled(on_server=True)
@pytest.mark.parametrize("name", PLANS)
def test_a_small_plan_ends_as_in_virtual_time(plane: RealPlane, name: str) -> None:
    real, virtual = plane.play(PLANS[name]), play(PLANS[name])
    print(real.journal, real.checks)
    assert (real.broken, virtual.broken) == ((), ())
    assert {name for name, count in real.checks.items() if count} >= TESTED
    assert "Traceback" not in plane.logs()
    assert real.ending.nodes == virtual.ending.nodes
    assert real.ending == virtual.ending

"""The benchmark of a change still measures; how fast anything was is for its report, never for a test."""

import pytest

from remediator.scheduler.extender import SHAPES
from tests.bench import snapshot
from tests.harness.benches import report
from tests.harness.replica import verdict_of


@pytest.mark.sampled("benches", rare=True)
def test_a_small_run_states_what_a_change_takes_beside_the_decoding_of_its_node() -> None:
    stated = report("snapshot", "--nodes", "40", "--samples", "3", seconds=110)
    assert (stated["nodes"], stated["changes"]) == (40, 30)
    for part in (stated["one_policy"], stated["all_policies"]):
        assert sorted(part["shapes"]) == sorted({"1", str(SHAPES)})
        for took in part["shapes"].values():
            assert all(took[what]["max"] >= took[what]["p50"] > 0 for what in ("update_us", "decoding_us"))
    assert stated["one_policy"]["policies"] == 1 < stated["all_policies"]["policies"]


@pytest.mark.parametrize(
    ("play", "well"),
    [(snapshot.one_policy(20), "Fit"), (snapshot.all_policies(20), "HealthUnknown")],  # not every condition is there
    ids=["one", "all"],
)
async def test_what_is_measured_changes_what_is_said_of_the_node(play: snapshot.Play, well: str) -> None:
    extender, informers = snapshot.standing(play)
    lines = snapshot.changed(play)
    said = [str(verdict_of(extender, play.names[0]))]
    for _ in range(2):
        snapshot.take_in(informers, snapshot.read(next(lines)))
        said.append(str(verdict_of(extender, play.names[0])))
    assert said == [well, "Unhealthy", well]

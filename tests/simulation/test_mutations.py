"""The net is proven: each of these broken products turns a seed red, or breaks a promise in a plan made for that."""

import pytest

from remediator_sim.simulation.seed import play
from tests.simulation.mutations import MUTATIONS, PROVEN, SCENES
from tests.simulation.mutations.hunt import SEEDS, first_broken, hunt

LEAST = 40


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", PROVEN)
def test_a_broken_product_turns_a_seed_red(name):
    assert hunt(MUTATIONS[name], (PROVEN[name], *range(1, SEEDS + 1))) is not None


@pytest.mark.long
@pytest.mark.parametrize("name", SCENES)
def test_a_broken_product_breaks_a_promise_in_the_plan_made_for_it_and_the_product_as_it_is_none(name):
    assert first_broken(MUTATIONS[name], [SCENES[name]]) is not None
    assert play(SCENES[name]).broken == ()


def test_the_net_is_proven_by_many_mutations_that_are_there():
    assert len(PROVEN) >= LEAST
    assert [name for name in SCENES if name not in MUTATIONS or name in PROVEN] == []
    assert [name for name, seed in PROVEN.items() if name not in MUTATIONS or not 1 <= seed <= SEEDS] == []

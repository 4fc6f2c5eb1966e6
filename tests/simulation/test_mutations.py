"""The net is proven: each of these broken products turns a seed red."""

import pytest

from tests.simulation.mutations import MUTATIONS, PROVEN, SOUGHT
from tests.simulation.mutations.hunt import SEEDS, hunt

LEAST = 40


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", [*PROVEN, *SOUGHT])
def test_a_broken_product_turns_a_seed_red(name):
    assert hunt(MUTATIONS[name], (PROVEN.get(name, 1), *range(1, SEEDS + 1))) is not None


def test_the_net_is_proven_by_many_mutations_that_are_there():
    assert len(PROVEN) >= LEAST
    assert [name for name in SOUGHT if name not in MUTATIONS or name in PROVEN] == []
    assert [name for name, seed in PROVEN.items() if name not in MUTATIONS or not 1 <= seed <= SEEDS] == []

"""Small changes of the product, each of which takes one fence, one look-again or one row of a table away."""

from tests.simulation.mutations import controller, outside, tables, variants
from tests.simulation.mutations.patch import Patches
from tests.simulation.mutations.proven import PROVEN
from tests.simulation.mutations.scenes import SCENES

__all__ = ["MUTATIONS", "PROVEN", "SCENES"]

MUTATIONS: dict[str, Patches] = dict(
    (*controller.FENCES, *outside.FENCES, *variants.FENCES, *tables.looks(), *tables.rows())
)

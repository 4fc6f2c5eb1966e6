"""Look up which seed finds each mutation: all in proven.py, or those that are named. Prints lines for it."""

import sys

from tests.simulation.mutations import MUTATIONS, PROVEN
from tests.simulation.mutations.hunt import SEEDS, hunt


def main() -> None:
    """For each mutation the seed that is known, where it still finds it, else the first that does."""
    for name in sys.argv[1:] or PROVEN:
        known = [PROVEN[name]] if name in PROVEN else []
        seed = hunt(MUTATIONS[name], (*known, *range(1, SEEDS + 1)))
        print(f'    "{name}": {seed},' if seed else f"    # no seed finds: {name}", flush=True)


if __name__ == "__main__":
    main()

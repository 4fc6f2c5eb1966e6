"""The command line of Remediator, broken on purpose.

python -m tests.remediator_sim.invariants.mutant I4 run --kubeconfig FILE
"""

import sys

from remediator import cli
from tests.remediator_sim.invariants.mutations import MUTATIONS


def main() -> None:
    """Apply the mutation that is named first, and go on as `remediator` with the other arguments."""
    name, arguments = sys.argv[1] if len(sys.argv) > 1 else "", sys.argv[2:]
    if name not in MUTATIONS:
        sys.exit(f"mutant: no mutation {name!r}; there are {', '.join(MUTATIONS)}")
    MUTATIONS[name].apply()
    sys.argv = ["remediator", *arguments]
    cli.main()


if __name__ == "__main__":
    main()

#!/usr/bin/env -S python3 -I -S -B
"""Mark a node SchedulingDisabled, and remember that it was us.

The annotation remediator.dev/cordoned-by=<case uid> is written in the same request, so that the cordon can be undone
later if, and only if, it is ours. A node that a person, or another case, has cordoned is left exactly as it is.

PARAMETERS: caseUID (the case that holds the node). Exit 2 when that case does not hold the node.
"""

import os.path
import sys

sys.path.append(os.path.realpath(f"{__file__}/../.."))  # where nodelib/ is; python3 -I leaves it out

from typing import Any

from nodelib.contract.operation import Environment, main
from nodelib.k8s.cordon_mark import ANNOTATION, Change, cordoned_by, is_cordoned, left, write


def decide(node: dict[str, Any], case_uid: str) -> Change | str:
    """Return the cordon with its mark, or why there is nothing to do."""
    name = node["metadata"]["name"]
    if is_cordoned(node):
        return f"{name} is cordoned by this case already" if cordoned_by(node) == case_uid else left(node)
    patch = {"metadata": {"annotations": {ANNOTATION: case_uid}}, "spec": {"unschedulable": True}}
    return Change(patch, f"cordoned {name}", f"would cordon {name} with {ANNOTATION}={case_uid}")


def cordon(environment: Environment, dry_run: bool) -> str:
    """Cordon the node of this environment and return the sentence."""
    return write(environment, dry_run, decide)


if __name__ == "__main__":
    main(cordon, __doc__)

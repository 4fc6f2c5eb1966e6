#!/usr/bin/env -S python3 -I -S -B
"""Let Pods be placed on a node again, if it was this case that marked it SchedulingDisabled.

The mark is ours when the annotation remediator.dev/cordoned-by has the uid of the case; it goes in the same request. A
node that a person, or another case, has cordoned is left exactly as it is, and so is one that is not cordoned: if a
person has uncordoned it, the annotation that stays tells the controller so.

PARAMETERS: caseUID (the case that holds the node). Exit 2 when that case does not hold the node.
"""

import os.path
import sys

sys.path.append(os.path.realpath(f"{__file__}/../.."))  # where nodelib/ is; python3 -I leaves it out

from typing import Any

from nodelib.contract.operation import Environment, main
from nodelib.k8s.cordon_mark import ANNOTATION, Change, cordoned_by, is_cordoned, left, write


def decide(node: dict[str, Any], case_uid: str) -> Change | str:
    """Return the end of our cordon and its mark, or why there is nothing to do."""
    name = node["metadata"]["name"]
    if not is_cordoned(node):
        return f"{name} is not cordoned"
    if cordoned_by(node) != case_uid:
        return left(node)
    patch = {"metadata": {"annotations": {ANNOTATION: None}}, "spec": {"unschedulable": None}}
    return Change(patch, f"uncordoned {name}", f"would uncordon {name} and take {ANNOTATION}={case_uid} away")


def uncordon(environment: Environment, dry_run: bool) -> str:
    """Uncordon the node of this environment and return the sentence."""
    return write(environment, dry_run, decide)


if __name__ == "__main__":
    main(uncordon, __doc__)

#!/usr/bin/env -S python3 -I -S -B
"""Let the cordon of a node end with the case again, after the operation cordon of the same case.

The annotation remediator.dev/kept-cordoned=<case uid> becomes remediator.dev/cordoned-by=<case uid>, in one write: the
controller takes the cordon off when it gives the node back. A node that a person, or another case, has cordoned is left
exactly as it is.

PARAMETERS: caseUID (the case that holds the node). Exit 2 when that case does not hold the node, or when a user has
uncordoned it.
"""

import os.path
import sys

sys.path.append(os.path.realpath(f"{__file__}/../.."))  # where nodelib/ is; python3 -I leaves it out

from typing import Any

from nodelib.contract.operation import Environment, main
from nodelib.k8s.cordon_mark import ANNOTATION, KEPT, Change, cordoned_by, kept_by, left, require_cordon, write


def decide(node: dict[str, Any], case_uid: str) -> Change | str:
    """Return the change that lets the cordon end with the case, or why there is nothing to do."""
    name = node["metadata"]["name"]
    require_cordon(node)
    if cordoned_by(node) == case_uid:
        return f"the cordon of {name} ends with the case already"
    if cordoned_by(node) or kept_by(node) != case_uid:
        return left(node)
    patch = {"metadata": {"annotations": {ANNOTATION: case_uid, KEPT: None}}}
    return Change(patch, f"the cordon of {name} ends with the case", f"would set {ANNOTATION}={case_uid} on {name}")


def uncordon(environment: Environment, dry_run: bool) -> str:
    """Let the cordon of the node of this environment end with the case and return the sentence."""
    return write(environment, dry_run, decide)


if __name__ == "__main__":
    main(uncordon, __doc__)

#!/usr/bin/env -S python3 -I -S -B
"""Take a node out of service for a person: the cordon of the case that holds it outlives the case.

A case cordons its node when it claims it, and takes this cordon off at its end: the annotation
remediator.dev/cordoned-by=<case uid> says that it is the case's. Here this annotation becomes
remediator.dev/kept-cordoned=<case uid>, so the cordon stays until a person takes it off. A node that a person, or
another case, has cordoned is left exactly as it is.

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
    """Return the change that lets the cordon outlive the case, or why there is nothing to do."""
    name = node["metadata"]["name"]
    require_cordon(node)
    if kept_by(node) == case_uid and not cordoned_by(node):
        return f"{name} is kept cordoned already"
    if cordoned_by(node) != case_uid:
        return left(node)
    patch = {"metadata": {"annotations": {ANNOTATION: None, KEPT: case_uid}}}
    return Change(patch, f"{name} stays cordoned for a person", f"would keep {name} cordoned with {KEPT}={case_uid}")


def cordon(environment: Environment, dry_run: bool) -> str:
    """Keep the node of this environment cordoned and return the sentence."""
    return write(environment, dry_run, decide)


if __name__ == "__main__":
    main(cordon, __doc__)

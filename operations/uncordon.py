#!/usr/bin/env python3
"""Let Pods be placed on a node again, if it was this case that marked it SchedulingDisabled.

The mark is ours when the annotation remediator.dev/cordoned-by has the uid of the case; it goes in the same request. A
node that a person, or another case, has cordoned is left exactly as it is, and so is one that is not cordoned: if a
person has uncordoned it, the annotation that stays tells the controller so.

PARAMETERS: caseUID (the case that holds the node). Exit 2 when that case does not hold the node.
"""

import sys

sys.path.insert(0, __file__.rpartition("/")[0] or ".")  # python -I leaves a program's own folder out

import os
import time
from typing import Any

from _api import MERGE_PATCH, Api, Unreachable
from _claim import require_claim
from _operation import Environment, Failed, main

ANNOTATION = "remediator.dev/cordoned-by"
ATTEMPTS = 10


def nothing_to_undo(node: dict[str, Any], case_uid: str) -> str | None:
    """Return the sentence for a node that has no cordon of this case, None for one that has."""
    name, by = node["metadata"]["name"], (node["metadata"].get("annotations") or {}).get(ANNOTATION)
    if not (node.get("spec") or {}).get("unschedulable"):
        return f"{name} is not cordoned"
    if by == case_uid:
        return None
    return f"left as it is: {name} was cordoned by {f'case {by}' if by else 'somebody else'}"


def patch_of(node: dict[str, Any]) -> dict[str, Any]:
    """Return the merge patch; the resourceVersion makes it fail when the node has changed since it was read."""
    return {
        "metadata": {"resourceVersion": node["metadata"]["resourceVersion"], "annotations": {ANNOTATION: None}},
        "spec": {"unschedulable": None},
    }


def uncordon_once(api: Api, name: str, case_uid: str, dry_run: bool) -> str | None:
    """Look, then uncordon. Returns the sentence, or None when the node changed in between. Raises Unreachable."""
    node = api.get_object(f"/api/v1/nodes/{name}")
    require_claim(node, case_uid)
    nothing = nothing_to_undo(node, case_uid)
    if nothing:
        return nothing
    if dry_run:
        return f"would uncordon {name} and take {ANNOTATION}={case_uid} away"
    reply = api.request("PATCH", f"/api/v1/nodes/{name}", patch_of(node), MERGE_PATCH)
    if reply.status in (409, 429):
        return None
    if reply.status >= 300:
        raise Failed(f"{name} could not be uncordoned: {reply.message}")
    return f"uncordoned {name}"


def uncordon(environment: Environment, dry_run: bool) -> str:
    """Uncordon the node of this environment and return the sentence."""
    api = Api(os.environ, environment.token_dir)
    trouble = "the node changed each time it was read"
    for attempt in range(ATTEMPTS):
        try:
            sentence = uncordon_once(api, environment.node, environment.parameters.get("caseUID", ""), dry_run)
            if sentence:
                return sentence
        except Unreachable as error:
            trouble = str(error)
        time.sleep(min(0.2 * 2**attempt, 5.0))
    raise Failed(f"{environment.node} could not be uncordoned: {trouble}")


if __name__ == "__main__":
    main(uncordon, __doc__)

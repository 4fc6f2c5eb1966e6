#!/usr/bin/env python3
"""Mark a node SchedulingDisabled, and remember that it was us.

The annotation remediator.dev/cordoned-by=<case uid> is written in the same request, so that the cordon can be undone
later if, and only if, it is ours. A node that a person, or another case, has cordoned is left exactly as it is.

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


def found_cordoned(node: dict[str, Any], case_uid: str) -> str | None:
    """Return the sentence for a node that is cordoned already, None for one that is not."""
    name, by = node["metadata"]["name"], (node["metadata"].get("annotations") or {}).get(ANNOTATION)
    if not (node.get("spec") or {}).get("unschedulable"):
        return None
    if by == case_uid:
        return f"{name} is cordoned by this case already"
    return f"left as it is: {name} was cordoned by {f'case {by}' if by else 'somebody else'}"


def patch_of(node: dict[str, Any], case_uid: str) -> dict[str, Any]:
    """Return the merge patch; the resourceVersion makes it fail when the node has changed since it was read."""
    return {
        "metadata": {"resourceVersion": node["metadata"]["resourceVersion"], "annotations": {ANNOTATION: case_uid}},
        "spec": {"unschedulable": True},
    }


def cordon_once(api: Api, name: str, case_uid: str, dry_run: bool) -> str | None:
    """Look, then cordon. Returns the sentence, or None when the node changed in between. Raises Unreachable."""
    node = api.get_object(f"/api/v1/nodes/{name}")
    require_claim(node, case_uid)
    found = found_cordoned(node, case_uid)
    if found:
        return found
    if dry_run:
        return f"would cordon {name} with {ANNOTATION}={case_uid}"
    reply = api.request("PATCH", f"/api/v1/nodes/{name}", patch_of(node, case_uid), MERGE_PATCH)
    if reply.status in (409, 429):
        return None
    if reply.status >= 300:
        raise Failed(f"{name} could not be cordoned: {reply.message}")
    return f"cordoned {name}"


def cordon(environment: Environment, dry_run: bool) -> str:
    """Cordon the node of this environment and return the sentence."""
    api = Api(os.environ, environment.token_dir)
    trouble = "the node changed each time it was read"
    for attempt in range(ATTEMPTS):
        try:
            sentence = cordon_once(api, environment.node, environment.parameters.get("caseUID", ""), dry_run)
            if sentence:
                return sentence
        except Unreachable as error:
            trouble = str(error)
        time.sleep(min(0.2 * 2**attempt, 5.0))
    raise Failed(f"{environment.node} could not be cordoned: {trouble}")


if __name__ == "__main__":
    main(cordon, __doc__)

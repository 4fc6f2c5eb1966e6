"""The mark that says who cordoned a node, and the one way to write it: under the version that was read."""

import os
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from nodelib.contract.operation import Environment, Failed, Refused
from nodelib.k8s.api import MERGE_PATCH, Api, Unreachable
from nodelib.k8s.claims import require_claim

ANNOTATION = "remediator.dev/cordoned-by"  # the case whose claim the cordon is: it ends with the case
KEPT = "remediator.dev/kept-cordoned"  # the case whose operation keeps the node out for a person
ATTEMPTS = 10


class Change(NamedTuple):
    """A merge patch of the node, and the sentences for having done it and for a dry run."""

    patch: dict[str, Any]
    done: str
    would: str


# (node, case uid) -> what to do, or the sentence where there is nothing to do
Decide = Callable[[dict[str, Any], str], Change | str]


def require_cordon(node: dict[str, Any]) -> None:
    """Raise Refused where a user has taken off the cordon that the claim of the case set."""
    if not is_cordoned(node):
        raise Refused(f"a user has uncordoned {node['metadata']['name']}")


def is_cordoned(node: dict[str, Any]) -> bool:
    """Tell whether anybody has cordoned it."""
    return bool((node.get("spec") or {}).get("unschedulable"))


def cordoned_by(node: dict[str, Any]) -> str:
    """Return the uid of the case that the mark names, "" where there is none."""
    return (node["metadata"].get("annotations") or {}).get(ANNOTATION) or ""


def kept_by(node: dict[str, Any]) -> str:
    """Return the uid of the case that keeps the node out for a person, "" where none does."""
    return (node["metadata"].get("annotations") or {}).get(KEPT) or ""


def left(node: dict[str, Any]) -> str:
    """Return the sentence for a cordon that is not ours."""
    by = cordoned_by(node)
    return f"left as it is: {node['metadata']['name']} was cordoned by {f'case {by}' if by else 'somebody else'}"


def write(environment: Environment, dry_run: bool, decide: Decide) -> str:
    """Look, decide and write, again when the node changed in between; return the sentence."""
    api = Api(os.environ, environment.token_dir)
    trouble = "the node changed each time it was read"
    for attempt in range(ATTEMPTS):
        try:
            sentence = _write_once(api, environment, dry_run, decide)
            if sentence:
                return sentence
        except Unreachable as error:
            trouble = str(error)
        time.sleep(min(0.2 * 2**attempt, 5.0))
    raise Failed(f"{environment.node} could not be changed: {trouble}")


def _write_once(api: Api, environment: Environment, dry_run: bool, decide: Decide) -> str | None:
    """Return the sentence, or None when the node changed in between. Raises Unreachable."""
    path, case_uid = f"/api/v1/nodes/{environment.node}", environment.parameters.get("caseUID", "")
    node = api.get_object(path)
    require_claim(node, case_uid)
    change = decide(node, case_uid)
    if isinstance(change, str):
        return change
    if dry_run:
        return change.would
    version = {"resourceVersion": node["metadata"]["resourceVersion"]}  # fails when the node has changed since
    body = change.patch | {"metadata": change.patch["metadata"] | version}
    reply = api.request("PATCH", path, body, MERGE_PATCH, node)
    if reply.status in (409, 429):
        return None
    if reply.status >= 300:
        raise Failed(f"{environment.node} could not be changed: {reply.message}")
    return change.done

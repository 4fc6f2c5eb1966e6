"""What a drain is told of its template: part of PARAMETERS. Pure."""

from datetime import timedelta
from typing import Any

from remediator.core.template import DrainRule, Template


def drain_parameters(template: Template, left: timedelta, unjudged: bool = False) -> dict[str, Any]:
    """How the Pods of a node are to leave it in the time that is left of the drain.

    A drain that begins anew, in place of one that was lost, deletes and overrides when that one would have. `unjudged`:
    that one waited for somebody to judge its evictions. Then the time until Pods are deleted has not run; where what is
    left is too short for all of it, half of what is left.
    """
    passed = template.drain_timeout - left
    given: dict[str, Any] = {
        "strategy": template.strategy.value,
        "timeoutSeconds": int(left.total_seconds()),
        "evictForSeconds": max(0, int(_evict_for(template, left, unjudged).total_seconds())),
        "deleteBarePods": template.delete_bare_pods,
        "deleteEmptyDirData": template.delete_empty_dir_data,
        "rules": [_rule(rule) for rule in template.drain_rules],
    }
    if template.skip_wait_for_delete is not None:
        given["skipWaitForDeleteSeconds"] = max(1, int(template.skip_wait_for_delete.total_seconds()))
    if template.override_annotations_after is not None:
        after = template.override_annotations_after - passed
        given["overrideAnnotationsAfterSeconds"] = max(0, int(after.total_seconds()))
    return given


def _evict_for(template: Template, left: timedelta, unjudged: bool) -> timedelta:
    """How long a drain that begins now evicts before it deletes. As long as the whole drain, or longer, is for ever."""
    whole = template.evict_for if template.evict_for is not None else template.drain_timeout / 2
    if unjudged:
        return min(whole, left / 2) if whole < template.drain_timeout else whole
    return whole - (template.drain_timeout - left)


def _rule(rule: DrainRule) -> dict[str, Any]:
    return {
        "namespaces": list(rule.namespaces),
        "owners": list(rule.owners),
        "selector": {"matchLabels": dict(rule.labels)},
        "strategy": rule.strategy.value,
    }

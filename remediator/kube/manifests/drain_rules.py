"""What an API server takes of a template's drain, and what is nevertheless never what was meant."""

from collections.abc import Iterator
from typing import Any

import msgspec

from remediator.kube.api import Drain, DrainRule, seconds
from remediator.kube.manifests.schema import Violation


def review(spec: Any) -> Iterator[Violation]:
    """Rules that no Pod reaches, and a time for evictions that leaves none for deletions."""
    try:
        drain = msgspec.convert(spec["drain"], Drain)
        timeout, evict_for, override = map(_seconds, (drain.timeout, drain.evict_for, drain.override_annotations_after))
    except (ValueError, KeyError, TypeError):  # its schema says what is wrong
        return
    for later, rule in enumerate(drain.rules):
        earlier = next((at for at in range(later) if _covers(drain.rules[at], rule)), None)
        if earlier is not None:
            message = f"chooses no Pod: rules[{earlier}] has all of them; remove it, or put it before that one"
            yield Violation(f"spec.drain.rules[{later}]", message)
    if evict_for and evict_for >= timeout:
        message = f"leaves no time to delete before the timeout of {drain.timeout}; shorten it, or choose Evict"
        yield Violation("spec.drain.evictFor", message)
    if override and override >= timeout:
        message = f"never comes: the drain ends after {drain.timeout}; shorten it, or give the drain a longer timeout"
        yield Violation("spec.drain.overrideAnnotationsAfter", message)


def _seconds(duration: str | None) -> float:
    """0 where it is not given."""
    return seconds(duration) if duration else 0.0


def _covers(first: DrainRule, second: DrainRule) -> bool:
    """Whether the first rule chooses every Pod that the second one does."""
    labels = (first.selector.match_labels if first.selector else {}).items()
    more = (second.selector.match_labels if second.selector else {}).items()
    return all(
        not wide or (narrow and set(narrow) <= set(wide))
        for wide, narrow in ((first.namespaces, second.namespaces), (first.owners, second.owners))
    ) and set(labels) <= set(more)

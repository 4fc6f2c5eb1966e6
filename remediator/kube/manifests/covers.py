"""Looks at what templates cover: a name that is not there, a cycle, a rung of a ladder that is never tried.

And at rungs after isolate-gpu, which ends a ladder where it has worked.
"""

from collections.abc import Iterator, Set

from remediator.core import names
from remediator.core.covers import Covers, covered, cycle
from remediator.kube.manifests.decoded import Documents, disturbing, templates


def warnings(documents: Documents, known: Set[str]) -> Iterator[str]:
    """What to look at, a sentence each. `known`: templates that are in the cluster besides those in the documents."""
    documents = list(documents)
    covers = {name: template.covers for name, template in templates(documents).items()}
    for name, covered_by_it in covers.items():
        missing = [other for other in covered_by_it if other not in covers.keys() | known]
        for other in missing:
            yield f"template {name}: spec.covers names {other}, which is no template; create it, or take it out"
        if cycle(covers, name):
            yield f"template {name}: spec.covers leads back to {name}; let only the stronger one cover the other"
    yield from _never_tried(documents, covers)


def _never_tried(documents: Documents, covers: Covers) -> Iterator[str]:
    """A rung that an earlier one covers is only tried where that one did not work."""
    for policy in disturbing(documents):
        operations = [rung.operation for rung in policy.ladder]
        for index, operation in enumerate(operations):
            before = [earlier for earlier in operations[:index] if operation in covered(covers, (earlier,))]
            if before:
                skipped = f"spec.ladder[{index}] ({operation}) is skipped where {before[0]} has worked, which covers it"
                yield f"policy {policy.name}: {skipped}; put it before {before[0]}, or take it out"
            if names.ISOLATE_TEMPLATE in operations[:index] and operation != names.ISOLATE_TEMPLATE:
                only = f"spec.ladder[{index}] ({operation}) is only tried where {names.ISOLATE_TEMPLATE} has not worked"
                yield f"policy {policy.name}: {only}; put it before {names.ISOLATE_TEMPLATE}, or take it out"

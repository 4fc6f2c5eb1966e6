"""What is wrong with the queries that a document asks Prometheus."""

from collections.abc import Iterator
from typing import Any

from remediator.core import promql
from remediator.kube import api
from remediator.kube.manifests.schema import Violation


def wrong(document: dict[str, Any]) -> Iterator[Violation]:
    """Each fault that can be seen without Prometheus."""
    spec = document.get("spec") if document.get("kind") == api.POLICY.name else None
    confirm = spec.get("confirm") if isinstance(spec, dict) else None
    query = confirm.get("promQL") if isinstance(confirm, dict) else None
    if isinstance(query, str):
        yield from (Violation("spec.confirm.promQL", fault) for fault in promql.faults(query))

"""Structural OpenAPI schemas: what an API server removes from an object, adds to it, and refuses. No I/O.

`build` compiles a schema once. `prune` and `fill` change an object in place. `faults` and `broken` list violations of
the schema and of its CEL rules. `fits` says in one walk that the first three have nothing to do. `review` does all of
this to a copy and returns the violations as plain sentences.
"""

from remediator.kube.manifests.schema.cel import RuleError
from remediator.kube.manifests.schema.content import fill, prune
from remediator.kube.manifests.schema.fit import fits
from remediator.kube.manifests.schema.node import ABSENT, SchemaNode, build
from remediator.kube.manifests.schema.review import Violation, review
from remediator.kube.manifests.schema.rules import Broken, broken
from remediator.kube.manifests.schema.shape import Fault, faults
from remediator.kube.manifests.schema.typed import undefined
from remediator.kube.manifests.schema.values import name_of

__all__ = [
    "ABSENT",
    "Broken",
    "Fault",
    "RuleError",
    "SchemaNode",
    "Violation",
    "broken",
    "build",
    "faults",
    "fill",
    "fits",
    "name_of",
    "prune",
    "review",
    "undefined",
]

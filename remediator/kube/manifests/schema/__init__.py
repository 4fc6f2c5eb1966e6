"""Structural OpenAPI schemas: what an API server removes from, adds to and refuses of an object. No I/O.

`build` compiles a schema once. `prune` and `fill` change an object in place; `faults` and `broken` say what the schema
and its CEL rules hold against it; `review` does all of it to a copy and says the result in plain words.
"""

from remediator.kube.manifests.schema.cel import RuleError
from remediator.kube.manifests.schema.content import fill, prune
from remediator.kube.manifests.schema.node import ABSENT, Node, build
from remediator.kube.manifests.schema.review import Violation, review
from remediator.kube.manifests.schema.rules import Broken, broken
from remediator.kube.manifests.schema.shape import Fault, faults
from remediator.kube.manifests.schema.typed import undefined
from remediator.kube.manifests.schema.values import name_of

__all__ = [
    "ABSENT",
    "Broken",
    "Fault",
    "Node",
    "RuleError",
    "Violation",
    "broken",
    "build",
    "faults",
    "fill",
    "name_of",
    "prune",
    "review",
    "undefined",
]

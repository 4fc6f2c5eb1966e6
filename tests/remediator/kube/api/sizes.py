"""`python -m tests.remediator.kube.api.sizes`: how many bytes the facts of an object take, by kind, as JSON."""

import gc
import json
import tracemalloc

import msgspec

from remediator.kube import api
from remediator.kube.api import builtin, decode
from tests.bench import large
from tests.builders import at

KINDS = (
    (builtin.NODE, "Node", decode.node),
    (api.CASE, "NodeRemediation", decode.remediation_case),
    (api.OPERATION, "NodeOperation", decode.operation),
)


def many(kind, bodies, project):
    """The facts of these objects, and the bytes that each takes: the least of three, as other threads take some."""
    lines, decoder = [msgspec.json.encode(body) for body in bodies], msgspec.json.Decoder(kind.type)
    facts = [project(decoder.decode(line)) for line in lines]  # what all have in common is there by now
    return facts, min(measured(lines, decoder, project) for _ in range(3))


def measured(lines, decoder, project):
    """The bytes that the facts of each of these lines take."""
    gc.collect()
    tracemalloc.start()
    try:
        kept = [project(decoder.decode(line)) for line in lines]
        gc.collect()
        return tracemalloc.get_traced_memory()[0] / len(kept)
    finally:
        tracemalloc.stop()


def main():
    """Of each kind: how many objects, and the bytes that one takes."""
    objects = list(large.objects(large.Size(nodes=100, ended=800, waiting=0), at(0)))
    sizes = {}
    for kind, name, project in KINDS:
        facts, taken = many(kind, [body for kind, body in objects if kind.name == name], project)
        sizes[name] = (len(facts), taken)
    print(json.dumps(sizes))


if __name__ == "__main__":
    main()

"""The API server of a simulation, with everything that is shipped."""

import asyncio
import copy
from datetime import UTC, datetime
from functools import cache

from remediator.clock import Clock
from remediator.kube.wire.client import Client
from remediator_sim.apiserver import EmbeddedServer
from remediator_sim.manifests import Document, create, documents

SHIPPED = ("deploy/crds", "deploy/namespaces.yaml", "deploy/rbac.yaml", "operations")
MADE = datetime(2026, 11, 1, tzinfo=UTC)


@cache
def shipped_server() -> EmbeddedServer:
    """A server with the kinds, the namespaces and the templates; made once in a process."""
    server = EmbeddedServer(clock=Clock(lambda: MADE, lambda: 0.0), seed=0)
    asyncio.run(create(Client(server.transport()), *documents(SHIPPED)))
    return server


@cache
def _policies() -> dict[str, Document]:
    return {document["metadata"]["name"]: document for document in documents(("deploy/policies",))}


def policy_names() -> tuple[str, ...]:
    """The names of the shipped policies."""
    return tuple(sorted(_policies()))


def policy(name: str, mode: str, ticket: str) -> Document:
    """A shipped policy, in this mode, whose cases have tickets when `ticket` says: Always, OnEscalation or Never."""
    document = copy.deepcopy(_policies()[name])
    document["spec"]["mode"] = mode
    document["spec"]["ticket"] = {"when": ticket}
    return document


def budget(name: str, spec: Document) -> Document:
    """A budget over all nodes."""
    head = {"apiVersion": "remediator.dev/v1alpha1", "kind": "NodeDisruptionBudget", "metadata": {"name": name}}
    return head | {"spec": {"selector": {}} | spec}


def fresh(clock: Clock, seed: int) -> EmbeddedServer:
    """A server that has what is shipped, and nothing else."""
    return EmbeddedServer(clock=clock, seed=seed, like=shipped_server())

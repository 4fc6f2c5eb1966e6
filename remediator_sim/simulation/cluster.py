"""The API server of a simulation, with everything that is shipped."""

import asyncio
import copy
from datetime import UTC, datetime
from functools import cache
from random import Random

from remediator.clock import Clock
from remediator.core.idle_result import IDLE_TEST_FAILED
from remediator.core.places import DEFAULT
from remediator.kube.wire.client import Client
from remediator_sim.apiserver import EmbeddedServer
from remediator_sim.invariants.contract import PLACE
from remediator_sim.manifests import Document, create, documents
from remediator_sim.simulation.plan import Plan

SPACES = ("deploy/namespaces.yaml", "deploy/idle-tests.yaml")
SHIPPED = ("deploy/crds", *SPACES, "deploy/rbac.yaml", "operations", "deploy/watchdog/templates.yaml")
SYSTEM = ("system-1", "system-2")  # nodes without GPUs, to which nothing happens
PROBES, RELEASES = 0.3, 0.4  # of the policies
TESTED = "idle-test-failed"  # the policy that repairs what tests of idle nodes have found
FRESH = "3m"  # detectors are heard of every minute here
MADE = datetime(2026, 11, 1, tzinfo=UTC)
SHIPPED_SEED = 2**63  # no seed that is played: two servers of one seed give the same uids to different objects


@cache
def shipped_server() -> EmbeddedServer:
    """A server with the kinds, the namespaces and the templates; made once in a process."""
    server = EmbeddedServer(clock=Clock(lambda: MADE, lambda: 0.0), seed=SHIPPED_SEED)
    asyncio.run(create(Client(server.transport()), *documents(SHIPPED)))
    return server


@cache
def _policies() -> dict[str, Document]:
    shipped = {document["metadata"]["name"]: document for document in documents(("deploy/policies",))}
    return shipped | {TESTED: _goes_by_tests(shipped["gpu-xid"])}


def _goes_by_tests(like: Document) -> Document:
    """The policy of docs/idle-tests.md, which is not shipped: with the ladder of another one for GPUs."""
    asks = {"when": [{"condition": IDLE_TEST_FAILED, "for": "0s"}], "correlation": {"nodes": 3, "within": "10m"}}
    return like | {"metadata": {"name": TESTED}, "spec": like["spec"] | asks}


def policy(
    name: str, mode: str, ticket: str, seed: int = 0, confirm: Document | None = None, more: Document | None = None
) -> Document:
    """A shipped policy, in this mode, whose cases have tickets when `ticket` says: Always, OnEscalation or Never.

    In some seeds, and in no others, it asks for a probe, whether or not it is shipped with one; in some it gives nodes
    back by itself that have become healthy. `confirm`: its second source; `more`: other fields of its spec, None for
    those that it has not.
    """
    document, chance = copy.deepcopy(_policies()[name]), Random(f"handover {seed} {name}")
    document["spec"]["mode"] = mode
    document["spec"]["ticket"] = {"when": ticket}
    if document["spec"].get("urgency", {}).get("mode") == "WhenIdle":
        del document["spec"]["urgency"]  # a plan draws which policies wait for an idle node
    if "verify" in document["spec"]:
        document["spec"]["verify"]["fresh"] = FRESH
    document["spec"] |= copy.deepcopy(more or {})
    document["spec"] = {word: value for word, value in document["spec"].items() if value is not None}
    if confirm is not None:
        document["spec"]["confirm"] = confirm
    verify = {word: value for word, value in (document["spec"].get("verify") or {}).items() if word != "probe"}
    if chance.random() < PROBES and document["spec"].get("ladder"):
        document["spec"]["verify"] = verify | {"probe": "gpu-check"}
    elif verify:
        document["spec"]["verify"] = verify
    if chance.random() < RELEASES:
        document["spec"]["escalation"] = {"release": "WhenHealthy"}
    return document


def budget(name: str, spec: Document) -> Document:
    """A budget over all nodes."""
    head = {"apiVersion": "remediator.dev/v1alpha1", "kind": "NodeDisruptionBudget", "metadata": {"name": name}}
    return head | {"spec": {"selector": {}} | spec}


def api_pods(plan: Plan) -> str:
    """Where Pods with rights in the API may run: in every second seed also on nodes that are repaired themselves, in
    some on one or two of them and nowhere else.
    """
    return PLACE if plan.places else "" if plan.seed % 2 else DEFAULT


def fresh(clock: Clock, seed: int) -> EmbeddedServer:
    """A server that has what is shipped, and nothing else."""
    return EmbeddedServer(clock=clock, seed=seed, like=shipped_server())

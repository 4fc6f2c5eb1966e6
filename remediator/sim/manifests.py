"""What is shipped in deploy/ and operations/, created on a server, and the policy in a hurry."""

import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml

from remediator.kube import errors
from remediator.kube.client import Client, Kind
from tests.remediator.sim.waiting import until

ROOT = Path(__file__).resolve().parents[3]
BEFORE = ("deploy/crds", "deploy/namespaces.yaml", "deploy/rbac.yaml", "deploy/admission.yaml", "operations")
AFTER = ("deploy/policies", "deploy/budgets")
CLUSTER_WIDE = re.compile(r"Cluster|Namespace$|Node|Custom|Validating|RemediationPolicy")
VERIFY = {"settle": "1s", "fresh": "1s", "timeout": "60s"}


def documents(parts: Iterable[str]) -> list[dict[str, Any]]:
    """The objects in these files and folders, in order; what kustomize alone reads is left out."""
    paths = [path for part in parts for path in (sorted((ROOT / part).rglob("*.yaml")) or [ROOT / part])]
    found = [one for path in paths for one in yaml.safe_load_all(path.read_text()) if one]
    return [one for one in found if one["kind"] != "Kustomization"]


def kind_of(document: dict[str, Any]) -> Kind[dict]:
    """Where objects like this one live."""
    group, _, version = document["apiVersion"].rpartition("/")
    name = document["kind"]
    plural = re.sub("y$", "ie", name.lower()) + "s"
    return Kind(group, version, plural, name, dict, namespaced=not CLUSTER_WIDE.match(name))


async def create(client: Client, *documents: dict[str, Any]) -> None:
    """Create objects; those that are there already stay."""
    for one in documents:
        namespace = one["metadata"].get("namespace", "")
        try:
            await client.create(kind_of(one), one, namespace=namespace, query=[("fieldValidation", "Strict")])
        except errors.AlreadyExists:
            continue


async def deploy(client: Client) -> None:
    """Everything but the two programs that a stage runs itself: the controller and node-problem-detector."""
    await create(client, *documents(BEFORE))
    wanted = [kind_of(one) for one in map(hurried, documents(AFTER))]
    for kind in wanted:
        await until(lambda kind=kind: served(client, kind))
    await create(client, *map(hurried, documents(AFTER)))


async def withdraw(client: Client) -> None:
    """Take the policies and budgets away again: what was written on them must not be found by a later stage."""
    for one in documents(AFTER):
        with suppress(errors.NotFound):
            await client.delete(kind_of(one), one["metadata"]["name"])


async def served(client: Client, kind: Kind[dict]) -> bool:
    """Whether the server knows objects of this kind by now."""
    try:
        await client.list_all(kind)
    except errors.NotFound:
        return False
    return True


def hurried(document: dict[str, Any]) -> dict[str, Any]:
    """A policy that acts, and waits seconds where the shipped one waits minutes; anything else as it is."""
    if document["kind"] == "RemediationPolicy":
        document["spec"] |= {"mode": "Enforce", "verify": VERIFY, "cooldown": "0s"}
        for clause in document["spec"]["when"]:
            clause["for"] = "0s"
    return document

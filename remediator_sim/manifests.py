"""What is shipped in deploy/ and operations/, created on a server."""

import asyncio
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

import yaml

from remediator.kube.wire import errors
from remediator.kube.wire.client import Client, Kind
from remediator_sim.shipped import folder

DEFINITIONS = ("deploy/crds",)
USERS = ("deploy/rbac-users.yaml", "deploy/admission-stamps.yaml")
TEMPLATES = ("operations",)
SPACES = ("deploy/namespaces.yaml", "deploy/idle-tests.yaml")
BEFORE = (*SPACES, "deploy/rbac.yaml", "deploy/admission", *USERS, *TEMPLATES)
AFTER = ("deploy/policies", "deploy/budgets")
CLUSTER_WIDE = re.compile(r"Cluster|Namespace$|Node(?!Repair)|Priority|Custom|Validating|Mutating|RemediationPolicy")
LOOKS = 300
PAUSE = 0.1  # seconds between two looks for kinds that are new
Document = dict[str, Any]
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml, ten times as fast, where PyYAML was built with it


def documents(parts: Iterable[str]) -> list[Document]:
    """The objects in these files and folders, in order; what kustomize alone reads is left out."""
    paths = [path for part in parts for path in (sorted((folder() / part).rglob("*.yaml")) or [folder() / part])]
    objects = [document for path in paths for document in yaml.load_all(path.read_text(), LOADER) if document]
    return [document for document in objects if document["kind"] != "Kustomization"]


def kind_of(document: Document) -> Kind[Document]:
    """Where objects like this one live."""
    group, _, version = document["apiVersion"].rpartition("/")
    name = document["kind"]
    plural = re.sub("s$", "se", re.sub("y$", "ie", name.lower())) + "s"
    return Kind(group, version, plural, name, dict, namespaced=not CLUSTER_WIDE.match(name))


def defined_by(definition: Document) -> Kind[Document]:
    """Where objects of the kind live that a CustomResourceDefinition defines."""
    spec = definition["spec"]
    called, version = spec["names"], spec["versions"][0]["name"]
    return Kind(spec["group"], version, called["plural"], called["kind"], dict, spec["scope"] == "Namespaced")


async def create(client: Client, *documents: Document) -> None:
    """Create objects; those that are there already stay."""
    for document in documents:
        namespace = document["metadata"].get("namespace", "")
        try:
            await client.create(kind_of(document), document, namespace=namespace, query=[("fieldValidation", "Strict")])
        except errors.AlreadyExists:
            continue


Change = Callable[[Document], Document | None]


async def deploy(client: Client, change: Change) -> None:
    """Everything but the two programs that the caller runs itself: the controller and node-problem-detector.

    `change` is what becomes of each policy and budget on the way; None leaves it out. What is there is not sent: a
    server checks all of a definition or of an admission policy, for seconds together, before it says that it has one.
    """
    definitions = await _lacking(client, documents(DEFINITIONS))
    await create(client, *definitions)
    for definition in definitions:
        await _until_served(client, defined_by(definition))
    changed = [change(definition) for definition in documents(AFTER)]
    wanted = [*documents(BEFORE), *(definition for definition in changed if definition is not None)]
    await create(client, *await _lacking(client, wanted))


async def _lacking(client: Client, wanted: list[Document]) -> list[Document]:
    """Those that are not there, in their order."""
    kinds = {document["kind"]: kind_of(document) for document in wanted}
    there = {name: {_place(document) for document in await client.list_all(kind)} for name, kind in kinds.items()}
    return [document for document in wanted if _place(document) not in there[document["kind"]]]


def _place(document: Document) -> tuple[str, str]:
    """Its namespace and its name."""
    return document["metadata"].get("namespace", ""), document["metadata"]["name"]


async def _until_served(client: Client, kind: Kind[Document]) -> None:
    for _ in range(LOOKS):
        if await served(client, kind):
            return
        await asyncio.sleep(PAUSE)
    raise TimeoutError(
        f"the server does not serve {kind.plural} {LOOKS * PAUSE:g} s after their definition was created"
    )


async def withdraw(client: Client) -> None:
    """Take policies, budgets and templates away again: what was written on them must not be found by those who come
    later.
    """
    for document in documents((*TEMPLATES, *AFTER)):
        with suppress(errors.NotFound):
            await client.delete(kind_of(document), document["metadata"]["name"])


async def served(client: Client, kind: Kind[Document]) -> bool:
    """Whether the server knows objects of this kind by now."""
    try:
        await client.list_all(kind)
    except errors.NotFound:
        return False
    return True

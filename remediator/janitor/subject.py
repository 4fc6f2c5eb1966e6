"""One object as the janitor judges it: what its metadata says. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from remediator.kube.api.builtin import Head
from remediator.kube.api.common import controller
from remediator.kube.wire.client import Kind

# Owners that make nothing anew in the place of what is deleted: a CronJob makes its next Job at its time.
LETS_GO = frozenset({"CronJob"})
# Who makes controllers of this kind and gives them its own name, a dash, and a hash or a time.
MAKERS = {"ReplicaSet": "deployments", "Job": "cronjobs"}


@dataclass(frozen=True, slots=True)
class JanitorSubject:
    """An object of any kind. `owner`: who would make it anew, such as ReplicaSet/web-1, "" for nobody.

    `controller`: the uid of its controller, whose deletion deletes it.
    """

    kind: Kind[Any]
    namespace: str
    name: str
    uid: str
    version: str
    created: datetime | None
    deleting: bool
    annotations: Mapping[str, str]
    owner: str = ""
    controller: str = ""

    @property
    def maker(self) -> str:
        """The address of what has made its controller and named it so, as deployments/default/web; "" for none."""
        kind, _, name = self.owner.partition("/")
        above = name.rpartition("-")[0]
        return "/".join((MAKERS[kind], self.namespace, above)) if kind in MAKERS and above else ""

    def __str__(self) -> str:
        """See `address`."""
        return address(self.kind, self.namespace, self.name)


def address(kind: Kind[Any], namespace: str, name: str) -> str:
    """Where an object is: pods/default/web-1."""
    return "/".join(part for part in (kind.plural, namespace, name) if part)


def of(kind: Kind[Any], head: Head) -> JanitorSubject:
    """What the metadata of an object says."""
    meta = head.metadata
    owner = controller(meta.owner_references)
    return JanitorSubject(
        kind,
        meta.namespace,
        meta.name,
        meta.uid,
        meta.resource_version,
        meta.creation_timestamp,
        meta.deletion_timestamp is not None,
        meta.annotations,
        f"{owner.kind}/{owner.name}" if owner is not None and owner.kind not in LETS_GO else "",
        owner.uid if owner is not None else "",
    )

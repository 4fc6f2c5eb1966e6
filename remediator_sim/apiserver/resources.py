"""The kinds that are served: one row each. Rows of custom resources are made from their definitions (crd.py)."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from remediator.kube.manifests.schema import SchemaNode
from remediator_sim.apiserver.status import Obj

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


@dataclass(frozen=True, slots=True)
class Resource:
    """One kind at one version: its address, its names, and the general rules that it follows."""

    group: str  # "" is the core group
    version: str
    plural: str
    kind: str
    namespaced: bool = False
    short: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    singular: str = ""
    status: bool = False  # has the status subresource
    keeps_status: bool = False  # what a create says of status is stored
    generation: bool = False  # metadata.generation counts changes of the spec
    blind_put: bool = True  # a PUT without resourceVersion overwrites
    put_creates: bool = False  # a PUT to a free name creates
    returns_deleted: bool = False  # a delete answers with the object, not with a Status
    subresources: tuple[tuple[str, str, str], ...] = ()  # (name, kind, group/version of that kind)
    custom: bool = False
    schema: SchemaNode | None = None
    columns: tuple[Obj, ...] = ()
    selectable: frozenset[str] = frozenset()
    shared: str = ""  # plural.group whose objects these are, in other field names
    renames: tuple[tuple[str, str], ...] = ()  # (name here, name where they are stored)
    stored_as: str = ""  # the apiVersion in which objects are stored, where it is another one
    storage: str = field(init=False)  # the key under which all versions of the kind are stored
    api_version: str = field(init=False)  # what stands in `apiVersion`

    def __post_init__(self) -> None:
        own = f"{self.plural}.{self.group}" if self.group else self.plural
        object.__setattr__(self, "storage", self.shared or own)
        object.__setattr__(self, "api_version", f"{self.group}/{self.version}" if self.group else self.version)

    @property
    def list_kind(self) -> str:
        """What stands in `kind` of a list."""
        return f"{self.kind}List"

    def view(self, obj: Obj) -> Obj:
        """A stored object as this version shows it."""
        if not self.stored_as:
            return obj
        names = {stored: here for here, stored in self.renames}
        return {names.get(key, key): value for key, value in obj.items()} | {"apiVersion": self.api_version}

    def store(self, obj: Obj) -> Obj:
        """An object of this version as it is stored."""
        if not self.stored_as:
            return obj
        names = dict(self.renames)
        return {names.get(key, key): value for key, value in obj.items()} | {"apiVersion": self.stored_as}


_WORKLOAD: dict[str, Any] = {"group": "apps", "version": "v1", "namespaced": True, "status": True, "generation": True}
_RBAC: dict[str, Any] = {"group": "rbac.authorization.k8s.io", "version": "v1"}
_ADMISSION: dict[str, Any] = {"group": "admissionregistration.k8s.io", "version": "v1", "generation": True}
_CORE: dict[str, Any] = {"group": "", "version": "v1"}
_EVENT_VIEW = (
    ("regarding", "involvedObject"),
    ("note", "message"),
    ("reportingController", "reportingComponent"),
    ("deprecatedSource", "source"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"),
)

BUILTIN: tuple[Resource, ...] = (
    Resource(**_CORE, plural="nodes", kind="Node", short=("no",), status=True, keeps_status=True),
    Resource(**_CORE, plural="namespaces", kind="Namespace", short=("ns",), status=True, returns_deleted=True),
    Resource(
        **_CORE,
        plural="pods",
        kind="Pod",
        namespaced=True,
        short=("po",),
        categories=("all",),
        status=True,
        generation=True,
        returns_deleted=True,
        subresources=(("eviction", "Eviction", "policy/v1"), ("binding", "Binding", "v1")),
    ),
    Resource(
        **_CORE,
        plural="serviceaccounts",
        kind="ServiceAccount",
        namespaced=True,
        short=("sa",),
        returns_deleted=True,
        subresources=(("token", "TokenRequest", "authentication.k8s.io/v1"),),
    ),
    Resource(
        **_CORE,
        plural="services",
        kind="Service",
        namespaced=True,
        short=("svc",),
        categories=("all",),
        status=True,
        returns_deleted=True,
    ),
    Resource(**_CORE, plural="configmaps", kind="ConfigMap", namespaced=True, short=("cm",)),
    Resource(**_CORE, plural="secrets", kind="Secret", namespaced=True),
    Resource(**_CORE, plural="events", kind="Event", namespaced=True, short=("ev",), put_creates=True),
    Resource(
        group="events.k8s.io",
        version="v1",
        plural="events",
        kind="Event",
        namespaced=True,
        short=("ev",),
        put_creates=True,
        shared="events",
        stored_as="v1",
        renames=_EVENT_VIEW,
    ),
    Resource(group="resource.k8s.io", version="v1", plural="resourceslices", kind="ResourceSlice", blind_put=False),
    Resource(
        group="resource.k8s.io",
        version="v1",
        plural="devicetaintrules",
        kind="DeviceTaintRule",
        status=True,
        blind_put=False,
    ),
    Resource(
        group="coordination.k8s.io",
        version="v1",
        plural="leases",
        kind="Lease",
        namespaced=True,
        blind_put=False,
        put_creates=True,
    ),
    Resource(
        group="policy",
        version="v1",
        plural="poddisruptionbudgets",
        kind="PodDisruptionBudget",
        namespaced=True,
        short=("pdb",),
        status=True,
        generation=True,
        blind_put=False,
    ),
    Resource(
        group="networking.k8s.io",
        version="v1",
        plural="networkpolicies",
        kind="NetworkPolicy",
        namespaced=True,
        short=("netpol",),
        generation=True,
    ),
    Resource(
        group="scheduling.k8s.io",
        version="v1",
        plural="priorityclasses",
        kind="PriorityClass",
        short=("pc",),
        generation=True,
    ),
    Resource(
        group="storage.k8s.io",
        version="v1",
        plural="volumeattachments",
        kind="VolumeAttachment",
        status=True,
        blind_put=False,
    ),
    Resource(**_WORKLOAD, plural="deployments", kind="Deployment", short=("deploy",), categories=("all",)),
    Resource(**_WORKLOAD, plural="daemonsets", kind="DaemonSet", short=("ds",), categories=("all",)),
    Resource(**_WORKLOAD, plural="replicasets", kind="ReplicaSet", short=("rs",), categories=("all",)),
    Resource(**_WORKLOAD, plural="statefulsets", kind="StatefulSet", short=("sts",), categories=("all",)),
    Resource(**_RBAC, plural="clusterroles", kind="ClusterRole"),
    Resource(**_RBAC, plural="clusterrolebindings", kind="ClusterRoleBinding"),
    Resource(**_RBAC, plural="roles", kind="Role", namespaced=True),
    Resource(**_RBAC, plural="rolebindings", kind="RoleBinding", namespaced=True),
    Resource(**_ADMISSION, plural="validatingadmissionpolicies", kind="ValidatingAdmissionPolicy", status=True),
    Resource(**_ADMISSION, plural="validatingadmissionpolicybindings", kind="ValidatingAdmissionPolicyBinding"),
    Resource(**_ADMISSION, plural="validatingwebhookconfigurations", kind="ValidatingWebhookConfiguration"),
    Resource(**_ADMISSION, plural="mutatingadmissionpolicies", kind="MutatingAdmissionPolicy"),
    Resource(**_ADMISSION, plural="mutatingadmissionpolicybindings", kind="MutatingAdmissionPolicyBinding"),
    Resource(
        group="apiextensions.k8s.io",
        version="v1",
        plural="customresourcedefinitions",
        kind="CustomResourceDefinition",
        short=("crd", "crds"),
        categories=("api-extensions",),
        status=True,
        generation=True,
        blind_put=False,
        returns_deleted=True,
    ),
)


class Registry:
    """Which kinds are served now, by (group, version, plural). Order of insertion is the order of discovery."""

    def __init__(self, rows: Iterable[Resource] = BUILTIN) -> None:
        self._rows = {(row.group, row.version, row.plural): row for row in rows}
        self.resolved: dict[str, Any] = {}  # what routes.py has made of a path while these rows stand

    def adopt(self, other: "Registry") -> None:
        """Serve what the other one serves now."""
        self._rows, self.resolved = dict(other._rows), {}

    def find(self, group: str, version: str, plural: str) -> Resource | None:
        """The row at an address, or None."""
        return self._rows.get((group, version, plural))

    def rows(self) -> list[Resource]:
        """Every row."""
        return list(self._rows.values())

    def groups(self) -> dict[str, list[str]]:
        """The versions of each group, in the order in which they came."""
        groups: dict[str, list[str]] = {}
        for group, version, _ in self._rows:
            versions = groups.setdefault(group, [])
            if version not in versions:
                versions.append(version)
        return groups

    def serve(self, group: str, plural: str, rows: Iterable[Resource]) -> None:
        """Put `rows` in place of all versions of one kind; no rows ends it."""
        kept = {key: row for key, row in self._rows.items() if (key[0], key[2]) != (group, plural)}
        self._rows, self.resolved = kept | {(row.group, row.version, row.plural): row for row in rows}, {}

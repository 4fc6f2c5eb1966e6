"""Which kinds and namespaces the janitor looks at. What is excluded is excluded, whatever is included."""

from dataclasses import dataclass

from remediator.core import names

ALL = "all"
SECRETS = "secrets"
NAMESPACES = "namespaces"
# What deploy/janitor looks at.
SHIPPED = frozenset(
    {
        *("configmaps", "services", "persistentvolumeclaims", "pods", "namespaces"),
        *("daemonsets", "deployments", "statefulsets", "cronjobs", "jobs"),
    }
)
# By the Leases of nodes Kubernetes knows that kubelets live; without its Pod an operation leaves a node half repaired.
OF_THE_CLUSTER = frozenset(
    {"kube-system", "kube-public", "kube-node-lease", names.SYSTEM_NAMESPACE, names.OPERATIONS_NAMESPACE}
)


@dataclass(frozen=True, slots=True)
class Selection:
    """Plurals of kinds, and names of namespaces; `all` includes every one of them but Secrets."""

    include_resources: frozenset[str] = frozenset({ALL})
    exclude_resources: frozenset[str] = frozenset({"events", "controllerrevisions"})
    include_namespaces: frozenset[str] = frozenset({ALL})
    exclude_namespaces: frozenset[str] = OF_THE_CLUSTER

    def kind(self, plural: str) -> bool:
        """Whether objects of this kind are read. Secrets are read only where they are named."""
        named = plural in self.include_resources
        included = named or (ALL in self.include_resources and plural != SECRETS)
        return included and plural not in self.exclude_resources

    def namespace(self, name: str) -> bool:
        """Whether objects of this namespace are looked at, and the namespace itself."""
        included = ALL in self.include_namespaces or name in self.include_namespaces
        return included and name not in self.exclude_namespaces

    @property
    def places(self) -> tuple[str, ...]:
        """The namespaces to list one by one; "" alone is all of them with one list."""
        if ALL in self.include_namespaces:
            return ("",)
        return tuple(sorted(self.include_namespaces - self.exclude_namespaces))

"""The kinds that tests read and write as plain JSON objects."""

from remediator.kube import api
from remediator.kube.wire.client import Kind
from remediator_sim.npd.exporter import EVENTS
from remediator_sim.plain import ACCOUNTS, LEASES, NODES, PODS, Object, plain
from remediator_sim.plain import SPACES as NAMESPACES

CRDS = Kind("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", Object)
CONFIG_MAPS = Kind("", "v1", "configmaps", "ConfigMap", Object, namespaced=True)
DEPLOYMENTS = Kind("apps", "v1", "deployments", "Deployment", Object, namespaced=True)
DAEMON_SETS = Kind("apps", "v1", "daemonsets", "DaemonSet", Object, namespaced=True)
ROLES = Kind("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", Object)
ROLE_BINDINGS = Kind("rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", Object)
SECRETS = Kind("", "v1", "secrets", "Secret", Object, namespaced=True)
CASES, OPERATIONS, TICKETS = plain(api.CASE), plain(api.OPERATION), plain(api.TICKET)
POLICIES, TEMPLATES, BUDGETS = plain(api.POLICY), plain(api.TEMPLATE), plain(api.BUDGET)
INVENTORIES = plain(api.INVENTORY)

__all__ = [
    "ACCOUNTS",
    "BUDGETS",
    "CASES",
    "CONFIG_MAPS",
    "CRDS",
    "DAEMON_SETS",
    "DEPLOYMENTS",
    "EVENTS",
    "INVENTORIES",
    "LEASES",
    "NAMESPACES",
    "NODES",
    "OPERATIONS",
    "PODS",
    "POLICIES",
    "ROLES",
    "ROLE_BINDINGS",
    "SECRETS",
    "TEMPLATES",
    "TICKETS",
    "Object",
    "plain",
]

"""What makes Pods, as far as it can be told to make none: Jobs, Deployments and StatefulSets."""

from remediator.kube.api.builtin import Head
from remediator.kube.api.common import Base, ObjectMeta
from remediator.kube.wire.client import Kind


class OwnerSpec(Base, frozen=True, kw_only=True):
    """How many Pods it makes."""

    replicas: int | None = None
    suspend: bool | None = None


class Owner(Base, frozen=True, kw_only=True):
    """A Job, a Deployment, a StatefulSet, or a Pod that nobody makes."""

    metadata: ObjectMeta
    spec: OwnerSpec = OwnerSpec()


JOB = Kind("batch", "v1", "jobs", "Job", Owner, namespaced=True)
DEPLOYMENT = Kind("apps", "v1", "deployments", "Deployment", Owner, namespaced=True)
STATEFUL_SET = Kind("apps", "v1", "statefulsets", "StatefulSet", Owner, namespaced=True)
POD = Kind("", "v1", "pods", "Pod", Owner, namespaced=True)
REPLICA_SET = Kind("apps", "v1", "replicasets", "ReplicaSet", Head, namespaced=True)

"""What whoever has the credentials of a worker, a tenant or one of our Pods would try; docs/security.md shows it."""

from tests.cluster.rights.attacks.attack import Attack
from tests.cluster.rights.attacks.credentials import ON_CREDENTIALS
from tests.cluster.rights.attacks.nodes import ON_NODES
from tests.cluster.rights.attacks.ours import ON_OURS
from tests.cluster.rights.attacks.pods import ON_PODS

__all__ = ["ATTACKS", "Attack"]
ATTACKS = (*ON_NODES, *ON_PODS, *ON_CREDENTIALS, *ON_OURS)

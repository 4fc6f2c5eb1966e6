"""An API server in this process: the wire of Kubernetes, kept to the real one by the contract suite."""

from remediator_sim.apiserver.dispatch import Mutation
from remediator_sim.apiserver.faults import Faults
from remediator_sim.apiserver.http import Endpoint
from remediator_sim.apiserver.server import EmbeddedServer

__all__ = ["EmbeddedServer", "Endpoint", "Faults", "Mutation"]

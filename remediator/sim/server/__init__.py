"""An API server in this process: the wire of Kubernetes, kept to the real one by the contract suite."""

from remediator.sim.server.dispatch import Mutation
from remediator.sim.server.faults import Faults
from remediator.sim.server.http import Endpoint
from remediator.sim.server.server import EmbeddedServer

__all__ = ["EmbeddedServer", "Endpoint", "Faults", "Mutation"]

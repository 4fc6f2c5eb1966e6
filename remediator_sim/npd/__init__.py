"""A stand-in for node-problem-detector on simulated nodes, kept to the real one (v1.36.0) by the contract suite."""

from remediator_sim.npd.config import Monitor
from remediator_sim.npd.detector import NodeProblemDetector
from remediator_sim.npd.fork_server import ForkServer
from remediator_sim.npd.runner import AtMost, Processes, Runner

__all__ = ["AtMost", "ForkServer", "Monitor", "NodeProblemDetector", "Processes", "Runner"]

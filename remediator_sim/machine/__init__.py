"""A simulated node below its kubelet: GPUs, NFS mounts and processes that show faults and take repairs."""

from remediator_sim.machine.faults import CURES, Cure, Fault, Kind
from remediator_sim.machine.machine import Machine
from remediator_sim.machine.nfs import NfsServer

__all__ = ["CURES", "Cure", "Fault", "Kind", "Machine", "NfsServer"]

"""A simulated node below its kubelet: GPUs, NFS mounts and processes that show faults and take repairs."""

from remediator_sim.machine.faults import CURES, Cure, FaultKind, MachineFault
from remediator_sim.machine.machine import Machine
from remediator_sim.machine.nfs import NfsServer

__all__ = ["CURES", "Cure", "FaultKind", "Machine", "MachineFault", "NfsServer"]

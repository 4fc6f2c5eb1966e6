#!/usr/bin/env -S python3 -I -S -B
"""Restart the network agent (CNI) of a node: delete its Pod and wait until the DaemonSet's new one is Ready.

Connections of the node's Pods stay as they are with the agents named below; new Pods wait until the agent is back. Only
a Pod that is older than this attempt is deleted, by uid and resourceVersion, so a second start deletes nothing more.

PARAMETERS: caseUID (the case that holds the node), daemonSet (a name, * allowed), namespace, selector (labels of the
DaemonSet: app=x,tier=y), waitSeconds (300). Without the first three the DaemonSet is found by the names that Calico,
Canal, Cilium, Flannel, the AWS and Azure agents, Antrea, kube-router, Kube-OVN, OVN-Kubernetes, Weave and kindnet give
it. Where two of them are chained, name the one to restart.

Exit 2: no such DaemonSet, or several with a Pod on this node; one that updates OnDelete and would come back in another
version; one that does not tolerate a taint of the node, and so would get no
new Pod; the kubelet does not report; the case or the operation has ended, or does not hold this node.
Exit 1: no new Pod was Ready in time; why is named.
"""

import os.path
import sys

sys.path.append(os.path.realpath(f"{__file__}/../.."))  # where nodelib/ is; python3 -I leaves it out

from nodelib.contract.operation import Environment, main
from nodelib.k8s.daemon_pods import WantedDaemonSet, restart

NAMES = (
    "calico-node",
    "canal",
    "rke2-canal",
    "cilium",
    "anetd",  # Cilium as GKE has it
    "kube-flannel-ds*",  # older manifests have one for each architecture
    "kube-flannel",
    "aws-node",
    "azure-cns",
    "antrea-agent",
    "kube-router",
    "kube-ovn-cni",
    "ovnkube-node",
    "weave-net",
    "kindnet",
)


def restart_cni(environment: Environment, dry_run: bool) -> str:
    """Restart the network agent on the node of this environment and return the sentence."""
    return restart(environment, dry_run, WantedDaemonSet("network agent", NAMES))


if __name__ == "__main__":
    main(restart_cni, __doc__)

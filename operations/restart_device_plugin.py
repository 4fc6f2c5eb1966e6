#!/usr/bin/env -S python3 -I -S -B
"""Restart the GPU device plugin of a node: delete its Pod and wait until the DaemonSet's new one is Ready.

A device plugin that has called a GPU unhealthy does not offer it again before its own restart, and after a reset of a
GPU its list is old. Pods that run on the node keep their GPUs. Only a Pod that is older than this attempt is deleted,
by uid and resourceVersion, so a second start deletes nothing more.

PARAMETERS: caseUID (the case that holds the node), daemonSet (a name, * allowed), namespace, selector (labels of the
DaemonSet: app=x,tier=y), waitSeconds (300). Without the first three the DaemonSet is found by the names that the GPU
operator, the plugin's chart and manifests, GKE and HAMi give it.

Exit 2: no such DaemonSet (a DRA driver needs no restart: take this operation out of `after` of the template reset-gpu
and out of the ladders), or several with a Pod on this node; one that updates OnDelete and would come back in another
version; one that does not tolerate a taint of the node, and so would get no new Pod; the
kubelet does not report; the case or the operation has ended, or does not hold this node.
Exit 1: no new Pod was Ready in time; why is named.
"""

import os.path
import sys

sys.path.append(os.path.realpath(f"{__file__}/../.."))  # where nodelib/ is; python3 -I leaves it out

from nodelib.contract.operation import Environment, main
from nodelib.k8s.daemon_pods import Wanted, restart

NAMES = (
    "nvidia-device-plugin-daemonset",  # GPU operator, and the plugin's own manifests
    "nvidia-device-plugin",
    "*-nvidia-device-plugin",  # the plugin's chart, after the name of its release
    "nvidia-gpu-device-plugin*",  # GKE has one for each kind of node image
    "hami-device-plugin",
    "*-hami-device-plugin",
)
PLUGIN = Wanted(
    "device plugin",
    NAMES,
    otherwise="; a DRA driver needs no restart: where you run one, take restart-device-plugin out of `after` of your "
    "template reset-gpu and out of your ladders",
)


def restart_device_plugin(environment: Environment, dry_run: bool) -> str:
    """Restart the device plugin on the node of this environment and return the sentence."""
    return restart(environment, dry_run, PLUGIN)


if __name__ == "__main__":
    main(restart_device_plugin, __doc__)

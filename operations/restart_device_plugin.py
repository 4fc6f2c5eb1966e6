#!/usr/bin/env -S python3 -I -S -B
"""Restart the GPU device plugin of a node: delete its Pod and wait until the DaemonSet's new one is Ready.

A device plugin that has called a GPU unhealthy does not offer it again before its own restart, and after a reset of a
GPU its list is old. Pods that run on the node keep their GPUs. Only a Pod that is older than this attempt is deleted,
by uid and resourceVersion, so a second start deletes nothing more.

Where the node's label nvidia.com/mig.config wishes for MIG devices, which a reset destroys, the GPU operator's MIG
manager is restarted first, and has to say that it has made them.

Where the cluster has no device plugin, the kubelet plugin of NVIDIA's DRA driver is restarted: it takes its taint off a
device only when it starts.

PARAMETERS: caseUID (the case that holds the node), daemonSet (a name, * allowed), namespace, selector (labels of the
DaemonSet: app=x,tier=y), waitSeconds (300, of MIG devices as long again). Without the first three the DaemonSet is
found by the names that the GPU operator, the plugin's chart and manifests, GKE, HAMi and the chart of the DRA driver
give it.

Exit 2: no such DaemonSet, or several with a Pod on this node; one that updates OnDelete and would come back in another
version; one that does not tolerate a taint of the node, and so would get no new Pod; the kubelet does not report; the
case or the operation has ended, or does not hold this node.
Exit 1: no new Pod was Ready in time; why is named. The MIG manager has failed, or has not said that it is done.
"""

import os.path
import sys

sys.path.append(os.path.realpath(f"{__file__}/../.."))  # where nodelib/ is; python3 -I leaves it out

from nodelib.contract.operation import Environment, NothingToDo, main
from nodelib.contract.parameters import number
from nodelib.k8s.daemon_pods import WantedDaemonSet, read_wanted, restart
from nodelib.k8s.mig_manager import restore

NAMES = (
    "nvidia-device-plugin-daemonset",  # GPU operator, and the plugin's own manifests
    "nvidia-device-plugin",
    "*-nvidia-device-plugin",  # the plugin's chart, after the name of its release
    "nvidia-gpu-device-plugin*",  # GKE has one for each kind of node image
    "hami-device-plugin",
    "*-hami-device-plugin",
)
PLUGIN = WantedDaemonSet(
    "device plugin",
    NAMES,
    otherwise="; where the node has none, nor the kubelet plugin of a DRA driver, take restart-device-plugin out of "
    "`after` of your template reset-gpu and out of your ladders",
)
DRIVER = WantedDaemonSet(  # the chart of NVIDIA's driver has had two names
    "kubelet plugin of the DRA driver",
    ("*nvidia-dra-driver-gpu-kubelet-plugin", "*dra-driver-nvidia-gpu-kubelet-plugin"),
)


def restart_device_plugin(environment: Environment, dry_run: bool) -> str:
    """Restart the device plugin on the node of this environment and return the sentence.

    MIG devices come first: a device plugin offers those that it finds when it starts.
    """
    read_wanted(environment.parameters, PLUGIN)  # nonsense is refused before anything is done
    mig = restore(environment, dry_run, number(environment.parameters, "waitSeconds", 300, least=1))
    sentence = restart_plugin(environment, dry_run)
    return f"{sentence}; {mig}" if mig else sentence


def restart_plugin(environment: Environment, dry_run: bool) -> str:
    """Restart what offers GPUs to Pods.

    A cluster may have both, the driver for something else than GPUs: it is only meant where there is no device plugin.
    """
    try:
        return restart(environment, dry_run, PLUGIN)
    except NothingToDo as none:
        try:
            return restart(environment, dry_run, DRIVER)
        except NothingToDo:
            raise none from None


if __name__ == "__main__":
    main(restart_device_plugin, __doc__)

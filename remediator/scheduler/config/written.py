"""Writes the configuration of a kube-scheduler that asks us, with a comment that explains each value."""

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from remediator.core.kubernetes_version import Kubernetes
from remediator.core.names import Namespaces
from remediator.kube.api.shared_gpus import MEMORY
from remediator.scheduler.config.binding import ASKED, binder
from remediator.scheduler.config.versions import KIND, api_version
from remediator.scheduler.config.weights import WEIGHTS
from remediator.scheduler.packing.points import Score

URL = "https://10.96.0.100:8443/scheduler"
NAMESPACE = Namespaces().system
RESOURCES = ("nvidia.com/gpu", "amd.com/gpu")
BATCHING = Kubernetes(1, 35)  # ranks Pods that are alike together, if there is no extender
REQUEUE = Kubernetes(1, 29)  # tries a Pod that an extender refused at any event
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?")
_NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_RESOURCE = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a site wants. `name`: of a second scheduler, "" for the one of the cluster. Raises ValueError.

    `packs`: the scheduler's own plugin packs GPUs, too; `asks`: it asks us, in our `namespace`; `score`: how we score.
    `shares`: we bind Pods that ask for memory of GPUs, too; an entry of its own says so.
    """

    kubernetes: Kubernetes
    url: str = URL
    name: str = ""
    resources: tuple[str, ...] = RESOURCES
    packs: bool = False
    asks: bool = True
    namespace: str = NAMESPACE
    score: Score = Score.FGD
    shares: bool = False

    def __post_init__(self) -> None:
        url = urlsplit(self.url)
        if url.scheme != "https" or not url.hostname or not re.fullmatch(r"[!-~]+", self.url) or "'" in self.url:
            raise ValueError(
                f"--url is {self.url!r}, not https://ADDRESS:PORT/PATH; take the cluster IP of the Service"
            )
        if self.name and not _NAME.fullmatch(self.name):
            raise ValueError(f"--scheduler-name is {self.name!r}, not the name of a scheduler; write one such as gpu")
        for resource in self.resources:
            if not _RESOURCE.fullmatch(resource):
                raise ValueError(f"--resource is {resource!r}, not a resource such as nvidia.com/gpu")
        if not _NAMESPACE.fullmatch(self.namespace):
            raise ValueError(f"--namespace is {self.namespace!r}, not a namespace such as {NAMESPACE}")
        if not (self.asks or self.packs):
            raise ValueError("--no-extender leaves nothing to write; add --pack")
        if self.shares and not self.asks:
            raise ValueError("--shared-gpus is for the extender; leave out --no-extender")
        if MEMORY in self.resources:
            raise ValueError(f"--resource is {MEMORY!r}, whose Pods the extender must bind, too; write --shared-gpus")


def written(wanted: Wanted) -> str:
    """The whole file. Raises ValueError for a Kubernetes that is too old."""
    head = _HEAD_SECOND if wanted.name else _HEAD
    parts = [
        (_ASKS if wanted.asks else _PACKS_ALONE) + head + _notes(wanted),
        f"apiVersion: {api_version(wanted.kubernetes)}\nkind: {KIND}\n",
        _CONNECTION_SECOND if wanted.name else _CONNECTION,
        _LEADER + (f"{_LEASE}  resourceName: {wanted.name}\n" if wanted.name else ""),
        _profiles(wanted),
        _extender(wanted) if wanted.asks else "",
    ]
    return "".join(parts)


def _notes(wanted: Wanted) -> str:
    notes = (
        (wanted.kubernetes < REQUEUE, _REQUEUE),
        (wanted.kubernetes >= BATCHING and not wanted.name, _BATCHING),
    )
    return "".join(text for holds, text in notes if holds and wanted.asks)


def _profiles(wanted: Wanted) -> str:
    if not (wanted.name or wanted.packs):
        return ""
    name = f"profiles:\n- schedulerName: {wanted.name or 'default-scheduler'}\n"
    counted = "".join(f"        - {{name: {resource}, weight: 100}}\n" for resource in wanted.resources)
    return name + (_PACKS + counted + _REST if wanted.packs else "")


def _extender(wanted: Wanted) -> str:
    reached = _EXTENDER.replace("URL", wanted.url).replace("NAMESPACE", wanted.namespace)
    first = reached + _weight(wanted.score) + _ANSWERS + _resources(wanted)
    return first + (binder(wanted.url, wanted.namespace, WEIGHTS[wanted.score].write) if wanted.shares else "")


def _weight(score: Score) -> str:
    return f"{_COUNTS[score]}  weight: {WEIGHTS[score].write}\n"


def _resources(wanted: Wanted) -> str:
    return _MANAGED + "".join(f"  - {{name: {name}, ignoredByScheduler: false}}\n" for name in wanted.resources)


_ASKS = """\
# kube-scheduler that asks Remediator which nodes to leave out and which to prefer, for Pods that ask for GPUs.
"""
_PACKS_ALONE = """\
# kube-scheduler that packs GPUs by a plugin of its own, and asks nobody.
"""
_HEAD = """\
# Written by `remediator extender config`. Not applied to the cluster: kube-scheduler reads it as a file. With kubeadm,
# on each control plane node:
#   1. Let it show who it is: remediator client-certificate kube-scheduler --kubeconfig FILE --output kube-scheduler
#      writes ca.crt, tls.crt and tls.key. Copy the folder to /etc/kubernetes/pki/remediator.
#   2. Copy this file to /etc/kubernetes/scheduler-config.yaml, with the address of the Service in urlPrefix.
#   3. In /etc/kubernetes/manifests/kube-scheduler.yaml add the flag --config=/etc/kubernetes/scheduler-config.yaml
#      and mount the file (hostPath, type File) and the folder (type Directory) at these paths, read-only. The kubelet
#      restarts the scheduler. A later tls.crt and tls.key are read without a restart, a later ca.crt is not.
# Elsewhere, or to try it beside the scheduler that runs: `--scheduler-name NAME` writes one for a second
# kube-scheduler, which Pods name in spec.schedulerName.
"""
_HEAD_SECOND = """\
# Written by `remediator extender config`, for a second kube-scheduler in a Deployment of its own, which reads it as a
# file. Pods that are to use it name it in spec.schedulerName. Of Pods that share nodes all should: two schedulers do
# not see what the other is about to place. Its service account needs the ClusterRoles system:kube-scheduler and
# system:volume-scheduler, and may change the Lease of its name.
"""
_REQUEUE = """\
# Before Kubernetes 1.29 (and the last patch releases of 1.26 to 1.28), a Pod that an extender refused may wait for five
# minutes although a node has become free.
"""
_BATCHING = """\
# From Kubernetes 1.35 on, the scheduler ranks Pods that are alike together. Any extender ends that for all its Pods:
# where many Pods without GPUs start, run a second scheduler for those with GPUs.
"""
_CONNECTION = """\
clientConnection:
  kubeconfig: /etc/kubernetes/scheduler.conf  # the flag --kubeconfig is not read where --config is given
"""
_CONNECTION_SECOND = """\
# No clientConnection.kubeconfig: in a Pod, the scheduler uses its service account.
"""
_LEADER = """\
leaderElection:
  leaderElect: true
"""
_LEASE = """\
  # A Lease of its own: with that of the cluster's scheduler only one of the two would work.
"""
_PACKS = """\
  pluginConfig:
  - name: NodeResourcesFit
    args:
      scoringStrategy:
        # The fuller a node is, the better. Instead of the default LeastAllocated, which spreads Pods.
        type: RequestedToCapacityRatio
        requestedToCapacityRatio:
          shape:
          - {utilization: 0, score: 0}
          - {utilization: 100, score: 10}
        resources:
"""
_REST = """\
        - {name: cpu, weight: 1}
        - {name: memory, weight: 1}
"""
_EXTENDER = f"""\
# The extender sees only the nodes that the scheduler has sampled: all of up to 100, about 40 % of 1,000, 10 % of 5,000.
# Nodes that are being repaired carry a taint and take no place in the sample. Where many nodes are unhealthy without
# being repaired (excluded, or held by a user), or where Pods ask for attributes that few nodes have, a sample may hold
# none that fits; then ask for all, which costs some milliseconds a Pod:
# percentageOfNodesToScore: 100
extenders:
# kubectl -n NAMESPACE get service remediator-extender. Its cluster IP, not its name: a scheduler on the host's
# network does not ask the cluster's DNS.
- urlPrefix: URL
  enableHTTPS: true
  tlsConfig:
    # What the certificate of the extender says, whatever address it is asked at.
{ASKED.rstrip()}
  # The scheduler never asks `filter` about nodes that it finds full. Without this it would also evict Pods from an
  # unhealthy one for a Pod that is then refused there.
  preemptVerb: preempt
"""
_COUNTS = {  # a score counts for score × weight × 10 beside at most 1,200 of all default plugins together
    Score.FGD: """\
  # Scores of `--extender-score fgd` go from 0 to 4,999,999, and each point counts for 10. Beside them the plugins of
  # the scheduler, a preferred affinity of the Pod among them, only decide between nodes that are nearly equal.
  # `fgd-blend`, with a weight of 7, leaves more to them.
""",
    Score.BLEND: """\
  # Scores of `--extender-score fgd-blend` go from 0 to 99, and count for score × weight × 10 beside at most 1,200 of
  # all default plugins together. At 7 a step of health is worth 1,400, one GPU more in use of eight 105; a preferred
  # affinity of the Pod 200. At 1 plugins that spread Pods undo the packing; at 20 and more, packing undoes what users
  # prefer.
""",
    Score.PACKING: """\
  # Scores of `--extender-score packing` go from 0 to 10 on healthy nodes, and count for score × weight × 10 beside at
  # most 1,200 of all default plugins together. At 10 a step of health is worth 1,100, one GPU more in use of eight 120;
  # a preferred affinity of the Pod 200. At 1 plugins that spread Pods undo the packing.
""",
}
_ANSWERS = """\
  # Names instead of whole Nodes, both ways: 0.2 MB instead of 100 for 5,000 nodes.
  nodeCacheCapable: true
  # Pods are scheduled without us when we do not answer: nodes under repair have their taint all the same, and what we
  # add is not worth a cluster that schedules nothing. Never true for an extender that binds; this one does not.
  ignorable: true
  # An answer takes about a millisecond. A scheduler that waits does nothing else, so it should not wait for long.
  httpTimeout: 500ms
"""
_MANAGED = """\
  # Only Pods that ask for these resources are sent to us: nothing that runs the cluster itself depends on us. Without
  # the list all Pods are, and those without GPUs are then kept off unhealthy nodes, and mildly off GPU nodes, too.
  # Pods that get their GPUs by a ResourceClaim alone are never sent where there is a list. A resource may stand in the
  # list of one extender only. ignoredByScheduler stays false: the scheduler counts GPUs better than anybody else can.
  managedResources:
"""

"""The entry of an extender that binds Pods to memory of GPUs: it may not be ignored, so it stands beside the other."""

from urllib.parse import urlsplit, urlunsplit

from remediator.kube.api.shared_gpus import MEMORY

PATH = "gpushare-scheduler"


def binder(url: str, namespace: str, weight: int) -> str:
    """The lines of it. `url` is that of the entry that may be ignored: it is the same extender under another path."""
    whole = urlsplit(url)
    above, _, _ = whole.path.rstrip("/").rpartition("/")
    place = urlunsplit((whole.scheme, whole.netloc, f"{above}/{PATH}", "", ""))
    return _ENTRY.replace("URL", place).replace("NAMESPACE", namespace).replace("WEIGHT", str(weight))


# What both entries say alike of who is asked, and what is shown there.
ASKED = """\
    serverName: remediator-extender.NAMESPACE.svc
    caFile: /etc/kubernetes/pki/remediator/ca.crt
    certFile: /etc/kubernetes/pki/remediator/tls.crt
    keyFile: /etc/kubernetes/pki/remediator/tls.key
  filterVerb: filter
  prioritizeVerb: prioritize
"""
_ENTRY = f"""\
# The same extender for Pods that share GPUs by memory. It chooses the card and binds, so this entry may never be
# ignored, and stands apart: while the extender does not answer, these Pods wait, and those with whole GPUs do not.
- urlPrefix: URL
  enableHTTPS: true
  tlsConfig:
{ASKED.rstrip()}
  weight: WEIGHT
  # The scheduler counts the memory of a node, the extender that of each card: without this, Pods would be evicted from
  # two cards for one that needs a whole card.
  preemptVerb: preempt
  # At most one extender of a scheduler may bind.
  bindVerb: bind
  nodeCacheCapable: true
  # Never true for an extender that binds: from Kubernetes 1.30 on the scheduler would bind in its place, without cards.
  ignorable: false
  httpTimeout: 2s  # a bind is a few writes to the API server
  managedResources:
  - {{name: {MEMORY}, ignoredByScheduler: false}}
"""

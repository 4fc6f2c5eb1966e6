"""What an alert is about: the node that it names, else itself. Pure."""

from collections.abc import Collection, Mapping

from remediator.core.alerts import LONGEST_NAME, host_of, node_names
from remediator.core.ticket import About, Subject, one_line

CERTAIN = ("node", "kubernetes_node", "nodename")  # believed whether or not a node of that name exists


def candidates(labels: Mapping[str, str]) -> tuple[str, ...]:
    """Names that may be nodes, where no label says so for certain: they have to be looked up."""
    return () if _certain(labels) else node_names(labels)


def of_alert(labels: Mapping[str, str], nodes: Collection[str]) -> Subject:
    """What an alert is about: the node that it names, else itself in its cluster. `nodes`: those known to exist."""
    node = _certain(labels) or next((name for name in node_names(labels) if name in nodes), "")
    if node:
        return Subject(About.NODE, node=node)
    name = one_line(labels.get("alertname", ""), LONGEST_NAME) or "unnamed"
    return Subject(About.ALERT, alert=name, cluster=one_line(labels.get("cluster", ""), LONGEST_NAME))


def _certain(labels: Mapping[str, str]) -> str:
    names = (one_line(host_of(labels.get(label, "")), LONGEST_NAME) for label in CERTAIN)
    return next(filter(None, names), "")

"""What an alert is about: the node that it names, else itself. Pure; the choice of labels is a table."""

import re
from collections.abc import Collection, Mapping

from remediator.core.ticket import About, Subject, one_line

LONGEST_NAME = 253
_LABEL = "[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")  # RFC 1123, as the name of every node is one

# The label, and whether its value is believed only where a node of that name exists.
NODE_LABELS: tuple[tuple[str, bool], ...] = (
    ("node", False),
    ("kubernetes_node", False),
    ("nodename", False),
    ("Hostname", True),  # dcgm-exporter: the node, or the exporter's Pod
    ("instance", True),  # with a port: whatever was scraped
)


def candidates(labels: Mapping[str, str]) -> tuple[str, ...]:
    """Names that may be nodes, where no label says so for certain: they have to be looked up."""
    named = _named(labels)
    return () if any(not must_exist for _, must_exist in named) else tuple(name for name, _ in named)


def of_alert(labels: Mapping[str, str], nodes: Collection[str]) -> Subject:
    """What an alert is about: the node that it names, else itself in its cluster. `nodes`: those known to exist."""
    node = next((name for name, must_exist in _named(labels) if name in nodes or not must_exist), "")
    if node:
        return Subject(About.NODE, node=node)
    name = one_line(labels.get("alertname", ""), LONGEST_NAME) or "unnamed"
    return Subject(About.ALERT, alert=name, cluster=one_line(labels.get("cluster", ""), LONGEST_NAME))


def _named(labels: Mapping[str, str]) -> list[tuple[str, bool]]:
    hosts = ((_host(labels.get(label, "")), must_exist) for label, must_exist in NODE_LABELS)
    names = ((host, must_exist) for host, must_exist in hosts if not must_exist or _can_be_node(host))
    return [(name, must_exist) for host, must_exist in names if (name := one_line(host, LONGEST_NAME))]


def _can_be_node(name: str) -> bool:
    return len(name) <= LONGEST_NAME and _SUBDOMAIN.fullmatch(name) is not None


def _host(value: str) -> str:
    """A value without its port; a bare IPv6 address has none."""
    host, _, port = value.strip().rpartition(":")
    if not port.isdigit() or not host or (":" in host and not host.endswith("]")):
        return value.strip()
    return host.strip("[]")

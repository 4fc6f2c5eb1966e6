"""Alerts of Alertmanager as evidence about nodes: which node one names, and what a Condition says of it. Pure."""

import re
from collections.abc import Mapping
from enum import Enum, auto

from remediator.core.node import NodeCondition, Status
from remediator.core.own_condition import OwnCondition
from remediator.core.policy import Policy

PREFIX = "Alert/"  # of the Conditions that the controller writes of alerts
LONGEST_NAME = 253
_LABEL = "[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")  # RFC 1123, as the name of every node is one

# The labels that may name a node, from the surest on. dcgm-exporter's Hostname is the node, or the exporter's Pod;
# instance, which has a port, is whatever was scraped.
NODE_LABELS = ("node", "kubernetes_node", "nodename", "Hostname", "instance")


def node_names(labels: Mapping[str, str]) -> tuple[str, ...]:
    """The names that may be those of the node that an alert is about, from the surest on; which are, is looked up."""
    hosts = (host_of(labels.get(label, "")) for label in NODE_LABELS)
    return tuple(host for host in hosts if len(host) <= LONGEST_NAME and _SUBDOMAIN.fullmatch(host))


def host_of(value: str) -> str:
    """A value without its port; a bare IPv6 address has none."""
    host, _, port = value.strip().rpartition(":")
    if not port.isdigit() or not host or (":" in host and not host.endswith("]")):
        return value.strip()
    return host.strip("[]")


def condition_of(alert: str) -> str:
    """The type of the Condition that says whether an alert about the node fires.

    >>> condition_of("NodeGpuXid")
    'Alert/NodeGpuXid'
    """
    return PREFIX + alert


def asked(policy: Policy) -> frozenset[str]:
    """The types of the Conditions of all alerts that a policy asks about."""
    types = (clause.condition for when in policy.when for clause in when.clauses)
    return frozenset(type for type in types if type.startswith(PREFIX))


class AlertState(Enum):
    """What all Alertmanagers together say of one alert about one node."""

    ACTIVE = auto()
    SUPPRESSED = auto()  # it fires, but is silenced, inhibited or muted
    ABSENT = auto()  # for long enough, from lists that are whole
    UNKNOWN = auto()


def own_condition(type: str, sign: AlertState, before: NodeCondition | None, has_case: bool) -> OwnCondition | None:
    """What is to be said of an alert on a node; None for nothing.

    What is suppressed starts nothing and ends nothing. Where nothing was ever said, nobody is told that it does not
    fire; where it was, that is said again and again only to a case, which waits for it.
    """
    name = type.removeprefix(PREFIX)
    holds = before is not None and before.status is Status.TRUE
    if sign is AlertState.ACTIVE or (sign is AlertState.SUPPRESSED and holds):
        return OwnCondition(type, Status.TRUE, "Firing", f"alert {name} fires")
    if sign is AlertState.ABSENT and before is not None and (has_case or before.status is not Status.FALSE):
        return OwnCondition(type, Status.FALSE, "NotFiring", f"alert {name} is in no list of Alertmanager")
    return None

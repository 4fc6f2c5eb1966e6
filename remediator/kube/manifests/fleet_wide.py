"""Policies on what one cause does to many nodes at once, without `correlation`: each node would be repaired for it."""

from collections.abc import Iterable, Iterator, Mapping

from remediator.core.idle_result import IDLE_TEST_FAILED
from remediator.core.node import Status
from remediator.core.policy import Clause, Policy

# What many nodes have in common where they show the condition together. Of the Conditions in docs/conditions.md these
# are the ones whose usual cause lies outside of the node.
CAUSES: Mapping[str, str] = {
    "ClockSkew": "a time server",
    "CloudMaintenance": "a wave of maintenance",
    "CniUnavailable": "a roll-out of the network plugin",
    "DetectorStale": "a roll-out of the detectors",
    "DnsUnavailable": "the DNS servers",
    "DriverMismatch": "a roll-out of the driver",
    "NetworkLinkFault": "a switch",
    "NetworkPathSlow": "the fabric, or the target itself",
    "NfsStale": "an NFS server",
    "NfsUnavailable": "an NFS server",
    "NvlinkDomainFault": "an NVLink switch",
    "PodNetworkUnavailable": "CoreDNS or the network plugin",
    "RemoteMountFault": "a file server",
    "VolumeError": "a storage server",
}
PROBED = "the image of the probe, or a roll-out of the driver"  # where tests of idle nodes fail
UNREACHABLE = "the network or the API server"  # where Ready is Unknown


def warnings(policies: Iterable[Policy]) -> Iterator[str]:
    """What to look at, a sentence each."""
    for policy in policies:
        causes = {clause.condition: cause for clause in _clauses(policy) if (cause := _cause(clause))}
        for condition, cause in causes.items() if policy.correlation is None else ():
            every = f"on every node that shows {condition} it opens a case and acts, also where the cause is {cause}"
            yield f"policy {policy.name}: {every}; write spec.correlation, such as {{nodes: 3, within: 10m}}"


def _clauses(policy: Policy) -> Iterator[Clause]:
    return (clause for when in policy.when for clause in when.clauses)


def _cause(clause: Clause) -> str:
    """ "" where the usual cause is on the node itself."""
    if clause.condition == IDLE_TEST_FAILED:
        return PROBED
    return UNREACHABLE if clause.status is Status.UNKNOWN else CAUSES.get(clause.condition, "")

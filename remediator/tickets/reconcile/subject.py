"""What an alert and a case are about, and which cases want a ticket. Pure; each choice is a table or one expression."""

from collections.abc import Collection, Mapping

from remediator.core.case import Case, Phase
from remediator.core.correlation import cause
from remediator.core.policy import Mode, Policy, TicketWhen
from remediator.core.reasons import Reason
from remediator.core.ticket import About, Subject
from remediator.tickets.webhook.payload import clean

# The label, and whether its value is believed only where a node of that name exists.
NODE_LABELS: tuple[tuple[str, bool], ...] = (
    ("node", False),
    ("kubernetes_node", False),
    ("nodename", False),
    ("Hostname", True),  # dcgm-exporter: the node, or the exporter's Pod
    ("instance", True),  # with a port: whatever was scraped
)
CALLS_A_PERSON = frozenset({Reason.TICKET_ONLY, Reason.SHARED_CAUSE})


def to_look_up(labels: Mapping[str, str]) -> tuple[str, ...]:
    """Names that may be nodes, where no label says so for certain."""
    named = _named(labels)
    return () if any(not must_exist for _, must_exist in named) else tuple(name for name, _ in named)


def of_alert(labels: Mapping[str, str], nodes: Collection[str]) -> Subject:
    """What an alert is about: the node that it names, else itself in its cluster. `nodes`: those known to exist."""
    node = next((name for name, must_exist in _named(labels) if name in nodes or not must_exist), "")
    if node:
        return Subject(About.NODE, node=node)
    name = clean(labels.get("alertname", ""), 253) or "unnamed"
    return Subject(About.ALERT, alert=name, cluster=clean(labels.get("cluster", ""), 253))


def _named(labels: Mapping[str, str]) -> list[tuple[str, bool]]:
    found = ((clean(_host(labels.get(label, "")), 253), must_exist) for label, must_exist in NODE_LABELS)
    return [(name, must_exist) for name, must_exist in found if name]


def _host(value: str) -> str:
    """A value without its port; a bare IPv6 address has none."""
    host, _, port = value.strip().rpartition(":")
    if not port.isdigit() or not host or (":" in host and not host.endswith("]")):
        return value.strip()
    return host.strip("[]")


def of_case(case: Case) -> Subject:
    """What a case is about: what it shares with others where that holds it, or did until its end; else its node."""
    common = cause(case)
    held = [block.reason for block in case.blocks] if case.open else [moment.reason for moment in case.timeline]
    if common and Reason.SHARED_CAUSE in held:
        return Subject(About.CAUSE, policy=common.policy, condition=common.condition, message=clean(common.text, 4096))
    return Subject(About.NODE, node=case.node)


def wants(case: Case, policy: Policy | None) -> bool:
    """Whether a case is to have a ticket. Without its policy nobody can tell: nothing is opened for it."""
    if policy is None or not case.open or policy.mode is Mode.DRY_RUN:
        return False
    if policy.ticket is TicketWhen.ON_ESCALATION:
        return case.phase is Phase.ESCALATED or any(block.reason in CALLS_A_PERSON for block in case.blocks)
    return policy.ticket is TicketWhen.ALWAYS and case.phase is not Phase.NEW  # judged by nobody yet


def keeps(case: Case, policy: Policy | None) -> bool:
    """Whether a case keeps an open ticket open: our own cordon resolves alerts while the node is still sick."""
    return case.open and (policy is None or policy.mode is not Mode.DRY_RUN)


def concerns(case: Case, policy: Policy | None, subject: Subject) -> bool:
    """Whether a case is told of in the ticket of this subject. Without its policy it counts wherever it may belong."""
    if policy is None:
        return case.node == subject.node or case.policy == subject.policy
    return of_case(case) == subject

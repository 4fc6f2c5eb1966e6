"""What the log says of a write that touches a node, or what stands on it: one line each, with a fixed set of keys.

Pure: `line` makes it from the write, what was known before it, and how it ended (docs/logs.md).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Any, NamedTuple

from remediator.core.case import Case

Value = Any  # as JSON has it: a text, a number, a truth, a list of texts; None where there is nothing
ACCEPTED, GONE, SERVER_ERROR = 400, 404, 500  # below it an answer is accepted, from it the server itself has failed
PASSING = frozenset({409, 410, 429})
DELETE, CREATE = "delete", "create"
LEASES, PODS = "leases.coordination.k8s.io", "pods"
# Writes that get no line of their own, and why: nothing of a node or of what runs there changes by them.
QUIET: Mapping[str, str] = MappingProxyType(
    {
        "events": "tells people what other lines say",
        LEASES: "says who leads, or renews the Lease of a node: where that is taken or given back there is a line",
        "subjectaccessreviews.authorization.k8s.io": "asks, and changes nothing",
        "selfsubjectreviews.authentication.k8s.io": "asks, and changes nothing",
        "tokenreviews.authentication.k8s.io": "asks, and changes nothing",
        "noderemediations.remediator.dev/status": "the lines `case` of the log say what is decided",
        "nodeoperations.remediator.dev/status": "the lines `operation` of the log say what is decided",
        "nodedisruptionbudgets.remediator.dev/status": "counts what the lines about nodes say",
        "remediationpolicies.remediator.dev/status": "counts what the lines about nodes say",
        "idlepolicies.remediator.dev/status": "counts what the lines about objects say",
        "nodeinventories.remediator.dev": "remembers what a node has",
        "nodeinventories.remediator.dev/status": "remembers what a node has",
        "gpuledgers.remediator.dev": "plans where a Pod goes; the line of its binding says where it went",
        "tickets.remediator.dev": "is about an issue",
        "tickets.remediator.dev/status": "is about an issue",
        "ticketroutes.remediator.dev/status": "is about issues",
    }
)


class AuditOutcome(StrEnum):
    """How a write ended."""

    DONE = "Done"
    RETRY = "Retry"  # refused now: the object has moved, or the server sheds load
    GAVE_UP = "GaveUp"  # refused, and the same again would be
    UNKNOWN = "Unknown"  # the answer was lost, or the server failed: nobody knows whether it happened


class Authority(StrEnum):
    """On whose word something is done."""

    POLICY = "Policy"
    USER = "User"
    REQUEST = "Request"  # of another controller
    PRODUCT = "Product"  # nobody asked: what the product always does


class Mandate(NamedTuple):
    """Whose word, by name, and which user approved it; "" where there is no name."""

    by: Authority = Authority.PRODUCT
    who: str = ""
    approved_by: str = ""


class FieldChange(NamedTuple):
    """One field; `before` is not said where `known` is false."""

    field: str
    after: Value
    before: Value = None
    known: bool = False

    @property
    def shown(self) -> dict[str, Value]:
        """As the line has it."""
        before = {"before": self.before} if self.known else {}
        return {"field": self.field, **before, "after": self.after}


@dataclass(frozen=True, slots=True)
class Write:
    """A request that changes one object. `uids`: of the cases that it names; `version`: under which it is made."""

    verb: str
    resource: str  # PLURAL.GROUP/SUBRESOURCE, as in rules of RBAC
    namespace: str
    name: str
    node: str = ""
    version: str = ""
    changes: tuple[FieldChange, ...] = ()
    uids: tuple[str, ...] = ()
    case: Case | None = None  # that it makes
    word: Mandate | None = None  # where the object itself says on whose word it is made
    repeats: bool = False  # it only says again what was said, as a heartbeat does


def quiet(write: Write) -> bool:
    """Whether it gets no line. That a Lease of a node is taken or given back tells other systems who works there."""
    return write.resource in QUIET and not (write.resource == LEASES and write.node)


def word(case: Case | None) -> Mandate:
    """On whose word something is done for a case: who releases it comes before who has asked for it."""
    if case is None:
        return Mandate()
    if case.release and case.set_by.release:
        return Mandate(Authority.USER, case.set_by.release)
    if case.manual:
        return Mandate(Authority.REQUEST if case.manual.source else Authority.USER, case.manual.requested_by)
    return Mandate(Authority.POLICY, case.policy, case.set_by.approved if case.approved else "")


def outcome(verb: str, status: int, reason: str = "") -> AuditOutcome:
    """Of the answer to a write. Made twice, or gone already, is what was wanted. `status` 0: no answer came."""
    if status == 0 or status >= SERVER_ERROR:
        return AuditOutcome.UNKNOWN
    wanted = (verb == DELETE and status == GONE) or (verb == CREATE and reason == "AlreadyExists")
    if status < ACCEPTED or wanted:
        return AuditOutcome.DONE
    return AuditOutcome.RETRY if status in (*PASSING, GONE) else AuditOutcome.GAVE_UP


def says_again(entry: Mapping[str, Value], before: Mapping[str, Value] | None) -> bool:
    """Whether a line says of its object only what the last one said, and nothing has changed by the write.

    So it is where a budget still refuses an eviction, and where the finalizer of somebody else still keeps a Pod: the
    answer names the version of what is still there. Without one it is gone, and the next of its name is another.
    """
    unchanged = entry["outcome"] == AuditOutcome.RETRY or (entry["verb"] == DELETE and entry["version"])
    return bool(unchanged and entry == before)


def line(
    program: str, write: Write, case: Case | None, ended: AuditOutcome, why: str = "", version: str = ""
) -> dict[str, Value]:
    """The line of one write, all keys of it always. `version`: which the object has since, "" where nobody says."""
    case = write.case or case
    on = write.word or word(case)
    return {
        "program": program,
        "verb": write.verb,
        "resource": write.resource,
        "namespace": write.namespace,
        "name": write.name,
        "version": version or write.version,
        "node": _touched(write, case),
        "case": case.name if case else "",
        "by": on.by.value,
        "who": on.who,
        "approved_by": on.approved_by,
        "changes": [change.shown for change in write.changes],
        "outcome": ended.value,
        "why": why,
    }


def _touched(write: Write, case: Case | None) -> str:
    """The node: of the Pod of an operation that of its case, wherever it runs."""
    if case is not None and (write.resource == PODS or not write.node):
        return case.node
    return write.node

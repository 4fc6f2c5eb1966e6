"""One node, and one case, as the page shows them. Pure: facts in, a view out."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from remediator.core import past_cases
from remediator.core.case import Case
from remediator.core.case_data import case_data, in_json
from remediator.core.node import Node, NodeCondition
from remediator.core.open_cases import wait_of
from remediator.core.runbooks import runbook_address
from remediator.web.page.fleet_view import CaseRow, rack_of, row
from remediator.web.page.freshness import Freshness
from remediator.web.page.node_standing import NodeStanding, state_of

MOST_EVIDENCE, MOST_MESSAGE = 2**16, 2**12  # characters that the page shows; JSON has all


@dataclass(frozen=True, slots=True)
class ConditionRow:
    """What one Condition says."""

    type: str
    status: str
    reason: str
    since: str
    message: str
    runbook: str


@dataclass(frozen=True, slots=True)
class NodeView:
    """The page of a node."""

    name: str
    rack: str
    state: NodeStanding | None  # None: it is gone
    lines: tuple[str, ...]
    conditions: tuple[ConditionRow, ...]
    cases: tuple[CaseRow, ...]  # all that are kept, the newest first
    as_of: str
    stale: str  # why it is not of now, and of when it is; "" where it is of now

    @property
    def lasting(self) -> bool:
        """Whether time changes nothing in it."""
        return False

    @property
    def news(self) -> str:
        """What a reader hears where this has changed."""
        return self.state.word if self.state else "there is no such node any more"


@dataclass(frozen=True, slots=True)
class EventRow:
    """One entry of a timeline."""

    at: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class CaseDetail:
    """The page of a case."""

    name: str
    node: str
    outcome: str
    opened_for: str
    waits_for: str  # and who must act; "" for one that is over
    remedy: str
    runbook: str
    lines: tuple[str, ...]
    events: tuple[EventRow, ...]  # the newest first
    evidence: str
    as_of: str
    stale: str

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return not self.waits_for

    @property
    def lasting(self) -> bool:
        """Whether time changes nothing in it."""
        return self.over and bool(self.events) and not self.stale

    @property
    def news(self) -> str:
        """What a reader hears where this has changed."""
        last = self.events[0] if self.events and not self.over else None
        return f"{last.reason}: {last.message}" if last else self.waits_for or self.outcome


def tag(view: NodeView | CaseDetail) -> str:
    """The same where the same is shown, whichever replica shows it, and of which moment."""
    return hashlib.sha256(repr(replace(view, as_of="")).encode()).hexdigest()[:20]


def gone_node(name: str, cases: Iterable[Case], fresh: Freshness) -> NodeView:
    """Of a node that is not there any more its cases are left."""
    left = node_view(Node(name, "", {}, {}), cases, [f"{name}: there is no such node any more"], (), fresh)
    return replace(left, state=None, rack="gone")


def node_view(
    node: Node,
    cases: Iterable[Case],
    explained: Iterable[str],
    domains: Iterable[str],
    fresh: Freshness,
    docs: str = "",
) -> NodeView:
    """`explained`: the lines of `remediator explain`. `docs`: where people read docs/, "" where nobody has said."""
    kept, now = past_cases.oldest_first(cases), fresh.now
    return NodeView(
        node.name,
        rack_of(node, domains),
        state_of(node, (case for case in kept if case.open)),
        tuple(explained),
        tuple(_condition(node.conditions[type], docs) for type in sorted(node.conditions)),
        tuple(row(case, now) for case in reversed(kept)),
        _when(fresh.as_of or now),
        fresh.sentence,
    )


def case_detail(case: Case, fresh: Freshness, docs: str = "") -> CaseDetail:
    """One case, open or over. `docs`: as for a node."""
    now = fresh.now
    waits = wait_of(case)[0] if case.open else None
    condition = case.trigger.condition if case.trigger else ""
    return CaseDetail(
        case.name,
        case.node,
        past_cases.outcome(case, now),
        past_cases.why_opened(case),
        f"{waits.word} ({waits.actor.value})" if waits else "",
        waits.remedy if waits else "",
        runbook_address(condition, docs),
        tuple(past_cases.done(case, now)),
        tuple(EventRow(_when(event.at), event.reason.value, event.message) for event in reversed(case.timeline)),
        _evidence(case),
        _when(fresh.as_of or now),
        fresh.sentence,
    )


def case_page_data(case: Case, now: datetime) -> dict[str, Any]:
    """As one of `remediator history -o json`, with its timeline and its evidence."""
    events = [{"at": event.at, "reason": event.reason.value, "message": event.message} for event in case.timeline]
    return case_data(case, now) | {"timeline": events, "evidence": case.evidence}


def _condition(seen: NodeCondition, docs: str) -> ConditionRow:
    """A message may have a megabyte, and is sent to everybody who follows the page."""
    message, when, page = cut(seen.message, MOST_MESSAGE), _when(seen.since), runbook_address(seen.type, docs)
    return ConditionRow(seen.type, seen.status.value, cut(seen.reason, MOST_MESSAGE), when, message, page)


def _evidence(case: Case) -> str:
    if not case.evidence:
        return ""
    text = json.dumps(case.evidence, indent=2, ensure_ascii=False, default=in_json, sort_keys=True)
    return cut(text, MOST_EVIDENCE)


def cut(text: str, most: int) -> str:
    """So many characters of it; that there are more is said in its last line."""
    return text if len(text) <= most else f"{text[:most]}\n... and more, see the JSON"


def _when(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"

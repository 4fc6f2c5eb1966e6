"""What cases say of one week. Pure."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from remediator.core.case import Case, Phase
from remediator.core.reasons import Reason

WEEK, LOOKBACK = timedelta(days=7), timedelta(days=30)
LEMON_CASES = 3  # of a node or a board within LOOKBACK
BY_HAND = 3  # times within LOOKBACK: a policy could do the same
BY_PERSON = (Reason.RELEASED_BY_USER, Reason.RELEASED_HEALTHY)  # how cases end that a person had


@dataclass(frozen=True, slots=True)
class Week:
    """One ISO week in UTC: from Monday 00:00 up to the next Monday."""

    start: datetime

    @property
    def end(self) -> datetime:
        """When the next one begins."""
        return self.start + WEEK

    @property
    def name(self) -> str:
        """Such as 2026-W47."""
        year, week, _ = self.start.isocalendar()
        return f"{year}-W{week:02}"

    def holds(self, at: datetime | None) -> bool:
        """Whether something was in this week."""
        return at is not None and self.start <= at < self.end

    def overlap(self, start: datetime, end: datetime | None) -> timedelta:
        """How much of a span of time is in this week; one without end goes on."""
        return max(timedelta(0), min(end or self.end, self.end) - max(start, self.start))


def last_week(now: datetime) -> Week:
    """The last week that is over."""
    today = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return Week(today - timedelta(days=today.weekday()) - WEEK)


@dataclass(frozen=True, slots=True)
class ConditionWeek:
    """One condition in this week: how many cases began and on how many nodes, recovered, and went to a person."""

    condition: str
    cases: int
    nodes: int
    recovered: int
    escalated: int


@dataclass(frozen=True, slots=True)
class DigestLemon:
    """A node or a board whose faults come back: its cases within 30 days, and the conditions that they were about."""

    name: str
    cases: int
    conditions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ByHand:
    """What people have asked for again and again: an operation, while a case about this condition stood on the node.

    `condition` is "" where no case of a policy stood on the node.
    """

    condition: str
    operation: str
    times: int
    nodes: int


@dataclass(frozen=True, slots=True)
class DigestFacts:
    """All that the digest of one week says."""

    week: Week
    begun: int
    causes: tuple[ConditionWeek, ...]  # those with most cases first
    recovery: tuple[
        timedelta, ...
    ]  # from the decision to the end, of each case that recovered in the week; shortest first
    gpu_hours: float  # that GPUs of claimed nodes were out of service
    unknown_hours: float  # the same of nodes of which nobody knows how many GPUs they have
    held: tuple[Case, ...]  # still held at the end of the week, longest first
    silent: tuple[tuple[str, str, int], ...]  # condition, operation that cured it, how often; most frequent first
    by_hand: tuple[ByHand, ...]  # most frequent first
    nodes: tuple[DigestLemon, ...]
    boards: tuple[DigestLemon, ...]


def facts(cases: Iterable[Case], week: Week) -> DigestFacts:
    """What happened in one week, whose end is over. That a new node was tried out is no fault."""
    known = [case for case in cases if case.created < week.end and case.new_node is None]
    recovered = [case for case in known if _recovered(case) and week.holds(case.ended)]
    claims = [(case, week.overlap(case.started, case.ended)) for case in known if case.started is not None]
    begun = [case for case in known if week.holds(case.created)]
    return DigestFacts(
        week=week,
        begun=len(begun),
        causes=_causes(begun),
        recovery=tuple(sorted(case.ended - case.created for case in recovered if case.ended)),
        gpu_hours=sum(_hours(length) * _gpus(case) for case, length in claims),
        unknown_hours=sum(_hours(length) for case, length in claims if not _gpus(case)),
        held=tuple(sorted((case for case in known if _held(case)), key=held_since)),
        silent=_silent(recovered),
        by_hand=_by_hand(known, week),
        nodes=_lemons(known, week, lambda case: (case.node,)),
        boards=_lemons(known, week, lambda case: tuple({gpu.serial for gpu in case.gpus if gpu.serial})),
    )


def held_since(case: Case) -> datetime:
    """Since when a case is held: the oldest of the reasons that hold it, else its beginning."""
    return min((block.since for block in case.blocks if block.since), default=case.created)


def _recovered(case: Case) -> bool:
    """Whether it was cured without a person."""
    return case.phase is Phase.RECOVERED and case.reason not in BY_PERSON and case.manual is None


def _held(case: Case) -> bool:
    return case.open and case.phase is Phase.HELD and bool(case.blocks)


def _gpus(case: Case) -> int:
    """How many GPUs its node had. Several resources, and a label, may count the same ones."""
    return max((count for _, count in case.trigger.devices), default=0) if case.trigger else 0


def _hours(length: timedelta) -> float:
    return length.total_seconds() / 3600


def condition(case: Case) -> str:
    """What it is about; "" for one that a user asked for."""
    return case.trigger.condition if case.trigger else ""


def _causes(begun: Sequence[Case]) -> tuple[ConditionWeek, ...]:
    by_condition: defaultdict[str, list[Case]] = defaultdict(list)
    for case in begun:
        by_condition[condition(case)].append(case)
    causes = (
        ConditionWeek(
            name,
            len(cases),
            len({case.node for case in cases}),
            sum(_recovered(case) for case in cases),
            sum(case.phase is Phase.ESCALATED or case.reason in BY_PERSON for case in cases),
        )
        for name, cases in by_condition.items()
    )
    return tuple(sorted(causes, key=lambda cause: (-cause.cases, cause.condition)))


def _silent(recovered: Iterable[Case]) -> tuple[tuple[str, str, int], ...]:
    """What was cured by what; "" where nothing was tried."""
    counts: defaultdict[tuple[str, str], int] = defaultdict(int)
    for case in recovered:
        counts[condition(case), case.tries[-1].template if case.tries else ""] += 1
    return tuple(sorted(((*cure, count) for cure, count in counts.items()), key=lambda row: (-row[2], row[0], row[1])))


def _by_hand(known: Sequence[Case], week: Week) -> tuple[ByHand, ...]:
    """What was asked for and carried out `BY_HAND` times or more, by what stood on the node then."""
    since = week.end - LOOKBACK
    nodes: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for case in known:
        if case.manual and case.phase is Phase.RECOVERED and case.created >= since:
            for name in _told(case, known):
                nodes[name, case.manual.template].append(case.node)
    rows = (ByHand(*way, len(of), len(set(of))) for way, of in nodes.items() if len(of) >= BY_HAND)
    return tuple(sorted(rows, key=lambda row: (-row.times, row.condition, row.operation)))


def _told(asked: Case, known: Iterable[Case]) -> list[str]:
    """The conditions of the cases that stood on a node when a user asked for something there; "" where none did."""
    stood = {condition(case) for case in known if case.node == asked.node and not case.manual and _stood(case, asked)}
    return sorted(stood) or [""]


def _stood(case: Case, asked: Case) -> bool:
    return case.created <= asked.created and (case.ended is None or case.ended >= asked.created)


def _lemons(known: Iterable[Case], week: Week, keys: Callable[[Case], tuple[str, ...]]) -> tuple[DigestLemon, ...]:
    """What had most cases in which something was done, of those with at least `LEMON_CASES`."""
    of: defaultdict[str, list[Case]] = defaultdict(list)
    for case in known:
        if case.started is not None and case.created >= week.end - LOOKBACK:
            for key in keys(case):
                of[key].append(case)
    lemons = (
        DigestLemon(name, len(cases), tuple(sorted({condition(case) for case in cases})))
        for name, cases in of.items()
        if len(cases) >= LEMON_CASES
    )
    return tuple(sorted(lemons, key=lambda lemon: (-lemon.cases, lemon.name)))

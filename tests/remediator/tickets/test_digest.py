"""The weekly digest: what a week's cases say, how it reads, and that there is one issue for each week."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from remediator.clock import Clock
from remediator.core.case import Attempt, AttemptOutcome, Block, Case, Manual, Phase, Trigger
from remediator.core.gpus import Gpu
from remediator.core.reasons import Reason
from remediator.tickets.channels.base import Later
from remediator.tickets.channels.routes import Route, Routes
from remediator.tickets.digest.facts import Week, facts, last_week
from remediator.tickets.digest.run import Digest
from remediator.tickets.digest.text import percentile, text, title
from tests.harness.tickets import TicketHarness

MONDAY = datetime(2026, 11, 16, tzinfo=UTC)
WEEK = Week(MONDAY)
HOUR = timedelta(hours=1)
EIGHT = (("nvidia.com/gpu", 8), ("nvidia.com/gpu.count", 8))


def hours(count: float) -> datetime:
    """So long after the week began."""
    return MONDAY + timedelta(hours=count)


def case(name: str, begun: float, ended: float | None = None, **fields: Any) -> Case:
    """A case of a node with 8 GPUs that was claimed at once, with hours of the week; recovered if it has ended."""
    known = {"condition": "GpuLost", "node": "gpu-1", "devices": EIGHT, "started": begun} | fields
    trigger = Trigger(known.pop("condition"), "True", "", "", hours(begun), devices=known.pop("devices"))
    node, started = known.pop("node"), known.pop("started")
    phase = Phase.RECOVERED if ended is not None else Phase.OPERATING
    usual = {
        "phase": phase,
        "reason": Reason.VERIFIED,
        "started": None if started is None else hours(started),
        "ended": None if ended is None else hours(ended),
    }
    return Case(name, name, node, node, "p", trigger, hours(begun), **usual | known)


def tried(template: str) -> dict[str, Any]:
    """One attempt that worked."""
    return {"attempts": (Attempt("op", template, 1, MONDAY, outcome=AttemptOutcome.SUCCEEDED),)}


@pytest.mark.parametrize(
    ("now", "name"),
    [
        (datetime(2026, 11, 23, 0, 0, tzinfo=UTC), "2026-W47"),
        (datetime(2026, 11, 22, 23, 59, 59, tzinfo=UTC), "2026-W46"),
        (datetime(2027, 1, 4, tzinfo=UTC), "2026-W53"),
        (datetime(2027, 1, 3, 23, tzinfo=UTC), "2026-W52"),
        (datetime(2026, 11, 23, 8, 0, tzinfo=timezone(timedelta(hours=9))), "2026-W46"),
    ],
)
def test_the_last_week_is_the_iso_week_that_is_over(now: datetime, name: str) -> None:
    week = last_week(now)
    assert (week.name, week.start.weekday()) == (name, 0)


def test_gpu_hours_count_only_the_claimed_time_within_the_week() -> None:
    week = facts(
        [
            case("before", -10, -1),
            case("from before", -10, 2),  # 2 h of 8 GPUs
            case("over the end", 166, 200),  # 2 h
            case("open", 160),  # 8 h
            case("never claimed", 5, 10, started=None),
            case("unknown", 10, 13, devices=()),
            case("after", 169),
        ],
        WEEK,
    )
    assert (week.gpu_hours, week.unknown_hours, week.begun) == (96.0, 3.0, 4)


def test_a_recovery_counts_in_the_week_of_its_end_and_only_without_a_person() -> None:
    week = facts(
        [
            case("a", -1, 1),
            case("b", 1, 2),
            case("released by a user", 1, 3, phase=Phase.CANCELLED, reason=Reason.RELEASED_BY_USER),
            case("released by itself", 1, 4, reason=Reason.RELEASED_HEALTHY),
            case("next week", 160, 170),
        ],
        WEEK,
    )
    assert week.recovery == (HOUR, 2 * HOUR)
    (cause,) = week.causes
    assert (cause.cases, cause.recovered, cause.escalated) == (4, 2, 2)


def test_causes_come_by_number_and_say_on_how_many_nodes() -> None:
    cases = [case(str(n), n, n + 1, condition="NfsStale", node=f"n{n % 2}") for n in range(3)]
    week = facts([case("x", 1, 2), *cases], WEEK)
    assert [(cause.condition, cause.cases, cause.nodes) for cause in week.causes] == [
        ("NfsStale", 3, 2),
        ("GpuLost", 1, 1),
    ]


def test_a_lemon_had_three_repairs_in_thirty_days() -> None:
    board = {"gpus": (Gpu("132", "GPU-1"),)}
    old = -24 * 23 - 1  # 30 days and an hour before the end
    cases = [
        *(case(f"a{n}", n, n + 1, **board, node=f"n{n}") for n in (1, 2, -300)),
        *(case(f"b{n}", n, n + 1, node="twice") for n in (1, 2, old)),
        *(case(f"c{n}", n, n + 1, node="never claimed", started=None) for n in (1, 2, 3)),
    ]
    week = facts(cases, WEEK)
    assert [(lemon.name, lemon.cases) for lemon in week.boards] == [("132", 3)]
    assert week.nodes == ()


def test_what_is_held_longest_stands_first() -> None:
    blocks = (Block(Reason.BUDGET_SPENT, "", since=hours(100)), Block(Reason.COOLDOWN, "", since=hours(50)))
    cases = [
        case("a short one", 150, phase=Phase.HELD, blocks=(Block(Reason.BUDGET_SPENT, ""),), started=None),
        case("long", 10, phase=Phase.HELD, blocks=blocks, started=None),
        case("ended", 10, 20, blocks=blocks),
    ]
    assert [held.name for held in facts(cases, WEEK).held] == ["long", "a short one"]


def by_hand(name: str, begun: float, node: str, operation: str, **fields: Any) -> Case:
    """The case of a NodeOperation that a user has made, carried out within an hour."""
    manual = Manual(f"{name}-asked", name, operation, {}, "alice")
    made = case(name, begun, begun + 1, node=node, devices=(), started=None, manual=manual, **fields)
    return replace(made, trigger=None)


def test_what_people_did_three_times_the_same_way_is_a_candidate_for_a_policy() -> None:
    held = {"phase": Phase.HELD, "started": None}
    cases = [
        *(case(f"held-{n}", 0, condition="NfsStale", node=f"n{n}", **held) for n in (1, 2)),
        case("over before", 0, 9, condition="GpuLost", node="n1"),
        *(by_hand(f"a{n}", 10 * n, f"n{1 + n % 2}", "remount-nfs") for n in (1, 2, 3)),
        *(by_hand(f"b{n}", 10 * n, "n1", "reboot") for n in (1, 2)),  # only twice
        by_hand("failed", 30, "n1", "reboot", phase=Phase.ESCALATED),
        *(by_hand(f"c{n}", 24 * -9 * n, "n9", "reset-gpu") for n in (0, 1, 2)),  # the oldest is 25 days before the end
        *(by_hand(f"d{n}", 24 * -9 * n, "n8", "reboot") for n in (0, 1, 3)),  # 34 days
    ]
    found = facts(cases, WEEK)
    assert [(row.condition, row.operation, row.times, row.nodes) for row in found.by_hand] == [
        ("", "reset-gpu", 3, 1),
        ("NfsStale", "remount-nfs", 3, 2),
    ]
    assert found.silent == (("GpuLost", "", 1),)  # what a user has asked for is no repair without a person


@pytest.mark.parametrize(("percent", "hours"), [(50, 5), (90, 9), (100, 10), (1, 1)])
def test_a_percentile_is_one_of_the_lengths(percent: int, hours: int) -> None:
    assert percentile([HOUR * n for n in range(1, 11)], percent) == HOUR * hours


def a_week() -> list[Case]:
    """What the digest of the page is about."""
    held = {"phase": Phase.HELD, "blocks": (Block(Reason.BUDGET_SPENT, "", since=hours(144)),), "started": None}
    return [
        *(case(f"a{n}", n * 20, n * 20 + n, **tried("reboot")) for n in (1, 2, 3)),
        case("a`|b", 100, phase=Phase.ESCALATED, node="gpu-2", devices=()),
        case("c", 140, condition="Nfs|Stale", node="gpu-3", **held),
        *(by_hand(f"d{n}", n, "gpu-3", "remount-nfs") for n in (141, 142, 143)),
    ]


def test_a_digest_reads_so() -> None:
    week = facts(a_week(), WEEK)
    assert title(week, "prod-a") == "[prod-a] Week 2026-W47: 8 cases"
    assert text(week) == EXPECTED


EXPECTED = """\
From 2026-11-16 to 2026-11-22, UTC. 8 cases began.

**Time to recover:** median 2h, 90 % within 3h, longest 3h (3 cases).

**Out of service for repair:** 48.0 GPU-hours, and 68.0 node-hours of nodes without known GPUs.

### Top causes

| condition | cases | nodes | recovered | to a person |
| --- | --- | --- | --- | --- |
| `GpuLost` | 4 | 2 | 3 | 1 |
| asked for by hand | 3 | 1 | 0 | 0 |
| `Nfs¦Stale` | 1 | 1 | 0 | 0 |

### Repaired without a person

| condition | cured by | times |
| --- | --- | --- |
| `GpuLost` | `reboot` | 3 |

### Done by hand 3 or more times in 30 days: candidates for a policy

| condition | operation | times | nodes |
| --- | --- | --- | --- |
| `Nfs¦Stale` | `remount-nfs` | 3 | 1 |

### Held longest

| case | node | condition | for | why |
| --- | --- | --- | --- | --- |
| `c` | `gpu-3` | `Nfs¦Stale` | 1d | BudgetSpent |

### Nodes with 3 or more repairs in 30 days

| node | cases | conditions |
| --- | --- | --- |
| `gpu-1` | 3 | `GpuLost` |

### Boards with 3 or more repairs in 30 days

None."""


def test_a_quiet_week_says_so() -> None:
    assert text(facts([], WEEK)).count("None.") == 6
    assert "nothing recovered without a person" in text(facts([], WEEK))


# --- one issue for each week -----------------------------------------------------------------------------------------


class Leading:
    is_leader = True


class Replica:
    """One that leads from now on."""

    def __init__(self, harness: TicketHarness) -> None:
        leader: Any = Leading()
        self.leader = leader
        routes = Routes(Route("org/ops", ("ops",)), digest="default", cluster="prod")
        clock = Clock(lambda: harness.now, lambda: 0.0)
        self.digest = Digest(harness.client, harness.channel, harness.world, routes, leader, clock)
        self._harness = harness

    async def after(self, **delta: float) -> float | None:
        """A pass some time later."""
        self._harness.now += timedelta(**delta)
        return await self.digest.serve("")


@pytest.fixture
async def monday(harness: TicketHarness) -> TicketHarness:
    """The first minute of week 48."""
    harness.now = MONDAY + timedelta(days=7, minutes=1)
    await harness.refresh()
    return harness


async def test_a_week_has_one_issue_whoever_leads(monday: TicketHarness) -> None:
    first = Replica(monday)
    assert await first.after() == 720.0  # until a list would show what another leader has filed
    assert await first.after(minutes=12) == 3600.0
    assert [(issue.title, issue.labels) for issue in monday.channel.issues] == [
        ("[prod] Week 2026-W47: 0 cases", ("remediator", "ops"))
    ]
    await first.after(hours=1)
    second = Replica(monday)
    await second.after()
    await second.after(minutes=12)
    await second.after(days=7)
    assert [issue.title for issue in monday.channel.issues] == [
        "[prod] Week 2026-W47: 0 cases",
        "[prod] Week 2026-W48: 0 cases",
    ]


async def test_an_issue_whose_answer_was_lost_is_found_before_another_is_created(monday: TicketHarness) -> None:
    replica = Replica(monday)
    monday.channel.script("create", "lost")
    monday.channel.hidden.add(1)  # a list does not show it yet
    await replica.after(minutes=12)
    await replica.after(minutes=10)
    monday.channel.hidden.clear()
    await replica.after(minutes=10)
    assert len(monday.channel.issues) == 1


async def test_an_answer_that_was_lost_with_its_issue_leads_to_another_try(monday: TicketHarness) -> None:
    replica = Replica(monday)
    monday.channel.script("create", "dropped", Later("limit", 60.0))
    for _ in range(4):
        await replica.after(minutes=12)
    assert len(monday.channel.issues) == 1


async def test_of_two_digests_of_one_week_the_younger_is_closed_as_a_duplicate(monday: TicketHarness) -> None:
    await Replica(monday).after(minutes=12)
    monday.channel.hidden.add(1)
    await Replica(monday).after(minutes=12)  # a list lags by more than it should
    monday.channel.hidden.clear()
    await Replica(monday).after(minutes=12)
    await Replica(monday).after(minutes=12)
    assert [(issue.open, issue.reason) for issue in monday.channel.issues] == [(True, ""), (False, "duplicate")]


async def test_three_days_later_nothing_is_filed_any_more(monday: TicketHarness) -> None:
    await Replica(monday).after(days=3)
    assert monday.channel.issues == []


async def test_while_no_route_is_named_for_it_none_is_filed_and_nobody_looks_again(monday: TicketHarness) -> None:
    replica = Replica(monday)
    replica.digest._routes = Routes(Route("org/ops"))
    assert await replica.after(minutes=12) is None
    assert monday.channel.issues == []


async def test_who_does_not_lead_any_more_files_nothing(monday: TicketHarness) -> None:
    replica = Replica(monday)
    replica.leader.is_leader = False
    await replica.after(minutes=12)
    assert monday.channel.issues == []

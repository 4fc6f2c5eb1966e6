"""Parameters in the URL of a post: they lead only where the routes file allows, and say what is wrong with them."""

from pathlib import Path

import pytest

from remediator.core.ticket import About, Destination, Subject
from remediator.tickets.channels.boards import ProjectBoard
from remediator.tickets.channels.github.limits import problem
from remediator.tickets.channels.routes import Route, Routes
from remediator.tickets.reconcile.conditions import ROUTE_INVALID
from remediator.tickets.webhook.destination import BadParameter, NotAllowed, destination
from remediator.tickets.webhook.receiver import Received, Result
from tests.harness.tickets import TicketHarness, delivery, ends, fires

ALLOWED = ("org/*", "lab/gpu")
WHOLE = [("owner", "org"), ("repo", "ml"), ("labels", "a, b,,a"), ("labels", "c"), ("assignees", "zoe")]
WHOLE += [("milestone", "2026-Q4"), ("board", "org/7")]


def asked(url: str) -> Destination:
    """What a query asks for."""
    return destination([tuple(part.split("=", 1)) for part in url.split("&")], ALLOWED, problem)  # type: ignore[misc]


def test_parameters_say_repository_labels_people_milestone_and_board() -> None:
    assert destination(WHOLE, ALLOWED, problem) == Destination("org/ml", ("a", "b", "c"), ("zoe",), "2026-Q4", "org/7")
    assert destination([], (), problem) == Destination()
    assert asked("owner=Lab&repo=GPU").repository == "Lab/GPU"


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("owner=other&repo=ml", "owner and repo are other/ml, which urlRepositories of the routes file does not list"),
        ("owner=lab&repo=other", "add lab/other or lab/* there"),
        ("owner=org&repo=ml&board=lab/3", "board is lab/3, and urlRepositories of the routes file does not list lab/*"),
        ("owner=lab&repo=gpu&board=lab/3", "board is lab/3"),
    ],
)
def test_what_the_file_does_not_list_is_not_allowed_and_named_with_the_setting(url: str, why: str) -> None:
    with pytest.raises(NotAllowed) as refused:
        asked(url)
    assert why in str(refused.value)


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("owner=org", "repo is missing: parameters of the URL need owner and repo"),
        ("labels=a", "owner is missing: parameters of the URL need owner and repo"),
        (
            "owner=org&repo=ml&label=a",
            "'label' is no parameter of this webhook: owner, repo, milestone, board, labels,",
        ),
        ("owner=org&repo=ml&repo=gpu", "repo is given twice"),
        ("owner=org&repo=../x", "owner and repo are 'org/../x', not owner/name"),
        ("owner=org&repo=%2e", "owner and repo are 'org/%2e', not owner/name"),
        (f"owner=org&repo=ml&labels={'x' * 51}", "labels are more than 32, or one has not 1 to 50 characters"),
        ("owner=org&repo=ml&assignees=" + ",".join("abcdefghijk"), "assignees are more than 10"),
        (f"owner=org&repo=ml&milestone={'x' * 256}", "milestone has more than 255 characters"),
        ("owner=org&repo=ml&board=seven", "board is 'seven', not ORGANIZATION/NUMBER"),
    ],
)
def test_what_cannot_be_followed_is_named(url: str, why: str) -> None:
    with pytest.raises(BadParameter) as refused:
        asked(url)
    assert why in str(refused.value)


@pytest.fixture
async def led(harness: TicketHarness) -> TicketHarness:
    """Parameters may lead to all repositories of org; one of them has a route, too."""
    allow(harness, "org/*")
    return harness


def allow(harness: TicketHarness, *url: str) -> None:
    """What the routes file lists from now on."""
    gpu = Route("org/gpu", ("gpu",), ("ann",), public=True)
    harness.routes = Routes(Route("org/default"), {"gpu": gpu}, url=url, problem=problem)
    harness.receiver._routes = harness.routes
    harness.restart()


async def post(harness: TicketHarness, body: bytes, *parameters: tuple[str, str]) -> Received:
    """Alertmanager posts to a URL with these."""
    await harness.refresh()
    return await harness.receiver.receive(body, parameters)


async def test_an_issue_goes_where_the_url_leads_with_its_labels_people_milestone_and_board(led: TicketHarness) -> None:
    led.channel.milestones = {"2026-Q4"}
    assert (await post(led, delivery(fires()), *WHOLE)).result is Result.STORED
    await led.work()
    issue = led.channel.issue(1)
    assert (issue.repository, issue.milestone, issue.assignees) == ("org/ml", "2026-Q4", ("zoe",))
    assert issue.labels == ("remediator", "severity: warning", "a", "b", "c")
    assert led.routes.url_board((await led.ticket()).alerts[0].destination) == ProjectBoard("org", 7)


async def test_labels_of_the_url_take_the_place_of_those_of_a_route_there_which_gives_the_rest(
    led: TicketHarness,
) -> None:
    await post(led, delivery(fires()), ("owner", "org"), ("repo", "gpu"), ("labels", "x"))
    await led.work()
    issue = led.channel.issue(1)
    assert (issue.repository, issue.labels[2:], issue.assignees) == ("org/gpu", ("x",), ("ann",))


@pytest.mark.parametrize(
    ("parameters", "result"),
    [([("owner", "lab"), ("repo", "gpu")], Result.FORBIDDEN), ([("owner", "org")], Result.INVALID)],
)
async def test_a_post_that_is_refused_writes_nothing(
    led: TicketHarness, parameters: list[tuple[str, str]], result: Result
) -> None:
    received = await post(led, delivery(fires()), *parameters)
    assert received.result is result
    assert await led.tickets() == []


async def test_none_are_allowed_unless_the_file_says_so(harness: TicketHarness) -> None:
    assert Routes(Route("org/a")).url == ()
    received = await post(harness, delivery(fires()), ("owner", "org"), ("repo", "default"))
    assert received.result is Result.FORBIDDEN
    assert "urlRepositories of the routes file does not list" in received.message


async def test_a_policy_or_a_label_that_names_a_route_counts_more(led: TicketHarness) -> None:
    await post(led, delivery(fires(remediator_route="gpu")), ("owner", "org"), ("repo", "ml"))
    await led.work()
    assert led.channel.issue(1).repository == "org/gpu"


async def test_a_repository_that_is_not_listed_any_more_gets_nothing_and_the_ticket_says_so(
    led: TicketHarness,
) -> None:
    await post(led, delivery(fires()), ("owner", "org"), ("repo", "ml"))
    allow(led, "lab/*")
    await led.work()
    assert led.channel.issue(1).repository == "org/default"
    condition = (await led.ticket()).condition(ROUTE_INVALID)
    assert condition is not None
    assert condition.reason == "RepositoryNotAllowed"
    assert "names org/ml, which urlRepositories of the routes file does not list any more" in condition.message


async def test_posts_of_one_alert_with_different_parameters_end_alike_in_any_order(led: TicketHarness) -> None:
    ways = ([("owner", "org"), ("repo", "a")], [("owner", "org"), ("repo", "b")], [])
    seen = set()
    for number, order in enumerate(((0, 1, 2), (2, 1, 0), (1, 2, 0))):
        node = f"new-{number}"
        await led.nodes(node)
        for way in order:
            await post(led, delivery(fires(node=node)), *ways[way])
        ticket = await led.ticket(Subject(About.NODE, node=node))
        seen.add(ticket.alerts[0].destination.repository)
    assert seen == {"org/b"}


KEPT = {"annotations": {"summary": "x", "atg_skip_auto_close": "true"}}


async def test_an_alert_that_asks_to_keep_its_issue_open_has_it_closed_by_a_person_only(
    harness: TicketHarness,
) -> None:
    await harness.hear(delivery(fires() | KEPT, fires("GpuHot", node="gpu-18")))
    await harness.work()
    await harness.hear(delivery(ends() | KEPT, ends("GpuHot", node="gpu-18")))
    await harness.later(minutes=2)
    assert harness.channel.open == [1]
    assert "no cause is left; an alert asks to keep this open: close it by hand" in harness.channel.issue(1).body
    await harness.later(days=9)
    assert harness.channel.open == [1]
    harness.channel.shut(1)
    await harness.later(hours=2)
    await harness.later(days=8)
    assert await harness.tickets() == []


@pytest.mark.parametrize(
    ("annotations", "kept"),
    [
        ([{}], False),
        ([{"atg_skip_auto_close": "true"}], True),
        ([{"other": "true"}], False),
        ([{}, {}], False),
        ([{}, {"atg_skip_auto_close": "true"}], True),
    ],
    ids=["none", "it", "another", "two without", "one of two"],
)
async def test_one_of_several_alerts_is_enough_as_it_is_in_alertmanager_to_github(
    harness: TicketHarness, annotations: list[dict[str, str]], kept: bool
) -> None:
    await harness.hear(delivery(*(fires(f"A{n}") | {"annotations": given} for n, given in enumerate(annotations))))
    await harness.work()
    await harness.hear(delivery(*(ends(f"A{n}") | {"annotations": given} for n, given in enumerate(annotations))))
    await harness.later(minutes=2)
    assert (harness.channel.open == [1]) is kept


def test_what_the_page_shows_is_what_is_answered() -> None:
    page = (Path(__file__).parents[3] / "docs/tickets.md").read_text()
    with pytest.raises(NotAllowed) as forbidden:
        asked("owner=org2&repo=secret")
    with pytest.raises(BadParameter) as invalid:
        asked("owner=org&repo=ml&label=a")
    assert f"403  {forbidden.value}\n422  {invalid.value}\n".replace("org2", "org") in page

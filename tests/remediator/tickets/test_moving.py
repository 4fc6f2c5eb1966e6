"""What users of alertmanager-to-github know: each of its behaviours has a row in docs/tickets.md, and here its test.

Its faults have their tests here, too.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from remediator.metrics import REGISTRY
from remediator.tickets.channels.base import Later, Refused
from remediator.tickets.channels.github.limits import problem
from remediator.tickets.channels.matching import RouteMatch
from remediator.tickets.channels.routes import Route, Routes
from remediator.tickets.reconcile.conditions import ROUTE_INVALID
from remediator.tickets.render.body import key
from tests.contract.docs import test_manifests as manifests
from tests.harness.tickets import TicketHarness, delivery, ends, fires
from tests.remediator import test_app as settings
from tests.remediator.tickets import test_deliveries as deliveries
from tests.remediator.tickets import test_faults as faults
from tests.remediator.tickets import test_github as github
from tests.remediator.tickets import test_github_app as github_app
from tests.remediator.tickets import test_parts as parts
from tests.remediator.tickets import test_render as render
from tests.remediator.tickets import test_stories as stories
from tests.remediator.tickets import test_templates as templates
from tests.remediator.tickets import test_url as url
from tests.remediator.web import test_webhook as webhook

PAGE = Path(__file__).parents[3] / "docs/tickets.md"


async def test_alerts_name_their_routes_by_a_label_each_for_itself(harness: TicketHarness) -> None:
    await harness.hear(delivery(fires(remediator_route="gpu"), fires("GpuHot", node="gpu-18")))
    await harness.work()
    shown = {issue.title.split()[1]: (issue.repository, issue.labels[2:]) for issue in harness.channel.issues}
    assert shown == {"gpu-17:": ("org/gpu", ("gpu",)), "gpu-18:": ("org/default", ("ops",))}


async def test_what_a_tracker_refuses_puts_off_or_takes_is_counted(harness: TicketHarness) -> None:
    def counted() -> list[float]:
        labels = ({"action": "create", "result": result} for result in ("refused", "later", "done"))
        return [REGISTRY.get_sample_value("remediator_issue_calls_total", each) or 0.0 for each in labels]

    before = counted()
    harness.channel.script("create", Refused("no such repository", "repository"), Later("limit", 3.0))
    await harness.hear(delivery(fires()))
    for _ in range(3):
        await harness.later(minutes=6)
    assert [after - earlier for after, earlier in zip(counted(), before, strict=True)] == [1, 1, 1]


def test_the_same_subject_of_two_clusters_has_two_markers() -> None:
    assert key("cluster-a", "gpu-17-ticket") != key("cluster-b", "gpu-17-ticket")


async def test_an_alert_that_is_kept_open_keeps_no_issue_of_another_node_open(harness: TicketHarness) -> None:
    await harness.hear(delivery(fires() | url.KEPT, fires(node="gpu-18")))
    await harness.work()
    await harness.hear(delivery(ends() | url.KEPT, ends(node="gpu-18")))
    await harness.later(minutes=2)
    assert [issue.title for issue in harness.channel.issues if issue.open] == ["[prod] gpu-17: NodeDown"]


def labelled(owner: str, repo: str, node: str = "gpu-17") -> dict[str, Any]:
    """An alert as rules for alertmanager-to-github write it."""
    return fires(node=node, atg_owner=owner, atg_repo=repo)


async def test_labels_of_an_alert_lead_to_a_repository_that_the_file_lists_for_them(harness: TicketHarness) -> None:
    gpu = Route("org/gpu", ("gpu",), ("ann",))
    harness.routes = Routes(Route("org/default"), {"gpu": gpu}, labelled=("org/gpu", "lab/*"), problem=problem)
    harness.restart()
    await harness.nodes("gpu-19", "gpu-20")
    half = labelled("org", "", node="gpu-19")
    named = labelled("lab", "ml", node="gpu-20")
    named["labels"]["remediator_route"] = "gpu"
    await harness.hear(delivery(labelled("Org", "gpu"), labelled("lab", "ml", node="gpu-18"), half, named))
    await harness.work()
    shown = {issue.title.split()[0]: (issue.repository, issue.labels[2:]) for issue in harness.channel.issues}
    assert shown == {
        "gpu-17:": ("org/gpu", ("gpu",)),  # what the route there gives
        "gpu-18:": ("lab/ml", ()),
        "gpu-19:": ("org/default", ()),
        "gpu-20:": ("org/gpu", ("gpu",)),
    }


@pytest.mark.parametrize("listed", [(), ("org/gpu",), ("lab/*",)])
@pytest.mark.parametrize(("owner", "repo"), [("org", "secret"), ("lab", ".."), ("lab", "a/b")])
async def test_labels_of_an_alert_name_a_repository_only_where_the_file_lists_it_for_them(
    harness: TicketHarness, listed: tuple[str, ...], owner: str, repo: str
) -> None:
    """Neither does the list for URLs count for them; nor do they take an issue from where the file sends it."""
    rows = (RouteMatch("hw", frozenset(), (("team", frozenset({"hw"})),)),)
    hw = Route("org/hw")
    harness.routes = Routes(
        Route("org/default"), {"hw": hw}, match=rows, url=("org/*",), labelled=listed, problem=problem
    )
    harness.restart()
    alert = labelled(owner, repo)
    alert["labels"]["team"] = "hw"
    await harness.hear(delivery(alert))
    await harness.work()
    assert [issue.repository for issue in harness.channel.issues] == ["org/hw"]
    condition = (await harness.ticket()).condition(ROUTE_INVALID)
    assert condition is not None
    assert condition.reason == "RepositoryNotAllowed"
    assert condition.message == (
        f"labels of an alert name {owner}/{repo}, which labelRepositories of the routes file does not list; "
        "filed in org/hw"
    )


NAMED = test_alerts_name_their_routes_by_a_label_each_for_itself
AGAIN = stories.test_what_came_back_within_a_day_reopens_ours_and_later_opens_another
LED = url.test_an_issue_goes_where_the_url_leads_with_its_labels_people_milestone_and_board
KEPT = url.test_an_alert_that_asks_to_keep_its_issue_open_has_it_closed_by_a_person_only
ROWS: Mapping[str, Callable[..., Any]] = {
    "an alert fires": stories.test_a_firing_alert_gets_one_issue_and_its_end_closes_it_with_a_word,
    "the same post again": deliveries.test_the_same_delivery_twice_at_once_makes_one_ticket_and_one_write,
    "`owner` and `repo` in the URL": LED,
    "`labels` in the URL": url.test_labels_of_the_url_take_the_place_of_those_of_a_route_there_which_gives_the_rest,
    "labels that a person has added": stories.test_what_people_write_label_and_assign_survives,
    "the alert is resolved": stories.test_a_firing_alert_gets_one_issue_and_its_end_closes_it_with_a_word,
    "annotation `atg_skip_auto_close`": KEPT,
    "it fires again": AGAIN,
    "it fires again after its option `reopen-window`": AGAIN,
    "two issues of one alert": faults.test_a_twin_that_the_search_hid_too_long_is_closed_as_duplicate_of_the_older,
    "labels `atg_owner`, `atg_repo`": test_labels_of_an_alert_lead_to_a_repository_that_the_file_lists_for_them,
    "neither owner nor repository": stories.test_an_unknown_route_goes_to_the_default_and_says_so,
    "one of both": url.test_a_post_that_is_refused_writes_nothing,
    "a post that is no JSON": deliveries.test_what_is_no_payload_has_no_effect,
}
FAULTS: Sequence[Callable[..., Any]] = (
    # the cells of annotations are empty
    templates.test_the_issue_of_a_file_is_printed_without_a_cluster,
    # a pull request, or a quotation, is taken for the issue
    github.test_find_takes_only_bodies_that_hold_the_marker_to_the_letter,
    # search lag makes two issues
    faults.test_a_create_whose_answer_was_lost_is_found_and_not_repeated,
    # the end of an unknown alert opens an issue
    deliveries.test_a_resolved_for_an_alert_that_nobody_knows_opens_nothing,
    # two searches for each post
    deliveries.test_a_delivery_is_answered_without_waiting_for_the_tracker,
    # the limit of search is booked as that of issues
    github.test_a_spent_search_does_not_hold_up_the_rest,
    # errors are counted nowhere
    test_what_a_tracker_refuses_puts_off_or_takes_is_counted,
    # what is refused for good is tried without a pause
    faults.test_what_is_refused_is_shown_with_its_remedy_and_tried_again_slowly,
    # words of people in the text are lost
    stories.test_what_people_write_label_and_assign_survives,
    # what a person closed is opened again
    stories.test_what_a_person_closed_stays_closed_for_the_same_causes,
    # a text is too long for ever
    github.test_a_text_that_is_too_long_keeps_its_fence,
    # an App asks an Enterprise Server at a wrong path
    github_app.test_an_app_gets_one_token_and_writes_with_it,
    # half the options of an App are silently a token
    settings.test_credentials_that_do_not_fit_together_are_refused_by_their_options,
    # nobody who posts is asked for a token
    webhook.test_who_does_not_know_the_token_is_turned_away_and_counted,
    # whoever posts writes to every repository
    url.test_none_are_allowed_unless_the_file_says_so,
    # one alert keeps the issues of all others open
    test_an_alert_that_is_kept_open_keeps_no_issue_of_another_node_open,
    # the repository is that of all alerts or of none
    NAMED,
    # two clusters share an issue
    test_the_same_subject_of_two_clusters_has_two_markers,
    # an empty post opens an issue
    deliveries.test_what_is_no_payload_has_no_effect,
    # titles change with the group, or are too long
    render.test_a_title_is_short_pings_nobody_and_does_not_change_with_the_case,
    # the examples do not work
    manifests.test_a_configuration_of_alertmanager_has_only_fields_that_it_knows_and_reaches_our_webhook,
    # no comments, people, milestones or boards
    parts.test_an_issue_gets_the_milestone_of_its_route_and_that_of_a_person_stays,
)


def test_each_behaviour_of_alertmanager_to_github_has_a_row_in_the_page_and_is_kept() -> None:
    section = PAGE.read_text().split("### For users of alertmanager-to-github\n")[1].split("\n## ")[0]
    table = section.split("\n\n| in its templates")[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| ")][1:]
    assert [row[0] for row in rows] == list(ROWS)
    assert [row[0] for row in rows if row[2].startswith("not kept")] == []


def test_each_of_its_faults_has_a_test_that_ours_has_it_not() -> None:
    assert {test.__name__.partition("_")[0] for test in (*FAULTS, *ROWS.values())} == {"test"}
    assert len(FAULTS) == 22  # one of the 21 in its list is two

"""What users of alertmanager-to-github know: each of its behaviours has a row in docs/tickets.md, and here its test."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.harness.tickets import TicketHarness, delivery, fires
from tests.remediator.tickets import test_deliveries as deliveries
from tests.remediator.tickets import test_faults as faults
from tests.remediator.tickets import test_stories as stories

PAGE = Path(__file__).parents[3] / "docs/tickets.md"


async def test_an_alert_names_its_route_by_a_label_and_gets_the_repository_and_the_labels_of_it(
    harness: TicketHarness,
) -> None:
    await harness.hear(delivery(fires(remediator_route="gpu")))
    await harness.work()
    issue = harness.channel.issue(1)
    assert (issue.repository, issue.labels) == ("org/gpu", ("remediator", "severity: warning", "gpu"))


NAMED = test_an_alert_names_its_route_by_a_label_and_gets_the_repository_and_the_labels_of_it
AGAIN = stories.test_what_came_back_within_a_day_reopens_ours_and_later_opens_another
ROWS: Mapping[str, Callable[..., Any] | None] = {
    "an alert fires": stories.test_a_firing_alert_gets_one_issue_and_its_end_closes_it_with_a_word,
    "the same post again": deliveries.test_the_same_delivery_twice_at_once_makes_one_ticket_and_one_write,
    "`labels` in the URL": NAMED,
    "labels that a person has added": stories.test_what_people_write_label_and_assign_survives,
    "the alert is resolved": stories.test_a_firing_alert_gets_one_issue_and_its_end_closes_it_with_a_word,
    "annotation `atg_skip_auto_close`": None,
    "it fires again": AGAIN,
    "it fires again after its option `reopen-window`": AGAIN,
    "two issues of one alert": faults.test_a_twin_that_the_search_hid_too_long_is_closed_as_duplicate_of_the_older,
    "labels `atg_owner`, `atg_repo`": NAMED,
    "neither owner nor repository": stories.test_an_unknown_route_goes_to_the_default_and_says_so,
    "a post that is no JSON": deliveries.test_what_is_no_payload_has_no_effect,
}


def test_each_behaviour_of_alertmanager_to_github_has_a_row_in_the_page_and_the_one_that_is_not_kept_says_so() -> None:
    section = PAGE.read_text().split("### For users of alertmanager-to-github\n")[1].split("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| ")][1:]
    assert [row[0] for row in rows] == list(ROWS)
    assert [row[0] for row in rows if row[2].startswith("not kept")] == [row for row, test in ROWS.items() if not test]

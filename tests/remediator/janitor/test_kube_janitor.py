"""kube-janitor's own tests by their names, on ours. Where ours does something else on purpose, the row says what."""

import asyncio
from importlib import import_module
from typing import NamedTuple

import pytest

from remediator.core.idle_policy import JanitorMode
from remediator.janitor.one_pass import OnePass
from remediator.janitor.pass_report import Report
from remediator.janitor.settings import JanitorSettings
from remediator.kube import api
from tests.harness.kinds import EVENTS, PODS, plain
from tests.remediator.janitor.place import NOW, Place

ROUTES = plain(api.TICKET_ROUTE)  # a kind that Kubernetes does not know by itself
ROUTE = {"match": {"severity": ["Critical"]}, "repository": "org/repo"}
RULE = "rules: [{id: r1, resources: [ticketroutes], jmespath: \"metadata.namespace == 'team'\", ttl: 10m}]"
MINUTES = 1 / 60


class Row(NamedTuple):
    """An object so many hours old, its annotations, what one pass makes of it, and what is counted.

    `notice`: hours before its end that its owner is told. With a TTL, kube-janitor counts only what has one that can be
    read and ends; ours counts each annotation.
    """

    name: str
    notes: dict[str, str]
    becomes: str
    ago: float = 10
    notice: float = 0
    deployed: str = ""
    counts: tuple[int, int, int] = (0, 0, 0)  # with a TTL, with an expiry time, deleted


TTL, EXPIRY, DEPLOYED = "janitor/ttl", "janitor/expires", "deployed"  # NOW is 2026-01-10, at midnight
A_WEEK, TEN_DAYS = {TTL: "1w"}, 240.0
ROWS = (
    Row("handle_resource_no_ttl", {}, "nothing"),
    Row("handle_resource_no_expiry", {}, "nothing"),
    Row("handle_resource_ttl_annotation", {TTL: "2w"}, "waits", TEN_DAYS, counts=(1, 0, 0)),
    Row("handle_resource_deployment_time_no_annotation", A_WEEK, "delete", TEN_DAYS, counts=(1, 0, 1)),
    Row(
        "handle_resource_deployment_time_no_expiry",
        A_WEEK | {DEPLOYED: "2026-01-09T00:00:00Z"}, "waits", TEN_DAYS, deployed=DEPLOYED, counts=(1, 0, 0),
    ),
    # kube-janitor deletes it by its creation; ours deletes nothing on a time that it cannot read, and tells the owner.
    Row(
        "handle_resource_deployment_time_invalid",
        A_WEEK | {DEPLOYED: "2026-01-ABCD"}, "held", TEN_DAYS,
        deployed=DEPLOYED, counts=(1, 0, 0),
    ),
    Row(
        "handle_resource_deployment_time_creation_time_later",
        A_WEEK | {DEPLOYED: "2025-12-30T00:00:00Z"}, "delete", TEN_DAYS, deployed=DEPLOYED, counts=(1, 0, 1),
    ),
    Row(
        "handle_resource_deployment_time_both_expired",
        A_WEEK | {DEPLOYED: "2026-01-01T00:00:00Z"}, "delete", TEN_DAYS, deployed=DEPLOYED, counts=(1, 0, 1),
    ),
    Row("handle_resource_expiry_annotation", {EXPIRY: "2050-09-26T01:51:42Z"}, "waits", counts=(0, 1, 0)),
    Row("handle_resource_ttl_expired", {TTL: "1s"}, "delete", counts=(1, 0, 1)),
    Row("handle_resource_expiry_expired", {EXPIRY: "2001-09-26T01:51:42Z"}, "delete", counts=(0, 1, 1)),
    # Ours tells the owner that the annotation cannot be read; kube-janitor only logs it.
    Row("ignore_invalid_ttl", {TTL: "123"}, "held", counts=(1, 0, 0)),
    Row("ignore_invalid_expiry", {EXPIRY: "123"}, "held", counts=(0, 1, 0)),
    # 10 minutes to live, 3 minutes of notice: 5, 8 and 8 minutes after the creation.
    Row(
        "handle_resource_ttl_annotation_with_notification_not_triggered",
        {TTL: "10m"}, "waits", 5 * MINUTES, 3 * MINUTES, counts=(1, 0, 0),
    ),
    Row(
        "handle_resource_ttl_annotation_with_notification_triggered",
        {TTL: "10m"}, "tell", 8 * MINUTES, 3 * MINUTES, counts=(1, 0, 0),
    ),
    Row(
        "handle_resource_ttl_annotation_with_forever_value_not_triggered",
        {TTL: "forever"}, "nothing", 8 * MINUTES, 3 * MINUTES, counts=(1, 0, 0),
    ),
    Row(
        "handle_resource_expiry_annotation_with_notification_not_triggered",
        {EXPIRY: "2026-01-10T00:05:00Z"}, "waits", notice=3 * MINUTES, counts=(0, 1, 0),
    ),
    Row(
        "handle_resource_expiry_annotation_with_notification_triggered",
        {EXPIRY: "2026-01-10T00:02:00Z"}, "tell", notice=3 * MINUTES, counts=(0, 1, 0),
    ),
)  # fmt: skip


@pytest.fixture
async def place() -> Place:
    return Place()


def became(report: Report) -> str:
    """What one pass has made of the only object with annotations."""
    done = [outcome.value for outcome in report.totals for _ in range(report.totals[outcome])]
    done += ["waits"] * report.waiting
    return " ".join(done) or "nothing"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
async def test_handle_resource(place: Place, row: Row) -> None:
    await place.pod("foo", ago=row.ago, annotations=row.notes)
    report = await place.run(notice=row.notice, deployed=row.deployed)
    assert became(report) == row.becomes
    assert tuple(report.counts[f"pods-{what}"] for what in ("with-ttl", "with-expiry", "deleted")) == row.counts
    assert report.counts["resources-processed"] >= 2, "the Pod and its namespace"


@pytest.mark.parametrize(
    ("notes", "rules", "reason", "because"),
    [
        pytest.param({TTL: "10m"}, "rules: []", "TimeToLiveExpired", "janitor/ttl: 10m", id="custom_resource_on_ttl"),
        pytest.param(
            {EXPIRY: "2001-01-17T15:14:38Z"}, "rules: []", "ExpiryTimeReached", "janitor/expires: 2001",
            id="custom_resource_on_expiry",
        ),
        pytest.param({}, RULE, "TimeToLiveExpired", "rule r1 matches: 10m", id="by_rule"),
    ],
)  # fmt: skip
async def test_clean_up(place: Place, notes: dict[str, str], rules: str, reason: str, because: str) -> None:
    """One Event about the object, and one deletion."""
    made = await place.make(ROUTES, "foo-1", spec=ROUTE, annotations=notes)
    report = await place.run(rules=rules)
    assert report.counts["ticketroutes-deleted"] == 1
    assert report.counts["rule-r1-matches"] == (rules == RULE)
    (event,) = await place.admin.list_all(EVENTS)
    about = event["involvedObject"]
    assert (event["reason"], because in event["message"]) == (reason, True)
    assert (about["apiVersion"], about["kind"]) == ("remediator.dev/v1alpha1", "TicketRoute")
    assert (about["namespace"], about["name"], about["uid"]) == ("team", "foo-1", made["metadata"]["uid"])
    assert [path.rpartition("/")[2] for method, path in place.writes() if method == "DELETE"] == ["foo-1"]


async def test_ignore_nonlistable_api_group(place: Place) -> None:
    """Theirs takes no notice; ours says which kinds it could not look at."""
    await place.pod("foo", annotations={TTL: "123"})
    await place.pod("old", annotations={TTL: "1h"})
    place.server.faults.refuse(503, times=9, when=lambda asked: asked.path.startswith("/apis/apps/v1"))
    report = await place.run()
    assert (report.counts["pods-deleted"], await place.names(PODS)) == (1, {"foo"})
    assert report.problems[0] == "deployments not listed: refused by a planned fault (503)"


@pytest.mark.looptime
async def test_wait_after_delete(place: Place) -> None:
    for name in "ab":
        await place.pod(name, annotations={TTL: "1h"})
    loop = asyncio.get_running_loop()
    began, settings = loop.time(), JanitorSettings(JanitorMode.ENFORCE, pause=20)
    report = await OnePass(place.client, settings, place.writer, NOW).run()
    assert (report.counts["pods-deleted"], round(loop.time() - began)) == (2, 40)


@pytest.mark.parametrize("mode", JanitorMode)
async def test_add_notification_flag(place: Place, mode: JanitorMode) -> None:
    """Theirs is `yes` for ever; ours says of which end the owner was told, and when."""
    await place.pod("foo", ago=8 * MINUTES, annotations={TTL: "10m"})
    await place.run(mode, notice=3 * MINUTES)
    (pod,) = await place.admin.list_all(PODS)
    mark = {"janitor/notified": "2026-01-10T00:02:00Z", "janitor/notified-at": "2026-01-10T00:00:00Z"}
    assert pod["metadata"]["annotations"] == {TTL: "10m"} | (mark if mode is JanitorMode.ENFORCE else {})
    assert len(await place.events()) == (mode is JanitorMode.ENFORCE)


@pytest.mark.parametrize(
    ("notes", "ago", "ends", "because"),
    [
        pytest.param({TTL: "10m"}, 8 * MINUTES, "2026-01-10T00:03:00Z", "janitor/ttl: 10m", id="ttl_annotation"),
        pytest.param(
            {TTL: "10m", DEPLOYED: "2026-01-09T23:52:30Z"}, 1, "2026-01-10T00:03:00Z", "janitor/ttl: 10m",
            id="deployment_time_annotation",
        ),
        pytest.param(
            {EXPIRY: "2026-01-10T00:02:00Z"}, 10, "2026-01-10T00:03:00Z", "janitor/expires: 2026-01-10T00:02:00Z",
            id="expiry_annotation",
        ),
    ],
)  # fmt: skip
async def test_handle_resource_notification_event(
    place: Place, notes: dict[str, str], ago: float, ends: str, because: str
) -> None:
    """Theirs says when the time is over, even where that is in a minute; who is told by ours late has as long."""
    await place.pod("foo", ago=ago, annotations=notes)
    await place.run(notice=3 * MINUTES, deployed=DEPLOYED)
    (event,) = await place.admin.list_all(EVENTS)
    assert (event["reason"], event["type"]) == ("DeleteNotification", "Normal")
    assert event["message"] == f"Pod foo will be deleted at {ends} ({because})"


# Those of kube-janitor's tests that are of one thing with one of ours: file of ours, then theirs and ours.
ELSEWHERE = {
    "test_passes": {
        "matches_resource_filter": "what_is_included_is_looked_at_and_what_is_excluded_never",
        "only_included_namespaces": "what_is_included_is_looked_at_and_what_is_excluded_never",
        "clean_up_default": "what_is_included_is_looked_at_and_what_is_excluded_never",
        "delete_namespace": "namespaces_and_objects_of_our_own_kinds_have_times_to_live_too",
        "was_notified": "8_who_makes_a_ttl_longer_is_told_again",
        "get_resource_types": "namespaces_and_objects_of_our_own_kinds_have_times_to_live_too",
    },
    "test_decide": {"get_delete_notification": "the_owner_is_told_an_hour_before"},
    "test_ttl": {
        "parse_ttl": "a_ttl_is_a_number_with_a_unit_or_several_and_blanks_around_it_do_not_matter",
        "parse_expiry": "an_expiry_time_is_in_utc_unless_it_has_an_offset",
        "parse_expiry_invalid": "an_expiry_time_that_cannot_be_meant_says_what_to_write",
        "parse_ttl_invalid": "a_ttl_that_cannot_be_read_says_what_to_write",
        "format_duration": "a_length_of_time_is_told_as_a_ttl_is_written",
    },
    "test_rules": {
        "load_rules_from_wrong_file": "a_file_that_cannot_be_meant_names_the_rule_and_the_field",
        "load_rules_from_file_no_mapping": "a_file_that_cannot_be_meant_names_the_rule_and_the_field",
        "load_rules_from_file_missing_keys": "a_file_that_cannot_be_meant_names_the_rule_and_the_field",
        "rule_invalid_id": "a_file_that_cannot_be_meant_names_the_rule_and_the_field",
        "load_rules_from_empty_file": "an_empty_list_of_rules_is_none",
        "load_rules_from_file": "a_file_of_kube_janitor_is_read_as_it_is",
        "rule_matches": "a_result_matches_unless_it_is_false_null_zero_or_empty",
    },
    "test_context": {
        "pvc_not_mounted": "a_claim_is_mounted_by_pods_and_referenced_by_what_makes_pods",
        "pvc_is_mounted": "a_claim_is_mounted_by_pods_and_referenced_by_what_makes_pods",
        "pvc_is_referenced": "a_claim_is_mounted_by_pods_and_referenced_by_what_makes_pods",
        "example_hook": "a_hook_is_given_the_object_and_a_cache_of_its_own",
        "parse_args_hook": "a_hook_is_named_by_module_and_function",
    },
    "test_command": {
        "parse_args": "a_setting_that_cannot_be_meant_exits_2_and_says_what_to_write",
        "main_no_rules": "once_reports_what_it_would_do_and_with_enforce_does_it",
        "main_with_rules": "a_rule_that_cannot_be_used_is_named_and_makes_the_exit_code_1",
        "shutdown": "it_runs_until_it_is_told_to_end_and_shows_its_last_report",
    },
    "test_run": {"main_continue_on_failure": "a_pass_that_fails_is_logged_and_the_next_goes_on"},
}


@pytest.mark.parametrize(
    ("file", "ours"), [(file, ours) for file, names in ELSEWHERE.items() for ours in dict.fromkeys(names.values())]
)
def test_what_is_held_elsewhere_is_there(file: str, ours: str) -> None:
    assert callable(getattr(import_module(f"tests.remediator.janitor.{file}"), f"test_{ours}"))

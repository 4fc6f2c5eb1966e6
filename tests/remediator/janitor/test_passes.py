"""Whole passes over a cluster in memory: what is selected, deleted, held and reported."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from remediator.core.idle_policy import JanitorMode
from remediator.janitor.decide import JanitorReason
from remediator.janitor.outcome import JanitorOutcome
from remediator.janitor.pass_report import Report
from remediator.janitor.selection import Selection
from remediator.kube.wire.transport import HEADS
from tests.harness.kinds import BUDGETS, CONFIG_MAPS, DEPLOYMENTS, NAMESPACES, PODS, SECRETS
from tests.remediator.janitor.place import Place, lines, owned_by

SPACES = ("one", "two", "kube-system")
PR = """rules: [{id: pr, resources: [namespaces], jmespath: "starts_with(metadata.name, 'pr-')", ttl: 4h}]"""


@pytest.fixture
async def place() -> Place:
    return Place()


# --- what kube-janitor's own tests hold ---


async def test_an_object_without_annotations_stays_and_is_counted(place: Place) -> None:
    await place.pod("a")
    report = await place.run()
    assert await place.names(PODS) == {"a"}
    assert place.writes() == []
    assert report.counts["resources-processed"] >= 2  # the Pod and its namespace
    assert report.counts["pods-with-ttl"] == 0


@pytest.mark.parametrize(
    ("ends", "reason"), [({"ttl": "1h"}, JanitorReason.TTL), ({"expires": "2026-01-09"}, JanitorReason.EXPIRY)]
)
async def test_an_object_whose_time_is_over_is_told_of_and_deleted_once(
    place: Place, ends: dict[str, str], reason: JanitorReason
) -> None:
    await place.pod("a", **ends)
    await place.pod("b")
    report = await place.run()
    assert await place.names(PODS) == {"b"}
    assert lines(report, JanitorOutcome.DELETED) == [("pods/team/a", reason.value)]
    assert await place.events() == [(reason.value, "a")]
    assert place.writes() == [("POST", "/api/v1/namespaces/team/events"), ("DELETE", "/api/v1/namespaces/team/pods/a")]
    kind = "ttl" if reason is JanitorReason.TTL else "expiry"
    assert (report.counts[f"pods-with-{kind}"], report.counts["pods-deleted"]) == (1, 1)


async def test_an_object_whose_time_has_not_come_waits(place: Place) -> None:
    await place.pod("a", ttl="11h")
    await place.pod("b", expires="2026-01-10T01:00:00Z")
    report = await place.run()
    assert (report.waiting, place.writes()) == (2, [])
    assert (await place.run(hours=1.1)).totals[JanitorOutcome.DELETED] == 2


async def test_what_it_owns_goes_in_the_background(place: Place) -> None:
    made = await place.pod("a", ttl="1h")
    await place.run()
    (body,) = [json.loads(body) for method, _, _, body, _ in place.transport.asked if method == "DELETE"]
    meta = made["metadata"]
    assert body == {
        "preconditions": {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"]},
        "propagationPolicy": "Background",
    }


async def test_namespaces_and_objects_of_our_own_kinds_have_times_to_live_too(place: Place) -> None:
    await place.space("pr-7", **{"janitor/ttl": "1h"})
    report = await place.run(hours=2, selection=Selection(exclude_namespaces=frozenset()))
    assert lines(report, JanitorOutcome.DELETED) == [("namespaces/pr-7", "TimeToLiveExpired")]
    assert await place.events() == [("TimeToLiveExpired", "pr-7")]
    await place.make(BUDGETS, "b", spec={"selector": {}, "maxUnavailable": 1}, ttl="1h")
    assert (await place.run()).totals[JanitorOutcome.DELETED] == 0, (
        "what lies in no namespace is nobody's but the cluster's"
    )


async def test_a_rule_deletes_what_it_matches_and_counts_it(place: Place) -> None:
    await place.space("pr-7")
    await place.space("team")
    report = await place.run(hours=5, rules=PR)
    assert lines(report, JanitorOutcome.DELETED) == [("namespaces/pr-7", "TimeToLiveExpired")]
    assert (report.counts["rule-pr-matches"], report.counts["namespaces-with-ttl"]) == (1, 1)


async def test_a_ttl_counts_from_a_later_deployment(place: Place) -> None:
    await place.pod("a", ttl="1h", annotations={"deployed": "2026-01-10T00:00:00Z"})
    assert (await place.run(hours=0.5, deployed="deployed")).waiting == 1
    assert (await place.run(hours=1, deployed="deployed")).totals[JanitorOutcome.DELETED] == 1


@pytest.mark.parametrize(
    ("selection", "left"),
    [
        (Selection(), ["kube-system"]),
        (Selection(include_namespaces=frozenset({"one"})), ["two", "kube-system"]),
        (Selection(exclude_namespaces=frozenset({"one"})), ["one"]),
        (Selection(include_namespaces=frozenset({"one"}), exclude_namespaces=frozenset({"one"})), [*SPACES]),
        (Selection(include_resources=frozenset({"configmaps"})), [*SPACES]),
        (Selection(include_resources=frozenset({"pods"})), ["kube-system"]),
        (Selection(exclude_resources=frozenset({"pods"})), [*SPACES]),
    ],
)
async def test_what_is_included_is_looked_at_and_what_is_excluded_never(
    place: Place, selection: Selection, left: list[str]
) -> None:
    for space in SPACES:
        await place.pod("a", space, ttl="1h")
    await place.run(selection=selection)
    assert [space for space in SPACES if await place.names(PODS, space)] == left


async def test_a_rule_about_everything_ends_no_operation_and_takes_no_lease_of_a_node(place: Place) -> None:
    for space in ("remediator-operations", "remediator-system", "kube-node-lease", "team"):
        await place.make(CONFIG_MAPS, "m", space)
    report = await place.run(rules="rules: [{id: all, resources: ['*'], jmespath: metadata.name, ttl: 1h}]", hours=2)
    assert lines(report, JanitorOutcome.DELETED) == [
        ("configmaps/team/m", "TimeToLiveExpired"),
        ("namespaces/team", "TimeToLiveExpired"),
    ]


async def test_kinds_of_which_no_list_is_given_stop_nothing_but_are_told(place: Place) -> None:
    await place.pod("a", ttl="1h")
    place.server.faults.refuse(403, when=lambda asked: asked.path.endswith("/configmaps"))
    report = await place.run()
    assert report.totals[JanitorOutcome.DELETED] == 1
    assert report.problems == ["configmaps not listed: refused by a planned fault (403)"]


# --- what kube-janitor gets wrong: docs/janitor.md names each ---


async def test_1_two_deadlines_give_one_event_and_one_deletion(place: Place) -> None:
    await place.pod("a", ttl="1h", expires="2026-01-09")
    await place.run()
    assert [method for method, _ in place.writes()] == ["POST", "DELETE"]


async def test_2_a_deletion_that_failed_is_not_counted_as_one(place: Place) -> None:
    await place.pod("a", ttl="1h")
    await place.pod("b", ttl="1h")
    place.server.faults.refuse(403, times=9, when=lambda asked: asked.method == "DELETE")
    report = await place.run()
    assert lines(report, JanitorOutcome.FAILED) == [("pods/team/a", "Refused"), ("pods/team/b", "Refused")]
    assert report.counts["pods-deleted"] == report.totals[JanitorOutcome.DELETED] == 0
    assert sum(method == "DELETE" for method, _ in place.writes()) == 1, "the second would be refused, too"


async def test_2_what_is_refused_in_one_namespace_is_deleted_in_another(place: Place) -> None:
    await place.pod("a", "protected", ttl="1h")
    await place.pod("b", ttl="2h")
    place.server.faults.refuse(403, times=9, when=lambda asked: asked.method == "DELETE" and "protected" in asked.path)
    report = await place.run()
    assert lines(report, JanitorOutcome.FAILED) == [("pods/protected/a", "Refused")]
    assert lines(report, JanitorOutcome.DELETED) == [("pods/team/b", "TimeToLiveExpired")]


async def test_2_a_webhook_of_one_namespace_that_does_not_work_stops_no_other_one(place: Place) -> None:
    """An API server answers 500 for a webhook that it cannot call."""
    await place.pod("a", "broken", ttl="1h")
    await place.pod("b", ttl="2h")
    place.server.faults.refuse(500, times=9, when=lambda asked: asked.method == "DELETE" and "broken" in asked.path)
    report = await place.run()
    assert lines(report, JanitorOutcome.FAILED) == [("pods/broken/a", "Refused")]
    assert lines(report, JanitorOutcome.DELETED) == [("pods/team/b", "TimeToLiveExpired")]


async def test_2_one_namespace_that_may_not_be_deleted_stops_no_other_one(place: Place) -> None:
    for name in ("pr-1", "pr-2"):
        await place.space(name)
    place.server.faults.refuse(403, times=9, when=lambda asked: asked.method == "DELETE" and "pr-1" in asked.path)
    report = await place.run(hours=5, rules=PR)
    assert lines(report, JanitorOutcome.DELETED) == [("namespaces/pr-2", "TimeToLiveExpired")]


async def test_2_where_everything_is_refused_it_is_asked_no_oftener_than_so_many_may_be_deleted(place: Place) -> None:
    for name in "abc":
        await place.pod("x", name, ttl="1h")
    place.server.faults.refuse(403, times=9, when=lambda asked: asked.method == "DELETE")
    report = await place.run(most=2)
    assert (report.totals[JanitorOutcome.FAILED], report.left) == (2, 1)


async def test_2_a_last_look_that_is_refused_stops_no_other_kind(place: Place) -> None:
    await place.pod("a", ttl="1h")
    await place.make(CONFIG_MAPS, "m", ttl="2h")
    place.server.faults.refuse(403, when=lambda asked: asked.path.endswith("/pods/a"))
    report = await place.run()
    assert lines(report, JanitorOutcome.FAILED) == [("pods/team/a", "Refused")]
    assert lines(report, JanitorOutcome.DELETED) == [("configmaps/team/m", "TimeToLiveExpired")]


async def test_3_a_notice_that_is_refused_stops_no_other_object(place: Place) -> None:
    await place.pod("a", ttl="11h")
    await place.make(CONFIG_MAPS, "m", ttl="1h", annotations=told("2026-01-09T15:00:00Z", "2026-01-09T14:00:00Z"))
    place.server.faults.refuse(403, when=lambda asked: asked.method == "PATCH")
    report = await place.run(notice=2)
    assert lines(report, JanitorOutcome.FAILED) == [("pods/team/a", "Refused")]
    assert lines(report, JanitorOutcome.DELETED) == [("configmaps/team/m", "TimeToLiveExpired")]


async def test_4_a_rule_that_fails_on_one_object_stops_no_other(place: Place) -> None:
    rules = """rules: [{id: x, resources: [pods], jmespath: "starts_with(metadata.labels.app, 'x')", ttl: 1h}]"""
    await place.pod("a")
    await place.pod("b", labels={"app": "x1"})
    report = await place.run(rules=rules)
    assert lines(report, JanitorOutcome.DELETED) == [("pods/team/b", "TimeToLiveExpired")]
    assert lines(report, JanitorOutcome.HELD) == [("pods/team/a", "RuleUnknown")]


async def test_5_an_owner_learns_once_that_his_annotation_cannot_be_read(place: Place) -> None:
    await place.pod("a", ttl="90")
    report = await place.run()
    await place.run()
    assert lines(report, JanitorOutcome.HELD) == [("pods/team/a", "AnnotationUnreadable")]
    assert await place.events() == [("AnnotationUnreadable", "a")]
    assert place.writes() == []


async def test_5_where_events_are_refused_in_one_namespace_owners_in_another_learn_all_the_same(place: Place) -> None:
    for space in ("broken", "team"):
        for name in "ab":
            await place.pod(name, space, ttl="90")
    place.server.faults.refuse(403, times=9, when=lambda asked: asked.method == "POST" and "broken" in asked.path)
    report = await place.run()
    assert report.problems == ["owners in broken are not told: refused by a planned fault (403)"]
    assert await place.events() == [("AnnotationUnreadable", "a"), ("AnnotationUnreadable", "b")]


async def test_6_an_object_that_came_later_under_the_same_name_is_not_hit(place: Place) -> None:
    await place.pod("a", ttl="1h")

    async def again() -> None:
        await place.admin.delete(PODS, "a", namespace="team")
        await place.pod("a", ttl="1h")

    report = await raced(place, again)
    assert report.totals[JanitorOutcome.DELETED] == 0
    assert await place.names(PODS) == {"a"}


@pytest.mark.parametrize("change", [{"janitor/ttl": "90h"}, {"remediator.dev/keep-until": "forever"}])
async def test_6_an_object_is_looked_at_again_before_it_is_deleted(place: Place, change: dict[str, str]) -> None:
    await place.pod("a", ttl="1h")
    report = await raced(place, lambda: place.annotate(PODS, "a", **change))
    assert report.totals[JanitorOutcome.DELETED] == 0
    assert await place.names(PODS) == {"a"}


async def test_6_an_object_that_changes_between_the_last_look_and_the_deletion_is_not_deleted(place: Place) -> None:
    await place.pod("a", ttl="1h")
    report = await raced(place, lambda: place.annotate(PODS, "a", note="x"), method="POST")
    assert lines(report, JanitorOutcome.FAILED) == [("pods/team/a", "Changed")]
    assert await place.names(PODS) == {"a"}
    assert (await place.run()).totals[JanitorOutcome.DELETED] == 1


async def test_7_an_object_that_would_come_back_is_held_and_its_owner_told_where_the_annotation_belongs(
    place: Place,
) -> None:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-1", "uid": "u", "controller": True}
    await place.pod("a", ttl="1h", metadata={"ownerReferences": [owner]})
    report = await place.run()
    assert lines(report, JanitorOutcome.HELD) == [("pods/team/a", "OwnerRecreates")]
    assert await place.events() == [("OwnerRecreates", "a")]
    cron = {"apiVersion": "batch/v1", "kind": "CronJob", "name": "nightly", "uid": "u", "controller": True}
    await place.pod("b", ttl="1h", metadata={"ownerReferences": [cron]})
    assert lines(await place.run(), JanitorOutcome.DELETED) == [("pods/team/b", "TimeToLiveExpired")]


async def test_7_nobody_is_told_of_an_object_that_would_come_back_and_that_only_a_rule_matches(place: Place) -> None:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-1", "uid": "u", "controller": True}
    await place.pod("a", metadata={"ownerReferences": [owner]})
    report = await place.run(rules="rules: [{id: r, resources: ['*'], jmespath: metadata.ownerReferences, ttl: 1h}]")
    assert lines(report, JanitorOutcome.HELD) == [("pods/team/a", "OwnerRecreates")]
    assert await place.events() == []


async def test_8_who_makes_a_ttl_longer_is_told_again(place: Place) -> None:
    await place.pod("a", ttl="11h")
    assert lines(await place.run(notice=2), JanitorOutcome.TOLD) == [("pods/team/a", "DeleteNotification")]
    assert (await place.run(notice=2)).waiting == 1
    await place.annotate(PODS, "a", **{"janitor/ttl": "15h"})
    assert (await place.run(hours=1, notice=2)).waiting == 1
    assert lines(await place.run(hours=4, notice=2), JanitorOutcome.TOLD) == [("pods/team/a", "DeleteNotification")]
    assert lines(await place.run(hours=6, notice=2), JanitorOutcome.DELETED) == [("pods/team/a", "TimeToLiveExpired")]
    assert [reason for reason, _ in await place.events()] == ["DeleteNotification"] * 2 + ["TimeToLiveExpired"]


async def test_9_only_metadata_is_read_page_by_page_and_of_secrets_nothing(place: Place) -> None:
    await place.make(SECRETS, "s", ttl="1h", data={"password": "c2VjcmV0"})
    await place.pod("a", ttl="1h")
    report = await place.run()
    lists = {path: (query, accept) for method, path, query, _, accept in place.transport.asked if method == "GET"}
    assert "/api/v1/secrets" not in lists
    assert lists["/api/v1/pods"] == ([("limit", "500")], HEADS)
    assert report.counts["secrets-with-ttl"] == 0
    await place.run(selection=Selection(include_resources=frozenset({"all", "secrets"})))
    assert await place.names(SECRETS) == set()


async def test_9_of_kinds_that_a_rule_is_about_the_objects_are_read_in_smaller_pages(place: Place) -> None:
    await place.pod("a")
    await place.run(rules="rules: [{id: r, resources: [pods], jmespath: spec.gone, ttl: 1h}]")
    asked = [(path, query, accept) for method, path, query, _, accept in place.transport.asked if method == "GET"]
    assert ("/api/v1/pods", [("limit", "200")], "application/json") in asked
    assert all(accept == HEADS for path, _, accept in asked if path == "/api/v1/configmaps")


async def test_10_a_pass_deletes_so_many_and_the_longest_overdue_first(place: Place) -> None:
    for name, ttl in (("a", "3h"), ("b", "1h"), ("c", "2h")):
        await place.pod(name, ttl=ttl)
    report = await place.run(most=2)
    assert lines(report, JanitorOutcome.DELETED) == [
        ("pods/team/b", "TimeToLiveExpired"),
        ("pods/team/c", "TimeToLiveExpired"),
    ]
    assert report.left == 1
    assert (await place.run(most=2)).counts["pods-deleted"] == 1


async def test_10_what_a_user_keeps_stays_and_so_does_what_is_in_a_namespace_that_he_keeps(place: Place) -> None:
    await place.pod("a", ttl="1h", keep="2026-01-10T08:00:00Z")
    await place.space("ours", **{"remediator.dev/keep-until": "forever"})
    await place.pod("b", "ours", ttl="1h")
    report = await place.run()
    assert lines(report, JanitorOutcome.HELD) == [("pods/ours/b", "NamespaceKept"), ("pods/team/a", "KeptByUser")]
    assert lines(await place.run(hours=8), JanitorOutcome.DELETED) == [("pods/team/a", "TimeToLiveExpired")]


async def test_11_times_have_zones(place: Place) -> None:
    await place.pod("a", expires="2026-01-10T09:30:00+09:00")
    assert (await place.run(hours=0.4)).waiting == 1
    assert (await place.run(hours=0.5)).totals[JanitorOutcome.DELETED] == 1


# --- what is ours ---


async def test_an_owner_stays_while_a_user_keeps_what_would_go_with_it(place: Place) -> None:
    job = await place.make(CONFIG_MAPS, "job", ttl="1h")
    await place.pod("pod", keep="2026-01-10T08:00:00Z", metadata={"ownerReferences": [owned_by(job)]})
    report = await place.run()
    assert lines(report, JanitorOutcome.HELD) == [("configmaps/team/job", "OwnsKept")]
    assert (
        report.lines[JanitorOutcome.HELD][0].message == "what it owns would go with it, and a user keeps pods/team/pod"
    )
    assert lines(await place.run(hours=8), JanitorOutcome.DELETED) == [("configmaps/team/job", "TimeToLiveExpired")]


async def test_a_deployment_stays_while_a_user_keeps_a_pod_of_it(place: Place) -> None:
    """The janitor may not read ReplicaSets: they are named after their Deployment."""
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-5d9c7b8f4d", "uid": "u", "controller": True}
    await place.pod("web-5d9c7b8f4d-x7k2p", keep="forever", metadata={"ownerReferences": [owner]})
    for name in ("web", "web-5d9c7b8f4d", "other"):
        await place.make(DEPLOYMENTS, name, ttl="1h")
    report = await place.run()
    assert lines(report, JanitorOutcome.HELD) == [("deployments/team/web", "OwnsKept")]
    assert [what for what, _ in lines(report, JanitorOutcome.DELETED)] == [
        "deployments/team/other",
        "deployments/team/web-5d9c7b8f4d",
    ]


async def test_a_namespace_stays_while_a_user_keeps_something_in_it(place: Place) -> None:
    await place.space("pr-7")
    await place.pod("a", "pr-7", keep="forever")
    assert lines(await place.run(hours=5, rules=PR), JanitorOutcome.HELD) == [("namespaces/pr-7", "NamespaceHoldsKept")]
    await place.annotate(PODS, "a", "pr-7", **{"remediator.dev/keep-until": None})
    place.server.faults.refuse(500, when=lambda asked: asked.path.endswith("/configmaps"))
    held = await place.run(hours=5, rules=PR)
    assert "configmaps not listed" in held.lines[JanitorOutcome.HELD][0].message, "nobody can tell what is in it"
    gone = await place.run(hours=5, rules=PR)
    assert lines(gone, JanitorOutcome.DELETED) == [("namespaces/pr-7", "TimeToLiveExpired")]
    assert gone.lines[JanitorOutcome.DELETED][0].message.endswith(
        "; what is in it goes with it, Secrets and other kinds that are not looked at, too"
    )


async def test_a_namespace_stays_when_a_user_keeps_something_in_it_after_the_lists_were_read(place: Place) -> None:
    await place.space("pr-7")
    await place.pod("a", "pr-7")

    async def keep() -> None:
        await place.annotate(PODS, "a", "pr-7", **{"remediator.dev/keep-until": "forever"})

    report = await raced(place, keep, single="/pr-7", hours=5, rules=PR)
    assert lines(report, JanitorOutcome.HELD) == [("namespaces/pr-7", "NamespaceHoldsKept")]
    assert report.lines[JanitorOutcome.HELD][0].message == "a user keeps pods/pr-7/a in it"
    assert "pr-7" in await place.names(NAMESPACES)


async def test_dry_run_writes_nothing_and_reports_what_would_be_done(place: Place) -> None:
    await place.pod("a", ttl="1h")
    await place.pod("b", ttl="11h")
    await place.pod("c", ttl="90")
    report = await place.run(JanitorMode.DRY_RUN)
    assert place.writes() == []
    assert list(report.rendered())[1:] == [
        "would delete  pods/team/a  TimeToLiveExpired     janitor/ttl: 1h; over since 2026-01-09T15:00:00Z",
        "held          pods/team/c  AnnotationUnreadable  janitor/ttl: '90' is no length of time: write a number with "
        "s, m, h, d or w, such as 90m, 1h30m or 7d, or forever",
    ]
    assert next(report.rendered()).endswith("would delete 1, would tell 0, held 1, failed 0, waiting 1")


async def test_a_rule_that_does_not_compile_is_named_and_stops_only_itself(place: Place) -> None:
    await place.pod("a", labels={"x": "1"})
    sound = "{id: sound, resources: [pods], jmespath: metadata.labels.x, ttl: 2h}"
    report = await place.run(rules=f"rules: [{{id: broken, resources: [pods], jmespath: 'a..b', ttl: 1h}}, {sound}]")
    assert report.problems[0].startswith("rule broken: column 3: ")
    assert report.counts["pods-deleted"] == report.counts["rule-sound-matches"] == 1


async def test_a_pass_ends_early_where_the_server_is_away_and_the_next_goes_on(place: Place) -> None:
    for name in "abc":
        await place.pod(name, ttl="1h")
    place.server.faults.lose(when=lambda asked: asked.method == "DELETE")
    report = await place.run()
    assert report.problems == ["the pass ended early: the connection broke"]
    assert await place.names(PODS) == {"b", "c"}, "nobody knows whether it happened, and it did"
    assert (await place.run()).counts["pods-deleted"] == 2


async def test_what_is_in_a_namespace_that_is_being_deleted_is_left_alone(place: Place) -> None:
    await place.pod("a", ttl="1h", metadata={"finalizers": ["x.example/y"]})
    await place.admin.delete(NAMESPACES, "team")
    assert (await place.run()).totals[JanitorOutcome.DELETED] == 0


async def test_a_hook_of_the_administrator_gives_rules_more_to_ask_for(place: Place) -> None:
    rules = "rules: [{id: h, resources: [pods], jmespath: _context.idle, ttl: 1h}]"
    await place.pod("a")
    await place.pod("b")
    report = await place.run(rules=rules, hook=lambda resource, cache: {"idle": resource.name == "a"})
    assert lines(report, JanitorOutcome.DELETED) == [("pods/team/a", "TimeToLiveExpired")]

    def fails(resource: Any, cache: dict[str, Any]) -> dict[str, Any]:
        raise RuntimeError("broken")

    assert lines(await place.run(rules=rules, hook=fails), JanitorOutcome.HELD) == [("pods/team/b", "RuleUnknown")]


def told(deadline: str, at: str) -> dict[str, str]:
    return {"janitor/notified": deadline, "janitor/notified-at": at}


async def raced(
    place: Place,
    change: Callable[[], Awaitable[None]],
    method: str = "GET",
    single: str = "/pods/a",
    **settings: Any,
) -> Report:
    """A pass in which something happens right before an object is read again, or before the Event on it."""
    wait = place.transport.request
    done: list[bool] = []

    async def request(asked: str, path: str, **rest: Any) -> Any:
        if asked == method and path.endswith(single if method == "GET" else "/events") and not done:
            done.append(True)
            await change()
        return await wait(asked, path, **rest)

    place.transport.request = request  # type: ignore[method-assign]
    try:
        report = await place.run(**settings)
    finally:
        place.transport.request = wait  # type: ignore[method-assign]
    assert done == [True]
    return report

"""Prometheus' own promtool evaluates the alert rules: each fires where it should, and says what it should.

It reads the queries of the dashboards, too.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.cluster.promtool import RANGE, Branch, Fires, always, growing, promtool, tried, unnoticed
from tests.contract.alerts import generator
from tests.contract.test_dashboards import QUERIES

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]
# One healthy replica of two: nothing fires.
HEALTHY = {
    'remediator_leader{pod="a"}': always(1),
    'remediator_leader{pod="b"}': always(0),
    'remediator_leader_changes_total{pod="a",change="gained"}': always(1),
    'remediator_watch_age_seconds{pod="a",kind="nodes"}': always(40),
    'remediator_clock_skew_seconds{pod="a"}': always(-2),
    'remediator_unreadable_objects{pod="a",kind="nodes"}': always(0),
    'remediator_gave_up_total{pod="a",effect="Claim",reason="Invalid"}': always(3),
    'remediator_contained_failures_total{pod="a",where="nodes"}': always(2),
    'remediator_requeues_total{pod="a",queue="nodes",reason="later"}': growing(100),
    'remediator_loop_lag_seconds_bucket{pod="a",le="0.01"}': growing(100),
    'remediator_loop_lag_seconds_bucket{pod="a",le="+Inf"}': growing(100),
    'remediator_oldest_hold_seconds{pod="a",reason="BudgetSpent"}': always(1800),
    'remediator_oldest_hold_seconds{pod="a",reason="DryRun"}': always(1_000_000),
    'remediator_oldest_hold_seconds{pod="a",reason="HeldByUser"}': always(90_000),
    'remediator_oldest_hold_seconds{pod="a",reason="Paused"}': always(7200),
    'remediator_cases{pod="a",phase="Draining"}': always(2),
    'remediator_cases{pod="a",phase="Escalated"}': always(1),  # which a user has taken out
    'remediator_nodes_taken_out{pod="a",overdue="false"}': always(1),
    'remediator_budget_nodes{pod="a",budget="default",count="total"}': always(100),
    'remediator_budget_nodes{pod="a",budget="default",count="most"}': always(5),
    'remediator_budget_nodes{pod="a",budget="default",count="unavailable"}': always(4),
    'remediator_budget_nodes{pod="a",budget="default",count="quarantined"}': always(1),
    'remediator_budget_nodes{pod="a",budget="default",count="most_quarantined"}': always(5),
    'remediator_budget_nodes{pod="a",budget="nobody",count="total"}': always(0),
    'remediator_budget_nodes{pod="a",budget="nobody",count="most"}': always(0),
    'remediator_budget_nodes{pod="a",budget="nobody",count="unavailable"}': always(0),
    'remediator_budget_nodes{pod="a",budget="nobody",count="quarantined"}': always(0),
    'remediator_budget_nodes{pod="a",budget="nobody",count="most_quarantined"}': always(0),
    'remediator_budget_nodes{pod="a",budget="empty",count="total"}': always(0),
    'remediator_budget_nodes{pod="a",budget="empty",count="most"}': always(0),
    'remediator_budget_nodes{pod="a",budget="empty",count="unavailable"}': always(0),
    'remediator_budget_nodes{pod="a",budget="empty",count="most_quarantined"}': always(5),
    'remediator_budget_nodes{pod="a",budget="racks",count="groups_full"}': always(0),
    'remediator_budget_nodes{pod="a",budget="racks",count="ungrouped"}': always(0),
    'remediator_held_cases{pod="a",reason="BudgetSpent"}': always(3),
    'remediator_fleet_breaker_open{pod="a"}': always(0),
    'remediator_breaker_open{pod="a",policy="gpu-lost"}': always(0),
    'remediator_criterion_muted{pod="a",policy="gpu-lost"}': always(0),
    'remediator_budget_breaker_open{pod="a",budget="default"}': always(0),
    'remediator_unknown_nodes{pod="a",condition="GpuLost"}': always(0),
    'remediator_rejecting_nodes{pod="a"}': always(0),
    'remediator_unsynced_tickets{pod="a"}': always(0),
    'remediator_alertmanager_lists_total{pod="a",result="Answered"}': growing(2),
    'remediator_alert_deliveries_total{pod="a",result="stored"}': growing(2),
    'remediator_prometheus_queries_total{pod="a",result="Answered"}': growing(2),
    'remediator_ticket_routes_outdated{pod="a"}': always(0),
    'remediator_chat_rooms_outdated{pod="a"}': always(0),
    'remediator_janitor_owners_outdated{pod="c"}': always(0),
    'remediator_extender_answers_total{pod="a",call="filter",result="ok"}': growing(6000),
    'remediator_extender_answers_total{pod="a",call="bind",result="refused"}': growing(60),
    'remediator_extender_seconds_bucket{pod="a",call="filter",le="0.005"}': growing(6000),
    'remediator_extender_seconds_bucket{pod="a",call="filter",le="+Inf"}': growing(6000),
    'remediator_extender_only_scores{pod="a",reason="Paused"}': always(0),
    'remediator_certificate_expiry_timestamp_seconds{pod="a",whose="server"}': always(80 * 86_400),
    'remediator_refused_calls_total{pod="a",endpoint="extender",reason="unauthorized"}': growing(1),
    'remediator_janitor_failed_passes_total{pod="c"}': always(1),
    'remediator_janitor_problems{pod="c"}': always(0),
}

FIRES: Mapping[str, Fires] = {
    "RemediatorDown": Fires(
        {'remediator_leader{pod="a"}': "_", 'remediator_leader{pod="b"}': "_"},
        {},
        "Prometheus has no metric of any replica: nothing may be repaired, "
        "and no other alert about Remediator can fire.",
    ),
    "RemediatorNoLeader": Fires(
        {'remediator_leader{pod="a"}': always(0)}, {}, "No replica leads: no node is repaired, no issue is written."
    ),
    "RemediatorLeaderChanges": Fires(
        {'remediator_leader_changes_total{pod="a",change="gained"}': growing(0.2)},
        {},
        "The leader has changed 12 times within an hour: each change costs a pass.",
    ),
    "RemediatorWatchSilent": Fires(
        {'remediator_watch_age_seconds{pod="a",kind="nodes"}': always(180)},
        {"kind": "nodes"},
        "The watch of nodes is silent: decisions rest on what was true 3m 0s ago.",
    ),
    "RemediatorClockSkew": Fires(
        {'remediator_clock_skew_seconds{pod="a"}': always(-20)},
        {},
        "The clocks of a replica and of the API server differ by 20s; beyond 30 s the replica does not lead.",
    ),
    "RemediatorObjectsUnreadable": Fires(
        {'remediator_unreadable_objects{pod="a",kind="nodes"}': always(2)},
        {"kind": "nodes"},
        "2 objects of nodes cannot be read; each holds what it may concern.",
    ),
    "RemediatorDefinitionsOutdated": Fires(
        {'remediator_definition_missing_fields{pod="a",kind="RemediationPolicy"}': always(7)},
        {"kind": "RemediationPolicy"},
        "The definition of RemediationPolicy is older than the controller: "
        "the API server drops 7 fields that it writes.",
    ),
    "RemediatorWritesRefused": Fires(
        {'remediator_gave_up_total{pod="a",effect="Claim",reason="Invalid"}': growing(1)},
        {"effect": "Claim", "reason": "Invalid"},
        "The API server refuses a write of Remediator: Claim, Invalid.",
    ),
    "RemediatorFailuresContained": Fires(
        {'remediator_contained_failures_total{pod="a",where="nodes"}': growing(1)},
        {"where": "nodes"},
        "Something that nobody foresaw fails for one object, and only for it (nodes).",
    ),
    "RemediatorPassesFail": Fires(
        {'remediator_requeues_total{pod="a",queue="nodes",reason="failed"}': growing(1)},
        {"queue": "nodes"},
        "Passes of the queue nodes fail again and again.",
    ),
    "RemediatorLoopLag": Fires(
        {
            'remediator_loop_lag_seconds_bucket{pod="a",le="0.01"}': growing(90),
            'remediator_loop_lag_seconds_bucket{pod="a",le="1"}': growing(100),
        },
        {},
        "A replica is overloaded: one wake-up in a hundred comes 901ms late.",
    ),
    "RemediatorCriterionMuted": Fires(
        {'remediator_criterion_muted{pod="a",policy="link-fault"}': always(1)},
        {"policy": "link-fault"},
        "Too many nodes of policy link-fault show at once what is new in this release: it repairs none of them.",
    ),
    "RemediatorHoldLong": Fires(
        {'remediator_oldest_hold_seconds{pod="a",reason="BudgetSpent"}': always(5400)},
        {"reason": "BudgetSpent"},
        "A case is held for 1h 30m 0s: BudgetSpent.",
    ),
    "RemediatorPausedLong": Fires(
        {'remediator_oldest_hold_seconds{pod="a",reason="Paused"}': always(90_000)},
        {"reason": "Paused"},
        "Somebody has paused repair 1d 1h 0m 0s ago, and a node waits: Paused.",
    ),
    "RemediatorPersonNeeded": Fires(
        {
            'remediator_cases{pod="a",phase="Escalated"}': always(2),
            'remediator_cases{pod="b",phase="Escalated"}': always(2),
            'remediator_nodes_taken_out{pod="a",overdue="false"}': always(0),
            'remediator_nodes_taken_out{pod="a",overdue="true"}': always(0),
        },
        {},
        "2 nodes wait for a person.",
    ),
    "RemediatorTakeOutOverdue": Fires(
        {
            'remediator_nodes_taken_out{pod="a",overdue="true"}': always(2),
            'remediator_nodes_taken_out{pod="b",overdue="true"}': always(2),
            'remediator_nodes_taken_out{pod="a",overdue="false"}': always(1),
        },
        {},
        "2 nodes that users have taken out are overdue: nobody has put them back.",
    ),
    "RemediatorBudgetFull": Fires(
        {'remediator_budget_nodes{pod="a",budget="default",count="unavailable"}': always(5)},
        {"budget": "default"},
        "The budget default is full with 5 nodes: no other of its nodes is repaired.",
    ),
    "RemediatorBudgetGroupFull": Fires(
        {'remediator_budget_nodes{pod="a",budget="racks",count="groups_full"}': always(1)},
        {"budget": "racks"},
        "1 groups of the budget racks are full: no other of their nodes is repaired.",
    ),
    "RemediatorBudgetNodesUngrouped": Fires(
        {'remediator_budget_nodes{pod="a",budget="racks",count="ungrouped"}': always(3)},
        {"budget": "racks"},
        "3 nodes of the budget racks lack the label that groupBy names: nothing starts on them.",
    ),
    "RemediatorQuarantineRises": Fires(
        {'remediator_budget_nodes{pod="a",budget="default",count="quarantined"}': always(3)},
        {"budget": "default"},
        "3 nodes of the budget default wait for a person: at maxQuarantined nothing new starts.",
    ),
    "RemediatorQuarantineFull": Fires(
        {'remediator_held_cases{pod="a",reason="QuarantineFull"}': always(7)},
        {},
        "So many nodes wait for a person that nothing new starts: 7 cases are held.",
    ),
    "RemediatorBreakerOpen": Fires(
        {'remediator_breaker_open{pod="a",policy="gpu-lost"}': always(1)},
        {"policy": "gpu-lost"},
        "A breaker is open for the policy gpu-lost: too much started at once, or most attempts were in vain.",
    ),
    "RemediatorDetectorsSilent": Fires(
        {'remediator_unknown_nodes{pod="a",condition="GpuLost"}': always(4)},
        {"condition": "GpuLost"},
        "4 nodes do not report GpuLost: a fault there would not be seen.",
    ),
    "RemediatorNodesRejectPods": Fires(
        {'remediator_rejecting_nodes{pod="a"}': always(1)}, {}, "1 nodes reject the Pods placed on them."
    ),
    "RemediatorTicketsUnsynced": Fires(
        {'remediator_unsynced_tickets{pod="a"}': always(9)},
        {},
        "9 tickets cannot be written to their issues: people are not told.",
    ),
    "RemediatorAlertsUnknown": Fires(
        {'remediator_alertmanager_lists_total{pod="a",result="TimedOut"}': growing(1)},
        {"result": "TimedOut"},
        "Nobody can tell which alerts fire (TimedOut): issues of alerts stay as they are.",
    ),
    "RemediatorAlertPostsRefused": Fires(
        {'remediator_alert_deliveries_total{pod="a",result="forbidden"}': growing(1)},
        {"result": "forbidden"},
        "Posts of Alertmanager are not taken: forbidden.",
    ),
    "RemediatorPrometheusUnknown": Fires(
        {'remediator_prometheus_queries_total{pod="a",result="TimedOut"}': growing(1)},
        {"result": "TimedOut"},
        "Prometheus gives no verdict (TimedOut): cases of policies with confirm are held.",
    ),
    "RemediatorSettingsOutdated": Fires(
        {'remediator_chat_rooms_outdated{pod="a"}': always(1)},
        {},
        "A file of settings has a mistake, and what it said before counts.",
    ),
    "RemediatorExtenderErrors": Fires(
        {'remediator_extender_answers_total{pod="a",call="filter",result="cold"}': growing(6)},
        {"call": "filter", "result": "cold"},
        "The scheduler extender cannot answer filter: cold.",
    ),
    "RemediatorExtenderSlow": Fires(
        {
            'remediator_extender_seconds_bucket{pod="a",call="filter",le="0.005"}': growing(10),
            'remediator_extender_seconds_bucket{pod="a",call="filter",le="2"}': growing(6000),
        },
        {"call": "filter"},
        "One filter in a hundred takes 1.98s: kube-scheduler waits as long for each Pod.",
    ),
    "RemediatorExtenderOnlyScores": Fires(
        {'remediator_extender_only_scores{pod="a",reason="TooManyUnhealthy"}': always(1)},
        {"reason": "TooManyUnhealthy"},
        "The extender refuses no node for its health (TooManyUnhealthy): Pods may be placed on unhealthy nodes.",
    ),
    "RemediatorCertificateEnds": Fires(
        {
            'remediator_certificate_expiry_timestamp_seconds{pod="a",whose="alertmanager"}': always(
                86_400 + (60 + RANGE) * 60
            )
        },
        {"whose": "alertmanager"},
        "The certificate of alertmanager ends in 1d 0h 0m 0s.",
    ),
    "RemediatorCallsRefused": Fires(
        {'remediator_refused_calls_total{pod="a",endpoint="webhook",reason="full"}': growing(10)},
        {"endpoint": "webhook", "reason": "full"},
        "Calls to webhook are refused: full.",
    ),
    "RemediatorJanitorFails": Fires(
        {'remediator_janitor_problems{pod="c"}': always(1)},
        {},
        "The janitor cannot do all of its work: passes fail, or rules cannot be used.",
    ),
}


MISTAKE = "A file of settings has a mistake, and what it said before counts."
OPEN = "too much started at once, or most attempts were in vain."
MORE: Sequence[Branch] = (
    (
        "RemediatorBreakerOpen",
        Fires({'remediator_fleet_breaker_open{pod="a"}': always(1)}, {}, f"A breaker is open: {OPEN}"),
    ),
    (
        "RemediatorBreakerOpen",
        Fires(
            {'remediator_budget_breaker_open{pod="a",budget="default"}': always(1)},
            {"budget": "default"},
            f"A breaker is open for the budget default: {OPEN}",
        ),
    ),
    ("RemediatorSettingsOutdated", Fires({'remediator_ticket_routes_outdated{pod="a"}': always(1)}, {}, MISTAKE)),
    ("RemediatorSettingsOutdated", Fires({'remediator_janitor_owners_outdated{pod="c"}': always(1)}, {}, MISTAKE)),
    (
        "RemediatorJanitorFails",
        Fires(
            {'remediator_janitor_failed_passes_total{pod="c"}': growing(1)},
            {},
            "The janitor cannot do all of its work: passes fail, or rules cannot be used.",
        ),
    ),
)


def test_nothing_fires_where_all_is_well_and_each_alert_fires_alone_where_it_should(tmp_path: Path) -> None:
    tried(generator()["OURS"], HEALTHY, FIRES, tmp_path, MORE)


def test_prometheus_reads_each_query_of_the_dashboards(tmp_path: Path) -> None:
    rules = [{"record": f"query_{number}", "expr": expr} for number, (_, _, expr) in enumerate(QUERIES)]
    file = tmp_path / "rules.yaml"
    file.write_text(json.dumps({"groups": [{"name": "dashboards", "rules": rules}]}))
    assert f"{len(QUERIES)} rules found" in promtool("check", "rules", file)


@pytest.mark.sampled("broken rules", on_server=True)
@pytest.mark.parametrize("name", sorted(FIRES))
def test_a_rule_that_is_broken_in_any_way_is_noticed_by_the_series_of_its_alert(name: str, tmp_path: Path) -> None:
    series = [FIRES[name], *(each for raised, each in MORE if raised == name)]
    assert unnoticed(generator()["OURS"], name, HEALTHY, series, tmp_path) == {}

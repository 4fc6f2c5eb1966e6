"""What the page shows, from facts alone: states of nodes, racks, the queue, changes, and the size of all of it."""

import gzip
import math
import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from remediator.core import names
from remediator.core.breaker import Breaker
from remediator.core.budget import Budget, Counts
from remediator.core.case import Block, Case, KeepOut, Manual, Phase
from remediator.core.node import Node, Taint
from remediator.core.places import DEFAULT
from remediator.core.reasons import Reason
from remediator.core.running import Leading, Running
from remediator.kube.overview import Overview
from remediator.web.page.changes import change
from remediator.web.page.detail_view import case_detail, node_view
from remediator.web.page.fleet_view import MOST_CASES, FleetFacts, fleet_view, nodes_data
from remediator.web.page.freshness import Freshness, freshness, freshness_data
from remediator.web.page.html import Pages
from remediator.web.page.node_standing import NodeStanding, state_of
from remediator.web.page.search import Matches
from tests.builders import a_budget, a_case, a_node, at, condition

RACK = "topology.kubernetes.io/rack"
OF_NOW = {"asOf": f"{at(10):%Y-%m-%d %H:%M:%S} UTC", "stale": ""}


def facts(*nodes: Node, cases: tuple[Case, ...] = (), budgets: tuple[Budget, ...] = (), **more: Any) -> FleetFacts:
    """What a replica knows of these, at minute 10."""
    fleet = Overview(len(nodes), cases, (), budgets, False)
    running = Running(Breaker(), DEFAULT)
    fresh = more.pop("fresh", Freshness(at(10), at(10)))
    return FleetFacts(fleet, nodes, Leading(), running, "remediator-system", (RACK,), at(10), fresh, **more)


def held(reason: Reason, node: str = "gpu-1") -> Case:
    """A case that something holds."""
    return a_case(f"{node}-gpulost", node=node, blocks=(Block(reason, "as it is", since=at(1)),))


TAKEN = {
    "phase": Phase.ESCALATED,
    "reason": Reason.TAKEN_OUT,
    "manual": Manual("op", "uid", "take-out", {}, "alice"),
    "keep_out": KeepOut(at(60)),
}


@pytest.mark.parametrize(
    ("node", "cases", "letter"),
    [
        (a_node(), (), "S"),
        (a_node(ready="False"), (), "N"),
        (a_node(ready="Unknown"), (), "U"),
        (a_node(unschedulable=True), (), "C"),
        (a_node(labels={names.EXCLUDE: "true"}), (), "X"),
        (a_node(taints=[Taint(f"{names.GROUP}/new", "", "NoSchedule")]), (), "G"),
        (a_node(taints=[Taint("broken", "true", "NoSchedule")]), (), "K"),
        (a_node(taints=[Taint("node.kubernetes.io/out-of-service", "nodeshutdown", "NoExecute")]), (), "K"),
        (a_node(taints=[Taint("broken", "true", "PreferNoSchedule")]), (), "S"),
        (a_node(taints=[Taint("nvidia.com/gpu", "present", "NoSchedule")]), (), "S"),
        (a_node(labels={"pool": "a"}, taints=[Taint("pool", "a", "NoSchedule")]), (), "S"),
        (a_node(labels={"pool": "a"}, taints=[Taint("pool", "b", "NoSchedule")]), (), "K"),
        (a_node(unschedulable=True, taints=[Taint("broken", "", "NoSchedule")]), (), "C"),
        (a_node(ready="False"), (held(Reason.BUDGET_SPENT),), "W"),
        (a_node(), (held(Reason.APPROVAL_NEEDED),), "P"),
        (a_node(), (held(Reason.DRY_RUN),), "P"),
        (a_node(), (a_case(phase=Phase.ESCALATED, reason=Reason.LADDER_EXHAUSTED),), "P"),
        (a_node(), (a_case(phase=Phase.OPERATING),), "R"),
        (a_node(), (a_case(**TAKEN),), "T"),
        (a_node(), (held(Reason.BUDGET_SPENT), held(Reason.APPROVAL_NEEDED)), "P"),
    ],
)
def test_a_node_has_the_letter_of_what_is_most_urgent(node: Node, cases: tuple[Case, ...], letter: str) -> None:
    assert state_of(node, cases).letter == letter


def test_the_page_of_the_docs_has_every_letter_with_its_word_in_their_order() -> None:
    text = (Path(__file__).parents[4] / "docs" / "page.md").read_text()
    rows = re.findall(r"^\| ([A-Z]) \| ([^|:]+?)(?::[^|]*)? \|$", text, re.MULTILINE)
    assert rows == [(state.letter, state.word) for state in NodeStanding]


def test_no_two_states_share_a_letter_or_a_word() -> None:
    assert (
        len({state.letter for state in NodeStanding})
        == len({state.word for state in NodeStanding})
        == len(NodeStanding)
    )


def test_nodes_stand_in_their_racks_and_those_without_come_last() -> None:
    nodes = (
        a_node("b", labels={RACK: "r2"}),
        a_node("z"),
        a_node("a", labels={RACK: "r2"}),
        a_node("c", labels={RACK: "r1"}),
    )
    view = fleet_view(facts(*nodes, cases=(held(Reason.BUDGET_SPENT, "a"),)))
    assert [(rack.name, [cell.name for cell in rack.nodes]) for rack in view.racks] == [
        ("r1", ["c"]),
        ("r2", ["a", "b"]),
        ("without a rack", ["z"]),
    ]
    assert view.counts == ((NodeStanding.WAITS, 1), (NodeStanding.IN_SERVICE, 3))
    assert nodes_data(view, Freshness(at(10), at(10)))["nodes"][0] == {
        "name": "c",
        "rack": "r1",
        "state": "S",
        "word": "in service",
    }


def test_nodes_and_racks_are_counted_as_people_count() -> None:
    nodes = [a_node(f"gpu-{number}", labels={RACK: f"r{number // 10}"}) for number in (100, 20, 9, 29, 3)]
    racks = [[cell.name for cell in rack.nodes] for rack in fleet_view(facts(*nodes)).racks]
    assert racks == [["gpu-3", "gpu-9"], ["gpu-20", "gpu-29"], ["gpu-100"]]


def test_the_queue_says_who_must_act_for_what_and_since_when_and_names_so_many_cases() -> None:
    waiting = tuple(held(Reason.BUDGET_SPENT, f"gpu-{number}") for number in range(MOST_CASES + 3))
    view = fleet_view(facts(cases=(*waiting, held(Reason.APPROVAL_NEEDED, "gpu-x"))))
    first, second = view.queue
    assert (first.heading, first.word, len(first.cases)) == ("an operator must act", "ApprovalNeeded", 1)
    assert second.heading == "nobody must act, these go on by themselves"
    assert (second.word, len(second.cases), second.more) == ("BudgetSpent", MOST_CASES, 3)
    assert first.cases[0].message == "as it is"


@pytest.mark.parametrize(
    ("counts", "percent"), [(None, None), (Counts(10, 0, 2), 0), (Counts(10, 1, 1), 50), (Counts(10, 3, 0), 100)]
)
def test_a_budget_is_as_full_as_it_is_used(counts: Counts | None, percent: int | None) -> None:
    view = fleet_view(facts(budgets=(replace(a_budget(), shown=counts),)))
    assert view.budgets[0].percent == percent


@pytest.mark.parametrize(
    ("silent", "answered", "reached", "sentence"),
    [
        ({}, 0.4, True, ""),
        ({}, 4000.0, True, ""),  # nobody has looked at the page for an hour, and now the API server answers
        ({}, 47.2, False, "of 00:09:12 UTC, 47 s ago: the API server cannot be reached."),
        ({"Node": 200.0}, 1.0, True, "of 00:06:40 UTC, 3 min 20 s ago: the API server says nothing of Node."),
        (
            {"RemediationPolicy": 151.0, "Node": 152.0},
            160.0,
            False,
            "of 00:07:20 UTC, 2 min 40 s ago: the API server cannot be reached and the API server says nothing of "
            "Node, RemediationPolicy.",
        ),
        ({}, 700.0, False, "of 2026-11-19 23:58:20 UTC, 11 min 40 s ago: the API server cannot be reached."),
    ],
)
def test_a_page_that_is_not_of_now_says_of_when_it_is_and_why(
    silent: dict[str, float], answered: float, reached: bool, sentence: str
) -> None:
    now = datetime(2026, 11, 20, 0, 10, tzinfo=UTC)
    fresh = freshness(now, silent, answered, reached=reached)
    assert fresh.sentence == (f"Not live: what you see is {sentence}" if sentence else "")
    assert freshness_data(fresh)["live"] is not bool(sentence)


def test_what_was_never_read_is_of_no_moment() -> None:
    fresh = freshness(at(10), {"Node": math.inf}, 1.0, reached=True)
    assert fresh.sentence == "Not live: not everything was read yet: the API server says nothing of Node."
    assert freshness_data(fresh) == {"live": False, "asOf": None, "sentence": fresh.sentence}


def test_an_old_view_says_so_in_every_page_and_in_every_event() -> None:
    old = freshness(at(10), {}, 47.0, reached=False)
    view, pages = fleet_view(facts(a_node("a"), fresh=old)), Pages(signs=True)
    node = node_view(a_node("a"), (), (), (), old)
    case = case_detail(held(Reason.BUDGET_SPENT), old)
    found = pages.search("a", Matches(("a",), (), False), old.sentence)
    for page in (pages.fleet(view, "tag"), pages.node(node), pages.case(case), found):
        (status,) = re.findall(r'<p[^>]* class="warn"[^>]*>(.*?)</p>', page.decode())
        assert status == old.sentence
    assert [view.as_of, node.as_of, case.as_of] == [f"{old.as_of:%Y-%m-%d %H:%M:%S} UTC"] * 3
    assert 'id="live" role="status" class="warn"' in pages.fleet(view, "tag").decode()
    assert change(view, view)[1]["stale"] == old.sentence


def test_of_two_snapshots_only_the_nodes_and_racks_differ_that_have_changed() -> None:
    one, two = a_node("a", labels={RACK: "r1"}), a_node("b", labels={RACK: "r2"})
    before, after = fleet_view(facts(one, two)), fleet_view(facts(one, replace(two, unschedulable=True)))
    assert change(before, before) == ("changed", {"nodes": {}, "words": {}, "racks": {}, **OF_NOW})
    assert change(before, after) == (
        "changed",
        {"nodes": {"b": "C"}, "words": {"C": "cordoned, no case"}, "racks": {"r2": "1 cordoned, no case"}, **OF_NOW},
    )


def test_where_the_racks_are_loaded_anew_the_event_says_how_each_node_is_since_another_replica_may_serve_them() -> None:
    one, two = a_node("a", labels={RACK: "r1"}), a_node("b", labels={RACK: "r2"}, unschedulable=True)
    before, after = fleet_view(facts(one)), fleet_view(facts(one, two))
    every = {
        "nodes": {"a": "S", "b": "C"},
        "words": {"S": "in service", "C": "cordoned, no case"},
        "racks": {"r1": "1 in service", "r2": "1 cordoned, no case"},
        **OF_NOW,
    }
    assert change(before, after) == change(None, after) == ("other", every)
    moved = fleet_view(facts(one, replace(two, labels={RACK: "r1"})))
    assert change(after, moved)[0] == "other"


@pytest.mark.slow
def test_5000_nodes_with_750_cases_are_a_page_of_at_most_80_kib_compressed() -> None:
    nodes = tuple(a_node(f"gpu-node-{number:04}", labels={RACK: f"rack-{number // 18:03}"}) for number in range(5000))
    cases = tuple(held(Reason.BUDGET_SPENT, f"gpu-node-{n:04}") for n in range(750))
    page = Pages(signs=True).fleet(fleet_view(facts(*nodes, cases=cases)), "tag")
    assert page.count(b'class="cell') >= 5000
    assert len(page) < 800 * 1024, len(page)
    assert len(gzip.compress(page, 5)) < 80 * 1024, len(gzip.compress(page, 5))


def test_of_a_message_of_a_megabyte_the_page_has_four_kibibytes_and_says_where_all_is() -> None:
    """It is sent to everybody who follows the page, with each change."""
    node = a_node("gpu-1", replace(condition(), message="'" * 2**20))
    lost, _ = node_view(node, (), (), (), Freshness(at(10), at(10))).conditions
    assert lost.message == "'" * 2**12 + "\n... and more, see the JSON"


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        (
            "https://git.example.org/docs/a?b=1&c=%22",
            '<a href="https://git.example.org/docs/a?b=1&amp;c=%22" rel="noreferrer noopener">'
            "<code>https://git.example.org/docs/a?b=1&amp;c=%22</code></a>",
        ),
        (
            'http://h/"onclick=alert(1)',
            '<a href="http://h/&#34;onclick=alert(1)" rel="noreferrer noopener">'
            "<code>http://h/&#34;onclick=alert(1)</code></a>",
        ),
        ("docs/conditions/GpuXid.md", "<code>docs/conditions/GpuXid.md</code>"),
        ("javascript:alert(1)//https://h", "<code>javascript:alert(1)//https://h</code>"),
        ("https://h\n<script>", "<code>https://h &lt;script&gt;</code>"),
        ("//h/a", "<code>//h/a</code>"),
    ],
)
def test_a_runbook_is_a_link_where_it_is_the_address_of_a_web_page_and_else_text(address: str, shown: str) -> None:
    now, pages = Freshness(at(10), at(10)), Pages(signs=True)
    case = replace(case_detail(held(Reason.BUDGET_SPENT), now), runbook=address)
    assert f"<dt>what to do</dt><dd>{shown}</dd>" in pages.case(case).decode()
    node = node_view(a_node("gpu-1", condition()), (), (), (), now)
    node = replace(node, conditions=tuple(replace(row, runbook=address) for row in node.conditions))
    assert f"({shown})" in pages.node(node).decode()

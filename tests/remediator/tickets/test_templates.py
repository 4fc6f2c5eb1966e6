"""Templates of issues: the sandbox, what falls back to the shipped one, and links; nothing from outside breaks out."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from typer.testing import CliRunner, Result

from remediator import clock
from remediator.cli.every import app
from remediator.core.case import Attempt, Block, Case, Phase, Trigger
from remediator.core.gpus import Gpu
from remediator.core.node import Node
from remediator.core.reasons import Reason
from remediator.tickets.channels.github.limits import problem
from remediator.tickets.channels.routes import Route
from remediator.tickets.channels.routes_file import load
from remediator.tickets.channels.section import fenced
from remediator.tickets.reconcile.conditions import TEMPLATE_INVALID
from remediator.tickets.render.body import section, text
from remediator.tickets.render.content import Content, names
from remediator.tickets.render.facts import GpuFact, facts, stage
from remediator.tickets.render.links import links, parse_link
from remediator.tickets.render.outlook import outlook
from remediator.tickets.render.template import BadTemplate, template
from tests.harness.kinds import NODES
from tests.harness.tickets import TicketHarness, delivery, fires
from tests.remediator.tickets.test_render import AT, HOSTILE, MARKER, MINUTE, a_case, an_alert, seen

HOUR = timedelta(hours=1)
EXAMPLE = Path(__file__).with_name("preview.yaml")
SHIPPED = Path(__file__).parents[3] / "deploy/tickets/routes.yaml"
PAGE = Path(__file__).parents[3] / "docs/tickets.md"
GREEDY = template(
    "greedy.md.j2",
    """# {{ subject.node }} {{ severity }} {{ cluster }}
{% for case in open_cases %}
- {{ case.message|upper }} {{ case.name ~ case.message }} {{ [case.message, case.message]|join(" ") }}
{% endfor %}
| gpu | serial |
| --- | --- |
{% for gpu in gpus %}
| {{ gpu.uuid }} | {{ gpu.serial|default("-")|trim }} |
{% endfor %}

{% for alert in firing %}
* **{{ alert.summary|truncate(20) }}** {{ alert.labels|tojson }} {{ alert.labels|dictsort|first|first }}
* {{ alert|json }} {{ alert.summary|urlQueryEscape }}
{% endfor %}
> {{ node|items|list }} {{ node.rack }}

{{ evidence }}
{{ faults|string }}""",
)


def told(word: str) -> Content:
    """An issue in which others have written this word wherever they can."""
    case = replace(a_case(word, evidence={"text": word}), gpus=(Gpu(word, word),))
    node = Node("gpu-17", "n", {"topology.kubernetes.io/rack": word, "topology.kubernetes.io/zone": word}, {})
    found = seen(case, alerts=(replace(an_alert(word), runbook=f"runbook{word}"),))
    earlier = [replace(case, name="past", policy=word, ended=AT)]
    sites = (parse_link("board", "https://g.example/{{ rack }}?s={{ serial }}"),)
    return Content(found, facts=facts(found, node, earlier, AT + HOUR), links=sites)


@pytest.mark.slow
@given(st.text(st.sampled_from("a@#`|\\<>!-\n[]()*_~/:1 \u202e\x00{}%"), min_size=1, max_size=40))
def test_whatever_others_write_stays_in_code_also_in_a_template_of_a_users_own(word: str) -> None:
    for made_by in (None, GREEDY):
        _harmless(replace(told(word), template=made_by), replace(told("x"), template=made_by))


@pytest.mark.parametrize("word", [HOSTILE, "{{ subject }}", "{% raw %}", "-->", "<!--", "](http://x)", "</details>"])
def test_words_that_mean_something_to_markdown_html_or_jinja_mean_nothing(word: str) -> None:
    for made_by in (None, GREEDY):
        _harmless(replace(told(word), template=made_by), replace(told("x"), template=made_by))


def _harmless(hostile: Content, calm: Content) -> None:
    shown, expected = text(hostile, 64_000), text(calm, 64_000)
    assert shown.problem == ""
    tokens, quiet = _parsed(fenced(shown.text, MARKER)), _parsed(fenced(expected.text, MARKER))
    for kind in ("table_open", "tr_open", "td_open", "heading_open", "list_item_open", "fence", "html_block"):
        assert [token.type for token in tokens].count(kind) == [token.type for token in quiet].count(kind), kind
    inline = [child for token in tokens for child in token.children or () if child.type != "code_inline"]
    prose = " ".join(child.content for child in inline)
    assert "@" not in prose
    assert "#" not in prose
    assert "<" not in prose
    addresses = [str(child.attrGet("href")) for child in inline if child.type == "link_open"]
    assert all(address.startswith("https://g.example/") for address in addresses)


def _parsed(whole: str) -> list:
    return MarkdownIt("commonmark", {"html": True}).enable(["table"]).parse(whole)


def test_functions_of_alertmanager_to_github_are_filters_of_the_same_names() -> None:
    written = "{{ node.rack|urlQueryEscape }} {{ open_cases[0].message|json }}"
    shown = text(replace(told('row 1/2 & "é"'), template=template("t", written)), 9000).text
    assert shown.startswith('`row+1%2F2+%26+%22%C3%A9%22` `"row 1/2 & \\"é\\""`')


def test_the_function_of_alertmanager_to_github_that_templates_lack_stands_in_both_pages_for_its_users() -> None:
    shown = text(replace(told("x"), template=template("t", "{{ timeNow }}")), 9000)
    assert "'timeNow' is undefined" in shown.problem
    for page in (PAGE, PAGE.with_name("from-alertmanager-to-github.md")):
        assert "| `timeNow` | none: " in page.read_text()


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("{{ gpus|map(attribute='uuid') }}", "`['GPU-1']`"),
        ("{{ gpus|selectattr('slot')|map(attribute='uuid') ~ '' }}", "`[]`"),
        ("{{ open_cases|map(attribute='phase')|unique }}", "`['Escalated']`"),
    ],
)
def test_a_list_that_a_filter_made_is_printed_as_a_list(written: str, shown: str) -> None:
    case = replace(a_case(), gpus=(Gpu("1", "GPU-1"),))
    found = seen(case)
    given = Content(found, facts=facts(found, None, (), AT), template=template("t", written))
    assert text(given, 9000).text == shown


@pytest.mark.parametrize(("condition", "page"), [("GpuXid", "GpuXid"), ("ScratchFull", "")])
def test_an_issue_links_to_the_page_of_its_condition_where_there_is_one(condition: str, page: str) -> None:
    case = a_case("gpu-xid")
    case = replace(case, trigger=Trigger(condition, "True", "r", "m", AT))
    assert names(Content(seen(case)))["runbook"] == page


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ("a\n{{ severty }}", "line 2: 'severty' is undefined"),
        ("a\n\n{% if %}", "line 3: Expected an expression, got 'end of statement block'"),
        ("{{ subject.nodes }}", "line 1: 'dict object' has no attribute 'nodes'"),
        ("{{ subject.__class__ }}", "line 1: access to attribute '__class__' of 'dict' object is unsafe"),
        ("{{ severity.upper() }}", "line 1: nothing can be called in a template"),
        ("{{ range(10**9) }}", "** is not allowed"),
        ("{{ range(9) }}", "line 1: nothing can be called in a template"),
        ("{{ 'x' * 1000000000 }}", "* is for numbers only"),
        ("{{ '%1000000000d' % 1 }}", "% is for numbers only"),
        ("{% include '/etc/passwd' %}", "no loader for this environment specified"),
        ("{{ severity|center(1000000000) }}", "line 1: No filter named 'center'"),
        ("{{ 1 / 0 }}", "division by zero"),
        ("", "it gives no text"),
        (" \n\t\n{% if previous %}{{ previous }}{% endif %} \n", "it gives no text"),
        ("{{ headline.format }}", "line 1: 'format' is a function, which has no text, and nothing can be called"),
        ("{{ headline.format ~ '' }}", "line 1: 'format' is a function"),
        ("{{ subject.items|string }}", "line 1: 'items' is a function"),
        ("{% macro row() %}x{% endmacro %}\n{{ row }}", "this is a function"),
        ("(" * 9 + "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}", "template t: "),
    ],
)
def test_a_template_that_gives_no_text_says_line_and_reason_and_the_shipped_one_is_used(written: str, why: str) -> None:
    content = told("x")
    shown = text(replace(content, template=template("t", written)), 64_000)
    assert why in shown.problem
    assert shown.problem.startswith("template t: ")
    assert shown.text == section(content, 64_000)


def test_a_template_of_a_users_own_is_cut_as_the_shipped_one_is_evidence_first() -> None:
    own = template("own", "{{ todo }}\n\n{{ alerts }}\n\n{{ evidence }}")
    content = replace(told("x" * 2000), template=own)
    whole, less = section(content, 64_000), section(content, 3_000)
    assert "Evidence of" in whole
    assert "Evidence of" not in less
    assert "What to do" in less
    assert "More did not fit" in less


def test_a_link_takes_names_percent_encoded_and_is_left_out_where_one_is_not_known() -> None:
    sites = [
        parse_link("dashboard", "https://g.example/d?var-node={{ node }}"),
        parse_link("GPU", "https://g.example/{{ gpu }}"),
        parse_link("half", "https://g.example/{{ 1 / 0 }}"),
    ]
    assert (
        links(sites, {"node": "a)b @c", "gpu": ""}) == "Links: [dashboard](https://g.example/d?var-node=a%29b%20%40c)"
    )
    assert links(sites, {}) == ""


@pytest.mark.parametrize(
    ("name", "address", "why"),
    [
        ("a", "https://g.example/{{ nod }}", "'nod' is not known; known are alert, case,"),
        ("a", "https://g.example/{{ node", "line 1: "),
        ("a", "javascript:alert(1)", "does not begin with https:// or http://"),
        ("a]b", "https://g.example", "a link is called by letters"),
    ],
)
def test_a_link_that_cannot_work_is_refused_when_the_routes_are_read(name: str, address: str, why: str) -> None:
    with pytest.raises(BadTemplate) as refused:
        parse_link(name, address)
    assert why in str(refused.value)


@pytest.mark.parametrize(("minutes", "hours"), [(59, 0), (60, 1), (119, 1), (120, 2), (24 * 60, 16), (40 * 60, 32)])
def test_the_hours_of_an_outage_are_counted_in_steps_that_double_so_that_a_text_rests(minutes: int, hours: int) -> None:
    assert stage(minutes * MINUTE) == hours * HOUR


def test_gpu_hours_are_counted_from_the_claim_for_all_gpus_and_exactly_once_the_case_has_ended() -> None:
    trigger = Trigger("GpuLost", "True", "", "", AT, devices=(("nvidia.com/gpu", 7), ("nvidia.com/gpu.count", 8)))
    case = replace(a_case(), trigger=trigger, started=AT)
    shown = section(Content(seen(case), facts=facts(seen(case), None, (), AT + 5 * HOUR)), 64_000)
    assert "- 32 GPU-hours: 8 GPUs of `gpu-17` out of service since 2026-11-20 09:00:00 UTC, counted until" in shown
    over = seen(replace(case, ended=AT + 90 * MINUTE))
    assert facts(over, None, (), AT + 5 * HOUR).outages[0].gpu_hours == 12
    isolated = Node("gpu-17", "n", {}, {}, in_service=case.uid)
    assert facts(seen(case), isolated, (), AT + HOUR).outages == ()


def test_the_gpus_are_those_of_the_diagnostics_with_their_slots_and_those_that_only_alerts_name() -> None:
    found = {"gpus": [{"address": "0000:5d:00.0", "uuid": "GPU-1", "serial": "1320221"}]}
    case = replace(a_case(evidence=found), gpus=(Gpu("1320221", "GPU-1"),))
    named = [(("UUID", uuid), ("pci_bus_id", slot)) for uuid, slot in (("GPU-1", "x"), ("GPU-2", "0000:ab:00"))]
    alerts = tuple(replace(an_alert("a", str(n)), labels=labels) for n, labels in enumerate(named))
    assert facts(seen(case, alerts=alerts), None, (), AT).gpus == (
        GpuFact("GPU-1", "1320221", "0000:5d:00"),
        GpuFact("GPU-2", "", "0000:ab:00"),
    )


def test_the_history_has_earlier_cases_that_did_something_and_none_of_the_ticket_itself() -> None:
    case = a_case()
    did = replace(case, name="did", node="gpu-9", ended=AT)
    nothing = replace(case, name="nothing", ended=AT, attempts=(), phase=Phase.RECOVERED)
    given_now = seen(case)
    assert [past.case for past in facts(given_now, None, (case, did, nothing), AT).past] == ["did"]


HELD = replace(a_case(phase=Phase.HELD), attempts=(), rung=0)
RUNS = replace(a_case(phase=Phase.OPERATING), attempts=(Attempt("o", "reset-gpu", 0, AT),), rung=0)


@pytest.mark.parametrize(
    ("case", "says"),
    [
        (a_case(), "a person must act; Remediator tries nothing more and waits until the node is given back."),
        (HELD, "a person must act: held by TicketOnly, then Remediator runs `reset-gpu` (rung 1)."),
        (
            replace(HELD, blocks=(Block(Reason.BUDGET_SPENT, ""),)),
            "nobody needs to act: held by BudgetSpent, then Remediator runs `reset-gpu` (rung 1).",
        ),
        (
            RUNS,
            "nobody needs to act: Remediator runs `reset-gpu` (rung 1 of 2); "
            "if that does not cure it, `reboot` (rung 2).",
        ),
        (
            replace(a_case(phase=Phase.VERIFYING), attempts=a_case().attempts * 2),
            "nobody needs to act: Remediator looks whether the node is healthy; if not, it escalates.",
        ),
    ],
    ids=["escalated", "waits for a person", "waits", "runs", "verifies the last try"],
)
def test_the_issue_says_what_is_next_and_who_must_act(case: Case, says: str) -> None:
    assert outlook(seen(case).cases) == f"Next on `gpu-17`: {says}"


@pytest.mark.parametrize(
    ("written", "why"),
    [("\n{{ nope }}", "line 2: 'nope' is undefined"), ("{% if previous %}x{% endif %}\n", "it gives no text")],
)
async def test_an_issue_is_written_by_the_shipped_template_where_that_of_its_route_is_broken_and_its_ticket_says_so(
    harness: TicketHarness, written: str, why: str
) -> None:
    harness.routes = replace(harness.routes, default=Route("org/default", template=template("t", written)))
    harness.restart()
    await harness.hear(delivery(fires()))
    await harness.work()
    assert "**Node `gpu-17`** · Warning" in harness.channel.issues[0].body
    said = (await harness.ticket()).condition(TEMPLATE_INVALID)
    assert said is not None
    assert said.message == f"template t: {why}; the shipped one was used; correct it"
    harness.routes = replace(
        harness.routes, default=Route("org/default", template=template("t", "Ours: {{ subject.node }}"))
    )
    harness.restart()
    await harness.later(minutes=2)
    assert "Ours: `gpu-17`" in harness.channel.issues[0].body
    assert (await harness.ticket()).condition(TEMPLATE_INVALID) is None


async def test_an_issue_names_the_rack_and_the_earlier_cases_of_its_node_from_the_caches(
    harness: TicketHarness,
) -> None:
    labels = {"metadata": {"labels": {"topology.kubernetes.io/rack": "r12"}}}
    await harness.client.patch(NODES, "gpu-17", labels)
    await harness.policy()
    tried = {"operation": "o", "template": "reboot", "rung": 1, "attempt": 1, "startedAt": "2026-01-01T00:00:00Z"}
    await harness.case("old", attempts=[tried | {"finishedAt": "2026-01-01T00:05:00Z", "outcome": "Succeeded"}])
    await harness.recovers("old")
    await harness.later(days=1)
    await harness.case("new")
    await harness.work()
    body = harness.channel.issues[-1].body
    assert "Node: rack `r12`." in body
    assert "| `old` | `gpu-17` | `gpu-lost` |" in body


def test_a_template_is_a_file_beside_the_routes_and_one_that_is_not_there_is_said_where_it_is_used(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.md.j2").write_text("{{ headline }}")
    (tmp_path / "routes.yaml").write_text(
        "default: {repository: org/a, template: a.md.j2}\n"
        "routes: {b: {repository: org/b, template: none.md.j2}, c: {repository: org/c, template: ../a.md.j2}}"
    )
    routes = load(tmp_path / "routes.yaml", problem)
    shown = {
        name: text(replace(told("x"), template=routes.find(name)[0].template), 9000).problem for name in ("", "b", "c")
    }
    assert shown[""] == ""
    assert "template none.md.j2: [Errno 2] No such file" in shown["b"]
    assert "template ../a.md.j2: it is not the name of a file beside the routes file" in shown["c"]


def rendered(*arguments: str) -> Result:
    """`remediator ticket render` with these arguments."""
    return CliRunner().invoke(app, ["ticket", "render", *arguments])


def test_the_issue_of_a_file_is_printed_without_a_cluster(tmp_path: Path) -> None:
    answer = rendered(str(EXAMPLE))
    assert answer.exit_code == 0
    assert answer.output.startswith("gpu-17: GpuLost\n\n**Node `gpu-17`** · Critical\n")
    assert "| `gpu-17-gpu-xid-77b0c3d1e4` | `gpu-17` | `gpu-xid` |" in answer.output
    (tmp_path / "own.md.j2").write_text("{{ headline }}\n{{ nope }}")
    broken = rendered(str(EXAMPLE), "--template", str(tmp_path / "own.md.j2"))
    assert broken.exit_code == 1
    assert "remediator: template own.md.j2: line 2: 'nope' is undefined; the shipped one was used" in broken.output


@pytest.mark.parametrize(
    ("written", "why"),
    [
        (
            "kind: Pod",
            "file.yaml:1: kind is Pod; give objects of kind Ticket, NodeRemediation, RemediationPolicy, Node or "
            "TicketRoute",
        ),
        ("kind: NodeRemediation\nspec: {}", "Object missing required field"),
        ("", "no Ticket and no NodeRemediation in "),
        ("a: [", "unreadable YAML"),
    ],
)
def test_a_file_that_cannot_be_shown_is_refused_with_the_place_and_the_remedy(
    tmp_path: Path, written: str, why: str
) -> None:
    (tmp_path / "file.yaml").write_text(written)
    answer = rendered(str(tmp_path / "file.yaml"))
    assert answer.exit_code == 2
    assert why in answer.output


def test_the_template_in_the_documentation_gives_a_text() -> None:
    written = "{{ headline }}" + PAGE.read_text().split("```text\n{{ headline }}")[1].split("```")[0]
    shown = text(replace(told("x"), template=template("gpu.md.j2", written)), 9000)
    assert shown.problem == ""
    assert "| GPU | slot |\n| --- | --- |\n| `x` | – |\n" in shown.text


def test_the_issue_in_the_documentation_is_what_its_command_prints_with_the_routes_that_are_shipped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All four links of the shipped routes stand in it, and the job that the case has ended."""
    now = datetime(2026, 11, 20, 17, 30, tzinfo=UTC)
    monkeypatch.setattr(clock, "SYSTEM", replace(clock.SYSTEM, wall=lambda: now))
    page = PAGE.read_text().split("## What an issue looks like")[1]
    assert "remediator ticket render objects.yaml --routes deploy/tickets/routes.yaml\n" in page
    printed = rendered(str(EXAMPLE), "--routes", str(SHIPPED)).output
    assert page.split("````markdown\n")[1].split("````")[0] == printed
    for name in ("runbook", "dashboard", "silence", "page"):
        assert f"[{name}](https://" in printed.split("Links: ")[1].splitlines()[0]
    assert "- 1 job was hit: 1065 GPU-hours of their work" in printed

"""Titles by a template of the route: one short line, in which whatever others wrote does nothing."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remediator.tickets.channels.github.limits import problem
from remediator.tickets.channels.routes_file import load
from remediator.tickets.reconcile.conditions import TEMPLATE_INVALID
from remediator.tickets.render.body import text
from remediator.tickets.render.titles import KNOWN, parse_title, titled
from tests.harness.tickets import TicketHarness, delivery, fires
from tests.remediator.tickets.test_templates import told

GREEDY = parse_title("title", "".join(f"{{{{ {name}|upper }}}} {{{{ {name} ~ ' ' ~ {name} }}}}\n" for name in KNOWN))


@given(st.text(st.sampled_from("a@#`|\\<>!-\n\r\t[]()*_~/:1 \u2028\u202e\x00{}%"), min_size=1, max_size=40))
def test_whatever_others_write_is_one_line_that_pings_nobody_and_refers_to_nothing(word: str) -> None:
    shown, wrong = titled(replace(told(word), title=GREEDY, cluster="prod-a"))
    assert wrong == ""
    assert shown.startswith("[prod-a] ")
    assert len(shown) <= 120
    assert shown.isprintable() or "\N{ZERO WIDTH SPACE}" in shown
    assert not any(mark in shown for mark in ("\n", "\r", "\u2028", "`", "@a", "#1", "\x00", "\u202e"))


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("{{ node }} {{ rack|default('-', true) }}: {{ first }}", "gpu-17 r1: GpuLost"),
        ("{% if severity == 'Critical' %}!{% endif %}{{ node }}", "!gpu-17"),
        ("  {{ node }}\n {{ first }}  ", "gpu-17 GpuLost"),
        ("{{ node|truncate(3, true, '', 0) }}", "gpu"),
    ],
)
def test_a_title_has_what_its_template_says(written: str, shown: str) -> None:
    assert titled(replace(told("r1"), title=parse_title("title", written)))[0] == shown


@pytest.mark.parametrize("written", ["{{ 1 / 0 }}", "{{ '' }}", "{{ node.upper() }}", "{{ [node] * 100000 }}"])
def test_one_that_gives_nothing_says_so_and_the_usual_title_is_used(written: str) -> None:
    content = replace(told("x"), title=parse_title("routes.gpu.title", written))
    shown, wrong = titled(content)
    assert shown == "gpu-17: GpuLost"
    assert wrong.startswith("template routes.gpu.title: ")
    assert wrong.endswith("; the usual title was used; correct that field")
    assert text(content, 9000).problem == wrong


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ("{{ nodes }}", "routes.gpu.title: 'nodes' is not known; known are alert, case, cluster,"),
        ("{{ node", "routes.gpu.title: line 1: unexpected end of template"),
        ("{{ node|center(9) }}", "routes.gpu.title: line 1: No filter named 'center'"),
    ],
)
def test_a_title_that_cannot_be_right_is_refused_with_its_field(tmp_path: Path, written: str, why: str) -> None:
    (tmp_path / "routes.yaml").write_text(
        f'default: {{repository: org/a}}\nroutes: {{gpu: {{repository: org/b, title: "{written}"}}}}'
    )
    with pytest.raises(ValueError, match=r"routes\.yaml") as refused:
        load(tmp_path / "routes.yaml", problem)
    assert why in str(refused.value)
    assert str(refused.value).endswith("; correct that field")


async def test_an_issue_gets_the_title_of_its_route_once_and_a_mistake_stands_on_the_ticket(
    harness: TicketHarness,
) -> None:
    mine = replace(harness.routes.default, title=parse_title("default.title", "{{ alert }} on {{ node }}"))
    wrong = replace(mine, title=parse_title("default.title", "{{ 1 / 0 }}"))
    harness.routes = replace(harness.routes, default=mine)
    harness.restart()
    await harness.hear(delivery(fires()))
    await harness.work()
    harness.routes = replace(harness.routes, default=wrong)
    harness.restart()
    await harness.hear(delivery(fires("GpuHot", node="gpu-18")))
    await harness.later(minutes=2)
    assert [issue.title for issue in harness.channel.issues] == ["[prod] NodeDown on gpu-17", "[prod] gpu-18: GpuHot"]
    conditions = [ticket.condition(TEMPLATE_INVALID) for ticket in await harness.tickets()]
    assert all(condition and "default.title: " in condition.message for condition in conditions)

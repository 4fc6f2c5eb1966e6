"""The text of an issue: whole, stable, bounded, and harmless whatever others wrote into it."""

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from remediator.core.case import Attempt, AttemptOutcome, Block, Case, PastCase, Phase, Trigger, slim
from remediator.core.jobs_at_stake import BlastRadius, JobAtStake
from remediator.core.policy import Mode, Policy, Rung, Severity, TicketWhen, Verify
from remediator.core.reasons import REMEDY, Reason
from remediator.core.selector import Selector
from remediator.core.ticket import About, Alert, Subject, Ticket
from remediator.tickets.channels.base import Marker
from remediator.tickets.channels.section import BEGIN, END, fenced, overhead, spliced
from remediator.tickets.reconcile.input import LinkedCase, TicketInput, ticket_input
from remediator.tickets.reconcile.wanted import of_case
from remediator.tickets.render import body as render
from remediator.tickets.render import tables, titles
from remediator.tickets.render.comments import closing_comment, comment, comments
from remediator.tickets.render.facts import IssueFacts
from remediator.tickets.render.machine import machine
from remediator.tickets.render.markdown import code, link, span

AT = datetime(2026, 11, 20, 9, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
MARKER = Marker("0123456789abcdef", AT)
SUBJECT = Subject(About.NODE, node="gpu-17")
POLICY = Policy(
    name="gpu-lost",
    selector=Selector(()),
    when=(),
    ladder=(Rung("reset-gpu"), Rung("reboot", 2)),
    severity=Severity.CRITICAL,
    verify=Verify(MINUTE, MINUTE, MINUTE),
    attempts_max=4,
    attempts_window=MINUTE,
    cooldown=MINUTE,
    mode=Mode.ENFORCE,
    ticket=TicketWhen.ALWAYS,
)
HOSTILE = "a\nb <script>x</script> --> @octocat #1 `code` | pipe <!-- remediator:end --> [l](http://x) GH-1 org/repo#2"


def a_case(text: str = "GPU 3 has fallen off the bus", phase: Phase = Phase.ESCALATED, evidence: object = None) -> Case:
    """A case that tried a reboot in vain."""
    tried = Attempt("gpu-17-reboot-1", "reboot", 1, AT, AT + 4 * MINUTE, AttemptOutcome.FAILED, text)
    return Case(
        name="gpu-17-gpu-lost-1",
        uid="u",
        node="gpu-17",
        node_uid="n",
        policy="gpu-lost",
        trigger=Trigger("GpuLost", "True", text, text, AT),
        created=AT,
        phase=phase,
        rung=1,
        attempts=(tried,),
        blocks=(Block(Reason.TICKET_ONLY, text),) if phase is Phase.HELD else (),
        evidence=evidence,
        reason=Reason.LADDER_EXHAUSTED if phase is Phase.ESCALATED else Reason.STARTED,
        message=text,
    )


def seen(*cases: Case, alerts: tuple[Alert, ...] = (), subject: Subject = SUBJECT) -> TicketInput:
    """The input of a ticket that was opened at AT."""
    ticket = Ticket("t", "u", subject, alerts, opened=AT)
    return ticket_input(ticket, [(case, POLICY) for case in cases])


def test_a_case_that_waits_for_an_approval_shows_the_command() -> None:
    held = replace(a_case(phase=Phase.HELD), blocks=(Block(Reason.APPROVAL_NEEDED, "gpu-lost needs an approval"),))
    text = section(seen(held))
    assert "Set spec.approved of the case to true to let it start, or delete the case. (`ApprovalNeeded`)" in text
    assert """kubectl patch noderemediation gpu-17-gpu-lost-1 --type=merge -p '{"spec":{"approved":true}}'""" in text


def test_a_case_shows_since_when_each_of_its_holds_lasts_as_a_time_that_no_later_look_changes() -> None:
    shown = Block(Reason.BUDGET_SPENT, "1 of 1", since=AT + timedelta(minutes=5))
    held = replace(a_case(phase=Phase.HELD), blocks=(shown, Block(Reason.PAUSED, "by a user")))
    why = "BudgetSpent since 2026-11-20 09:05:00 UTC: `1 of 1`; Paused since 2026-11-20 09:00:00 UTC: `by a user`"
    assert f"| {why} |" in section(seen(held))


def test_a_case_shows_the_jobs_that_its_start_would_end_and_how_to_approve_it() -> None:
    job = JobAtStake("JobSet", "team", "train`@all|", 8, 64, AT, 640)
    blast = BlastRadius(AT, (job,), 9, 2, 8, 72, 700)
    held = replace(a_case(phase=Phase.HELD), blocks=(Block(Reason.BLAST_RADIUS, "9 jobs"),), blast=blast)
    text = section(seen(held))
    assert "| `gpu-17-gpu-lost-1` | `JobSet team/train'@all¦` | 8 | 64 | 2026-11-20 09:00:00 UTC | 640 |" in text
    assert "| `gpu-17-gpu-lost-1` | 9 jobs at 2026-11-20 09:00:00 UTC | 8 | 72 | - | 700 |" in text
    assert """kubectl patch noderemediation gpu-17-gpu-lost-1 --type=merge -p '{"spec":{"approved":true}}'""" in text


def test_after_the_end_of_a_case_its_issue_still_says_how_many_jobs_it_hit_and_what_that_cost() -> None:
    job = JobAtStake("JobSet", "team", "train", 8, 64, AT, 640)
    tried = (Attempt("op-1", "reboot", 0, AT, outcome=AttemptOutcome.SUCCEEDED, finished=AT + MINUTE),)
    blast = BlastRadius(AT, (job,), 9, 2, 8, 72, 700)
    over = replace(a_case(phase=Phase.RECOVERED), attempts=tried, blast=blast, ended=AT + 9 * MINUTE)
    text = section(seen(slim(over)))
    assert "- 9 jobs were hit: 700 GPU-hours of their work (seen at 2026-11-20 09:00:00 UTC)" in text
    assert "| `gpu-17-gpu-lost-1` | 9 jobs at 2026-11-20 09:00:00 UTC | 8 | 72 | - | 700 |" in text
    assert "train" not in text
    assert slim(replace(over, attempts=())).blast is None


def test_of_a_node_that_nobody_could_look_at_it_says_why() -> None:
    unknown = replace(a_case(phase=Phase.DRAINING), blast=BlastRadius(AT, unknown="503 `away`"))
    assert "| `gpu-17-gpu-lost-1` | unknown: `503 'away'` | - | - | - | - |" in section(seen(unknown))


def section(given: TicketInput, room: int = 64_000) -> str:
    """The text with its fence, as it stands in an issue."""
    return fenced(render.section(render.Content(given), room - overhead(MARKER)), MARKER)


def an_alert(text: str, fingerprint: str = "a") -> Alert:
    """One that fires."""
    return Alert(fingerprint, text, AT, None, Severity.WARNING, text, text, "", (("pod", text),))


def parsed(text: str) -> list[Token]:
    """The text as markdown with tables and autolinks, HTML allowed, as GitHub has it."""
    return MarkdownIt("commonmark", {"html": True}).enable(["table"]).parse(text)


def outside_code(tokens: list[Token]) -> str:
    """All that is rendered as prose or tags."""
    inline = [child for token in tokens for child in token.children or () if child.type != "code_inline"]
    blocks = [token for token in tokens if token.type == "html_block"]
    return " ".join(token.content for token in (*inline, *blocks))


def test_an_escalated_case_says_what_is_wrong_what_was_tried_and_what_to_do() -> None:
    text = section(seen(a_case(evidence={"gpus": [{"uuid": "GPU-1", "serial": "132"}]})))
    for said in (
        "**Node `gpu-17`** · Critical",
        "`GpuLost` is `True` since 2026-11-20 09:00:00 UTC",
        "Repair the node by hand, then set spec.release of the case to true. (`LadderExhausted`)",
        "remediator explain gpu-17",
        """kubectl patch noderemediation gpu-17-gpu-lost-1 --type=merge -p '{"spec":{"release":true}}'""",
        "| `gpu-17-gpu-lost-1` | `gpu-17` | `gpu-lost` | Escalated | 2 of 2 |",
        "| `gpu-17-reboot-1` | 2 | 2026-11-20 09:00:00 UTC | 4m | Failed |",
        '"serial": "132"',
        "<details><summary>Evidence of gpu-17-gpu-lost-1</summary>",
    ):
        assert said in text
    assert text.startswith(f"{BEGIN}\n<!-- remediator ticket 0123456789abcdef 20261120T090000Z -->")
    assert text.endswith(END)


def test_of_a_fault_that_has_gone_the_issue_does_not_say_that_it_is_there() -> None:
    text = section(seen(replace(a_case(), reason=Reason.HEALTH_UNKNOWN)))
    assert "`GpuLost` was `True` since 2026-11-20 09:00:00 UTC" in text


def test_a_node_that_looks_healthy_again_is_offered_with_the_command_that_gives_it_back() -> None:
    text = section(seen(replace(a_case(), healthy_since=AT)))
    assert "1. The node looks healthy since 2026-" in text
    assert "where it is repaired, give it back. (`LadderExhausted`)" in text
    assert """kubectl patch noderemediation gpu-17-gpu-lost-1 --type=merge -p '{"spec":{"release":true}}'""" in text


def test_the_hidden_marker_of_a_second_issue_of_one_subject_is_another() -> None:
    later = replace(MARKER, opened=AT + MINUTE)
    assert later.searched == MARKER.searched
    assert later.whole != MARKER.whole
    assert render.key("cluster-a", "t") != render.key("cluster-b", "t")


@pytest.mark.parametrize("make", [HOSTILE, "`" * 9, "|" * 9, "-->", "<!--", "\\", "@" * 3, "```\n@a", "</details>"])
def test_hostile_words_stay_in_their_cell_their_fence_and_their_comment(make: str) -> None:
    _harmless(make)


@pytest.mark.slow
@given(st.text(st.sampled_from("a@#`|\\<>!-\n[]()*_~/:1 \u202e\x00"), max_size=40))
def test_no_words_at_all_break_out(make: str) -> None:
    _harmless(make)


def _harmless(make: str) -> None:
    alerts = tuple(an_alert(make or "x", str(number)) for number in range(3))
    found = seen(a_case(make, evidence={"text": make, make: 1}), alerts=alerts)
    calm = seen(a_case("x", evidence={"text": "x", "x": 1}), alerts=tuple(an_alert("x", str(n)) for n in range(3)))
    text, quiet = section(found), section(calm)
    assert (text.count(BEGIN), text.count(END), text.count("<!--"), text.count("-->")) == (1, 1, 3, 3)
    tokens, expected = parsed(text), parsed(quiet)
    for kind in ("table_open", "tr_open", "td_open", "th_open", "fence", "html_block"):
        assert [t.type for t in tokens].count(kind) == [t.type for t in expected].count(kind), kind
    prose = outside_code(tokens)
    assert "@" not in prose
    assert "#" not in prose
    assert not re.search(r"<script|href|</details>.*</details>.*</details>", prose)
    links = [child for token in tokens for child in token.children or () if child.type == "link_open"]
    assert links == []
    for text in (comment(comments((), found)), closing_comment(found)):
        prose = outside_code(parsed(text))
        assert "@" not in prose
        assert "#" not in prose
        assert "<" not in prose


def test_a_title_is_short_pings_nobody_and_does_not_change_with_the_case() -> None:
    hostile = seen(alerts=(an_alert("@octocat #1 " + "x" * 300),))
    title = titles.title(hostile, "prod")
    assert len(title) <= 120
    assert "@o" not in title
    assert "#1" not in title
    case = a_case(phase=Phase.HELD)
    shown = {titles.title(seen(replace(case, phase=phase)), "") for phase in (Phase.HELD, Phase.OPERATING)}
    assert shown == {"gpu-17: GpuLost"}


def test_the_same_situation_is_the_same_text_in_whatever_order_it_is_found() -> None:
    one, two = a_case(), replace(a_case(), name="gpu-17-nfs-2", created=AT + MINUTE)
    assert section(seen(one, two)) == section(seen(two, one))


def test_the_place_of_a_bundle_is_told_and_is_never_a_link() -> None:
    place = "https://s3.example.com/bundles/gpu-1/case-1.tar.gz"
    text = machine(IssueFacts(bundles=(place, "[x](https://evil.example)")))
    assert text == f"### Machine\n\nBundle of evidence: `{place}`, `[x](https://evil.example)`."


def test_a_text_that_is_too_long_leaves_out_evidence_first_and_keeps_its_fence() -> None:
    big = {f"key-{number}": "x" * 200 for number in range(2000)}
    found = seen(*(replace(a_case("y" * 4000, evidence=big), name=f"case-{n}") for n in range(60)))
    for room in (64_000, 20_000, 3_000):
        text = section(found, room)
        assert len(text) <= room
        assert text.startswith(BEGIN)
        assert text.endswith(END)
        assert "What to do" in text
    assert "Evidence" not in text
    assert "did not fit" in text


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "NEW"),
        ("words", "words\n\nNEW"),
        (f"a\n{BEGIN}old{END}\nb", "a\nNEW\nb"),
        (f"a {BEGIN} torn", f"a {BEGIN} torn\n\nNEW"),
        (f"a {END} torn", f"a {END} torn\n\nNEW"),
        (f"a {BEGIN} torn {BEGIN}old{END} b", f"a {BEGIN} torn NEW b"),
    ],
    ids=["empty", "no fence", "fence", "no end", "no beginning", "a torn one before"],
)
def test_our_section_is_replaced_and_everything_else_stays(before: str, after: str) -> None:
    assert spliced(before, "NEW") == after


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://runbooks.example/gpu#xid", "[runbook](https://runbooks.example/gpu#xid)"),
        ("", ""),
        ("javascript:alert(1)", "`javascript:alert(1)`"),
        ("https://x/) @octocat", "`https://x/) @octocat`"),
        ("https://github.com/org/repo/issues/1", "`https://github.com/org/repo/issues/1`"),
    ],
)
def test_a_runbook_is_a_link_only_where_that_is_harmless(url: str, shown: str) -> None:
    assert link(url) == shown


def test_words_are_cut_and_spans_are_read_easily() -> None:
    assert code("x" * 300, 10) == f"`{'x' * 9}…`"
    assert code(" \n ") == "-"
    assert [span(AT, AT + timedelta(seconds=s)) for s in (0, 59, 3900, 90061)] == ["0s", "59s", "1h 5m", "1d 1h"]


def test_what_a_person_must_do_for_a_case_that_only_calls() -> None:
    text = section(seen(a_case(phase=Phase.HELD)))
    assert "(`TicketOnly`)" in text
    assert "release" not in text
    going = section(seen(a_case(phase=Phase.OPERATING)))
    assert "the repair is under way" in going
    alone = section(seen(alerts=(an_alert("NodeDown"),)))
    assert "nothing is being repaired" in alone or "`NodeDown`" in alone
    assert "kubectl describe node gpu-17" in alone


def test_a_node_whose_name_means_something_to_a_shell_gets_no_command() -> None:
    evil = Subject(About.NODE, node="x; rm -rf /")
    text = section(seen(alerts=(an_alert("A"),), subject=evil))
    assert "explain" not in text
    assert "```sh" not in text


def test_an_open_breaker_on_failures_is_closed_with_a_command_to_copy() -> None:
    why = "4 of the last 4 attempts under policy gpu-lost were in vain; remediator close-breaker policy/gpu-lost"
    blocks = (Block(Reason.POLICY_FAILING, f"{why}; {REMEDY[Reason.POLICY_FAILING]}"),)
    case = replace(a_case(phase=Phase.HELD), blocks=blocks)
    text = section(seen(case, subject=of_case(case)))
    assert "Look why, then close the breaker with remediator close-breaker policy/NAME" in text
    assert "(or template/NAME if a template opened it). (`PolicyFailing`)" in text
    assert "let others start:\nremediator close-breaker policy/gpu-lost\n" in text


def test_the_history_that_a_person_was_called_for_is_in_the_text_oldest_first_and_each_case_once():
    older = PastCase("gpu-9-gpu-xid-1", "gpu-9", "gpu-xid", AT - 60 * MINUTE, ("reset-gpu", "reboot"), Phase.RECOVERED)
    newer = PastCase("gpu-17-gpu-lost-0", "gpu-17", "gpu-lost", AT - MINUTE, (HOSTILE,), Phase.ESCALATED)
    known = [replace(a_case(), uid=str(number), history=(newer, older)) for number in range(2)]
    text = tables.history([LinkedCase(case, POLICY, wanted=True) for case in known])
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    assert rows[0] == (
        "| `gpu-9-gpu-xid-1` | `gpu-9` | `gpu-xid` | 2026-11-20 08:00:00 UTC | `reset-gpu, reboot` | Recovered |"
    )
    assert len(rows) == 2
    assert tables.history([LinkedCase(a_case(), POLICY, wanted=True)]) == ""

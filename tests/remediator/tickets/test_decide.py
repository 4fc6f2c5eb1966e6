"""What each command decides, without any server."""

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some
from markdown_it import MarkdownIt

from remediator.core.case import Block, Case, Phase, SetBy, Trigger
from remediator.core.command import CaseChange
from remediator.core.gpus import Gpu
from remediator.core.reasons import Reason
from remediator.tickets.channels.inbox import Comment
from remediator.tickets.commands.answers import answer
from remediator.tickets.commands.decide import WORDS, CommandDecision, IssueCommand, decide, length
from remediator.tickets.commands.parse import WrittenCommand
from tests.remediator.tickets.memory_channel import START

TRIGGER = Trigger("GpuLost", "True", "Xid79", "GPU 3 is gone", START)
WAITS = {"phase": Phase.HELD, "blocks": (Block(Reason.APPROVAL_NEEDED, "approval: Required"),)}
ESCALATED: dict[str, Any] = {"phase": Phase.ESCALATED, "reason": Reason.LADDER_EXHAUSTED, "message": "2 of 2 failed"}
HELD_BY_OLGA = {"hold": True, "set_by": SetBy(hold="olga")}
HELD_BY_BOB = {"hold": True, "set_by": SetBy(hold="github:bob")}


def case(name: str = "a", **fields: Any) -> Case:
    node = f"node-{name}"
    return Case(name, f"uid-{name}", node, f"uid-{node}", "gpu-lost", TRIGGER, START, version="7", **fields)


def decided(word: str, argument: str = "", *cases: Case) -> CommandDecision:
    return decide(IssueCommand(WrittenCommand(word, argument), "ann", START, cases))


def change(name: str = "a", **fields: Any) -> CaseChange:
    return CaseChange(name, "7", **fields)


@pytest.mark.parametrize(
    ("text", "minutes"),
    [
        *[("2h", 120), ("1h30m", 90), ("1m", 1), ("7d", 10080)],
        *[(text, None) for text in ("8d", "0m", "-2h", "2 h", "", "2", "2hx", "9999999999d", "٢h")],
    ],
)
def test_a_length_is_from_a_minute_to_a_week(text: str, minutes: int | None) -> None:
    assert length(text) == (None if minutes is None else timedelta(minutes=minutes))


TWO_HOURS = START + timedelta(hours=2)


@pytest.mark.parametrize(
    ("word", "argument", "cases", "changes"),
    [
        pytest.param("hold", "2h", [case()], [change(hold=True, until=TWO_HOURS)], id="held from when it was written"),
        pytest.param("hold", "2h", [case(**HELD_BY_BOB)], [change(hold=True, until=TWO_HOURS)], id="held for longer"),
        pytest.param("hold", "2h", [case(**HELD_BY_OLGA)], [], id="the hold of kubectl keeps no end"),
        pytest.param("hold", "2h", [case(ended=START)], [], id="an ended case is not held"),
        pytest.param("hold", "", [case()], [], id="a hold without a length is none"),
        pytest.param("hold", "2h", [case(str(n)) for n in range(21)], [], id="21 cases are too many"),
        pytest.param("hold", "off", [case(**HELD_BY_BOB)], [change(hold=False)], id="a comment ends that of a comment"),
        pytest.param("hold", "off", [case(**HELD_BY_OLGA)], [], id="and no other one"),
        pytest.param("approve", "", [case(**WAITS)], [change(approve=True)], id="approved"),
        pytest.param("approve", "", [case()], [], id="nothing waits for an approval"),
        pytest.param("approve", "", [case("a", **WAITS), case("b", **WAITS)], [], id="which of two?"),
        pytest.param(
            "approve", "node-b", [case("a", **WAITS), case("b", **WAITS)], [change("b", approve=True)], id="this one"
        ),
        pytest.param("approve", "c", [case("a", **WAITS)], [], id="not of this issue"),
        pytest.param("approve", "", [case(approved=True, **WAITS)], [], id="approved already"),
        pytest.param("release", "", [case(**ESCALATED)], [change(release=True)], id="given back"),
        pytest.param("retry", "", [case(**ESCALATED)], [change(retry=1)], id="tries again"),
        pytest.param("retry", "", [case(retry=2, retries=2, **ESCALATED)], [change(retry=3)], id="a third time"),
        pytest.param("retry", "", [case(retry=999, **ESCALATED)], [change(retry=1000)], id="the last time"),
        pytest.param("retry", "", [case(retry=1000, **ESCALATED)], [], id="the API server takes no more"),
        pytest.param("retry", "", [case(**WAITS)], [], id="only an Escalated case tries again"),
        pytest.param("release", "", [case(**WAITS)], [], id="only an Escalated case is given back"),
        pytest.param("rma", "", [case(**ESCALATED)], [change(hold=True)], id="held without an end"),
        pytest.param("rma", "", [case(**ESCALATED, **HELD_BY_BOB)], [change(hold=True)], id="no end any more"),
        pytest.param("rma", "", [case(**ESCALATED, **HELD_BY_OLGA)], [], id="held without an end already"),
        pytest.param("rma", "", [case(**WAITS)], [], id="only hardware of an Escalated case"),
        pytest.param("why", "", [case(**WAITS)], [], id="a question changes nothing"),
        pytest.param("assign", "", [case()], [], id="an assignment changes no case"),
        pytest.param("lgtm", "", [case(**WAITS, **HELD_BY_BOB)], [], id="no command"),
    ],
)
def test_what_a_command_sets(word: str, argument: str, cases: list[Case], changes: list[CaseChange]) -> None:
    assert list(decided(word, argument, *cases).changes) == changes


@pytest.mark.parametrize(
    ("decision", "words"),
    [
        (decided("hold", "2h", case()), "nothing new starts in `a` on `node-a` until 2026-11-20 11:00:00 UTC."),
        (decided("hold", "2h", case(**HELD_BY_OLGA)), "held by somebody else"),
        (decided("hold", "2h"), "no case of this issue is open, so nothing was done."),
        (decided("approve", "", case("a", **WAITS), case("b", **WAITS)), "Say which, by its name."),
        (decided("approve", "", case(approved=True, set_by=SetBy(approved="olga"))), "approved already, by `olga`"),
        (decided("release", "", case(release=True, ended=START, set_by=SetBy(release="github:ann"))), "given back"),
        (decided("rma", "", case(gpus=(Gpu("132", "GPU-5e1c"),), **ESCALATED)), "board `132`, GPU `GPU-5e1c`"),
        (decided("why", "", case(**ESCALATED)), "is **Escalated**, LadderExhausted: `2 of 2 failed`."),
        (decided("why", "", case(**WAITS)), "set spec.approved of the case to true"),
        (decided("assign"), "assigned to `ann`."),
        (decided("assign", "@bob"), "assigned to `bob`."),
        (decided("assign", "b`ob"), "say whom"),
    ],
)
def test_what_is_answered(decision: CommandDecision, words: str) -> None:
    assert words in decision.answer


def test_only_these_words_assign_or_label() -> None:
    every = {word: decided(word, "", case(**ESCALATED)) for word in WORDS}
    assert {word: (d.assign, d.label) for word, d in every.items() if d.assign or d.label} == {
        "assign": ("ann", ""),
        "rma": ("", "rma"),
    }


@given(
    some.text(alphabet="ab`|<>!-@#*_[]()\\/&;:~'\" \n\r\té\u200b", max_size=80),
    some.sampled_from([*WORDS, "merge"]),
)
def test_no_text_leaves_its_code_span_in_an_answer(odd: str, word: str) -> None:
    """Read back by a Markdown parser: plain words, code and our own mark, but no link, image, mention or HTML."""
    shown = case(reason=Reason.LADDER_EXHAUSTED, message=odd, phase=Phase.ESCALATED, gpus=(Gpu(odd, odd),))
    comment = Comment("org/repo", 1, 4711, "", odd, 1, False, "", START, False)
    command = WrittenCommand(word, odd)
    given_answer = answer(comment, [(command, decide(IssueCommand(command, odd, START, (shown,))))])
    tokens = MarkdownIt("commonmark").parse(given_answer)
    assert [token.content.strip() for token in tokens if token.type == "html_block"] == [
        "<!-- remediator answer 4711 -->"
    ]
    inline = [part for token in tokens for part in token.children or []]
    assert {part.type for part in inline} <= {"text", "code_inline", "softbreak", "strong_open", "strong_close"}
    assert not [part.content for part in inline if part.type == "text" and ("@" in part.content or "#" in part.content)]

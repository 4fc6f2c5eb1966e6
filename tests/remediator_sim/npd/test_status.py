"""The rules from results to conditions, as laws: each single case is in the contract with the real one."""

from datetime import UTC, datetime, timedelta

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from remediator_sim.npd.config import Default, Monitor, Rule
from remediator_sim.npd.status import STATUS, Exit, RuleResult, RunEnd, conclude, initial, judge
from remediator_sim.npd.text import cut, on_the_wire, printed, quoted, trimmed

START = datetime(2026, 1, 1, tzinfo=UTC)
RULES = (
    Rule("permanent", "A", "Bad", "/a"),
    Rule("permanent", "A", "Worse", "/b"),
    Rule("permanent", "B", "Bad", "/c"),
    Rule("temporary", "A", "Hiccup", "/d"),
)
RESULTS = st.lists(
    st.builds(RuleResult, st.sampled_from(RULES), st.sampled_from(Exit), st.sampled_from(("", "x", "y")))
)


def monitor(message_changes):
    defaults = (Default("A", "AWell", "a is fine"), Default("B", "BWell", "b is fine"))
    return Monitor("s", defaults, RULES, message_changes=message_changes)


def walk(monitor, results):
    """(before, result, now, after, events) for each result, a second apart."""
    conditions = initial(monitor, START)
    for count, result in enumerate(results, start=1):
        now = START + timedelta(seconds=count)
        after, events = conclude(monitor, conditions, result, now)
        yield dict(zip("AB", conditions, strict=True)), result, now, dict(zip("AB", after, strict=True)), events
        conditions = after


@given(RESULTS, st.booleans())
def test_a_condition_moves_its_time_exactly_when_something_of_it_changes_and_tells_it_once(results, message_changes):
    for before, result, now, after, events in walk(monitor(message_changes), results):
        if result.rule.type == "temporary":
            assert (after, bool(events)) == (before, result.exit is not Exit.OK)
            continue
        mine, other = result.rule.condition, "B" if result.rule.condition == "A" else "A"
        assert after[other] == before[other]
        assert (after[mine].transition == now) == (after[mine] != before[mine]) == bool(events)
        assert after[mine].status == STATUS[result.exit]


@given(RESULTS, st.booleans())
def test_only_a_fault_has_the_rules_reason_and_only_a_fault_warns(results, message_changes):
    for _, result, _, after, events in walk(monitor(message_changes), results):
        for kind, condition in after.items():
            assert (condition.reason == f"{kind}Well") == (condition.status != "True")
            assert condition.status != "False" or condition.message == f"{kind.lower()} is fine"
        permanent = result.rule.type == "permanent"
        assert all(event.warning == (result.exit is Exit.NON_OK or not permanent) for event in events)


@given(RESULTS)
def test_a_fault_keeps_its_first_words_until_it_ends_or_has_another_reason(results):
    for before, result, _, after, _ in walk(monitor(False), results):
        kind = result.rule.condition
        if before[kind].status == after[kind].status == "True" and before[kind].reason == after[kind].reason:
            assert after[kind] == before[kind]


@given(st.binary(max_size=40), st.integers(0, 50))
def test_cutting_counts_bytes_and_what_is_sent_is_text(raw, limit):
    text = raw.decode("utf-8", "surrogateescape")
    assert cut(text, limit).encode("utf-8", "surrogateescape") == raw[:limit]
    assert msgspec.json.decode(msgspec.json.encode(on_the_wire(text))) == on_the_wire(text)


@given(st.binary(max_size=40))
def test_a_quoted_text_holds_only_what_can_be_printed(raw):
    said = quoted(trimmed(raw))
    assert said.isprintable()
    assert msgspec.json.encode(said)


def test_a_text_without_percent_signs_is_printed_as_it_is():
    assert printed('no "format" at all') == 'no "format" at all'


def test_a_program_that_did_not_start_says_so():
    assert judge(RULES[0], None, 20) == RuleResult(
        RULES[0], Exit.UNKNOWN, "Error in starting plugin. Please check the error log"
    )


def test_a_program_that_died_of_another_signal_while_a_child_held_its_output_is_told_by_name():
    said = judge(RULES[0], RunEnd(b"x", -15, too_late=True), 200)
    assert said.message == 'Timeout when running plugin "/a": state - signal: terminated. output - "x"'

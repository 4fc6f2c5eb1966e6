"""Payloads of real Alertmanagers, and what must not be believed of them."""

import json
import random
import tracemalloc
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remediator.core import ticket
from remediator.core.alerts import node_names
from remediator.core.policy import Severity
from remediator.core.ticket import ALERTS, About, Alert, NewestAlerts, Subject, bounded, late_refires
from remediator.tickets.webhook import payload as payloads
from remediator.tickets.webhook import posted
from remediator.tickets.webhook.payload import ParsedAlert, alerts_in
from remediator.tickets.webhook.posted import BadPayload
from remediator.tickets.webhook.subject import of_alert
from tests.harness.tickets import PAYLOADS, START, delivery, ends, fires, merged, payload


@pytest.mark.parametrize("name", sorted(path.stem for path in PAYLOADS.glob("*.json")))
def test_every_payload_of_a_real_alertmanager_is_understood(name: str) -> None:
    written = json.loads(payload(name))["alerts"]
    found = {one.alert.fingerprint: one.alert for one in parse(payload(name))}
    believed = [alert for alert in written if alert["status"] == "firing" or "max_alerts" not in name]
    assert set(found) == {alert["fingerprint"] for alert in believed}
    for alert in believed:
        assert found[alert["fingerprint"]].firing is (alert["status"] == "firing")


def test_an_alert_keeps_what_a_person_needs() -> None:
    (one,) = parse(payload("am0.33.1-prom-01_firing_first"))
    alert = one.alert
    assert (alert.name, alert.severity, alert.ended) == ("GPUXidError", Severity.CRITICAL, None)
    assert alert.summary == "XID 79 on gpu-0001 GPU 0"
    assert alert.runbook == "https://runbooks.example.test/gpu/xid"
    assert dict(alert.labels)["UUID"] == "GPU-00000000-1111-2222-3333-444444440001"
    assert "job" not in dict(alert.labels)


def parse(body: bytes) -> list[ParsedAlert]:
    """All of them."""
    return [parsed for parsed in alerts_in(body) if parsed is not None]


DEEP = b"[" * 100_000 + b"]" * 100_000


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "no payload"),
        (b"{}", "status"),
        (b"[]", "no payload"),
        (b"{", "no payload"),
        (b"\xff\xfe", "no payload"),
        (b'{"text": "GPU is down"}', "status"),
        (b'{"version": "3", "status": "firing", "alerts": []}', "version is '3'"),
        (delivery(fires() | {"status": "pending"}), "'pending', not firing or resolved"),
        (delivery(fires() | {"startsAt": "yesterday"}), "startsAt"),
        (delivery(fires() | {"fingerprint": ""}), "no fingerprint"),
        (delivery({"status": "firing", "labels": {}}), "startsAt"),
        (delivery()[:-1] + b', "more": ' + DEEP + b"}", "no payload"),
        (delivery(fires() | {"more": "deep"}).replace(b'"deep"', DEEP), "no payload"),
    ],
    ids=[
        "empty",
        "{}",
        "a list",
        "cut",
        "not UTF-8",
        "a template",
        "version 3",
        "status",
        "time",
        "nameless",
        "lacking",
        "deep",
        "deep in an alert",
    ],
)
def test_what_is_no_payload_is_refused_with_what_is_wrong(body: bytes, said: str) -> None:
    with pytest.raises(BadPayload, match=said):
        parse(body)


def test_a_body_that_is_full_of_what_is_no_alert_takes_no_memory() -> None:
    """Three million numbers in 6 MiB; one object for each would take 200 MiB."""
    body = delivery()[:-1].replace(b'"alerts": []', b'"alerts": [' + b"0," * 3_000_000 + b"0]") + b"}"
    tracemalloc.start()
    try:
        with pytest.raises(BadPayload, match="no payload"):
            parse(body)
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


WRITERS = {"as Go writes it": (",", ":"), "as Python writes it": (", ", ": ")}


def _large(separators: tuple[str, str], *alerts: dict[str, Any], **more: Any) -> bytes:
    return json.dumps(
        {"receiver": "r", "alerts": alerts, "version": "4", "status": "firing"} | more, separators=separators
    ).encode()


@pytest.mark.parametrize("separators", WRITERS.values(), ids=WRITERS)
@pytest.mark.parametrize("words", ["small", "x" * 3 * posted.PART])
def test_the_alerts_of_a_large_delivery_are_read_in_parts_of_64_kib_and_are_the_same_as_at_once(
    separators: tuple[str, str], words: str
) -> None:
    """5,000 alerts in a MiB, of which one may be three times as large as a part; the decoder sees no more at once."""
    alerts = [fires(f"A{number}") for number in range(5_000)]
    alerts[2_500]["annotations"]["summary"] = words + '},{"status":'  # a string, in which a quote has a backslash
    body, seen = _large(separators, *alerts), []

    def counting(decode: Callable[[bytes], Any]) -> SimpleNamespace:
        return SimpleNamespace(decode=lambda text: seen.append(len(text)) or decode(text))

    with (
        mock.patch.object(posted, "_PAYLOAD", counting(posted._PAYLOAD.decode)),
        mock.patch.object(posted, "_ALERTS", counting(posted._ALERTS.decode)),
    ):
        assert [parsed.alert.name for parsed in parse(body)] == [f"A{number}" for number in range(5_000)]
    assert sum(size > posted.PART + 2 for size in seen) == (words != "small")
    with mock.patch.object(posted, "PART", len(body)):
        at_once = parse(body)
    assert parse(body) == at_once


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        ({"alerts": [*[fires()] * 900, {"status": "firing"}, *[fires()] * 900]}, r"\$.alerts\[900\]"),
        ({"alerts": [*[fires()] * 900, 5, *[fires()] * 900]}, r"\$.alerts\[900\]"),
        ({"version": "3", "alerts": [fires()] * 900}, "version is '3'"),
        ({"status": 5, "alerts": [fires()] * 900}, r"\$.status"),
        ({"alerts": 5, "more": {"alerts": [fires()] * 900}}, r"\$.alerts"),
    ],
    ids=["lacking", "no alert", "version", "status", "alerts elsewhere"],
)
def test_a_large_body_that_is_no_payload_is_refused_with_what_is_wrong(broken: dict[str, Any], said: str) -> None:
    with pytest.raises(BadPayload, match=said):
        parse(_large((",", ":"), **broken))


def test_lists_of_what_has_a_status_elsewhere_in_a_large_delivery_are_no_alerts() -> None:
    """In an alert, before the alerts and after them: each has the alerts that it has when it is read at once."""
    others = [fires("Other")] * 900
    first, second = fires("A"), fires("B")
    within = _large((",", ":"), first, first | {"more": others}, second, second)
    before = _large((",", ":")).replace(
        b'"alerts":[]',
        b'"x":{"alerts":%b},"alerts":%b'
        % tuple(json.dumps(alerts, separators=(",", ":")).encode() for alerts in (others, [first, second])),
    )
    after = _large((",", ":"), first, second, more={"alerts": others})
    found = [[parsed.alert.name for parsed in parse(body)] for body in (within, before, after)]
    assert found == [["A", "A", "B", "B"], ["A", "B"], ["A", "B"]]


def at_once(steps: posted.Steps[Any]) -> Any:
    """What comes of all steps, without a turn for others between them."""
    while True:
        try:
            next(steps)
        except StopIteration as done:
            return done.value


def test_a_large_delivery_is_searched_a_mebibyte_in_one_step() -> None:
    """Whoever has the token may send 16 MiB that look like the ends of lists: 450 ms at once."""
    body = b'{"alerts":[{"status":%b},{"status":' % (b"}" * 16 * 2**20)
    steps = alerts_in(body)
    assert [next(steps) for _ in range(16)] == [None] * 16
    with pytest.raises(BadPayload):
        list(steps)


@pytest.mark.parametrize("step", range(1, 9))
def test_the_last_alert_of_a_large_delivery_is_found_as_in_one_step(step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(posted, "SEARCHED", step)
    for body in (b"ab},{ab},{ab", b"},{", b"ab},{", b"},{ab", b"abc", b"},", b""):
        for at in range(len(body) + 1):
            assert at_once(posted._last(body, b"},{", at)) == body.rfind(b"},{", at)


def test_16_mib_without_a_second_alert_are_searched_a_mebibyte_in_one_step() -> None:
    steps = posted._last(b"},{" * (16 * 2**20 // 3), b'},{"status":', 0)
    assert sum(1 for _ in steps) == 16


@pytest.mark.parametrize(
    ("field", "most"), [("labels", payloads.LABELS), ("annotations", payloads.ANNOTATIONS)], ids=["64 KiB", "256 KiB"]
)
def test_an_alert_with_more_words_than_are_read_in_one_step_is_refused_by_its_place(field: str, most: int) -> None:
    """A million labels in 15 MiB took 1.3 seconds in one step."""
    text = json.dumps({"a": ""}, separators=(",", ":"))

    def alert(size: int) -> bytes:
        return _large((",", ":"), fires("A"), fires("B") | {field: {"a": "x" * (size - len(text))}}, fires("C"))

    assert len(parse(alert(most))) == 3
    with pytest.raises(BadPayload, match=f"{field} of alert 2 are {most + 1} bytes, more than {most}: take out of its"):
        parse(alert(most + 1))


def test_others_have_a_turn_after_each_64_kib_of_words() -> None:
    """Of 40 alerts with 33 KiB each after every second one."""
    words = {"summary": "x" * 33 * 2**10}
    steps = [one is None for one in alerts_in(delivery(*(fires(f"A{n}") | {"annotations": words} for n in range(40))))]
    assert steps[steps.index(False) :] == [False, False, True] * 20


@pytest.mark.parametrize("space", ["", " ", "\t\r\n "])
@pytest.mark.parametrize("step", range(1, 9))
def test_the_end_of_a_list_is_found_also_between_two_steps(
    space: str, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(posted, "SEARCHED", step)
    body = space.join('xxx}],"').encode()
    assert at_once(posted._goes_on(body, 0, len(body)))
    assert not at_once(posted._goes_on(body, 0, len(body) - 1))
    assert not at_once(posted._goes_on(body.replace(b",", b";"), 0, len(body)))


@pytest.mark.parametrize("separators", WRITERS.values(), ids=WRITERS)
@pytest.mark.parametrize("more", ["alerts", "\\u0061lerts", "another list"])
def test_what_comes_after_the_alerts_of_a_large_delivery_counts_as_it_does_when_it_is_read_at_once(
    separators: tuple[str, str], more: str
) -> None:
    """Alerts twice, of which the later count; and how many were left out, before a list that looks like alerts."""
    first, second = ([fires(f"{name}{number}") for number in range(900)] for name in "AB")
    parts = (json.dumps(alerts, separators=separators).encode() for alerts in (first, second))
    body = b'{"status":"firing","version":"4","alerts":%b ,\n"truncatedAlerts":7,"MORE":%b}' % tuple(parts)
    body = body.replace(b"MORE", more.encode())
    told, alerts = at_once(posted.posted(body))
    whole = posted._PAYLOAD.decode(body)
    assert told.truncated_alerts == whole.truncated_alerts == 7
    assert [one.fingerprint for one in alerts] == [one.fingerprint for one in whole.alerts]
    assert [one.labels for one in at_once(posted.posted(body))[1]] == [one.labels for one in whole.alerts]


def test_a_truncated_payload_resolves_nothing() -> None:
    found = parse(delivery(ends("A"), fires("B"), truncated=3))
    assert [one.alert.name for one in found] == ["B"]


def test_hostile_words_become_one_line() -> None:
    (one,) = parse(payload("am0.33.1-special_characters"))
    assert one.alert.name == '特殊 "quoted" \\ back newline'
    assert "\n" not in one.alert.summary
    (one,) = parse(delivery(fires() | {"annotations": {"summary": "a\x00b\u202ec" + "x" * 5000}}))
    assert one.alert.summary.startswith("a b c")
    assert len(one.alert.summary) == 1024


# --- which node ------------------------------------------------------------------------------------------------------

NODES = ("gpu-17", "10.0.0.7", "fd00::7")


@pytest.mark.parametrize(
    ("labels", "node"),
    [
        ({"node": "gpu-17", "instance": "10.0.0.7:9400"}, "gpu-17"),
        ({"node": "elsewhere"}, ""),  # no node of that name is there
        ({"node": "elsewhere", "instance": "gpu-17:9100"}, "gpu-17"),
        ({"kubernetes_node": "gpu-17"}, "gpu-17"),
        ({"nodename": "gpu-17"}, "gpu-17"),
        ({"node": "", "nodename": "gpu-17"}, "gpu-17"),
        ({"instance": "gpu-17:9100"}, "gpu-17"),
        ({"instance": "gpu-17"}, "gpu-17"),
        ({"node": "[fd00::7]:9100"}, ""),
        ({"node": "fd00::7"}, ""),
        ({"instance": "[fd00::7]:9100"}, ""),  # no node can have that name
        ({"instance": "prometheus:9090"}, ""),
        ({"Hostname": "dcgm-exporter-x7k2p", "instance": "10.0.0.7:9400"}, "10.0.0.7"),
        ({"pod": "gpu-17"}, ""),
    ],
    ids=lambda value: str(value),
)
def test_a_table_of_labels_says_which_node_an_alert_is_about(labels: dict[str, str], node: str) -> None:
    found = of_alert({"alertname": "A", "cluster": "c"} | labels, NODES)
    expected = Subject(About.NODE, node=node) if node else Subject(About.ALERT, alert="A", cluster="c")
    assert found == expected


def test_all_labels_that_may_name_a_node_are_looked_up() -> None:
    assert node_names({"node": "gpu-17", "instance": "10.0.0.7:9400"}) == ("gpu-17", "10.0.0.7")
    assert node_names({"Hostname": "a", "instance": "b:1"}) == ("a", "b")


HOSTILE = ["../secrets", "..", "a/proxy/x", "a?watch=true", "../nodes?watch=true&x=1", "A", "a..b", "-a", "a" * 254]


@pytest.mark.parametrize("label", ["node", "Hostname", "instance"])
@pytest.mark.parametrize("text", HOSTILE)
def test_what_can_be_no_name_of_a_node_is_not_looked_up_and_not_believed(label: str, text: str) -> None:
    assert node_names({label: text}) == ()
    assert of_alert({"alertname": "A", label: text}, [text]) == Subject(About.ALERT, alert="A")


def test_a_name_of_253_characters_is_looked_up() -> None:
    longest = f"{'a' * 63}.{'b' * 63}.{'c' * 63}.{'d' * 61}"
    assert node_names({"Hostname": longest}) == (longest,)


@pytest.mark.parametrize("text", ["gpu-17", "../../x", "A b_c", "特殊", "-.-", "x" * 400, "a_.b", "gpu-17.example.org"])
def test_the_name_of_a_ticket_is_one_whatever_an_alert_says(text: str) -> None:
    name = Subject(About.NODE, node=text).name
    assert len(name) <= 62
    for part in name.split("."):
        assert part
        assert part[0].isalnum()
        assert part[-1].isalnum()
        assert part.replace("-", "").isalnum()
        assert part == part.lower()
        assert part.isascii()


# --- merging ---------------------------------------------------------------------------------------------------------


def _at(minute: int) -> datetime:
    return START + timedelta(minutes=minute)


NOW = _at(8)  # no end is older than what is late
STATES = st.builds(
    lambda print_, start, length, summary: Alert(
        print_, f"alert-{print_}", _at(start), None if length is None else _at(start + length), summary=summary
    ),
    st.sampled_from("abcd"),
    st.integers(0, 5),
    st.none() | st.integers(0, 3),
    st.sampled_from(["one", "two"]),
)


@given(st.lists(STATES, max_size=12), st.randoms(use_true_random=False))
def test_deliveries_in_any_order_and_number_end_in_the_same_state(states: list[Alert], chance: random.Random) -> None:
    straight: tuple[Alert, ...] = ()
    for state in states:
        straight = merged(straight, [state], NOW)
    shuffled = [*states, *chance.choices(states, k=len(states))] if states else []
    chance.shuffle(shuffled)
    crooked: tuple[Alert, ...] = ()
    while shuffled:
        some = [shuffled.pop() for _ in range(min(len(shuffled), chance.randint(1, 4)))]
        crooked = merged(crooked, some, NOW)
    assert crooked == straight
    for alert in straight:
        mine = [state for state in states if state.fingerprint == alert.fingerprint]
        assert alert.starts == max(state.starts for state in mine)


@pytest.mark.parametrize("first", [0, 1], ids=["in order", "out of order"])
def test_a_late_firing_does_not_undo_what_a_resolved_said(first: int) -> None:
    firing, resolved = Alert("a", "A", _at(0)), Alert("a", "A", _at(0), _at(5))
    found: tuple[Alert, ...] = ()
    for state in ((firing, resolved), (resolved, firing))[first]:
        found = merged(found, [state], _at(15))
    assert found == (resolved,)


@pytest.mark.parametrize("starts", [0, -1])
def test_a_firing_heard_more_than_10_minutes_after_the_end_fires_again(starts: int) -> None:
    firing, resolved = Alert("a", "A", _at(starts)), Alert("a", "A", _at(0), _at(5))
    assert merged([resolved], [firing], _at(15)) == (resolved,)
    assert late_refires([resolved], [firing], _at(15)) == (resolved,)
    late = _at(15) + timedelta(seconds=1)
    assert merged([resolved], [firing], late) == (firing,)
    assert late_refires([resolved], [firing], late) == ()


def test_a_firing_that_began_after_the_end_is_in_no_doubt() -> None:
    resolved, again = Alert("a", "A", _at(0), _at(5)), Alert("a", "A", _at(6))
    assert late_refires([resolved], [again], _at(6)) == ()
    assert late_refires([again], [again], _at(6)) == late_refires([resolved], [resolved], _at(6)) == ()


def test_a_member_missing_from_a_payload_is_not_resolved() -> None:
    found = merged([Alert("a", "A", _at(0)), Alert("b", "B", _at(0))], [Alert("a", "A", _at(0), _at(1))], _at(1))
    assert [alert.firing for alert in found] == [False, True]


def test_beyond_the_most_that_a_ticket_holds_those_that_fire_stay() -> None:
    old = [Alert(f"old-{number:03}", "A", _at(number), _at(number + 1)) for number in range(ALERTS)]
    fire = [Alert(f"new-{number:03}", "A", _at(number)) for number in range(10)]
    found = merged(old, fire, _at(ALERTS))
    assert len(found) == ALERTS
    assert set(fire) <= set(found)
    assert old[0] not in found


def test_the_alerts_that_a_ticket_holds_are_found_without_a_sort_of_all() -> None:
    """Of 10,000, compared by their fingerprints; a sort compares 120,000 times, in one step that lets no thread run."""
    compared = 0

    class Compared(str):
        __slots__ = ()

        def __lt__(self, other: str) -> bool:
            nonlocal compared
            compared += 1
            return super().__lt__(other)

    alerts = [Alert(Compared(f"{number * 7 % 10_000:04}"), "A", _at(0)) for number in range(10_000)]
    kept = bounded(alerts)
    assert [alert.fingerprint for alert in kept] == [f"{number:04}" for number in range(10_000 - ALERTS, 10_000)]
    assert compared < 20_000


def _in_parts(known: Iterable[Alert], received: Sequence[Alert], size: int) -> tuple[Alert, ...]:
    """`merged`, so many alerts at a time."""
    newest, kept = NewestAlerts(known, NOW), tuple[Alert, ...]()
    for at in range(0, len(received), size):
        newest.add(received[at : at + size])
    found = list(newest)
    for at in range(0, len(found), size):
        kept = bounded((*kept, *found[at : at + size]))
    return kept


@given(st.lists(STATES, max_size=6), st.lists(STATES, max_size=12), st.integers(1, 13))
def test_a_delivery_that_is_heard_in_parts_ends_in_the_same_alerts(
    known: list[Alert], received: list[Alert], size: int
) -> None:
    """Also where a Ticket holds four alerts only."""
    with mock.patch.object(ticket, "ALERTS", 4):
        assert _in_parts(known, received, size) == merged(known, received, NOW)


def test_the_oldest_of_65_that_fire_stays_where_another_one_has_ended_in_a_later_part() -> None:
    fire = [Alert(f"{number:03}", "A", _at(number)) for number in range(ALERTS + 1)]
    received = [*fire, replace(fire[-1], ended=_at(ALERTS + 1))]
    found = _in_parts((), received, ALERTS + 1)
    assert found == merged((), received, NOW)
    assert (len(found), fire[0] in found, all(alert.firing for alert in found)) == (ALERTS, True, True)


def test_go_s_zero_time_is_no_end() -> None:
    (one,) = parse(delivery(ends() | {"endsAt": "0001-01-01T00:00:00Z"}))
    assert one.alert.ended == one.alert.starts
    (one,) = parse(delivery(fires() | {"startsAt": "2026-11-20T09:00:00.123456789+09:00"}))
    assert one.alert.starts == datetime(2026, 11, 20, 0, 0, 0, 123457, tzinfo=UTC)


def test_a_payload_of_the_future_with_more_fields_is_read_all_the_same() -> None:
    body: dict[str, Any] = json.loads(delivery(fires()))
    body |= {"newThing": [1], "alerts": [body["alerts"][0] | {"another": {}}]}
    assert len(parse(json.dumps(body).encode())) == 1

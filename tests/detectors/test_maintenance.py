"""maintenance: which cloud, what it plans, and answers that make no sense."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from maintenance import Plans, judge, look, parse

from nodelib.contract.npd import Verdict
from nodelib.net.maintenance import CLOUDS, PlannedEvent, cloud_of, unix
from nodelib.net.metadata import Page
from nodelib.net.metadata import parse as parse_page
from tests.detectors.fixtures.maintenance import DMI, NOON, SCHEDULED, MetadataServer, aws, ec2, machine

HOUR = 3600.0
REBOOT = PlannedEvent("system-reboot", NOON + 2 * HOUR, "e-1")


@pytest.mark.parametrize(
    ("cloud", "name"),
    [
        *[("aws", "AWS"), ("xen", "AWS"), ("google", "Google Cloud"), ("azure", "Azure"), ("oracle", "Oracle Cloud")],
        *[("own", ""), ("hyper-v", "")],
    ],
)
def test_the_firmware_tells_of_which_cloud_a_machine_is(cloud, name, tmp_path):
    machine(tmp_path, cloud)
    assert cloud_of(tmp_path / "sys") == name


def test_a_machine_of_no_cloud_asks_nobody(tmp_path):
    service = MetadataServer(aws(ec2()), "aws")
    machine(tmp_path, "own")
    options = parse([f"--sys={tmp_path / 'sys'}", f"--metadata={service.place}"])
    assert (look(options), service.paths) == (Plans(""), [])


def test_a_machine_without_dmi_is_of_no_cloud_and_one_without_sys_cannot_be_known(tmp_path):
    (tmp_path / "class").mkdir()
    assert cloud_of(tmp_path) == ""
    with pytest.raises(FileNotFoundError):
        cloud_of(tmp_path / "nowhere")


def test_a_token_is_asked_for_first_and_two_requests_are_all(tmp_path):
    service = MetadataServer(aws(ec2()), "aws")
    machine(tmp_path, "aws")
    (event,) = look(parse([f"--sys={tmp_path / 'sys'}", f"--metadata={service.place}"])).events
    assert event == PlannedEvent("system-reboot", NOON + 2 * HOUR + 43, "instance-event-0d59937288b749b32")
    assert service.paths == ["/latest/api/token", SCHEDULED]


def test_all_answers_together_have_one_deadline(tmp_path):
    service = MetadataServer(aws(scheduled=None), "aws")
    machine(tmp_path, "aws")
    began = time.monotonic()
    plans = look(parse([f"--sys={tmp_path / 'sys'}", f"--metadata={service.place}", "--deadline=0.3"]))
    assert plans.why == "the metadata service of AWS cannot be asked: no answer in time"
    assert 0.2 < time.monotonic() - began < 5


@pytest.mark.parametrize("place", ["10.0.0.1:80", "metadata.google.internal:80", "169.254.169.254", "127.0.0.1:0"])
def test_a_service_elsewhere_than_link_local_is_refused(place, capsys):
    with pytest.raises(SystemExit):
        parse([f"--metadata={place}"])
    assert "is no link-local address" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("event", "ahead", "pauses", "verdict"),
    [
        (REBOOT, 4.0, False, Verdict.FAULT),
        (REBOOT, 2.0, False, Verdict.FAULT),
        (REBOOT, 1.9, False, Verdict.OK),
        (REBOOT._replace(start=NOON - HOUR), 1.0, False, Verdict.FAULT),
        (REBOOT._replace(start=None), 0.0, False, Verdict.FAULT),
        (REBOOT._replace(stops=False), 4.0, False, Verdict.OK),
        (REBOOT._replace(stops=False), 4.0, True, Verdict.FAULT),
    ],
)
def test_a_plan_counts_from_some_hours_before_its_start(event, ahead, pauses, verdict):
    assert judge(Plans("AWS", [event]), NOON, ahead, pauses)[0] is verdict


def test_a_line_names_three_plans_sorted_and_says_that_there_are_more():
    events = [REBOOT._replace(id=f"e-{number}") for number in (4, 2, 3, 1, 1)]
    one = "system-reboot from 2026-12-01T14:00:00Z on (e-{})"
    assert judge(Plans("AWS", events), NOON, 4.0, False)[1] == (
        f"AWS plans {', '.join(one.format(number) for number in (1, 2, 3))}, and more"
    )


@given(st.floats(0, 4e9).map(int))
def test_a_time_is_read_as_the_library_writes_it(seconds):
    gone = time.gmtime(seconds)
    assert unix(time.strftime("%a, %d %b %Y %H:%M:%S GMT", gone)) == seconds
    assert unix(time.strftime("%Y-%m-%dT%H:%M:%SZ", gone)) == seconds
    assert unix(time.strftime("%Y-%m-%dT%H:%M:%S.25-05:30", gone)) == seconds + 5.5 * HOUR


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\nword", Page(200, "word")),
        (b"HTTP/1.0 404 Not Found\r\ncontent-length: 0\r\n\r\n", Page(404, "")),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n[{\r\n\r\n2\r\n}]\r\n0\r\n\r\n",
            Page(200, "[{\r\n}]"),
        ),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n[{", None),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", None),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n[]", None),
        (b"HTTP/1.1 200 OK", None),
        (b"SSH-2.0-OpenSSH_9.6\r\n\r\n", None),
    ],
)
def test_an_answer_is_whole_or_none(answer, found):
    if found:
        assert parse_page(answer) == found
    else:
        with pytest.raises(ValueError, match=r"cut off|does not speak HTTP"):
            parse_page(answer)


leaves = (
    st.none()
    | st.integers()
    | st.text(max_size=9)
    | st.sampled_from(["Reboot", "NONE", "Tue, 01 Dec 2026 12:15:58 GMT"])
)
fields = st.sampled_from(
    ["Events", "Resources", "Code", "EventType", "NotBefore", "EventId", "type", "window_start_time"]
)
values = st.recursive(leaves, lambda one: st.lists(one, max_size=3) | st.dictionaries(fields, one, max_size=5))


@given(st.sampled_from([*CLOUDS]), st.lists(st.sampled_from([200, 404, 500]), min_size=3, max_size=3), values)
def test_whatever_a_service_answers_it_is_understood_or_cannot_be_told(cloud, statuses, value):
    left = [*statuses]
    try:
        events = CLOUDS[cloud](lambda path, method="GET", headers=None: Page(left.pop(), json.dumps(value)))
    except ValueError:
        return
    assert all(isinstance(event, PlannedEvent) for event in events)


def test_there_is_a_machine_of_every_cloud_that_is_known():
    assert {"aws", "google", "azure", "oracle"} <= {*DMI}

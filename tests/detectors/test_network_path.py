"""network_path: what is too slow, for how long, whose affair a silent target is, and what counters tell."""

import errno
import json
import socket
import struct
import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from network_path import Seen, above, judge, slow, stand, unseen

from nodelib.contract.npd import Verdict
from nodelib.net import ethtool
from nodelib.net.congestion import Counted, ask_drivers, by_sign, rates, read, sent_again
from nodelib.net.probe_result import ProbeReply
from nodelib.net.round_trip import CONNECTS, INFINITE, RoundTrip, Target, connect, kernels, measure, target
from nodelib.state.looks import Looks, look
from tests.detectors.fixtures.network_path import DEAD, HERE, PORT, SLOW, arrange, put
from tests.detectors.node import run_detector

OK, FAULT, UNKNOWN = Verdict.OK, Verdict.FAULT, Verdict.UNKNOWN
ANSWERS, SILENT = ProbeReply("answers"), ProbeReply("silent", "no answer in time")
A, B = Target("10.0.0.5", 443, 2.0), Target("10.0.0.6", 443, 2.0)
NONE = Counted({})


def seen(times, counted=NONE, grown=None):
    trips = {who: RoundTrip(SILENT) if ms == INFINITE else RoundTrip(ANSWERS, ms) for who, ms in times.items()}
    return Seen(trips, counted, grown or {})


def test_three_bad_looks_in_a_row_are_told_of_until_three_in_a_row_are_good():
    bad = [True, True, False, True, True, True, False, False, True, False, False, False, True]
    told, stands = [], Looks()
    for each in bad:
        stands = look(stands, each, 3)
        told.append(stands.told)
    assert told == [False] * 5 + [True] * 6 + [False] * 2


@given(st.lists(st.booleans(), max_size=40))
def test_no_two_looks_in_a_row_change_what_is_told(bad):
    stands, told = Looks(), [False]
    for each in bad:
        stands = look(stands, each, 3)
        told.append(stands.told)
    changes = [number for number in range(1, len(told)) if told[number] != told[number - 1]]
    assert all(later - earlier >= 3 for earlier, later in pairwise(changes))


@pytest.mark.parametrize(("ms", "is_slow"), [(2.0, False), (2.001, True), (0.0, False)])
def test_a_target_is_too_slow_above_its_own_limit_alone(ms, is_slow):
    assert above(seen({A: ms}), {}) == {"answers of 10.0.0.5:443 take longer than 2 ms": is_slow}


def test_a_silent_target_is_the_nodes_affair_in_no_case_and_its_own_where_others_answer():
    assert unseen(seen({A: 1.0, B: INFINITE}), {}) == [
        "10.0.0.6:443 does not answer while others do (no answer in time): look at it"
    ]
    assert unseen(seen({A: INFINITE, B: INFINITE}), {}) == [
        "no target answers: 10.0.0.5:443 (no answer in time), 10.0.0.6:443 (no answer in time)"
    ]
    assert above(seen({A: INFINITE}), {}) == {}


def test_what_was_slow_and_is_silent_now_is_not_told_as_slow_and_is_not_forgotten():
    slow_now = {slow(A): Looks(3, 0, True)}
    standing = stand(slow_now, {}, [A])
    assert standing == slow_now
    assert judge(standing, {}, ["no target answers"]) == (UNKNOWN, "no target answers")
    assert judge(stand(standing, {slow(A): True}, []), {slow(A): True}, [])[0] is FAULT
    assert stand(slow_now, {}, []) == {}, "a target that is named no more"


def test_one_that_is_too_slow_outranks_one_that_is_silent():
    assert judge({slow(A): Looks(3, 0, True)}, {slow(A): True}, ["B is silent"]) == (FAULT, slow(A))


def test_counters_are_judged_by_the_device_and_by_no_limit_that_nobody_gave():
    grown = {
        "eth0 rx_prio3_pause": 600.0,
        "eth0 tx_prio3_pause": 500.0,
        "eth1 rx_prio3_pause": 900.0,
        "eth0 tx_dropped": 9e9,
    }
    assert above(seen({}, grown=grown), {}) == {}
    assert above(seen({}, grown=grown), {"pauses": 1000.0}) == {
        "eth0 has more PFC pauses than 1000 a second": True,
        "eth1 has more PFC pauses than 1000 a second": False,
    }


def test_drivers_that_do_not_answer_matter_only_to_who_has_a_limit_on_what_they_count():
    silent = seen({}, Counted({}, "no answer since 2026-11-30T12:00Z"))
    assert unseen(silent, {"retransmits": 1.0}) == []
    assert unseen(silent, {"pauses": 1.0}) == [
        "the drivers of network cards cannot be asked: no answer since 2026-11-30T12:00Z"
    ]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("10.0.0.5:443=2", Target("10.0.0.5", 443, 2.0)),
        ("[fd00::5]:2049=0.5", Target("fd00::5", 2049, 0.5)),
        *[
            (words, None)
            for words in ("a.example:443=2", "10.0.0.5=2", "10.0.0.5:443", "10.0.0.5:0=2", "fd00::5:443=2")
        ],
        *[
            (words, None)
            for words in ("10.0.0.5:65536=2", "10.0.0.5:443=0", "10.0.0.5:443=nan", "10.0.0.5:443=inf", "")
        ],
    ],
)
def test_a_target_is_an_address_a_port_and_a_limit(words, found):
    if found:
        assert target(words) == found
        assert target(f"{found}={found.limit}") == found
    else:
        with pytest.raises(ValueError, match=r"it is not ADDRESS:PORT=MS|the port is none, or the limit"):
            target(words)


@pytest.mark.parametrize(
    "options",
    [["--target=ns.example:53=1"], [f"{HERE}=1", f"{HERE}=2"], [f"--target=10.0.0.{last}:1=1" for last in range(9)]],
)
def test_targets_that_make_no_sense_are_refused_by_name(options, tmp_path):
    ran = run_detector("network_path", f"--state={tmp_path}", *options)
    assert (ran.code, "argument --target: " in ran.err) == (2, True)


@pytest.mark.parametrize("words", ["pauses", "pauses=0", "pauses=-1", "pauses=nan", "waits=5", "=5"])
def test_a_limit_on_no_sign_is_refused_and_the_signs_are_named(words, tmp_path):
    ran = run_detector("network_path", f"--state={tmp_path}", f"--most={words}")
    assert (ran.code, "a sign of discards, pauses, cnps, retransmits" in ran.err) == (2, True)


def test_the_kernel_measures_what_this_process_would_measure_too_long():
    ms = connect(Target("127.0.0.1", PORT, 1.0), 5)
    assert 0 < ms < 1000
    told = bytearray(104)
    struct.pack_into("I", told, 68, 2500)
    assert kernels(bytes(told)) == 2.5
    struct.pack_into("I", told, 100, 1)
    assert kernels(bytes(told)) == 0, "a segment that was sent again: the whole wait counts"
    assert kernels(bytes(told[:80])) == 0, "a kernel that tells less"


def test_a_target_that_never_answers_is_given_up_in_time():
    full = socket.create_server(("127.0.0.1", 0), backlog=0)
    held = [socket.socket() for _ in range(3)]
    for each in held:  # fill its queue: the kernel answers nobody else then
        each.setblocking(False)
        each.connect_ex(full.getsockname())
    begun = time.monotonic()
    assert measure(Target("127.0.0.1", full.getsockname()[1], 1.0), 0.6).reply == SILENT
    assert time.monotonic() - begun < 0.6 + 2
    for each in (*held, full):
        each.close()


def test_one_connection_of_three_that_fails_is_none(monkeypatch):
    answers = iter([1.0, OSError(errno.ECONNREFUSED, ""), 3.0, *[OSError(errno.ECONNREFUSED, "")] * 2, 1.0])

    def one(*_):
        answer = next(answers)
        if isinstance(answer, OSError):
            raise answer
        return answer

    monkeypatch.setattr("nodelib.net.round_trip.connect", one)
    assert measure(A, 6.0).ms == 3.0
    assert measure(A, 6.0).reply == ProbeReply("silent", "Connection refused")
    assert CONNECTS == 3


def card(root, name="eth0"):
    """A network card and a port of RDMA, made of files."""
    for kind, place in (("net", f"class/net/{name}"), ("rdma", "class/infiniband/mlx5_0")):
        put(root, f"sys/{place}/device/vendor", f"{kind}\n")
    put(root, f"sys/class/net/{name}/statistics/tx_dropped", "7\n")
    put(root, "sys/class/net/lo/statistics/tx_dropped", "7\n")
    put(root, "sys/class/infiniband/mlx5_0/ports/1/counters/port_xmit_wait", "90\n")
    put(root, "sys/class/infiniband/mlx5_0/ports/1/hw_counters/np_cnp_sent", "garbage\n")


def test_counters_of_hardware_are_read_and_what_is_no_number_is_none(tmp_path):
    card(tmp_path, "nosuch0")
    put(tmp_path, "proc/1/net/snmp", "Tcp: RtoMin RetransSegs\nTcp: 200 12\n")
    found = read(tmp_path / "sys", tmp_path / "proc", tmp_path / "state", 5.0, set())
    assert found == Counted({"nosuch0 tx_dropped": 7, "mlx5_0/1 port_xmit_wait": 90, "the node RetransSegs": 12})


@pytest.mark.parametrize(
    "snmp", ["", "Tcp: RetransSegs\n", "Tcp: RetransSegs\nTcp: -1\n", "Tcp: A\nTcp: 5\n", "Udp: 1\n"]
)
def test_a_table_without_the_number_tells_nothing(snmp, tmp_path):
    put(tmp_path, "1/net/snmp", snmp)
    assert sent_again(tmp_path) is None


def test_a_node_without_network_devices_asks_no_driver(tmp_path):
    assert ask_drivers({}, tmp_path / "state", 5.0) == ({}, "")
    assert not (tmp_path / "state").exists()


def test_growth_is_by_the_second_and_a_counter_that_begins_anew_has_not_grown():
    assert rates({"a": 100, "b": 50, "gone": 1}, {"a": 340, "b": 2, "new": 9}, 240.0) == {"a": 1.0, "b": 0.0}
    assert rates({"a": 1}, {"a": 2}, 0.0) == {}
    assert by_sign({"mlx5_0/1 np_cnp_sent": 2.0, "mlx5_0/1 rp_cnp_handled": 3.0, "eth0 rx_dropped": 1.0}, "cnps") == {
        "mlx5_0/1": 5.0
    }


NAMES = ["rx_packets", "rx_discards_phy", "tx_prio3_pause", "x_rx_prio3_pause", "rx_prio3_pause_duration"]


def driver(count, names):
    """The kernel's answers for a driver that said `count` and then has these statistics; its place is a value."""

    def ask(_, head, length):
        command = struct.unpack_from("I", head)[0]
        if command == ethtool.COUNT:
            return struct.pack("2IQI", command, 0, 2 if names else 0, count)
        body = b"".join(name.encode().ljust(32, b"\0") for name in names)
        if command == ethtool.VALUES:
            body = b"".join(struct.pack("Q", place) for place in range(len(names)))
        assert len(body) <= length, "the kernel would write behind the buffer"
        return head + body.ljust(length, b"\0")

    return ask


def test_of_a_drivers_statistics_those_of_congestion_are_taken_by_their_whole_name():
    assert ethtool.statistics("eth0", driver(5, NAMES)) == {"rx_discards_phy": 1, "tx_prio3_pause": 2}
    assert ethtool.statistics("eth0", driver(0, [])) == {}


def test_statistics_that_are_added_while_they_are_read_have_room():
    assert ethtool.statistics("eth0", driver(1, [*NAMES[1:2], *["queue"] * 4000])) == {"rx_discards_phy": 0}


def test_a_device_that_is_none_is_refused_by_the_kernel_and_told_of_nobody(tmp_path):
    with pytest.raises(OSError, match=r"No such device|not supported"):
        ethtool.statistics("nosuch0")
    assert ask_drivers({"nosuch0": tmp_path}, tmp_path / "state", 10.0) == ({}, "")


def run(root, now, *options):
    folders = [f"--{name}={root / name}" for name in ("proc", "sys", "state")]
    return run_detector("network_path", *folders, f"--now={now}", *options)


def test_evidence_has_the_times_of_all_targets_and_what_grew(tmp_path):
    arrange(tmp_path)
    for number in range(3):
        put(tmp_path, "proc/1/net/snmp", f"Tcp: RetransSegs\nTcp: {number * 480}\n")
        ran = run(tmp_path, 1000 + 240 * number, f"{HERE}=0.001", f"--target=127.0.0.1:{DEAD}=1")
    assert (ran.code, ran.line) == (FAULT, SLOW)
    kept = json.loads((tmp_path / "state/evidence/network_path.json").read_text())
    assert [*kept["milliseconds"]] == [f"127.0.0.1:{PORT}"]
    assert kept["a second"] == {"the node RetransSegs": 2.0}


def test_looks_that_lie_far_apart_are_not_in_a_row(tmp_path):
    arrange(tmp_path)
    assert [run(tmp_path, now, f"{HERE}=0.001").code for now in (1000, 1240, 2141, 2381, 2621)] == [OK] * 4 + [FAULT]


def test_a_node_whose_network_is_another_cannot_be_judged(tmp_path):
    arrange(tmp_path)
    for who, net in (("self", 1), ("1", 2)):
        (tmp_path / f"proc/{who}/ns").mkdir(parents=True)
        (tmp_path / f"proc/{who}/ns/net").symlink_to(f"net:[{net}]")
    ran = run(tmp_path, 1000, f"{HERE}=1")
    assert (ran.code, "hostNetwork" in ran.line) == (UNKNOWN, True)

"""dns: one question, any answer; and resolv.conf as the C library reads it."""

import json
import time

import pytest
from dns import Group, judge
from hypothesis import given
from hypothesis import strategies as st

from nodelib.contract.npd import Verdict
from nodelib.net.dns import ROOT, Question, Resolver, ask_nameserver, encode, parse_answer, parse_resolv
from nodelib.net.probe_result import ProbeReply
from nodelib.state.debounce import Streak
from tests.detectors.fixtures.dns import PORT, NameServer, arrange
from tests.detectors.node import run_detector
from tests.detectors.null_server import dead_port

OK, FAULT, UNKNOWN = Verdict.OK, Verdict.FAULT, Verdict.UNKNOWN
ANSWERS, SILENT, UNCLEAR = (
    ProbeReply("answers"),
    ProbeReply("silent", "no answer in time"),
    ProbeReply("unclear", "refuses"),
)
A, B = "10.0.0.2", "10.0.0.3"
NODES, CLUSTER = Group("the DNS of /etc/resolv.conf", (A, B)), Group("the cluster's DNS 10.96.0.10", ("10.96.0.10",))
TWICE = {group.title: Streak(1.0, 2) for group in (NODES, CLUSTER)}

CASES = {
    "both answer": ([NODES], {NODES: {A: ANSWERS, B: ANSWERS}}, TWICE, OK, "names can be looked up"),
    "one answers": ([NODES], {NODES: {A: SILENT, B: ANSWERS}}, TWICE, OK, "names can be looked up"),
    "none answers": (
        [NODES],
        {NODES: {B: SILENT, A: SILENT}},
        TWICE,
        FAULT,
        "the DNS of /etc/resolv.conf does not answer: 10.0.0.2 (no answer in time), 10.0.0.3 (no answer in time)",
    ),
    "none answers once": ([NODES], {NODES: {A: SILENT, B: SILENT}}, {NODES.title: Streak(1.0, 1)}, UNKNOWN, "once"),
    "one is silent, one cannot be judged": (
        [NODES],
        {NODES: {A: SILENT, B: UNCLEAR}},
        TWICE,
        UNKNOWN,
        "be asked: 10.0",
    ),
    "only the cluster's is silent": (
        [NODES, CLUSTER],
        {NODES: {A: ANSWERS, B: SILENT}, CLUSTER: {"10.96.0.10": SILENT}},
        TWICE,
        FAULT,
        "the cluster's DNS 10.96.0.10 does not answer: 10.96.0.10 (no answer in time)",
    ),
    "nobody knows whom to ask": ([Group("x", why="x cannot be read")], {}, {}, UNKNOWN, "x cannot be read"),
}


@pytest.mark.parametrize(("groups", "replies", "standing", "verdict", "words"), CASES.values(), ids=CASES.keys())
def test_replies_become_a_verdict(groups, replies, standing, verdict, words):
    found, line = judge(groups, {group.title: said for group, said in replies.items()}, standing)
    assert found is verdict
    assert line == words or (found is UNKNOWN and words in line)


MOODS = {
    "answers": ANSWERS,
    "no-such-name": ANSWERS,
    "truncates": ANSWERS,
    "loses-one": ANSWERS,
    "silent": SILENT,
    "servfail": ProbeReply("silent", "SERVFAIL"),
    "tcp-only": ProbeReply("silent", "only over TCP"),
    "refuses": ProbeReply("unclear", "refuses the question"),
    "garbage": ProbeReply("unclear", "what it says is no answer"),
    "other-id": ProbeReply("unclear", "what it says is no answer"),
}


@pytest.mark.parametrize(("mood", "reply"), MOODS.items(), ids=MOODS.keys())
def test_a_server_is_judged_by_what_it_says(mood, reply):
    server = NameServer(mood)
    started = time.monotonic()
    assert ask_nameserver("127.0.0.1", Question("a.example"), 1.0, port=server.port) == reply
    assert time.monotonic() - started < 3
    assert set(server.questions) <= {("udp", "a.example", 1), ("tcp", "a.example", 1)}
    server.close()


def test_the_root_is_asked_for_its_name_servers_over_udp_once():
    server = NameServer()
    assert ask_nameserver("127.0.0.1", ROOT, 5, port=server.port) == ANSWERS
    assert server.questions == [("udp", "", 2)]
    server.close()


def test_where_the_node_asks_over_tcp_so_do_we():
    server = NameServer("tcp-only")
    assert ask_nameserver("127.0.0.1", ROOT, 5, over_tcp=True, port=server.port) == ANSWERS
    assert [over for over, _, _ in server.questions] == ["tcp"]
    server.close()


def test_a_refusal_by_the_network_is_silence_and_comes_at_once():
    started = time.monotonic()
    assert ask_nameserver("127.0.0.1", ROOT, 30, port=dead_port()) == ProbeReply("silent", "Connection refused")
    assert time.monotonic() - started < 5


RESOLV = {
    "": Resolver(()),
    "# nameserver 10.0.0.9\nnameserver 10.0.0.2\nnameserver fd00::1\noptions ndots:5\n": Resolver((A, "fd00::1")),
    "nameserver 10.0.0.2\nnameserver 10.0.0.2\noptions use-vc\n": Resolver((A,), True),
    "nameserver 10.0.0.2 # mine\nnameserver fe80::1%eth0\nnameserver\n": Resolver((A, "fe80::1%eth0")),
    "".join(f"nameserver 10.0.0.{last}\n" for last in (2, 3, 4, 5)): Resolver((A, B, "10.0.0.4")),
    "domain a.example\nsearch b.example. c.example\nsearch\n": Resolver((), domain="b.example"),
    "search a.example\nsearch .\n": Resolver(()),
}


@pytest.mark.parametrize(("text", "found"), RESOLV.items())
def test_resolv_conf_is_read_as_the_c_library_does(text, found):
    assert parse_resolv(text) == found


@given(st.text(max_size=60) | st.text(max_size=20).map("nameserver {}\n".format))
def test_garbage_in_resolv_conf_names_nobody_or_is_told_of(text):
    try:
        servers = parse_resolv(text).servers
    except ValueError:
        return
    assert len(servers) <= 3


@given(st.binary(max_size=80), st.booleans())
def test_garbage_is_no_answer(content, with_number):
    query = encode(Question("a.example"), 4711)
    code = parse_answer(query, query[:2] + content if with_number else content)
    assert code is None or (content[0] & 0x80 and (code or query[12:].lower() in content.lower()))


def test_an_answer_to_another_question_is_none():
    query, other = encode(Question("a.example"), 7), encode(Question("b.example"), 7)
    assert parse_answer(query, query[:2] + b"\x81\x80" + query[4:]) == 0
    assert parse_answer(query, other[:2] + b"\x81\x80" + other[4:]) is None
    assert parse_answer(query, query) is None, "a question is no answer"
    assert parse_answer(query, query[:2] + b"\x81\x82" + bytes(8)) == 2, "who fails may leave the question out"


@pytest.mark.parametrize("name", ["a..b", "x" * 64, "caf\u00e9", ".".join(["x" * 60] * 5), ".a"])
def test_what_is_no_name_is_refused(name):
    with pytest.raises(ValueError):
        encode(Question(name), 0)


def run(root, now, *options):
    folders = [f"--{name}={root / name}" for name in ("proc", "state")]
    return run_detector("dns", *folders, f"--now={now}", f"--port={PORT}", *options)


# A server's address (each its own), what resolv.conf has besides, and the names it was asked for; the root has none.
LOCAL = {
    "127.0.7.81": ("search a.example b.example\n", ["", "a.example"]),
    "127.0.7.82": ("", ["", "gpu-17"]),
    "127.0.7.83": ("search .\n", ["", "gpu-17"]),
}


@pytest.mark.parametrize(("host", "searched", "asked"), [(host, *told) for host, told in LOCAL.items()])
def test_a_server_that_cannot_tell_of_the_root_is_asked_for_a_name_near_by(tmp_path, host, searched, asked):
    arrange(tmp_path, f"{searched}nameserver {host}\n")
    (tmp_path / "proc/sys/kernel/hostname").write_text("gpu-17\n")
    server = NameServer("cut-off", host, PORT)
    assert [run(tmp_path, now)[0] for now in (100, 130)] == [OK, OK]
    assert [name for _, name, _ in server.questions] == asked * 2
    server.close()


def test_a_server_that_cannot_tell_of_the_root_is_silent_where_no_other_name_is_known(tmp_path):
    arrange(tmp_path, "nameserver 127.0.7.4\n")
    assert [run(tmp_path, now)[0] for now in (100, 130)] == [UNKNOWN, FAULT]


def test_whoever_gives_a_name_wants_that_one_and_no_other(tmp_path):
    arrange(tmp_path, "search a.example\nnameserver 127.0.7.84\n")
    server = NameServer("servfail", "127.0.7.84", PORT)
    assert [run(tmp_path, now, "--name=www.example")[0] for now in (100, 130)] == [UNKNOWN, FAULT]
    assert {name for _, name, _ in server.questions} == {"www.example"}
    server.close()


def test_the_kubelets_own_file_and_the_cluster_are_asked_besides(tmp_path):
    arrange(tmp_path)
    (tmp_path / "proc/1/root/run/kubelet.conf").write_text("nameserver 127.0.7.9\n")
    server = NameServer("answers", "127.0.7.53", PORT)
    options = ("--resolv=/run/kubelet.conf", "--server=127.0.7.53", "--server=127.0.7.1=db.example")
    assert run(tmp_path, 100, *options)[0] == UNKNOWN
    assert run(tmp_path, 130, *options)[:2] == (
        FAULT,
        "the DNS of /run/kubelet.conf does not answer: 127.0.7.9 (Connection refused)",
    )
    assert {name for _, name, _ in server.questions} == {"kubernetes.default.svc.cluster.local"}
    kept = json.loads((tmp_path / "state/evidence/dns.json").read_text())
    assert kept["silent"] == {"the DNS of /run/kubelet.conf": {"127.0.7.9": "Connection refused"}}
    server.close()


def test_one_good_answer_in_between_begins_anew(tmp_path):
    arrange(tmp_path, "nameserver 127.0.7.9\n")
    assert run(tmp_path, 100)[0] == UNKNOWN
    resolv = tmp_path / "proc/1/root/run/systemd/resolve/resolv.conf"
    resolv.write_text("nameserver 127.0.7.1\n")
    assert run(tmp_path, 130)[0] == OK
    resolv.write_text("nameserver 127.0.7.9\n")
    assert run(tmp_path, 160)[0] == UNKNOWN
    assert run(tmp_path, 190)[0] == FAULT


def test_explain_shows_every_server_and_counts_for_nothing(tmp_path):
    arrange(tmp_path, "nameserver 127.0.7.9\n")
    for now in (100, 130, 160):
        code, text, _ = run(tmp_path, now, "--explain")
        assert code == UNKNOWN
    assert "127.0.7.9" in text
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize("option", ["--server=ns.example", "--server=10.0.0.1=a..b", "--name=a..b", "--resolv=etc/x"])
def test_an_option_that_makes_no_sense_is_refused_by_name(tmp_path, option):
    code, _, errors = run(tmp_path, 100, option)
    assert code == 2
    assert f"argument {option.partition('=')[0]}: " in errors


def test_a_silent_server_delays_no_other(tmp_path):
    silent = NameServer("silent", "127.0.7.77", PORT)
    arrange(tmp_path, "nameserver 127.0.7.77\nnameserver 127.0.7.1\n")
    started = time.monotonic()
    assert run(tmp_path, 100, "--deadline=3")[0] == OK
    assert time.monotonic() - started < 6
    silent.close()

"""nfs_server: a server that is silent twice is told of, by name, in the same words on every node."""

import json
import struct
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nfs_server import judge

from nodelib.contract.npd import Verdict
from nodelib.host.mountinfo import GARBLED
from nodelib.net.nfs import NfsMount, NfsMounts, NfsTarget, ask_server, parse_reply
from nodelib.net.probe_result import ProbeReply, in_the_nodes_network
from tests.detectors.null_server import NullServer, dead_port
from tests.detectors.proc_tree import ProcTree

OK, FAULT, UNKNOWN = 0, 1, 2
A, B = NfsTarget("10.0.0.5"), NfsTarget("10.0.0.6")
SILENT, ANSWERS, UNCLEAR = (
    ProbeReply("silent", "no answer in time"),
    ProbeReply("answers"),
    ProbeReply("unclear", "EMFILE"),
)
POD = "/var/lib/kubelet/pods/8f3c2a10-1111-2222-3333-444455556666/volumes/kubernetes.io~nfs/pv-"


def mount(point, server=A, export="/data"):
    return NfsMount("0:52", point, f"files:{export}", server, 4)


CASES = {
    "every server answers": ([mount("/data")], {A: ANSWERS}, [], OK, "every NFS server answers"),
    "silent once": ([mount("/data")], {A: SILENT}, [], UNKNOWN, "NFS server 10.0.0.5 did not answer once: /data"),
    "silent twice": ([mount("/data")], {A: SILENT}, [A], FAULT, "NFS server 10.0.0.5 does not answer: /data"),
    "silent before, answers now": ([mount("/data")], {A: ANSWERS}, [A], OK, "every NFS server answers"),
    "cannot be asked": ([mount("/d")], {A: UNCLEAR}, [A], UNKNOWN, "NFS server 10.0.0.5 cannot be asked: EMFILE"),
    "two are dead, in order, whatever is mounted first": (
        [mount("/b", B, "/home"), mount("/a", A), mount("/c", A, "/apps")],
        {B: SILENT, A: SILENT},
        [A, B],
        FAULT,
        "NFS server 10.0.0.5 does not answer: /apps, /data; NFS server 10.0.0.6 does not answer: /home",
    ),
    "a dead one outranks one that is silent for the first time": (
        [mount("/a", A), mount("/b", B)],
        {A: SILENT, B: SILENT},
        [B],
        FAULT,
        "NFS server 10.0.0.6 does not answer: /data",
    ),
    "another was silent before": ([mount("/a", A)], {A: SILENT}, [B], UNKNOWN, "did not answer once"),
    "volumes of Pods have one name": (
        [mount(f"{POD}1", export="/pv/1"), mount(f"{POD}2", export="/pv/2")],
        {A: SILENT},
        [A],
        FAULT,
        "NFS server 10.0.0.5 does not answer: volumes of Pods",
    ),
    "no server in the options": ([mount("/data", None)], {}, [], UNKNOWN, "the options of /data name no server"),
    "nothing mounted": ([], {}, [], OK, "nothing is mounted from NFS"),
}


@pytest.mark.parametrize(("mounts", "replies", "before", "verdict", "line"), CASES.values(), ids=CASES.keys())
def test_replies_become_a_verdict(mounts, replies, before, verdict, line):
    found, said = judge(NfsMounts(tuple(mounts), 0), replies, [str(one) for one in before])
    assert found == verdict
    assert said == line or (verdict == UNKNOWN and line in said)


def test_a_line_that_makes_no_sense_is_a_doubt_and_hides_no_fault():
    assert judge(NfsMounts((), 1), {}, []) == (Verdict.UNKNOWN, GARBLED)
    assert judge(NfsMounts((mount("/data"),), 1), {A: SILENT}, ["10.0.0.5"])[0] is Verdict.FAULT


def test_two_nodes_with_the_server_at_different_paths_say_the_same():
    here, there = (NfsMounts((mount(point),), 0) for point in ("/data", "/mnt/team/data"))
    assert judge(here, {A: SILENT}, ["10.0.0.5"]) == judge(there, {A: SILENT}, ["10.0.0.5"])


@pytest.fixture
def server():
    """A real server on 127.0.0.1."""
    server = NullServer()
    yield server
    server.close()


MOODS = {
    "answers": "answers",
    "other-version": "answers",
    "denies": "answers",
    "no-program": "silent",
    "silent": "silent",
    "drip": "silent",
    "hangs-up": "silent",
    "other-call": "unclear",
    "garbage": "unclear",
}


@pytest.mark.parametrize(("mood", "word"), MOODS.items(), ids=MOODS.keys())
def test_a_server_is_judged_by_what_it_says(server, mood, word):
    server.mood = mood
    assert ask_server(NfsTarget("127.0.0.1", server.port), 4, 1 if mood in ("silent", "drip") else 5).word == word
    assert len(server.calls) == 1


def test_the_version_of_the_mount_is_asked_for(server):
    for version in (3, 4):
        ask_server(NfsTarget("127.0.0.1", server.port), version, 5)
    assert [call[4] for call in server.calls] == [3, 4]


def test_a_refused_connection_is_silence():
    assert ask_server(NfsTarget("127.0.0.1", dead_port()), 4, 5) == ProbeReply("silent", "Connection refused")


def test_a_name_is_never_looked_up(server):
    assert ask_server(NfsTarget("localhost", server.port), 4, 5).word == "unclear"
    assert server.calls == []


def test_silence_over_tcp_proves_nothing_of_a_mount_over_rdma(server):
    assert ask_server(NfsTarget("127.0.0.1", dead_port(), tcp=False), 4, 5).word == "unclear"
    assert ask_server(NfsTarget("127.0.0.1", server.port, tcp=False), 4, 5).word == "answers"


def test_silence_in_another_network_than_the_nodes_proves_nothing(tmp_path):
    for who, network in (("self", "net:[2]"), ("1", "net:[1]")):
        (tmp_path / who / "ns").mkdir(parents=True)
        (tmp_path / who / "ns/net").symlink_to(network)
    assert in_the_nodes_network(SILENT, tmp_path).word == "unclear"
    assert "hostNetwork" in in_the_nodes_network(SILENT, tmp_path).why
    assert in_the_nodes_network(ANSWERS, tmp_path) == ANSWERS
    (tmp_path / "self/ns/net").unlink()
    (tmp_path / "self/ns/net").symlink_to("net:[1]")
    assert in_the_nodes_network(SILENT, tmp_path) == SILENT


@given(body=st.binary(max_size=64), xid=st.binary(min_size=4, max_size=4))
def test_garbage_from_a_server_is_never_taken_for_an_answer(body, xid):
    reply = parse_reply(body, xid)
    assert reply.word != "answers" or (body[:4] == xid and body[4:8] == struct.pack(">I", 1))


# The program.


@pytest.fixture
def node(tmp_path):
    return ProcTree(tmp_path)


def on(server, more=""):
    return f"vers=4.2,hard,proto=tcp,port={server.port},timeo=600,addr=127.0.0.1{more}"


def test_a_node_without_nfs_is_fine_and_leaves_its_mark(node):
    assert node.run("nfs_server", "--now=12.5")[:2] == (OK, "nothing is mounted from NFS")
    mark = json.loads((node.state / "marks/nfs_server.json").read_text())
    assert mark == {"boot_id": "one", "detector": "nfs_server", "finished_at": 12.5}


def test_a_server_that_answers_is_fine_and_is_asked_once_for_all_its_mounts(node, server):
    node.mount("/data", "files:/data", on(server))
    node.mount("/home", "files:/home", on(server), device="0:53")
    assert node.run("nfs_server")[:2] == (OK, "every NFS server answers")
    assert len(server.calls) == 1


@pytest.mark.parametrize("mood", ["silent", "no-program"])
def test_a_dead_server_is_a_fault_in_the_second_run_and_fine_when_it_is_back(node, server, mood):
    server.mood = mood
    node.mount("/mnt/data", "files:/data", on(server))
    name = f"127.0.0.1:{server.port}"
    assert node.run("nfs_server", "--deadline=0.3")[:2] == (UNKNOWN, f"NFS server {name} did not answer once: /data")
    fault = (FAULT, f"NFS server {name} does not answer: /data")
    assert node.run("nfs_server", "--deadline=0.3")[:2] == fault
    path = node.state / "evidence/nfs_server.json"
    kept = json.loads(path.read_text())
    assert kept["servers"][0]["mounts"] == ["files:/data on /mnt/data"]
    assert node.run("nfs_server", "--deadline=0.3")[:2] == fault
    assert json.loads(path.read_text()) == kept, "evidence is of the first sight"
    server.mood = "answers"
    assert node.run("nfs_server").code == OK
    assert not path.exists()
    server.mood = mood
    assert node.run("nfs_server", "--deadline=0.3").code == UNKNOWN, "two runs in a row, not two in all"


def test_silence_before_a_boot_does_not_count_after_it(node):
    node.mount("/data", "files:/data", f"port={dead_port()},addr=127.0.0.1")
    assert node.run("nfs_server").code == UNKNOWN
    node.write("proc/sys/kernel/random/boot_id", "two\n")
    assert node.run("nfs_server").code == UNKNOWN
    assert node.run("nfs_server").code == FAULT


def test_many_silent_servers_take_one_deadline_together(node, server):
    server.mood = "silent"
    others = [NullServer("silent") for _ in range(8)]
    for index, one in enumerate([server, *others]):
        node.mount(f"/data{index}", f"files:/data{index}", on(one), device=f"0:{60 + index}")
    started = time.monotonic()
    ran = node.run("nfs_server", "--deadline=1")
    assert time.monotonic() - started < 5
    assert ran.line.count("did not answer once") == 9
    for one in others:
        one.close()


@pytest.mark.parametrize("text", ["", "[", '{"silent": 3, "boot_id": "one"}', '{"silent": [{}], "boot_id": "one"}'])
def test_a_state_file_that_makes_no_sense_is_overcome(node, server, text):
    node.mount("/data", "files:/data", on(server))
    node.write("state/nfs_server.json", text)
    assert node.run("nfs_server").code == OK


@pytest.mark.parametrize("text", ["", "\n", "nonsense\n", "22 1 8:1 / / rw - ext4\n"])
def test_a_mountinfo_that_makes_no_sense_is_cannot_tell(node, text):
    node.write("proc/1/mountinfo", text)
    assert node.run("nfs_server")[:2] == (UNKNOWN, GARBLED)


def test_no_mountinfo_is_cannot_tell_with_its_cause(node):
    (node.proc / "1/mountinfo").unlink()
    ran = node.run("nfs_server")
    assert ran.code == UNKNOWN
    assert ran.line.startswith("FileNotFoundError: ")
    assert "Traceback" not in ran.err
    assert (node.state / "marks/nfs_server.json").exists()


def test_explain_shows_mounts_and_replies_and_leaves_no_mark(node, server):
    node.mount("/data", "files:/data", on(server))
    ran = node.run("nfs_server", "--explain")
    assert f"/data: files:/data, server 127.0.0.1:{server.port}" in ran.line
    assert f"127.0.0.1:{server.port}: answers" in ran.line
    assert not (node.state / "marks").exists()

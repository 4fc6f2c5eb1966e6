"""pod_network: what the probe asks from inside a Pod, and what is made of anything that it may write."""

import errno
import json
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pod_network import read

from nodelib.net import pod_probe
from nodelib.net.pod_probe import ask_api, ask_dns, connect, peers_after, probe, serve
from nodelib.net.probe_result import ProbeReply
from tests.detectors.fixtures.dns import NameServer
from tests.detectors.fixtures.pod_network import FINE
from tests.detectors.null_server import dead_port
from tests.harness.waiting import wait_for


@pytest.mark.parametrize(
    ("mood", "word"), [("answers", "answers"), ("no-such-name", "answers"), ("servfail", "silent")]
)
def test_any_answer_of_cluster_dns_will_do(mood, word, tmp_path):
    server, resolv = NameServer(mood), tmp_path / "resolv.conf"
    resolv.write_text("nameserver 127.0.0.1\n")
    assert ask_dns(resolv, server.port).word == word
    assert server.questions[0][1] == "kubernetes.default.svc.cluster.local"
    server.close()


def test_the_api_service_is_asked_where_the_kubelet_says_and_refusal_is_silence():
    assert ask_api({}) == ProbeReply("unclear", "KUBERNETES_SERVICE_HOST is not set")
    port = str(dead_port())
    refused = ask_api({"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": port})
    assert refused == ProbeReply("silent", "Connection refused")


def test_a_probe_takes_connections_of_others_and_counts_who_took_its_own(tmp_path):
    listener = serve(0)
    port = listener.getsockname()[1]
    assert connect("127.0.0.1", port) == ProbeReply("answers")
    seen = probe("127.0.0.1", port, {"POD_IP": "10.0.0.7"}, tmp_path / "none")
    assert (seen["peers"], seen["dns"][0], seen["api"][0]) == ([1, 1], "unclear", "unclear")
    listener.close()


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="no IPv6 here")
@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_a_probe_takes_connections_by_ipv4_and_by_ipv6(host):
    with pod_probe.serve(0) as listener:
        assert pod_probe.connect(host, listener.getsockname()[1]).word == "answers"


def test_a_probe_that_has_no_descriptor_for_a_moment_takes_connections_again(monkeypatch):
    monkeypatch.setattr(pod_probe, "SHORT", 0.01)
    real, short = socket.socket.accept, [OSError(errno.ENFILE, "Too many open files in system")]

    def accept(self):
        if short:
            raise short.pop()
        return real(self)

    monkeypatch.setattr(socket.socket, "accept", accept)
    with pod_probe.serve(0) as listener:
        wait_for(lambda: not short)
        with socket.create_connection(("127.0.0.1", listener.getsockname()[1]), timeout=5) as connection:
            assert connection.recv(1) == b""  # taken, and closed


def test_each_probe_of_nine_asks_five_and_is_asked_by_five():
    ring = {f"10.0.0.{number}" for number in range(1, 10)}
    asked = [peer for own in ring for peer in peers_after(own, ring)]
    assert {asked.count(address) for address in ring} == {5}
    assert all(own not in peers_after(own, ring) for own in ring)


values = st.recursive(
    st.none() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*FINE]), inner, max_size=5),
)


@given(st.binary(max_size=40) | values.map(lambda value: json.dumps(value).encode()))
def test_whatever_a_pod_writes_is_a_result_or_cannot_be_used(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "probe.json"
    path.write_bytes(content)
    try:
        result = read(path)
    except ValueError:
        return
    assert set(result._fields) == {*FINE}


def test_a_link_is_not_followed(tmp_path):
    (tmp_path / "secret").write_text(json.dumps(FINE))
    (tmp_path / "probe.json").symlink_to(tmp_path / "secret")
    with pytest.raises(OSError, match="Too many levels"):
        read(tmp_path / "probe.json")

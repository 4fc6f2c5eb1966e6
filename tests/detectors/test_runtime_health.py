"""runtime_health: what kubelet and runtime say is read to the letter, nothing hangs, and three failures are a fault."""

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from runtime_health import KUBELET, Health, judge, kubelet_health, runtime_health

from nodelib.contract.npd import Verdict
from nodelib.host.root import within
from nodelib.net.cri import Ready, Runtime, ask_runtime, parse_status, request
from nodelib.net.loopback import get, loopback_url
from nodelib.net.probe_result import ProbeReply
from nodelib.state.debounce import Streak, stand
from tests.detectors.fixtures.runtime_health import (
    SOCKET,
    CriServer,
    HealthServer,
    arrange,
    sick_page,
    status_response,
)
from tests.detectors.node import run_detector
from tests.detectors.null_server import dead_port

OK, FAULT, UNKNOWN = Verdict.OK, Verdict.FAULT, Verdict.UNKNOWN
WELL, ILL = Health("well"), Health("ill", "it does not answer")
LONG, SHORT, FEW = Streak(50.0, 3), Streak(51.0, 3), Streak(0.0, 2)
CRI, OTHER = "/run/crio/crio.sock", "/run/containerd/containerd.sock"

CASES = {
    "both are well": ({KUBELET: WELL, CRI: WELL}, {KUBELET, CRI}, {}, OK, "the kubelet and the container runtime work"),
    "ill for three runs and 50 seconds": ({KUBELET: ILL, CRI: WELL}, {KUBELET, CRI}, {KUBELET: LONG}, FAULT, ILL.text),
    "ill for 49 seconds": ({KUBELET: ILL, CRI: WELL}, {KUBELET, CRI}, {KUBELET: SHORT}, UNKNOWN, "not for long yet"),
    "ill for two runs": ({KUBELET: WELL, CRI: ILL}, {KUBELET, CRI}, {CRI: FEW}, UNKNOWN, "not for long yet"),
    "the kubelet never answered": ({KUBELET: ILL, CRI: WELL}, {CRI}, {KUBELET: LONG}, UNKNOWN, "declare it with --kub"),
    "the runtime never answered": ({KUBELET: WELL, CRI: ILL}, {KUBELET}, {CRI: LONG}, UNKNOWN, "declare it with --soc"),
    "a socket is left over beside the one in use": (
        {KUBELET: WELL, CRI: WELL, OTHER: ILL},
        {KUBELET, CRI},
        {OTHER: LONG},
        OK,
        "the kubelet and the container runtime work",
    ),
    "no socket": ({KUBELET: WELL}, {KUBELET}, {}, UNKNOWN, "no socket of a container runtime is there"),
    "unclear": ({KUBELET: WELL, CRI: Health("unclear", "EACCES")}, {KUBELET, CRI}, {CRI: LONG}, UNKNOWN, "EACCES"),
    "a fault outranks a doubt": (
        {KUBELET: ILL, CRI: Health("unclear", "EACCES")},
        {KUBELET, CRI},
        {KUBELET: LONG},
        FAULT,
        ILL.text,
    ),
}


@pytest.mark.parametrize(("healths", "known", "standing", "verdict", "words"), CASES.values(), ids=CASES.keys())
def test_health_becomes_a_verdict(healths, known, standing, verdict, words):
    found, line = judge(healths, known, standing, now=100.0)
    assert found is verdict
    assert words in line


KUBELETS = {
    "well": (ProbeReply("answers"), "ok", "well", ""),
    "a check fails": (
        ProbeReply("silent", "HTTP 500"),
        "[+]ping ok\n[-]syncloop failed: reason withheld\n[-]log failed: x\nhealthz check failed",
        "ill",
        "the kubelet is not well: log, syncloop",
    ),
    "only a status": (ProbeReply("silent", "HTTP 503"), "", "ill", "the kubelet is not well: HTTP 503"),
    "dead": (ProbeReply("silent", "Connection refused"), "", "ill", "the kubelet does not answer (Connection refused)"),
    "something else": (ProbeReply("unclear", "HTTP 404"), "", "unclear", "the kubelet cannot be asked: HTTP 404"),
}


@pytest.mark.parametrize(("reply", "body", "word", "text"), KUBELETS.values(), ids=KUBELETS.keys())
def test_a_kubelets_page_becomes_words(reply, body, word, text):
    assert kubelet_health(reply, body) == (word, text)


def test_a_runtime_that_does_not_tell_whether_it_is_ready_is_no_healthy_one():
    assert runtime_health("/s", Runtime(ProbeReply("answers"), {"NetworkReady": Ready(True, "")})).word == "unclear"
    assert runtime_health("/s", Runtime(ProbeReply("answers"), {"RuntimeReady": Ready(False, "")})).word == "ill"
    assert runtime_health("/s", Runtime(ProbeReply("answers"), {"RuntimeReady": Ready(True, "")})) == WELL


# The call itself, over a real socket.

MOODS = {
    "answers": ("answers", ""),
    "silent": ("silent", "no answer in time"),
    "hangs-up": ("silent", "closed without an answer"),
    "resets": ("silent", "it refused the call"),
    "14": ("silent", "gRPC status 14"),
    "7": ("unclear", "gRPC status 7"),
    "garbage": ("unclear", "ValueError: what listens there does not speak HTTP/2"),
    "cut": ("unclear", "ValueError: its answer is no message"),
    "odd": ("unclear", "ValueError: its answer is cut short"),
}


@pytest.mark.parametrize(("mood", "word", "why"), [(mood, *said) for mood, said in MOODS.items()], ids=MOODS.keys())
def test_a_runtime_is_judged_by_what_it_says(tmp_path, mood, word, why):
    server = CriServer(tmp_path / "cri.sock", mood=mood)
    started = time.monotonic()
    reply = ask_runtime(tmp_path / "cri.sock", 0.4 if mood == "silent" else 5).reply
    server.close()
    assert (reply.word, reply.why) == (word, why)
    assert time.monotonic() - started < 4


def test_conditions_and_their_reasons_are_read(tmp_path):
    told = {
        "RuntimeReady": (True, ""),
        "NetworkReady": (False, "NetworkPluginNotReady"),
        "ContainerdHasNoX": (True, ""),
    }
    server = CriServer(tmp_path / "cri.sock", told)
    assert ask_runtime(tmp_path / "cri.sock", 5).conditions == told
    assert server.methods == ["/runtime.v1.RuntimeService/Status"]
    server.close()


def test_an_old_runtime_is_asked_in_its_own_version(tmp_path):
    server = CriServer(tmp_path / "cri.sock")
    server.serves = {"runtime.v1alpha2"}
    assert ask_runtime(tmp_path / "cri.sock", 5).reply.word == "answers"
    server.serves = set()
    assert ask_runtime(tmp_path / "cri.sock", 5).reply == ProbeReply("silent", "it does not serve CRI")
    server.close()


def test_a_socket_that_nobody_serves_is_silent_and_one_that_is_none_is_unclear(tmp_path):
    CriServer(tmp_path / "dead.sock").close()
    assert ask_runtime(tmp_path / "dead.sock", 1).reply == ProbeReply("silent", "Connection refused")
    assert ask_runtime(tmp_path / "none.sock", 1).reply == ProbeReply("silent", "No such file or directory")


def test_a_socket_deep_in_folders_can_be_asked(tmp_path):
    path = tmp_path / ("x" * 100) / ("y" * 100) / "cri.sock"
    server = CriServer(path)
    assert ask_runtime(path, 5).reply.word == "answers"
    server.close()


@given(st.binary(max_size=60))
def test_garbage_is_never_taken_for_a_status(content):
    for body in (content, b"\0" + len(content).to_bytes(4, "big") + content):
        try:
            conditions = parse_status(body)
        except ValueError:
            continue
        assert conditions, "a status without a condition says nothing"


@given(st.data())
def test_a_status_that_is_cut_anywhere_is_no_status(data):
    body = status_response({"RuntimeReady": (True, "because"), "NetworkReady": (False, "none")})
    size = data.draw(st.integers(1, len(body) - 1))
    with pytest.raises(ValueError):
        parse_status(b"\0" + (len(body) - size).to_bytes(4, "big") + body[:-size])


PAGES = {
    b"HTTP/1.1 200 OK\r\n\r\nok": ("answers", ""),
    b"HTTP/1.0 204 No Content\r\n\r\n": ("answers", ""),
    b"HTTP/1.1 500 Internal Server Error\r\n\r\nbad": ("silent", "HTTP 500"),
    b"HTTP/1.1 404 Not Found\r\n\r\n": ("unclear", "HTTP 404"),
    b"SSH-2.0-OpenSSH_9.9\r\n": ("unclear", "ValueError: what listens there does not speak HTTP"),
    b"": ("silent", "closed without an answer"),
    None: ("silent", "no answer in time"),
}


@pytest.mark.parametrize(("page", "reply"), PAGES.items())
def test_a_health_page_is_judged_by_its_status(page, reply):
    server = HealthServer(reply=page)
    assert get(f"http://127.0.0.1:{server.port}/healthz", 0.4 if page is None else 5)[0] == reply
    server.close()
    assert server.requests[0].startswith(b"GET /healthz HTTP/1.0\r\n")


@pytest.mark.parametrize(
    "url", ["http://10.0.0.1:80/", "https://127.0.0.1:1/", "http://127.0.0.1/", "x", "http://127.1@h:1/"]
)
def test_no_other_host_is_asked(url):
    with pytest.raises(Exception, match=r"write http://127\.0\.0\.1:PORT/PATH"):
        loopback_url(url)
    assert get(url, 1)[0].word == "unclear"


# Memory, and the node's own root.


def test_a_streak_ends_with_the_first_good_run():
    first = stand(["a"], {}, 10.0)
    assert stand(["a", "b"], first, 40.0) == {"a": (10.0, 2), "b": (40.0, 1)}
    assert stand(["a"], stand([], first, 40.0), 70.0) == {"a": (70.0, 1)}
    assert stand(["a"], {"a": Streak(99.0, 5)}, 70.0) == {"a": (70.0, 1)}, "a memory from the future is none"


def test_links_of_the_node_stay_inside_its_root(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "var").mkdir()
    (tmp_path / "var/run").symlink_to("/run")
    (tmp_path / "run/a").symlink_to("../../../run/b")
    (tmp_path / "loop").symlink_to("loop")
    assert within(tmp_path, "/var/run/x.sock") == tmp_path / "run/x.sock"
    assert within(tmp_path, "/var/run/a") == tmp_path / "run/b"
    assert within(tmp_path, "/../../etc/none") == tmp_path / "etc/none"
    with pytest.raises(OSError, match="Too many levels"):
        within(tmp_path, "/loop")


# The program.


def run(root, now, *options):
    folders = (f"--proc={root / 'proc'}", f"--state={root / 'state'}")
    return run_detector("runtime_health", *folders, f"--now={now}", *options)


def test_a_kubelet_that_falls_ill_is_told_of_in_the_third_run_and_evidence_stays_until_it_is_well(tmp_path):
    arrange(tmp_path)
    server = HealthServer()
    url = f"--kubelet=http://127.0.0.1:{server.port}/healthz"
    assert run(tmp_path, 100, url)[0] == OK
    server.reply = sick_page("[+]ping ok\n[-]syncloop failed: reason withheld\n")
    assert [run(tmp_path, now, url)[:2] for now in (130, 160)] == [
        (UNKNOWN, "the kubelet is not well: syncloop, not for long yet")
    ] * 2
    assert run(tmp_path, 190, url)[:2] == (FAULT, "the kubelet is not well: syncloop")
    path = tmp_path / "state/evidence/runtime_health.json"
    assert "syncloop" in path.read_text()
    server.reply = b"HTTP/1.1 200 OK\r\n\r\nok"
    assert run(tmp_path, 220, url)[0] == OK
    assert not path.exists()
    server.close()


def test_a_kubelet_that_once_answered_need_not_be_declared_and_a_new_boot_forgets_it(tmp_path):
    arrange(tmp_path)
    state = tmp_path / "state/runtime_health.json"
    state.parent.mkdir()
    state.write_text('{"boot_id": "one", "known": ["kubelet"], "ill": {"kubelet": [10.0, 9]}}')
    url = f"--kubelet=http://127.0.0.1:{dead_port()}/healthz"
    assert run(tmp_path, 100, url)[0] == FAULT
    (tmp_path / "proc/sys/kernel/random/boot_id").write_text("two\n")
    assert run(tmp_path, 100, url)[0] == UNKNOWN


def test_runs_by_hand_count_for_nothing(tmp_path):
    arrange(tmp_path)
    url = f"--kubelet=http://127.0.0.1:{dead_port()}/healthz"
    for now in (100, 200, 300, 400):
        code, text, _ = run(tmp_path, now, url, "--explain")
        assert code == UNKNOWN
    assert "kubelet: word ill, " in text
    assert not (tmp_path / "state").exists()


def test_a_node_whose_root_is_out_of_reach_is_cannot_tell(tmp_path):
    code, line, errors = run(tmp_path, 100)
    assert code == UNKNOWN
    assert "1/root" in line
    assert "Traceback" not in errors


@pytest.mark.parametrize("option", ["--kubelet=http://10.0.0.1:1/", "--socket=run/x.sock"])
def test_an_option_that_makes_no_sense_is_refused_by_name(tmp_path, option):
    code, _, errors = run(tmp_path, 100, option)
    assert code == 2
    assert f"argument {option.partition('=')[0]}: " in errors


def test_the_request_is_small_enough_for_any_first_window():
    assert len(request("/runtime.v1alpha2.RuntimeService/Status")) < 300


# The real thing.

NO_CONTAINERD = "needs root and containerd (containerd and runc on PATH): it starts one under a folder of its own"


@pytest.fixture
def containerd(tmp_path):
    """A real containerd without a CNI configuration; gives its process and its root folder."""
    (tmp_path / "net.d").mkdir()
    (tmp_path / "config.toml").write_text(
        f'version = 2\nroot = "{tmp_path}/root"\nstate = "{tmp_path}/run"\n[grpc]\naddress = "{tmp_path}/cri.sock"\n'
        f'[plugins."io.containerd.grpc.v1.cri".cni]\nconf_dir = "{tmp_path}/net.d"\nbin_dir = "{tmp_path}/bin"\n'
        f'[plugins."io.containerd.internal.v1.opt"]\npath = "{tmp_path}/opt"\n'
    )
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(["containerd", "-c", str(tmp_path / "config.toml")], stderr=log)
    until = time.monotonic() + 30
    while ask_runtime(tmp_path / "cri.sock", 1).reply.word != "answers" and time.monotonic() < until:
        time.sleep(0.05)
    yield process, tmp_path
    process.kill()
    process.wait()


def state_of(pid):
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


@pytest.mark.cluster
@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("containerd"), reason=NO_CONTAINERD)
def test_a_real_containerd_tells_its_conditions_and_one_that_is_stopped_does_not_hang_us(containerd):
    process, root = containerd
    path = root / "cri.sock"
    assert ask_runtime(path, 5) == Runtime(
        ProbeReply("answers"),
        {"RuntimeReady": Ready(True, ""), "NetworkReady": Ready(False, "NetworkPluginNotReady")},
    )
    (root / "net.d/10.conflist").write_text('{"cniVersion":"0.3.1","name":"x","plugins":[{"type":"bridge"}]}')
    until = time.monotonic() + 10
    while not ask_runtime(path, 5).conditions["NetworkReady"].ready and time.monotonic() < until:
        time.sleep(0.05)
    assert ask_runtime(path, 5).conditions["NetworkReady"].ready
    process.send_signal(signal.SIGSTOP)
    while state_of(process.pid) != "T" and time.monotonic() < until:
        time.sleep(0.01)
    started = time.monotonic()
    assert ask_runtime(path, 0.5).reply == ProbeReply("silent", "no answer in time")
    assert time.monotonic() - started < 2
    process.kill()
    process.wait()
    assert ask_runtime(path, 5).reply == ProbeReply("silent", "Connection refused")


def test_the_socket_of_the_node_is_found_below_its_root(tmp_path):
    arrange(tmp_path)
    code, line, _ = run(tmp_path, 100, "--explain")
    assert f"{SOCKET}: word well, text none" in line
    assert code in (OK, UNKNOWN), "as the kubelet of this machine is"

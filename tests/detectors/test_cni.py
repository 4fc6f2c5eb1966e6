"""cni: the runtime's word on its network, the plugin's files, and how long each may lack."""

import fcntl
import json
import os
from pathlib import Path

import pytest
from cni import NetworkSetup, judge, keys
from hypothesis import given
from hypothesis import strategies as st

from nodelib.contract.npd import Verdict
from nodelib.net.cni import Config, held_locks, missing_plugins, parse_config, parse_locks, read_config
from nodelib.net.probe_result import ProbeReply
from nodelib.state.debounce import Streak
from tests.detectors.fixtures.cni import UNREADY, arrange
from tests.detectors.fixtures.runtime_health import HealthServer
from tests.detectors.node import run_detector

OK, FAULT, UNKNOWN = Verdict.OK, Verdict.FAULT, Verdict.UNKNOWN
FINE = NetworkSetup(
    folder="/etc/cni/net.d",
    config=Config("valid", "05-x.conflist", ("x",)),
    network=(True, ""),
    ours=True,
    missing=[],
    agents={},
    locks={},
)
NONE, BROKEN, UNCLEAR = (
    Config("none"),
    Config("broken", "05-x.conf"),
    Config("unclear", "/e cannot be read: Permission"),
)
NOBODY = (None, "no socket")
LOCK = "/var/lib/cni/networks/net/lock"

CASES = {
    "fine": (FINE, OK, "the network plugin is in order"),
    "the runtime is content with files elsewhere": (FINE._replace(config=NONE), OK, ""),
    "it cannot read ours, but the runtime is content": (FINE._replace(config=UNCLEAR), OK, ""),
    "not ready": (FINE._replace(network=UNREADY), FAULT, "its network is not ready (NetworkPluginNotReady)"),
    "not ready for lack of files": (FINE._replace(network=UNREADY, config=NONE), FAULT, "no CNI configuration in /etc"),
    "nobody to ask, no files": (FINE._replace(network=NOBODY, config=NONE), FAULT, "no CNI configuration in /etc/cni"),
    "nobody to ask, broken": (
        FINE._replace(network=NOBODY, config=BROKEN),
        FAULT,
        "no valid CNI configuration in /etc",
    ),
    "nobody to ask, not ours": (FINE._replace(network=NOBODY, config=NONE, ours=False), UNKNOWN, "(no socket)"),
    "nobody to ask, cannot be read": (FINE._replace(network=NOBODY, config=UNCLEAR), UNKNOWN, "Permission"),
    "nobody to ask, all is there": (FINE._replace(network=NOBODY), OK, ""),
    "a program is missing": (FINE._replace(missing=["x"]), FAULT, "CNI plugin x is missing"),
    "no folder of programs": (FINE._replace(missing=None), UNKNOWN, "name it with --bin"),
    "an agent is silent": (
        FINE._replace(agents={"http://127.0.0.1:1/": ProbeReply("silent", "HTTP 500")}),
        FAULT,
        "CNI agent http://127.0.0.1:1/ does not answer (HTTP 500)",
    ),
    "an agent cannot be asked": (
        FINE._replace(agents={"u": ProbeReply("unclear", "HTTP 404")}),
        UNKNOWN,
        "be asked (HTTP",
    ),
    "a lock": (FINE._replace(locks={LOCK: 42}), FAULT, f"CNI lock {LOCK} is never released"),
}


@pytest.mark.parametrize(("seen", "verdict", "words"), CASES.values(), ids=CASES.keys())
def test_what_was_seen_becomes_a_verdict_once_it_has_lasted(seen, verdict, words):
    lasting = dict.fromkeys(keys(seen), Streak(700.0, 2))
    found, line = judge(seen, lasting, 1000.0)
    assert found is verdict
    assert words in line


@pytest.mark.parametrize(
    ("since", "runs", "verdict"),
    [(880.0, 2, FAULT), (881.0, 9, UNKNOWN), (100.0, 1, UNKNOWN)],
)
def test_it_must_last_two_minutes_and_two_runs(since, runs, verdict):
    seen = FINE._replace(missing=["x"])
    assert judge(seen, dict.fromkeys(keys(seen), Streak(since, runs)), 1000.0)[0] is verdict


def test_a_lock_must_be_held_by_one_process_for_five_minutes_and_until_then_it_is_what_locks_are_for():
    seen = FINE._replace(locks={LOCK: 42})
    [key] = keys(seen)
    assert judge(seen, {key: Streak(701.0, 9)}, 1000.0)[0] is OK
    assert judge(seen, {key: Streak(700.0, 9)}, 1000.0)[0] is FAULT
    assert keys(FINE._replace(locks={LOCK: 43})) != [key]


CONFIGS = {
    ("a.conflist", '{"name": "n", "plugins": [{"type": "b", "ipam": {"type": "i"}}, {"type": "a"}]}'): (
        "valid",
        "a.conflist",
        ("a", "b", "i"),
    ),
    ("a.conf", '{"type": "bridge", "ipam": {}}'): ("valid", "a.conf", ("bridge",)),
    ("a.conflist", '{"type": "bridge"}'): ("broken", "a.conflist", ()),
    ("a.conf", '{"plugins": [{"type": "bridge"}]}'): ("broken", "a.conf", ()),
    ("a.conflist", '{"plugins": []}'): ("broken", "a.conflist", ()),
    ("a.conflist", '{"plugins": [{"type": "../../bin/sh"}]}'): ("broken", "a.conflist", ()),
    ("a.json", ""): ("broken", "a.json", ()),
}


@pytest.mark.parametrize(("file", "config"), CONFIGS.items())
def test_a_configuration_is_read(file, config):
    assert parse_config(file[0], file[1].encode()) == config


VALUES = st.recursive(
    st.none() | st.text(max_size=4),
    lambda one: st.lists(one, max_size=3) | st.dictionaries(st.sampled_from(["plugins", "type", "ipam", "x"]), one),
)


@given(
    st.binary(max_size=60) | VALUES.map(lambda one: json.dumps(one).encode()),
    st.sampled_from(["a.conf", "a.conflist"]),
)
def test_garbage_is_a_broken_configuration_and_a_valid_one_names_programs(content, name):
    config = parse_config(name, content)
    assert config.word in ("broken", "valid")
    assert all("/" not in plugin and plugin for plugin in config.plugins)


def test_the_first_file_by_name_counts_and_what_is_no_configuration_does_not(tmp_path):
    folder = tmp_path / "net.d"
    assert read_config(tmp_path, "/net.d").word == "none"
    folder.mkdir()
    (folder / "00-readme.txt").touch()
    (folder / "05-old.conflist.bak").touch()
    assert read_config(tmp_path, "/net.d").word == "none"
    (folder / "20-b.conf").write_text('{"type": "b"}')
    (folder / "10-a.conf").write_text('{"type": "a"}')
    assert read_config(tmp_path, "/net.d") == Config("valid", "10-a.conf", ("a",))
    (folder / "05-x.conf").symlink_to("05-x.conf")
    assert read_config(tmp_path, "/net.d").word == "unclear"


def test_a_program_may_be_in_any_folder_and_must_be_one(tmp_path):
    for folder in ("opt", "usr"):
        (tmp_path / folder).mkdir()
    (tmp_path / "opt/a").touch(0o755)
    (tmp_path / "usr/b").touch(0o755)
    (tmp_path / "usr/c").touch(0o644)
    (tmp_path / "usr/d").mkdir()
    assert missing_plugins(tmp_path, ["/none", "/opt", "/usr"], ["a", "b", "c", "d", "e"]) == ["c", "d", "e"]
    assert missing_plugins(tmp_path, ["/none"], ["a"]) is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["plugins", "type", "ipam", "name"]), inner, max_size=3)
    ),
    max_leaves=10,
)


CONTENT = st.binary(max_size=60) | JSON.map(lambda value: json.dumps(value).encode())


@given(CONTENT, st.sampled_from(["a.conflist", "a.conf"]))
def test_garbage_is_no_configuration_and_what_is_one_names_its_programs(content, name):
    found = parse_config(name, content)
    assert found.word in ("valid", "broken")
    assert (found.word == "valid") == bool(found.plugins)
    assert all(plugin and "/" not in plugin for plugin in found.plugins)


LOCKS = """1: FLOCK  ADVISORY  WRITE 4242 fe:00:131 0 EOF
1: -> FLOCK  ADVISORY  WRITE 4243 fe:00:131 0 EOF
2: POSIX  ADVISORY  READ  7 00:1a:9 128 128
"""


def test_who_waits_for_a_lock_does_not_hold_it():
    assert parse_locks(LOCKS) == {"fe:00:131": 4242, "00:1a:9": 7}


@given(st.text(max_size=80))
def test_garbage_among_locks_is_none(text):
    assert all(isinstance(pid, int) for pid in parse_locks(text).values())


def test_a_real_lock_is_found_in_the_real_proc(tmp_path):
    pool = tmp_path / "networks/net"
    pool.mkdir(parents=True)
    with (pool / "lock").open("w") as file:
        assert held_locks(Path("/proc"), tmp_path, "/networks") == {}
        fcntl.flock(file, fcntl.LOCK_EX)
        assert held_locks(Path("/proc"), tmp_path, "/networks") == {"/networks/net/lock": os.getpid()}
    assert held_locks(Path("/proc"), tmp_path, "/none") == {}


def run(root, now, *options):
    folders = [f"--{name}={root / name}" for name in ("proc", "state")]
    return run_detector("cni", *folders, f"--now={now}", *options)


def test_a_folder_that_had_a_configuration_in_this_boot_must_have_one_even_when_nobody_can_be_asked(tmp_path):
    top = arrange(tmp_path, network=None)
    assert run(tmp_path, 100)[0] == OK
    (top / "etc/cni/net.d/05-cilium.conflist").unlink()
    assert run(tmp_path, 130)[0] == UNKNOWN
    assert run(tmp_path, 250)[:2] == (FAULT, "no CNI configuration in /etc/cni/net.d")
    assert json.loads((tmp_path / "state/evidence/cni.json").read_text())["network"].startswith("no socket")
    (tmp_path / "proc/sys/kernel/random/boot_id").write_text("two\n")
    code, line, _ = run(tmp_path, 250)
    assert code == UNKNOWN
    assert "cannot be asked" in line


def test_an_agent_that_answers_is_fine(tmp_path):
    arrange(tmp_path)
    server = HealthServer()
    assert run(tmp_path, 100, f"--agent=http://127.0.0.1:{server.port}/healthz")[0] == OK
    assert server.requests
    server.close()


def test_causes_may_change_while_a_fault_lasts(tmp_path):
    arrange(tmp_path)
    server = HealthServer(reply=b"HTTP/1.0 503 x\r\n\r\n")
    option = f"--agent=http://127.0.0.1:{server.port}/healthz"
    assert run(tmp_path, 100, option)[0] == UNKNOWN
    server.reply = b"HTTP/1.0 500 x\r\n\r\n"
    code, line, _ = run(tmp_path, 220, option)
    assert code == FAULT
    assert line.endswith("does not answer (HTTP 500)")
    server.close()


def test_runs_by_hand_count_for_nothing(tmp_path):
    arrange(tmp_path, plugins=())
    for now in (100, 300, 500):
        code, text, _ = run(tmp_path, now, "--explain")
        assert code == UNKNOWN
    assert "missing: cilium-cni, portmap" in text
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize("option", ["--cni=etc", "--bin=opt", "--agent=http://10.0.0.1:1/", "--socket=x"])
def test_an_option_that_makes_no_sense_is_refused_by_name(tmp_path, option):
    code, _, errors = run(tmp_path, 100, option)
    assert code == 2
    assert f"argument {option.partition('=')[0]}: " in errors

"""What unkillable_process makes of threads, Pods and time; and what it reads in the files of /proc."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from unkillable_process import Still, judge, stand

from nodelib.contract.npd import Verdict
from nodelib.host.cgroups import bare, dashed, parse_cgroup
from nodelib.host.proc_files import Stat, is_killed, parse_stat, switches_of, word
from nodelib.host.threads import Scan, Thread
from nodelib.k8s.pod_list import uids
from tests.detectors.proc_tree import CONTAINER, UID, pod_cgroup, stat_line, status_text

OK, FAULT, UNKNOWN = Verdict
OTHER = "d80f4a0e-576f-47a8-a0cf-69dc23dc1980"


def thread(pid=700, uid=UID, comm="python3", wchan="nfs_wait", switches=7, start=500):
    return Thread(pid, pid + 1, start, comm, wchan, switches, bare(uid), CONTAINER)


def seen(*threads, garbled=(), read=9):
    return Scan(threads, read, garbled)


ONE, TWO, HOST = thread(), thread(900, OTHER, "ray", "nv_lock"), thread(uid="")
BOTH = {ONE.key, TWO.key}
GONE_ONE = f"pod {UID} is gone but a process of it cannot be killed: python3 waits in nfs_wait"
GONE_TWO = f"pod {OTHER} is gone but a process of it cannot be killed: ray waits in nv_lock"

CASES = {
    "nothing stuck": (seen(), set(), set(), OK, "no process of a pod that is gone is left"),
    "gone and stuck": (seen(ONE), BOTH, set(), FAULT, GONE_ONE),
    "alive and stuck": (seen(ONE), BOTH, {bare(UID)}, OK, "no process of a pod that is gone is left"),
    "another pod is alive": (seen(ONE), BOTH, {bare(OTHER)}, FAULT, GONE_ONE),
    "seen for the first time": (
        seen(ONE), set(), set(), UNKNOWN,
        f"a process of pod {UID} was killed and has not ended yet: python3 waits in nfs_wait",
    ),
    "nobody knows": (seen(ONE), BOTH, "HTTP 500", UNKNOWN, "nobody knows if the pod is gone: python3 waits in nfs_w"),
    "no process of a pod": (seen(HOST), {HOST.key}, set(), OK, ""),
    "two pods, in order": (seen(TWO, ONE), BOTH, set(), FAULT, f"{GONE_ONE}; {GONE_TWO}"),
    "two threads in one place are said once": (seen(ONE, ONE._replace(tid=9)), BOTH | {"700/9/500"}, set(), FAULT, ""),
    "a fault outranks a doubt": (seen(ONE, TWO, garbled=("5/stat",)), {TWO.key}, set(), FAULT, GONE_TWO),
    "a file that makes no sense": (seen(garbled=("5/stat",)), set(), set(), UNKNOWN, "files that make no sense"),
    "nothing could be read": (seen(read=0), set(), set(), UNKNOWN, "no process can be read"),
}  # fmt: skip


@pytest.mark.parametrize(("scan", "lasting", "living", "verdict", "words"), CASES.values(), ids=CASES.keys())
def test_threads_become_a_verdict(scan, lasting, living, verdict, words):
    found, line = judge(scan, lasting, living)
    assert found is verdict
    assert words in line
    assert line.count(GONE_ONE) <= 1


def test_a_thread_stands_since_its_switches_were_first_seen():
    first = stand([ONE], {}, 100.0)
    assert first == {ONE.key: Still(7, 100.0)}
    assert stand([ONE], first, 160.0) == first
    assert stand([thread(switches=8)], first, 160.0) == {ONE.key: Still(8, 160.0)}
    assert stand([], first, 160.0) == {}


def test_another_process_with_the_same_pid_begins_anew():
    first = stand([ONE], {}, 100.0)
    assert list(stand([thread(start=501)], first, 160.0).values()) == [Still(7, 160.0)]


def test_a_memory_from_the_future_counts_for_nothing():
    assert stand([ONE], {ONE.key: Still(7, 900.0)}, 160.0) == {ONE.key: Still(7, 160.0)}


SLICE = "kubepods-burstable-pod8f3c2a10_1111_2222_3333_444455556666.slice"
PLAIN = bare(UID)
CGROUPS = {
    "v2 systemd containerd": (
        f"0::/kubepods.slice/kubepods-burstable.slice/{SLICE}/cri-containerd-{CONTAINER}.scope", PLAIN, CONTAINER
    ),
    "v2 systemd, guaranteed": (
        f"0::/kubepods.slice/kubepods-podd80f4a0e_576f_47a8_a0cf_69dc23dc1980.slice/crio-{CONTAINER}.scope",
        bare(OTHER),
        CONTAINER,
    ),
    "CRI-O monitor is not the container": (
        f"0::/kubepods.slice/kubepods-burstable.slice/{SLICE}/crio-conmon-{CONTAINER}.scope", PLAIN, ""
    ),
    "v2 cgroupfs containerd": (f"0::/kubepods/burstable/pod{UID}/{CONTAINER}", PLAIN, CONTAINER),
    "v1 cgroupfs, every controller": (
        f"12:pids:/kubepods/burstable/pod{UID}/{CONTAINER}\n11:memory:/kubepods/burstable/pod{UID}/{CONTAINER}\n0::/",
        PLAIN,
        CONTAINER,
    ),
    "v1, only the line of name=systemd": (f"3:cpu:/\n1:name=systemd:/kubepods/pod{UID}/{CONTAINER}", PLAIN, CONTAINER),
    "cgroupfs CRI-O": (f"0::/kubepods/besteffort/pod{UID}/crio-{CONTAINER}", PLAIN, CONTAINER),
    "docker systemd": (
        f"0::/kubepods.slice/kubepods-besteffort.slice/"
        f"kubepods-besteffort-pod8f3c2a10_1111_2222_3333_444455556666.slice/docker-{CONTAINER}.scope",
        PLAIN,
        CONTAINER,
    ),
    "seen from a cgroup namespace of our own": (
        f"0::/../../../{SLICE}/cri-containerd-{CONTAINER}.scope", PLAIN, CONTAINER
    ),
    "containerd driver mismatch": (
        f"12:pids:/system.slice/containerd.service/{SLICE}:cri-containerd:{CONTAINER}", PLAIN, CONTAINER
    ),
    "kind": (
        "0::/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/"
        f"kubelet-{SLICE}/cri-containerd-{CONTAINER}.scope",
        PLAIN,
        CONTAINER,
    ),
    "static pod": (
        f"0::/kubepods/burstable/pod3a1f2b4c5d6e7f8091a2b3c4d5e6f708/{CONTAINER}",
        "3a1f2b4c5d6e7f8091a2b3c4d5e6f708",
        CONTAINER,
    ),
    "removed folder of a zombie": (f"0::/kubepods/besteffort/pod{UID} (deleted)", PLAIN, ""),
    "nested below the container": (
        f"0::/kubepods/burstable/pod{UID}/{CONTAINER}/kubepods/pod{OTHER}/{'f' * 64}", PLAIN, "f" * 64
    ),
    "kubelet": ("0::/system.slice/kubelet.service", "", ""),
    "a login": ("0::/user.slice/user-1000.slice/session-3.scope", "", ""),
    "the root": ("0::/", "", ""),
    "a uid that is too short": ("0::/kubepods/pod8f3c2a10-1111", "", ""),
    "a word that ends in pod": (f"0::/tripod{UID}", "", ""),
}  # fmt: skip


@pytest.mark.parametrize(("text", "pod", "container"), CGROUPS.values(), ids=CGROUPS.keys())
def test_a_cgroup_names_its_pod_and_container(text, pod, container):
    assert parse_cgroup(f"{text}\n") == (pod, container)


@pytest.mark.parametrize("text", ["", "nonsense", "0::kubepods", "x::/", f"/kubepods/pod{UID}"])
def test_a_cgroup_that_makes_no_sense_is_refused(text):
    with pytest.raises(ValueError):
        parse_cgroup(text)


def test_a_uid_is_written_as_the_api_server_does():
    assert dashed(bare(UID.upper())) == dashed(bare(UID.replace("-", "_"))) == UID


@pytest.mark.parametrize("comm", ["sh", "a b", ") Z 1 (", "((", "tmux: server", "x) S 1 1 1"])
def test_a_name_with_blanks_and_parentheses_does_not_shift_the_fields(comm):
    assert parse_stat(stat_line(7, comm, "D", start=9)) == Stat(comm, "D", 0x400000, 9, 1)


@pytest.mark.parametrize("text", ["", "7", "7 (sh) D 1 2", "7 sh D", stat_line(7, "sh", "@"), stat_line(7, "sh", "DD")])
def test_a_stat_that_makes_no_sense_is_refused(text):
    with pytest.raises(ValueError):
        parse_stat(text)


def test_sigkill_is_looked_for_in_both_masks_and_no_other_signal_is_taken_for_it():
    for killed in (True, False):
        assert is_killed(status_text("D", killed)) is killed
        assert switches_of(status_text("D", killed)) == 8
    own = status_text("D", killed=False).replace("SigPnd:\t0000000000000000", "SigPnd:\t0000000000000100", 1)
    assert is_killed(own)
    term = status_text("D", killed=False).replace("SigPnd:\t0000000000000000", "SigPnd:\t0000000000004000", 1)
    assert not is_killed(term)


def read_status(text):
    return is_killed(text), switches_of(text)


@pytest.mark.parametrize("missing", ["SigPnd", "ShdPnd", "voluntary_ctxt_switches", "nonvoluntary_ctxt_switches"])
def test_a_status_without_what_is_needed_is_refused(missing):
    lines = [line for line in status_text("D", True).split("\n") if not line.startswith(f"{missing}:")]
    with pytest.raises(ValueError, match=missing):
        read_status("\n".join(lines))


@pytest.mark.parametrize(
    ("text", "plain"),
    [("python3", "python3"), ("a; b\nc", "a_b_c"), ("", "unknown"), ("0", "unknown"), ("\x1b[31m", "_31m")],
)
def test_a_name_that_a_program_chose_is_made_harmless(text, plain):
    assert word(text) == plain


@given(st.text() | st.text(alphabet="0123456789 ()DZSR\n").map(lambda text: f"7 (x) {text}"))
def test_garbage_in_stat_is_refused_or_names_a_known_state(text):
    try:
        stat = parse_stat(text)
    except ValueError:
        return
    assert stat.state in "RSDZTtXxKWPI"


@given(st.text() | st.text(alphabet="SigPndSh:\t0123456789abcdef\n").map(lambda text: status_text("D", True) + text))
def test_garbage_in_status_is_refused_or_told_by_its_masks(text):
    try:
        killed, switches = read_status(text)
    except ValueError:
        return
    assert "SigPnd" in text
    assert isinstance(killed, bool)
    assert switches >= 0


@given(st.text() | st.text(alphabet="0:/pod-_abcdef.slice \n").map(lambda text: f"0::/{text}"))
def test_garbage_in_cgroup_is_refused_or_gives_a_whole_uid(text):
    try:
        pod, container = parse_cgroup(text)
    except ValueError:
        return
    assert len(pod) in (0, 32)
    assert len(container) in (0, 64)


@given(st.data())
def test_a_damaged_cgroup_of_a_pod_never_names_another_pod(data):
    text = pod_cgroup()
    cut = data.draw(st.integers(0, len(text)))
    damaged = data.draw(st.sampled_from([text[:cut], text[cut:], f"{text[:cut]}\0{text[cut + 1 :]}"]))
    try:
        pod, _ = parse_cgroup(damaged)
    except ValueError:
        return
    assert pod in ("", PLAIN)


@pytest.fixture
def noon():
    return datetime.fromisoformat("2026-01-01T12:00:00Z")


def api_pod(uid=UID, deleted=None, annotations=None, **more):
    about = {"uid": uid, **({"deletionTimestamp": deleted} if deleted else {}), "annotations": annotations, **more}
    return {"metadata": about}


HASH = "3a1f2b4c5d6e7f8091a2b3c4d5e6f708"
MIRROR = {"kubernetes.io/config.hash": HASH, "kubernetes.io/config.mirror": HASH}
NODE = {"apiVersion": "v1", "kind": "Node", "name": "gpu-1", "uid": "n"}
PODS = {
    "a running pod": ([api_pod()], {PLAIN}),
    "a pod in its grace": ([api_pod(deleted="2026-01-01T12:00:01Z")], {PLAIN}),
    "a pod whose grace is over": ([api_pod(deleted="2026-01-01T11:59:59Z")], set()),
    "a mirror pod": ([api_pod(annotations=MIRROR, ownerReferences=[NODE])], {PLAIN, HASH}),
    "a pod with the annotations of one": ([api_pod(annotations=MIRROR)], {PLAIN}),
    "a pod of a node without the annotation": ([api_pod(annotations={}, ownerReferences=[NODE])], {PLAIN}),
    "none": ([], set()),
}


@pytest.mark.parametrize(("pods", "living"), PODS.values(), ids=PODS.keys())
def test_a_pod_lives_until_its_grace_is_over(pods, living, noon):
    assert uids(pods, noon) == living


@pytest.mark.parametrize("pod", [3, {}, {"metadata": {}}, api_pod(uid=7), api_pod(deleted="soon"), {"metadata": []}])
def test_a_pod_that_makes_no_sense_is_refused(pod, noon):
    with pytest.raises(ValueError):
        uids([api_pod(), pod], noon)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["metadata", "uid", "deletionTimestamp", "annotations"]), inner, max_size=4)
    ),
    max_leaves=10,
)


@given(st.lists(JSON, max_size=3))
def test_garbage_in_place_of_a_pod_is_refused_and_never_no_pod(pods):
    """A list that is shorter than the truth would make a living Pod a gone one."""
    now = datetime(2026, 1, 1, tzinfo=UTC)
    try:
        found = uids(pods, now)
    except ValueError:
        return
    assert all(isinstance(uid, str) and uid for uid in found)
    assert bool(found) == bool(pods)

"""The program that frees space, on a tree of real files and on a node whose df and crictl answer by a script."""

import json
import os
import subprocess
import time

import pytest
from clear_disk import may_go, size

from nodelib.host.old_files import find, remove
from tests.operations.scripted import NO_RKE2, Node, answer

GONE, ALIVE = "8f3c2a10-1111-2222-3333-444455556666", "d80f4a0e-576f-47a8-a0cf-69dc23dc1980"
OLD = 3 * 86400
MIB = 1 << 20
NO_CRICTL = answer("crictl", "nsenter: failed to execute crictl: No such file or directory", code=127)


def df(used, place="", target="/"):
    """The answer of df for a place: `used` of 1000 MiB."""
    text = f"Used Avail Mounted on\n{used * MIB} {(1000 - used) * MIB} {target}"
    return answer(f"df -B1 --output=used,avail,target {place}", text)


def image(name, megabytes, **more):
    found = {
        "id": f"sha256:{name}",
        "repoTags": [f"r/{name}:1"],
        "repoDigests": [f"r/{name}@sha256:0"],
        "pinned": False,
    }
    return {**found, "size": str(megabytes * MIB), **more}


class DiskNode(Node):
    def __init__(self, folder):
        super().__init__(folder, "clear_disk")
        self.logs, self.dumps = self.root / "var/log/pods", self.root / "var/lib/systemd/coredump"

    def file(self, path, age=OLD, text="x" * 5000):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        then = time.time() - age
        os.utime(path, (then, then))
        return path

    def log(self, uid, name="0.log.20260101-000000.gz", age=OLD):
        return self.file(self.logs / f"team_trainer-0_{uid}" / "main" / name, age)

    def runtime(self, images, *used):
        containers = [{"imageRef": one, "image": {"image": one}} for one in used]
        return [
            NO_RKE2,
            answer("crictl images", json.dumps({"images": images})),
            answer("crictl ps -a", json.dumps({"containers": containers})),
            answer("crictl pods", json.dumps({"items": []})),
            answer("crictl ps", json.dumps({"containers": []})),
        ]


@pytest.fixture
def node(tmp_path):
    """A node whose only disk is 95 % full whatever is done; its kubelet keeps one Pod."""
    node = DiskNode(tmp_path)
    node.answers(df(950), answer("ls -1A /var/lib/kubelet/pods", ALIVE), answer("journalctl"), NO_CRICTL)
    return node


def run(node, *options, **given):
    return node.program(*options, parameters=given, POD_UID=ALIVE)


def test_a_disk_that_meets_the_goal_is_left_alone(node):
    dump = node.file(node.dumps / "core.python3.zst")
    node.answers(df(799))
    ran = run(node)
    assert (ran.code, ran.message) == (0, "nothing to clear on gpu-1: / is 80 % full (goal 80 %)")
    assert dump.exists()
    assert {call.split()[0] for call in node.calls()} == {"df"}


def test_logs_of_pods_that_are_gone_go_with_their_folders_and_those_of_live_ones_stay(node):
    gone, alive, fresh = node.log(GONE), node.log(ALIVE), node.log(GONE.replace("8", "9"), age=60)
    strange = node.file(node.logs / "not-a-pod" / "0.log")
    ran = run(node, actions=["pod-logs"])
    assert ran.code == 1
    assert ran.message.startswith("failed: freed 0.0 MiB on gpu-1: / is 95 % full (goal 80 %); something else fills it")
    assert not gone.parent.parent.exists()
    assert [path.exists() for path in (alive, fresh, strange)] == [True] * 3


def test_without_knowing_who_lives_no_log_is_removed(node):
    node.answers(df(950), answer("ls", "", code=2))
    gone = node.log(GONE)
    ran = run(node, actions=["pod-logs"])
    assert (ran.code, gone.exists()) == (2, True)
    assert "cannot determine which Pods live" in ran.message


def test_core_dumps_go_by_age_and_no_link_is_followed(node, tmp_path):
    outside = node.file(tmp_path / "outside" / "precious")
    old, new = node.file(node.dumps / "core.a.zst"), node.file(node.dumps / "core.b.zst", age=60)
    (node.dumps / "link").symlink_to(outside)
    (node.dumps / "folder").symlink_to(outside.parent)
    run(node, actions=["core-dumps"])
    assert (old.exists(), new.exists(), outside.exists()) == (False, True, True)
    assert (node.dumps / "link").is_symlink()


def test_a_folder_that_became_a_link_meanwhile_is_not_followed(tmp_path):
    top, outside = tmp_path / "top", tmp_path / "outside"
    for folder in (top / "pod", outside):
        folder.mkdir(parents=True)
        (folder / "0.log").write_text("x")
    [found] = find(top, time.time() + 1)
    (top / "pod").rename(top / "moved")
    (top / "pod").symlink_to(outside)
    with pytest.raises(NotADirectoryError):
        remove(top, found)
    (top / "pod").unlink()
    (top / "moved").rename(top / "pod")
    (top / "pod/new").write_text("y")
    (top / "pod/new").replace(top / "pod/0.log")  # another file of this name is not the one that was found
    remove(top, found)
    assert (outside / "0.log").exists()
    assert (top / "pod/0.log").exists()


def test_the_mildest_action_comes_first_and_it_ends_when_the_goal_is_met(node):
    dump = node.file(node.dumps / "core.a.zst")
    node.answers(df(950), answer("journalctl", then=[df(700)]))
    ran = run(node, actions=["core-dumps", "journal"], journalMegabytes=100)
    assert (ran.code, ran.message) == (0, "freed 250.0 MiB on gpu-1: / is 70 % full (goal 80 %)"), ran.out
    assert node.calls("journalctl") == ["journalctl --vacuum-size=100M"]
    assert dump.exists()


def test_images_go_largest_first_until_the_goal_is_met(node):
    images = [image("small", 40), image("huge", 160), image("used", 500), image("big", 100)]
    done = [answer("crictl rmi sha256:big", then=[df(740)]), answer("crictl rmi")]
    node.answers(*done, df(950), *node.runtime(images, "sha256:used"))
    ran = run(node, actions=["images"])
    assert (ran.code, ran.message) == (0, "freed 210.0 MiB on gpu-1: / is 74 % full (goal 80 %)"), ran.out
    assert node.calls("crictl rmi") == ["crictl rmi sha256:huge", "crictl rmi sha256:big"]


@pytest.mark.parametrize(
    ("found", "goes"),
    [
        (image("a", 1), True),
        (image("a", 1, pinned=True), False),
        (image("a", 1, repoDigests=[]), False),
        (image("a", 1, repoTags=["registry.k8s.io/pause:3.10"]), False),
        (image("a", 1, repoTags=["r/pausing:1"]), True),
        (image("a", 1, repoTags=[]), True),
        (image("used", 1), False),
        (image("b", 1, repoTags=["r/by-tag:1"]), False),
    ],
)
def test_an_image_that_something_needs_stays(found, goes):
    assert may_go(found, {"sha256:used", "r/by-tag:1", None}) is goes


def test_an_image_that_does_not_go_is_told_of(node):
    node.answers(df(950), answer("crictl rmi", "image is in use", code=1), *node.runtime([image("a", 900)]))
    ran = run(node, actions=["images"])
    assert ran.code == 1
    assert ran.message.endswith("1 steps failed, the first: crictl rmi sha256:a: image is in use")


def test_a_disk_that_is_none_of_an_actions_is_not_what_it_works_for(node):
    dump = node.file(node.dumps / "core.a.zst")
    node.answers(df(950, "/var/lib/containerd", "/data"), df(500), *node.runtime([]))
    ran = run(node)
    assert (ran.code, dump.exists(), node.calls("journalctl")) == (1, True, [])
    assert "/ is 50 % full, /data is 95 % full" in ran.message


def test_a_dry_run_lists_every_step_and_changes_nothing(node):
    node.log(GONE), node.file(node.dumps / "core.a.zst")
    node.answers(df(950), answer("ls", ALIVE), *node.runtime([image("a", 100)]))
    before = node.files()
    ran = run(node, "--dry-run")
    assert (ran.code, ran.message, node.files()) == (0, "", before)
    assert "-- journalctl --vacuum-size=500M, 0.0 MiB\n" in ran.out
    assert "would remove /var/lib/systemd/coredump/core.a.zst, 0.0 MiB\n" in ran.out
    assert f"would remove /var/log/pods/team_trainer-0_{GONE}/main/0.log.20260101-000000.gz, 0.0 MiB\n" in ran.out
    assert "-- crictl rmi sha256:a (r/a:1), 100.0 MiB\n" in ran.out
    assert [call for call in node.calls() if call.startswith(("journalctl", "crictl rmi"))] == []


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"actions": ["tmp"]}, "may not name tmp: it takes journal, core-dumps, pod-logs, images"),
        ({"actions": 5}, "actions is not a list of words"),
        ({"targetPercent": 101}, "targetPercent is 101: write a number from 0 to 100"),
        ({"keepHours": "a day"}, "keepHours is 'a day': write a number"),
        ({"kubeletRoot": "/a/../b;rm"}, "kubeletRoot is not an absolute path"),
    ],
)
def test_what_makes_no_sense_is_refused_by_its_name(node, given, why):
    ran = run(node, **given)
    assert (ran.code, node.calls()) == (2, [])
    assert why in ran.message


def test_not_to_know_how_full_the_disks_are_clears_nothing(node):
    node.answers(answer("df", "df: no such option", code=1))
    ran = run(node)
    assert (ran.code, ran.message) == (2, "refused: cannot determine how full the disks are: df: no such option")


def test_bytes_are_told_for_people():
    assert (size(5 * MIB), size(3 << 30)) == ("5.0 MiB", "3.0 GiB")


@pytest.mark.cluster
@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a tmpfs, which needs root")
def test_on_a_real_disk_that_is_full_the_oldest_dumps_go_until_the_goal_is_met(tmp_path):
    node = DiskNode(tmp_path)
    node.dumps.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=20m", "tmpfs", str(node.dumps)], check=True)
    try:
        (node.dumps / "other").mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(node.dumps / "other")], check=True)
        apart = node.file(node.dumps / "other" / "core.z.zst")
        dumps = [node.file(node.dumps / f"core.{n}.zst", OLD - n * 3600, "x" * 3 * MIB) for n in range(6)]
        # df answers of the real file system: the scripted nsenter runs what it is given, on that place.
        script = f'#!/bin/sh\nfor last; do :; done\nexec df -B1 --output=used,avail,target "{node.root}$last"\n'
        (tmp_path / "bin/nsenter").write_text(script)
        ran = run(node, actions=["core-dumps"], targetPercent=50)
        assert ran.code == 0, ran.out
        assert ran.message.startswith("freed 9.0 MiB on gpu-1: ")
        assert [dump.exists() for dump in dumps] == [False] * 3 + [True] * 3
        assert apart.exists()
    finally:
        for place in (node.dumps / "other", node.dumps):
            subprocess.run(["umount", "-l", str(place)], check=False)

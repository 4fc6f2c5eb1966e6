#!/usr/bin/env -S python3 -I -S -B
"""Free space on this node without touching what a Pod that lives can miss.

Four actions, mildest first, each only while a file system that it frees is fuller than the goal: old entries of the
journal; core dumps that systemd kept, oldest first; logs under /var/log/pods of Pods that the kubelet and the runtime
know no more; images that no container uses, largest first. Images that are pinned, that are a pause image, or that no
registry has a digest of, stay. Links are never followed. The goal being met is a success, at once or afterwards.

Exit 1: all was tried and a file system is still fuller than the goal; what fills it is something else. Refused
(exit 2): how full the disks are, or which Pods live, cannot be determined; the node has no program that would tell.

PARAMETERS: actions (which of journal, core-dumps, pod-logs, images; all), targetPercent (80), keepHours (24: core dumps
and logs changed since are kept), journalMegabytes (500: that much of the journal is kept), kubeletRoot
(/var/lib/kubelet).
"""

import os.path
import sys

sys.path.append(os.path.realpath(f"{__file__}/../.."))  # where nodelib/ is; python3 -I leaves it out

import os
import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from nodelib.contract.operation import Environment, Failed, Refused, main
from nodelib.contract.parameters import number, words
from nodelib.host.cgroups import UID, bare
from nodelib.host.commands import run, shown
from nodelib.host.crictl import crictl, crictl_of_node, known_pods, kubelet_root
from nodelib.host.old_files import Leftover, find, remove
from nodelib.host.system import require_programs

ASK_SECONDS = 30.0
WORK_SECONDS = 300.0
WORTH_A_LOOK = 1 << 20  # bytes: a step of so many is measured, smaller ones are added up
IMAGES = (
    *("/var/lib/containerd", "/var/lib/containers/storage"),
    *("/var/lib/rancher/rke2/agent/containerd", "/var/lib/rancher/k3s/agent/containerd"),
)
DUMPS, LOGS = "var/lib/systemd/coredump", "var/log/pods"  # below the node's root
POD_FOLDER = re.compile(rf"[^_]+_[^_]+_({UID})", re.IGNORECASE)
PAUSE = re.compile(r"(?:^|/)pause(?:-[a-z0-9]+)?[:@]")


class Disk(NamedTuple):
    """A file system: where it is mounted, and bytes as df counts them."""

    point: str
    used: int
    free: int

    @property
    def percent(self) -> float:
        """How full it is, as df shows it."""
        return 100 * self.used / max(1, self.used + self.free)

    def excess(self, target: float) -> float:
        """Bytes over a goal in percent."""
        return self.used - (self.used + self.free) * target / 100


class Step(NamedTuple):
    """One thing to do: `what` in words, the bytes that it may free, and `do`, which returns why not, "" for done."""

    what: str
    size: int
    do: Callable[[], str]


class Plan(NamedTuple):
    """What plans are made from."""

    root: Path
    now: float
    keep: float  # seconds
    journal: float  # megabytes
    kubelet: str


class Action(NamedTuple):
    """Places on the node whose file systems it frees, and the steps that it would take now."""

    places: tuple[str, ...]
    steps: Callable[[Plan], Iterable[Step]]


def clear_disk(environment: Environment, dry_run: bool) -> str:
    """Free space on the node of this environment and return the sentence."""
    given = environment.parameters
    chosen = words(given, "actions", tuple(ACTIONS), ACTIONS)
    target = number(given, "targetPercent", 80, most=100)
    plan = Plan(
        Path(environment.host_root),
        time.time(),
        number(given, "keepHours", 24, most=1e6) * 3600,
        number(given, "journalMegabytes", 500, most=1e6),
        kubelet_root(given),
    )
    require_programs(
        plan.root / "proc", ("df",), "let its kubelet collect images earlier (imageGCHighThresholdPercent)"
    )
    places = tuple(dict.fromkeys(place for name in chosen for place in ACTIONS[name].places))
    before = measure(places)
    if all(disk.percent <= target for disk in before):
        return f"nothing to clear on {environment.node}: {shown_disks(before)} (goal {target:g} %)"
    troubles = [
        trouble for name in ACTIONS if name in chosen for trouble in perform(ACTIONS[name], plan, target, dry_run)
    ]
    if dry_run:
        return f"would clear {environment.node} until the goal of {target:g} % is met: {shown_disks(before)}"
    return confirm(environment.node, before, measure(places), target, troubles)


def perform(action: Action, plan: Plan, target: float, dry_run: bool) -> Iterator[str]:
    """Take the steps of one action until its file systems meet the goal; yield what went wrong."""
    owed = excess(action.places, target)
    if owed <= 0:
        return
    for step in action.steps(plan):
        if dry_run:
            print(f"would {step.what}, {size(step.size)}")
            continue
        trouble = step.do()
        print(f"{step.what}: {trouble or 'done'}", flush=True)
        if trouble:
            yield trouble
        owed -= step.size
        if owed <= 0 or step.size >= WORTH_A_LOOK:
            owed = excess(action.places, target)
        if owed <= 0:
            return


def excess(places: tuple[str, ...], target: float) -> float:
    """Bytes over the goal of the worst of these file systems."""
    return max((disk.excess(target) for disk in measure(places, needed=False)), default=0)


def measure(places: Iterable[str], needed: bool = True) -> list[Disk]:
    """Return the file systems of those places that exist, each once. Raises Refused when there is none."""
    found, last = {}, ""
    for place in places:
        result = run(("df", "-B1", "--output=used,avail,target", place), ASK_SECONDS)
        last = result.last
        row = result.last.split(maxsplit=2) if result.code == 0 else []
        if len(row) == 3 and row[0].isdecimal() and row[1].isdecimal():
            found[row[2]] = Disk(row[2], int(row[0]), int(row[1]))
    if needed and not found:
        raise Refused(f"cannot determine how full the disks are: {last}")
    return sorted(found.values())


def journal_steps(plan: Plan) -> Iterator[Step]:
    """Shorten the journal."""
    command = ("journalctl", f"--vacuum-size={plan.journal:.0f}M")
    yield Step(f"run {shown(command)}", 0, partial(_run, command))


def dump_steps(plan: Plan) -> Iterator[Step]:
    """Remove old core dumps."""
    top = plan.root / DUMPS
    yield from (_removal(top, one, DUMPS) for one in find(top, plan.now - plan.keep))


def log_steps(plan: Plan) -> Iterator[Step]:
    """Remove logs of Pods that are gone."""
    top = plan.root / LOGS
    seen = find(top, plan.now - plan.keep, lambda name: POD_FOLDER.fullmatch(name) is not None)
    known = (
        known_pods(plan.kubelet, os.environ.get("POD_UID", "")) if seen else set()
    )  # after looking: a Pod that starts meanwhile is known
    yield from (_removal(top, one, LOGS) for one in seen if uid_of(one.parts[0]) not in known)


def uid_of(folder: str) -> str:
    """The uid of the Pod that a folder NAMESPACE_NAME_UID of logs belongs to; "" for another name."""
    match = POD_FOLDER.fullmatch(folder)
    return bare(match[1]) if match else ""


def image_steps(_: Plan) -> Iterator[Step]:
    """Remove images that no container uses."""
    client = crictl_of_node()
    images, containers = crictl("images", client=client), crictl("ps", "-a", client=client)
    if images is None or containers is None:
        print("images are left alone: the node has no crictl")
        return
    for image in unused(images.get("images") or [], containers.get("containers") or []):
        command = (*client, "rmi", image["id"])
        name = next(iter(image.get("repoTags") or image["repoDigests"]))
        yield Step(f"run {shown(command)} ({name})", int(image.get("size") or 0), partial(_run, command))


def unused(images: Iterable[Mapping[str, Any]], containers: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return which images may go, largest first; both as `crictl -o json` tells of them."""
    used = {
        word
        for container in containers
        for word in (container.get("imageRef"), container.get("imageId"), (container.get("image") or {}).get("image"))
    }
    return sorted(
        (image for image in images if may_go(image, used)),
        key=lambda image: (-int(image.get("size") or 0), image["id"]),
    )


def may_go(image: Mapping[str, Any], used: Collection[str | None]) -> bool:
    """Whether nothing needs this image and a registry has it."""
    tags, digests = image.get("repoTags") or [], image.get("repoDigests") or []
    kept = image.get("pinned") or not digests or any(PAUSE.search(name) for name in (*tags, *digests))
    return not kept and not any(name in used for name in (image["id"], *tags, *digests))


# Mildest first; this is the order in which they are done.
ACTIONS: Mapping[str, Action] = {
    "journal": Action(("/var/log/journal",), journal_steps),
    "core-dumps": Action((f"/{DUMPS}",), dump_steps),
    "pod-logs": Action((f"/{LOGS}",), log_steps),
    "images": Action(IMAGES, image_steps),
}


def confirm(node: str, before: list[Disk], after: list[Disk], target: float, troubles: list[str]) -> str:
    """Return the sentence when the goal is met. Raises Failed when it is not."""
    had = {disk.point: disk.free for disk in before}
    freed = sum(max(0, disk.free - had.get(disk.point, disk.free)) for disk in after)
    text = f"freed {size(freed)} on {node}: {shown_disks(after)} (goal {target:g} %)"
    if any(disk.percent > target for disk in after):
        more = f"; {len(troubles)} steps failed, the first: {troubles[0]}" if troubles else ""
        raise Failed(f"{text}; something else fills it, look with du -x{more}")
    return text


def shown_disks(disks: Iterable[Disk]) -> str:
    """How full they are, in words."""
    return ", ".join(f"{disk.point} is {disk.percent:.0f} % full" for disk in disks)


def size(count: float) -> str:
    """Bytes for people."""
    return f"{count / 2**30:.1f} GiB" if count >= 2**30 else f"{count / 2**20:.1f} MiB"


def _removal(top: Path, leftover: Leftover, place: str) -> Step:
    return Step(f"remove /{place}/{leftover.path}", leftover.size, partial(_remove, top, leftover))


def _remove(top: Path, leftover: Leftover) -> str:
    try:
        remove(top, leftover)
    except OSError as error:
        return f"{leftover.path}: {error.strerror}"
    return ""


def _run(command: tuple[str, ...]) -> str:
    result = run(command, WORK_SECONDS)
    return "" if result.code == 0 else f"{' '.join(command)}: {result.last}"


if __name__ == "__main__":
    main(clear_disk, __doc__)

"""Asking mounts that may hang: each in a child that can be left behind, and never more children than a node can bear.

A child that hangs costs memory for as long as its server is silent, and a node may have a mount for each of its Pods.
"""

import os
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from nodelib.contract.npd import read_json
from nodelib.host.child_process import ChildAnswer, ask, is_alive
from nodelib.net.probe_result import together

AT_ONCE = 24  # children at a time
OF_ONE = 8  # children at a time, and left behind, that ask mounts of one server
WHILE_OTHERS_HANG = "not asked while others of its server hang"
TOO_LATE = "not asked in this run: others hang"

# The child: argv is [mount point, answer file], or [program, mount point, answer file]. Nothing is imported that costs.
CHILD = """
import os, sys
try:
    code = 0
    if len(sys.argv) > 3:
        import signal
        signal.signal(signal.SIGTERM, lambda *_: None)  # outlive the program, so that it is ended as this child is
        code = os.spawnv(os.P_WAIT, sys.argv[1], sys.argv[1:3])
    else:
        os.statvfs(sys.argv[1])
except OSError as error:
    code = error.errno
with open(sys.argv[-1], "w") as answer:
    answer.write('{"errno": %d, "done": true}' % code)
"""

Asked = TypeVar("Asked", bound=Hashable)


def key(device: str, source: str) -> str:
    """Return a file name for a mount; device numbers are used again, so the source is part of it."""
    return f"{device.replace(':', '-')}-{zlib.crc32(os.fsencode(source)):08x}"


def ask_mount(point: str, name: str, folder: Path, proc: Path, program: str | None, deadline: float) -> ChildAnswer:
    """Ask one mount, unless a child that was left behind still asks it. `program`: what to run instead of statvfs."""
    inside = f"{proc.absolute()}/1/root{point}"  # the path as process 1 sees it
    asked = [program, point] if program else [inside]
    return ask([sys.executable, "-I", "-S", "-c", CHILD, *asked], folder, name, deadline)


def left_behind(folder: Path, name: str) -> bool:
    """Tell whether a child of an earlier run still asks."""
    record = read_json(folder / f"{name}.probe.json")
    return is_alive(record.get("pid"), record.get("start"))


def bounded(
    mounts: Sequence[Asked],
    server: Callable[[Asked], Hashable],
    waiting: Callable[[Asked], bool],
    put: Callable[[Asked], ChildAnswer],
) -> Mapping[Asked, ChildAnswer]:
    """Return the answer of each mount, asked as many at a time as may be left behind.

    `waiting`: whether a child still asks it; `put`: asks. Who is not asked answers with the reason.
    """
    old = [mount for mount in mounts if waiting(mount)]
    answers = dict(zip(old, together(put, old), strict=True))
    hung = Counter(server(mount) for mount in old if answers[mount].silent_since)
    todo = [mount for mount in mounts if mount not in answers]
    while todo:
        batch = _batch(todo, server, hung)
        asked = dict(zip(batch, together(put, batch), strict=True))
        answers.update(asked)
        hung.update(server(mount) for mount in batch if asked[mount].silent_since)
        todo = [mount for mount in todo if mount not in answers]
        if not batch or any(answer.silent_since for answer in asked.values()):  # there is time for one deadline
            full = {mount: hung[server(mount)] > 0 for mount in todo}
            rest = {mount: ChildAnswer({}, why=WHILE_OTHERS_HANG if full[mount] else TOO_LATE) for mount in todo}
            return {**answers, **rest}
    return answers


def _batch(todo: Sequence[Asked], server: Callable[[Asked], Hashable], hung: Mapping[Hashable, int]) -> list[Asked]:
    taken: Counter[Hashable] = Counter(hung)
    batch: list[Asked] = []
    for mount in todo:
        if len(batch) < AT_ONCE and taken[server(mount)] < OF_ONE:
            taken[server(mount)] += 1
            batch.append(mount)
    return batch


def forget(folder: Path, known: set[str]) -> None:
    """Drop the files of mounts that are gone, but for those whose child is still stuck."""
    for name in {path.name.partition(".")[0] for path in folder.glob("*.json")} - known:
        if not left_behind(folder, name):
            for kind in ("probe", "answer"):
                (folder / f"{name}.{kind}.json").unlink(missing_ok=True)

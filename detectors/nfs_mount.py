#!/usr/bin/env -S python3 -I -S -B
"""Condition NfsStale: an NFS mount of this node hangs or is stale while its server answers.

Each mount of process 1 (one for each super block) is asked by statvfs, which always sends a request, in a child that
can be left behind; of one server at most 8 are left behind. Where it does not answer by --deadline, its server is asked
for the procedure NULL of NFS, and the mount's counters are compared with those of the last run. ESTALE is a fault at
once. A hang is a fault when in two runs in a row the server answered and not one operation ended well in between. While
operations end, the mount is slow, not dead. While its server is silent, or fails the request, the mount is "cannot
tell": see NfsUnavailable.

Remedy: NfsMountStuck: take the Pods that use the mount off the node and mount it anew (umount -f -l, then mount); the
node need not reboot unless a process cannot be killed. After a restart a server may hold its clients back for 90 s
(grace period): let a policy wait three minutes. "its server ... does not answer", "cannot be asked", "requests time
out", "look at its server": as for NfsUnavailable. "not asked": others hang; see what is said of these. "could not be
asked", "cannot be read", "make no sense": run node-problem-detector privileged, with the node's process ids (hostPID).
Mounts and counters are in <state>/evidence/nfs_mount.json.

Exit codes: 0 every mount answers or is only slow, 1 a mount is stale or stuck, 2 cannot tell.
"""

import os.path
import sys

sys.path.append(os.path.realpath(f"{__file__}/../.."))  # where nodelib/ is; python3 -I leaves it out

from nodelib.state import slots

if __name__ == "__main__":
    slots.take()  # before all that costs memory

import argparse
import errno
from collections.abc import Mapping
from typing import Any, NamedTuple

from nodelib.contract.detector import Detector, Findings, Run, conclude, main, parser
from nodelib.contract.npd import Verdict
from nodelib.host.child_process import ChildAnswer
from nodelib.host.mountinfo import GARBLED
from nodelib.net import mount_probe
from nodelib.net.nfs import Counters, NfsMount, ask_servers, read_counters, read_mounts

NAME = "nfs_mount"
NULL_DEADLINE = 5.0  # seconds for a server to answer, after the mounts had theirs


class Memory(NamedTuple):
    """The counters, [] for none, of mounts that hung in the last run though the server answered, by key."""

    stuck: Mapping[str, list[int]] = {}


class MountState(NamedTuple):
    """One mount in one run.

    `statfs`: fine, stale, failed, stuck or unclear, with `why`; `server`: answers, silent or unclear; `moved`: how its
    counters did since the last run found it stuck too: stand, move, time out or unreadable; "first" where it had not.
    """

    statfs: str
    why: str = ""
    server: str = ""
    moved: str = ""
    counters: Counters | None = None


ANY = "*"
# The first row that fits decides. The words follow "NFS mount PATH of SOURCE".
TABLE: tuple[tuple[tuple[str, str, str], Verdict, str], ...] = (
    (("fine", ANY, ANY), Verdict.OK, "answers"),
    (("stale", ANY, ANY), Verdict.FAULT, "is stale (ESTALE)"),
    (("unclear", ANY, ANY), Verdict.UNKNOWN, "could not be asked: {why}"),
    (("failed", "silent", ANY), Verdict.UNKNOWN, "fails ({why}): its server {address} does not answer"),
    (("failed", ANY, ANY), Verdict.UNKNOWN, "fails ({why}): look at its server {address}"),
    (("stuck", "silent", ANY), Verdict.UNKNOWN, "hangs: its server {address} does not answer"),
    (("stuck", "unclear", ANY), Verdict.UNKNOWN, "hangs, and its server {address} cannot be asked"),
    (("stuck", "answers", "move"), Verdict.OK, "is slow"),
    (("stuck", "answers", "time out"), Verdict.UNKNOWN, "is slow and requests time out"),
    (("stuck", "answers", "unreadable"), Verdict.UNKNOWN, "hangs, and its counters cannot be read (mountstats)"),
    (("stuck", "answers", "first"), Verdict.UNKNOWN, "hangs though its server answers (seen once)"),
    (("stuck", "answers", "stand"), Verdict.FAULT, "hangs though its server answers"),
)


def decide(state: MountState) -> tuple[Verdict, str]:
    """Return the verdict of one mount and its words, from the table."""
    for pattern, verdict, words in TABLE:
        if all(
            want in (ANY, have) for want, have in zip(pattern, (state.statfs, state.server, state.moved), strict=True)
        ):
            return verdict, words
    return Verdict.UNKNOWN, f"is in a state that nobody foresaw: {state}"


def judge(states: Mapping[NfsMount, MountState], garbled: int) -> tuple[Verdict, str]:
    """Turn what was seen of every mount into a verdict and its line."""
    verdicts = {GARBLED: Verdict.UNKNOWN} if garbled else {}
    for mount, state in states.items():
        verdict, words = decide(state)
        text = words.format(why=state.why, address=mount.server or "(no addr=)")
        verdicts[f"NFS mount {mount.point} of {mount.source} {text}"] = verdict
    return conclude(verdicts, "every NFS mount answers" if states else "nothing is mounted from NFS")


def statfs(answer: ChildAnswer) -> MountState:
    """Read what the child said."""
    code = answer.answers.get("errno")
    if answer.silent_since:
        return MountState("stuck")
    if answer.why or not isinstance(code, int) or code < 0:
        return MountState("unclear", answer.why or "the probe was killed")
    word = {0: "fine", errno.ESTALE: "stale", errno.ENOENT: "unclear"}.get(code, "failed")
    return MountState(word, errno.errorcode.get(code, f"error {code}") if code else "")


def compare(before: Any, now: Counters | None) -> str:
    """Tell how a mount's counters moved since the last run; `before`: as a list, None when it was not stuck then."""
    if before is None:
        return "first"
    if now is None or not isinstance(before, list) or len(before) != 3 or not all(type(n) is int for n in before):
        return "unreadable"
    last = Counters(*before)
    if now.done > last.done and now.received > last.received:
        return "time out" if now.timeouts > last.timeouts else "move"
    return "stand"


def key(mount: NfsMount) -> str:
    """Return a file name for this mount."""
    return mount_probe.key(mount.device, mount.source)


def look(mounts: list[NfsMount], options: argparse.Namespace, before: Mapping[str, Any]) -> dict[NfsMount, MountState]:
    """Ask the mounts, then the servers of those that gave no good answer."""
    folder = options.state / NAME
    answers = mount_probe.bounded(
        mounts,
        lambda mount: mount.server or mount.source,
        lambda mount: mount_probe.left_behind(folder, key(mount)),
        lambda mount: mount_probe.ask_mount(
            mount.point, key(mount), folder, options.proc, options.statfs, options.deadline
        ),
    )
    states = {mount: statfs(answers[mount]) for mount in mounts}
    ill = [mount for mount, state in states.items() if state.statfs in ("stuck", "failed")]
    servers = ask_servers(ill, options.proc, NULL_DEADLINE)
    counters = read_counters(options.proc) if ill else {}
    for mount in ill:
        word = servers[mount.server].word if mount.server else "unclear"
        count = counters.get(mount.point)
        moved = compare(before.get(key(mount)), count)
        states[mount] = states[mount]._replace(server=word, moved=moved, counters=count)
    return states


def remember(states: Mapping[NfsMount, MountState]) -> dict[str, list[int]]:
    """Return what the next run must know: the counters ([] for none) of mounts that hang though the server answers.

    A hang while the server was silent does not count: when the server is back, a mount may take a while to notice.
    """
    stuck = {mount: state for mount, state in states.items() if (state.statfs, state.server) == ("stuck", "answers")}
    return {key(mount): list(state.counters or ()) for mount, state in stuck.items()}


def evidence(states: Mapping[NfsMount, MountState]) -> list[dict[str, Any]]:
    """Return the mounts that are at fault, and how they fare; bounded, lest it be cut elsewhere."""
    ill = [(mount, state) for mount, state in states.items() if decide(state)[0] is Verdict.FAULT]
    return [
        {
            "mount": mount.point[:100],
            "source": mount.source[:100],
            "server": str(mount.server),
            "statfs": state.statfs,
            "counters": state.counters and state.counters._asdict(),
        }
        for mount, state in ill[:8]
    ]


def check(run: Run[Memory]) -> Findings:
    """One run: ask the mounts, judge, remember which hang."""
    mounts = read_mounts(run.options.proc)
    states = look(mounts.once, run.options, run.last.stuck)
    if not run.options.explain:
        mount_probe.forget(run.options.state / NAME, {key(mount) for mount in mounts.once})
    verdict, line = judge(states, mounts.garbled)
    return Findings(
        verdict,
        line,
        Memory(remember(states)),
        evidence=lambda: {"mounts": evidence(states)},
        explain=lambda: explain(states),
    )


def explain(states: Mapping[NfsMount, MountState]) -> None:
    """Print what was seen of each mount."""
    for mount, state in states.items():
        print(f"{mount.point}: {mount.source}, server {mount.server}: {state}: {decide(state)[0].name}")


def parse(arguments: list[str]) -> argparse.Namespace:
    """Return the options."""
    options = parser(__doc__, 12.0, "each mount; 5 more to end the child, 5 more for the server")
    options.add_argument(
        "--statfs",
        metavar="PROGRAM",
        help="run as PROGRAM MOUNTPOINT instead of statvfs: exit 0 fine, else an errno (116 ESTALE); hanging is stuck",
    )
    return options.parse_args(arguments)


DETECTOR = Detector(NAME, "NfsStale", check, Memory)


if __name__ == "__main__":
    main(parse(sys.argv[1:]), DETECTOR)

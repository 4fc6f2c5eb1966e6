#!/usr/bin/env -S python3 -I -S -B
"""Condition NfsUnavailable: an NFS server that this node has mounted does not answer.

Every server in the mounts of process 1 is asked for the procedure NULL of NFS over TCP, at the address and port of the
mount's own options (addr=, port=), from the network of the node. No mount is touched, so nothing can hang. A server
that is silent in two runs in a row is a fault; once is "cannot tell". A node that has mounted nothing from NFS is fine.

The line names servers and exports, not the paths of this node, so that every node says the same of the same server;
volumes of Pods have one name together.

Remedy: NfsServerUnavailable: no repair of this node helps. Look at the server and the network to it (on the node:
`nc -z SERVER 2049`); mounts recover by themselves when it answers. Where only one node says so, its network is at
fault. "hostNetwork" in the line: run node-problem-detector in the network of the node. "cannot be asked": its cause
follows; over UDP or RDMA only silence over TCP proves nothing. "name no server", "make no sense": look at
/proc/1/mountinfo of the node; run node-problem-detector with its process ids (hostPID).

Exit codes: 0 every server answers, 1 a server does not, 2 cannot tell.
"""

import os.path
import sys

sys.path.append(os.path.realpath(f"{__file__}/../.."))  # where nodelib/ is; python3 -I leaves it out

from nodelib.state import slots

if __name__ == "__main__":
    slots.take()  # before all that costs memory

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from nodelib.contract.detector import Detector, Findings, Run, conclude, main, parser
from nodelib.contract.npd import Verdict
from nodelib.host.mountinfo import GARBLED
from nodelib.net.nfs import NfsMounts, NfsTarget, ask_servers, read_mounts
from nodelib.net.probe_result import ProbeReply


class Memory(NamedTuple):
    """The servers that were silent in the last run."""

    silent: Collection[str] = ()


def judge(
    mounts: NfsMounts, replies: Mapping[NfsTarget, ProbeReply], silent_before: Collection[str]
) -> tuple[Verdict, str]:
    """Turn replies into a verdict and its line; `silent_before`: the servers that the last run found silent."""
    found = {GARBLED: Verdict.UNKNOWN} if mounts.garbled else {}
    for mount in mounts.found:
        if mount.server is None:
            found[f"the options of {mount.point} name no server (addr=, port=)"] = Verdict.UNKNOWN
    for server, reply in replies.items():
        exports = ", ".join(sorted({mount.export for mount in mounts.found if mount.server == server}))
        if reply.word == "unclear":
            found[f"NFS server {server} cannot be asked: {reply.why}"] = Verdict.UNKNOWN
        elif reply.word == "silent" and str(server) in silent_before:
            found[f"NFS server {server} does not answer: {exports}"] = Verdict.FAULT
        elif reply.word == "silent":
            found[f"NFS server {server} did not answer once: {exports}"] = Verdict.UNKNOWN
    return conclude(found, "every NFS server answers" if replies else "nothing is mounted from NFS")


def evidence(mounts: NfsMounts, replies: Mapping[NfsTarget, ProbeReply]) -> list[dict[str, Any]]:
    """Return the silent servers, why, and what this node has mounted from them; bounded, lest it be cut elsewhere."""
    return [
        {
            "server": str(server),
            "why": replies[server].why,
            "mounts": [f"{one.source} on {one.point}"[:80] for one in mounts.found if one.server == server][:4],
        }
        for server in sorted(replies)
        if replies[server].word == "silent"
    ][:6]


def check(run: Run[Memory]) -> Findings:
    """One run: read the mounts, ask their servers, judge, remember who was silent."""
    mounts = read_mounts(run.options.proc)
    replies = ask_servers(mounts.found, run.options.proc, run.options.deadline)
    verdict, line = judge(mounts, replies, run.last.silent)
    return Findings(
        verdict,
        line,
        Memory([str(server) for server, reply in replies.items() if reply.word == "silent"]),
        evidence=lambda: {"servers": evidence(mounts, replies)},
        explain=lambda: explain(mounts, replies, run.last.silent),
    )


def explain(mounts: NfsMounts, replies: Mapping[NfsTarget, ProbeReply], before: Collection[str]) -> None:
    """Print what is mounted, and what each server said."""
    for mount in mounts.found:
        print(f"{mount.point}: {mount.source}, server {mount.server}")
    for server, reply in replies.items():
        print(f"{server}: {reply.word}{', ' + reply.why if reply.why else ''}")
    print(f"silent before: {', '.join(sorted(before)) or 'none'}")


DETECTOR = Detector("nfs_server", "NfsUnavailable", check, Memory)


if __name__ == "__main__":
    main(parser(__doc__, 10.0, "an answer of each server").parse_args(), DETECTOR)

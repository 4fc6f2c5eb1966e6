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

import argparse
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from nodelib.contract.detector import clock, conclude, keep_evidence, main, parser
from nodelib.contract.npd import Verdict, boot_id, read_json, write_json
from nodelib.host.mountinfo import GARBLED
from nodelib.net.nfs import Mounts, Server, ask_servers, read_mounts
from nodelib.net.probe_result import Reply

NAME = "nfs_server"


def judge(mounts: Mounts, replies: Mapping[Server, Reply], silent_before: Collection[str]) -> tuple[Verdict, str]:
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


def recall(path: Path, boot: str) -> list[str]:
    """Return the servers that were silent in the last run of this boot."""
    memory = read_json(path)
    silent = memory.get("silent") if memory.get("boot_id") == boot else None
    return [one for one in silent if isinstance(one, str)] if isinstance(silent, list) else []


def evidence(mounts: Mounts, replies: Mapping[Server, Reply]) -> list[dict[str, Any]]:
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


def check(options: argparse.Namespace) -> tuple[Verdict, str]:
    """One run: read the mounts, ask their servers, judge, remember who was silent."""
    path, boot = options.state / f"{NAME}.json", boot_id(options.proc)
    mounts = read_mounts(options.proc)
    replies = ask_servers(mounts.found, options.proc, options.deadline)
    before = recall(path, boot)
    verdict, line = judge(mounts, replies, before)
    silent = sorted(str(server) for server, reply in replies.items() if reply.word == "silent")
    write_json(path, {"boot_id": boot, "silent": silent, "finished_at": clock(options)})
    record = {"condition": "NfsUnavailable", "line": line, "servers": evidence(mounts, replies)}
    keep_evidence(options.state, NAME, verdict, record)
    if options.explain:
        for mount in mounts.found:
            print(f"{mount.point}: {mount.source}, server {mount.server}")
        for server, reply in replies.items():
            print(f"{server}: {reply.word}{', ' + reply.why if reply.why else ''}")
        print(f"silent before: {', '.join(before) or 'none'}")
    return verdict, line


if __name__ == "__main__":
    main(parser(__doc__, 10.0, "an answer of each server").parse_args(sys.argv[1:]), NAME, check)

#!/usr/bin/env -S python3 -I -S -B
"""Condition DnsUnavailable: this node cannot look up names.

The name servers of the node's /etc/resolv.conf, and of each file given with --resolv, are asked over UDP for the name
servers of the root (or for --name); a cluster's DNS given with --server is asked for a name of the cluster. Any answer
will do, also that there is no such name. A server without a way to the internet does not know the root: before it
counts as silent it is asked for the first domain that the file searches, or else for this node's own name.

A fault is a file, or a --server, of which no server answered in two runs in a row: silent, refused or out of reach,
SERVFAIL (it cannot find out), or "only over TCP" (programs ask over UDP, which a firewall drops). As long as one server
of a file answers, that file is fine; --explain shows which ones do not. A server that refuses the question is "cannot
tell" (it may answer others: --name), and so are a resolv.conf that is missing, names nobody or makes no sense.

Remedies: on one node alone: restart its resolver (`systemctl restart systemd-resolved`) where the address is
127.0.0.53, the Pod node-local-dns where it is 169.254.20.10; restart-cni where only --server is silent; otherwise look
at the node's routes and firewall (see NetworkLinkFault). On many nodes at once: no repair of a node helps; look at the
servers named in the line, or at CoreDNS. SERVFAIL: the server lives, its own way up is broken. "hostNetwork" in the
line: run node-problem-detector in the network of the node.

Exit codes: 0 names can be looked up, 1 they cannot, 2 cannot tell.
"""

import os.path
import sys

sys.path.append(os.path.realpath(f"{__file__}/../.."))  # where nodelib/ is; python3 -I leaves it out

from nodelib.state import slots

if __name__ == "__main__":
    slots.take()  # before all that costs memory

import argparse
import ipaddress
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from nodelib.contract.detector import Detector, Findings, Run, conclude, explain, main, parser
from nodelib.contract.npd import Verdict
from nodelib.host.attributes import text
from nodelib.host.root import node_root, within
from nodelib.net.dns import PORT, ROOT, Question, ask_nameserver, encode, parse_resolv
from nodelib.net.probe_result import ProbeReply, in_the_nodes_network, together
from nodelib.net.runtimes import node_path
from nodelib.state.debounce import Streak, stand

RESOLV = "/etc/resolv.conf"
CLUSTER_NAME = "kubernetes.default.svc.cluster.local"
RUNS = 2
NEVER = Streak(0.0, 0)


class Memory(NamedTuple):
    """Since when no server of a group has answered, by its title."""

    silent: Mapping[str, Streak] = {}


class Group(NamedTuple):
    """Servers of which one must answer. `title`: who they are; `why`: why nobody knows them.

    `local`: a name that a server may know that cannot tell `question`; "" for none.
    """

    title: str
    servers: tuple[str, ...] = ()
    question: Question = ROOT
    local: str = ""
    over_tcp: bool = False
    why: str = ""


Replies = Mapping[str, Mapping[str, ProbeReply]]  # by title, then by server


def judge(groups: Sequence[Group], replies: Replies, standing: Mapping[str, Streak]) -> tuple[Verdict, str]:
    """Turn replies into a verdict and its line; `standing`: since when no server of a group answered, by title."""
    verdicts = {}
    for group in groups:
        answers = replies.get(group.title, {})
        whys = ", ".join(f"{server} ({reply.why})" for server, reply in sorted(answers.items()))
        if group.why:
            verdicts[group.why] = Verdict.UNKNOWN
        elif is_silent(answers) and standing.get(group.title, NEVER).runs >= RUNS:
            verdicts[f"{group.title} does not answer: {whys}"] = Verdict.FAULT
        elif is_silent(answers):
            verdicts[f"{group.title} did not answer once: {whys}"] = Verdict.UNKNOWN
        elif not any(reply.word == "answers" for reply in answers.values()):
            verdicts[f"{group.title} cannot be asked: {whys}"] = Verdict.UNKNOWN
    return conclude(verdicts, "names can be looked up")


def is_silent(replies: Mapping[str, ProbeReply]) -> bool:
    """Tell whether no server of a group can be used."""
    return bool(replies) and all(reply.word == "silent" for reply in replies.values())


def read_group(root: Path, path: str, question: Question, own_name: str) -> Group:
    """Return the servers of one resolv.conf of the node."""
    title = f"the DNS of {path}"
    try:
        resolv = parse_resolv(within(root, path).read_text(errors="replace"))
    except OSError as error:
        return Group(title, why=f"{path} cannot be read: {error.strerror}")
    except ValueError as error:
        return Group(title, why=f"{path} makes no sense: {error}")
    local = (resolv.domain or own_name) if question == ROOT else ""  # who declared a name wants that one
    why = "" if resolv.servers else f"{path} names no server"
    return Group(title, resolv.servers, question, local, resolv.over_tcp, why)


def ask(groups: Sequence[Group], options: argparse.Namespace) -> dict[str, dict[str, ProbeReply]]:
    """Ask all servers at the same time, each with the group's question."""
    calls = [(group, server) for group in groups for server in group.servers]
    found: dict[str, dict[str, ProbeReply]] = {}
    replies = together(lambda call: ask_server(call[0], call[1], options), calls)
    for (group, server), reply in zip(calls, replies, strict=True):
        found.setdefault(group.title, {})[server] = in_the_nodes_network(reply, options.proc)
    return found


def ask_server(group: Group, server: str, options: argparse.Namespace) -> ProbeReply:
    """Ask for the group's question, and for its local name where that has no answer; each takes up to --deadline."""
    first = ask_nameserver(server, group.question, options.deadline, group.over_tcp, options.port)
    if first.word == "answers" or not group.local:
        return first
    second = ask_nameserver(server, Question(group.local), options.deadline, group.over_tcp, options.port)
    return second if second.word == "answers" else first


def check(run: Run[Memory]) -> Findings:
    """One run: read who is to be asked, ask, remember who was silent, judge."""
    groups = groups_of(run.options)
    replies = ask(groups, run.options)
    silent = [title for title, reply in replies.items() if is_silent(reply)]
    standing = stand(silent, run.last.silent, run.now)
    verdict, line = judge(groups, replies, standing)
    whys = {title: {server: reply.why for server, reply in replies[title].items()} for title in silent[:4]}
    return Findings(
        verdict,
        line,
        Memory(standing),
        evidence=lambda: {"silent": whys},
        explain=lambda: explain(replies, {"silent since": standing}, verdict),
    )


def groups_of(options: argparse.Namespace) -> list[Group]:
    """Return who is to be asked: the node's own servers, and the cluster's."""
    root, own_name = node_root(options.proc), text(options.proc / "sys/kernel/hostname") or ""
    files = dict.fromkeys([RESOLV, *options.resolv])
    own = [read_group(root, resolv_file, options.name, own_name) for resolv_file in files]
    return [*own, *(Group(f"the cluster's DNS {server}", (server,), question) for server, question in options.server)]


def question(name: str) -> Question:
    """Read --name."""
    asked = ROOT if name == "." else Question(name)
    try:
        encode(asked, 0)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{name!r} is no name that can be looked up") from None
    return asked


def server(value: str) -> tuple[str, Question]:
    """Read --server ADDRESS[=NAME]."""
    address, _, name = value.partition("=")
    try:
        ipaddress.ip_address(address)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{address!r} is no address: a server is given as ADDRESS[=NAME]") from None
    return address, question(name or CLUSTER_NAME)


def parse(arguments: list[str]) -> argparse.Namespace:
    """Return the options."""
    options = parser(__doc__, 6.0, "an answer of each server")
    options.add_argument(
        "--resolv",
        action="append",
        default=[],
        type=node_path,
        metavar="PATH",
        help=f"another resolv.conf of the node beside {RESOLV}, such as the kubelet's; may be given many times",
    )
    options.add_argument("--name", type=question, default=ROOT, help="what those servers are asked for (the root's)")
    options.add_argument(
        "--server",
        action="append",
        default=[],
        type=server,
        metavar="ADDRESS[=NAME]",
        help=f"a cluster's DNS and what it is asked for ({CLUSTER_NAME}); may be given many times",
    )
    options.add_argument("--port", type=int, default=PORT, help="the servers' port (%(default)s)")
    return options.parse_args(arguments)


DETECTOR = Detector("dns", "DnsUnavailable", check, Memory)


if __name__ == "__main__":
    main(parse(sys.argv[1:]), DETECTOR)

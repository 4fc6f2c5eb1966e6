#!/usr/bin/env -S python3 -I -S -B
"""Condition CniUnavailable: this node cannot give a Pod its network.

Looked at are what the container runtime says of its network (NetworkReady in the CRI's Status, asked over its socket),
the CNI configuration in --cni, the programs it names in --bin, the locks of its address pools, and agents of the
network plugin that were declared with --agent. Faults, each only after two runs and two minutes:

  network is not ready             the container runtime says so, which is what makes the kubelet refuse Pods
  no CNI configuration             the runtime cannot be asked, and the folder had one in this boot or --cni was given
  no valid CNI configuration       the same, and the first file by name, which runtimes take, is none
  CNI plugin ... is missing        the configuration names a program that no folder of --bin has
  CNI agent ... does not answer    a declared one: HTTP 5xx or nothing
  CNI lock ... is never released   the same process has held it for five minutes: whoever starts a Pod waits for it

A folder is no fault where the runtime says that its network is ready: its configuration is elsewhere (--cni). What
cannot be read or asked is "cannot tell".

Remedies: restart the network plugin's Pod on this node (restart-cni): it writes its configuration and its programs
anew. For a missing program that is of no plugin's (loopback, portmap, ...) install the package of CNI plugins. For an
agent that does not answer look at its log first: where the agents of all nodes are silent, no repair of this node
helps. For "cannot be asked" or read: name the socket, folder or address (--socket, --cni, --bin, --agent), and run
node-problem-detector privileged. For a lock: end the process that holds it (see <state>/evidence/cni.json), or reboot
where that cannot be ended.

Exit codes: 0 fine, 1 fault, 2 cannot tell.
"""

import os.path
import sys

sys.path.append(os.path.realpath(f"{__file__}/../.."))  # where nodelib/ is; python3 -I leaves it out

from nodelib.state import slots

if __name__ == "__main__":
    slots.take()  # before all that costs memory

import argparse
from collections.abc import Mapping
from typing import Any, NamedTuple

from nodelib.contract.detector import Detector, Findings, Run, conclude, explain, fields, main, parser
from nodelib.contract.npd import Verdict
from nodelib.host.root import node_root
from nodelib.net.cni import Config, held_locks, missing_plugins, read_config
from nodelib.net.loopback import get, loopback_url
from nodelib.net.probe_result import ProbeReply, in_the_nodes_network
from nodelib.net.runtimes import add_socket_option, ask_runtimes, network, node_path
from nodelib.state.debounce import Streak, lasts, stand

FOLDER = "/etc/cni/net.d"
BIN = ("/opt/cni/bin", "/usr/libexec/cni", "/usr/lib/cni")
POOLS = "/var/lib/cni/networks"  # where the plugin host-local keeps addresses that are in use
RUNS, SECONDS, LOCK_SECONDS = 2, 120.0, 300.0
LOCK = "CNI lock "


class Memory(NamedTuple):
    """The folder that had a configuration in this boot, "" for none, and since when each thing is wrong."""

    valid: str = ""
    wrong: Mapping[str, Streak] = {}


class NetworkSetup(NamedTuple):
    """All that was read in one run.

    `network`: whether the runtime says that it is ready, None for nobody knows, and why; `ours`: whether the folder is
    known to be the runtime's; `missing`: programs, None where there is no folder for them; `agents` by URL; `locks`:
    who holds which.
    """

    folder: str
    config: Config
    network: tuple[bool | None, str]
    ours: bool
    missing: list[str] | None
    agents: Mapping[str, ProbeReply]
    locks: Mapping[str, int]


def signs(seen: NetworkSetup) -> dict[str, Verdict]:
    """Return what is wrong (FAULT, if it lasts) and what nobody can tell, as texts."""
    verdicts = {f"CNI plugin {name} is missing": Verdict.FAULT for name in seen.missing or ()}
    if seen.config.word == "valid" and seen.missing is None:
        verdicts["no folder with CNI plugins is there (name it with --bin)"] = Verdict.UNKNOWN
    if seen.network[0] is False:
        verdicts[f"the container runtime says that its network is not ready ({seen.network[1]})"] = Verdict.FAULT
    verdicts.update(_config(seen))
    for url, reply in seen.agents.items():
        if reply.word != "answers":
            silent = reply.word == "silent"
            text = f"CNI agent {url} {'does not answer' if silent else 'cannot be asked'} ({reply.why})"
            verdicts[text] = Verdict.FAULT if silent else Verdict.UNKNOWN
    return {**verdicts, **{f"{LOCK}{path} is never released": Verdict.FAULT for path in seen.locks}}


def _config(seen: NetworkSetup) -> dict[str, Verdict]:
    """Judge the folder where the runtime does not say that all is well: it may take its configuration elsewhere."""
    ready, why = seen.network
    if ready or seen.config.word == "valid":
        return {}
    if seen.config.word == "unclear":
        return {seen.config.text: Verdict.UNKNOWN}
    lack = f"no CNI configuration in {seen.folder}"
    if seen.config.word == "broken":
        lack = f"no valid CNI configuration in {seen.folder}: {seen.config.text}"
    if seen.ours:
        return {lack: Verdict.FAULT}
    return {f"{lack}, and the container runtime cannot be asked ({why})": Verdict.UNKNOWN} if ready is None else {}


def judge(seen: NetworkSetup, standing: Mapping[str, Streak], now: float) -> tuple[Verdict, str]:
    """Turn what was read into a verdict and its line; `standing`: how long each fault has been there, by `keys`."""
    verdicts = {}
    for text, verdict in signs(seen).items():
        seconds = LOCK_SECONDS if text.startswith(LOCK) else SECONDS
        if verdict is Verdict.FAULT and not lasts(standing.get(_key(seen, text)), now, seconds, RUNS):
            if not text.startswith(LOCK):  # held for a moment is what locks are for
                verdicts[f"{text}, not for long yet"] = Verdict.UNKNOWN
        else:
            verdicts[text] = verdict
    return conclude(verdicts, "the network plugin is in order")


def _key(seen: NetworkSetup, text: str) -> str:
    """Return what a fault is remembered by: causes may change, and a lock that another process holds begins anew."""
    holders = [str(pid) for path, pid in seen.locks.items() if text.startswith(f"{LOCK}{path} ")]
    return " ".join([text.partition(" (")[0], *holders])


def keys(seen: NetworkSetup) -> list[str]:
    """Return the keys of all that would be a fault if it lasted."""
    return [_key(seen, text) for text, verdict in signs(seen).items() if verdict is Verdict.FAULT]


def look(options: argparse.Namespace, ours: bool) -> NetworkSetup:
    """Read the node's files and ask its runtimes and the agents. Raises OutOfReach for the node's root.

    `ours`: the folder had a configuration before, in this boot.
    """
    root = node_root(options.proc)
    folder = options.cni or FOLDER
    config = read_config(root, folder)
    agents = {url: in_the_nodes_network(get(url, options.deadline)[0], options.proc) for url in sorted(options.agent)}
    return NetworkSetup(
        folder=folder,
        config=config,
        network=network(ask_runtimes(root, options.socket, (), options.deadline)),
        ours=bool(options.cni) or ours,
        missing=missing_plugins(root, options.bin or BIN, config.plugins),
        agents=agents,
        locks=held_locks(options.proc, root, POOLS),
    )


def evidence(seen: NetworkSetup) -> dict[str, Any]:
    """Return what a person asks for first; bounded, lest it be cut elsewhere."""
    return {
        "config": f"{seen.folder}/{seen.config.text}: {', '.join(seen.config.plugins)}"[:300],
        "network": seen.network[1][:300],
        "agents": {url: reply.why[:80] for url, reply in [*seen.agents.items()][:4]},
        "locks": dict([*seen.locks.items()][:4]),
    }


def check(run: Run[Memory]) -> Findings:
    """One run: look, remember since when what is wrong, judge."""
    folder = run.options.cni or FOLDER
    ours = run.last.valid == folder
    seen = look(run.options, ours)
    standing = stand(keys(seen), run.last.wrong, run.now)
    verdict, line = judge(seen, standing, run.now)
    return Findings(
        verdict,
        line,
        Memory(folder if ours or seen.config.word == "valid" else "", standing),
        evidence=lambda: evidence(seen),
        explain=lambda: explain(fields(seen), {"wrong since": standing}, verdict),
    )


def parse(arguments: list[str]) -> argparse.Namespace:
    """Return the options."""
    options = parser(__doc__, 5.0, "each answer")
    options.add_argument(
        "--cni",
        type=node_path,
        metavar="FOLDER",
        help=f"the folder of the CNI configuration; declares that one must be there (default: {FOLDER})",
    )
    options.add_argument(
        "--bin",
        action="append",
        default=[],
        type=node_path,
        metavar="FOLDER",
        help=f"a folder of CNI plugins; may be given many times (default: {', '.join(BIN)})",
    )
    options.add_argument(
        "--agent",
        action="append",
        default=[],
        type=loopback_url,
        metavar="URL",
        help="where an agent of the network plugin on this node tells its health; may be given many times",
    )
    add_socket_option(options)
    return options.parse_args(arguments)


DETECTOR = Detector("cni", "CniUnavailable", check, Memory)


if __name__ == "__main__":
    main(parse(sys.argv[1:]), DETECTOR)

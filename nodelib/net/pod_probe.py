"""A probe that runs in a Pod: it asks cluster DNS, the API Service and some peers, and writes down who answered.

It has no token and no rights. A connection to the API Service is opened and closed again; each peer is a probe of
another node, which takes connections and closes them.
"""

import os
import socket
import threading
import time
from collections.abc import Mapping
from pathlib import Path

from nodelib.contract.npd import boot_id, since_boot, write_json
from nodelib.net.dns import PORT, Question, ask_nameserver, parse_resolv
from nodelib.net.probe_result import ProbeReply, failure, together

EVERY, DEADLINE = 60.0, 3.0  # seconds
SHORT = 1.0  # seconds until a connection is taken again, where there was no room for one
PEERS = 5
NAME = "kubernetes.default.svc"


def serve(port: int) -> socket.socket:
    """Take the connections of peers by IPv4 and IPv6 from now on, and close each."""
    both = socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if both else socket.AF_INET
    listener = socket.create_server(("", port), family=family, dualstack_ipv6=both)

    def take() -> None:
        while True:
            try:
                listener.accept()[0].close()
            except ConnectionError:
                continue
            except OSError:
                if listener.fileno() < 0:  # closed
                    return
                time.sleep(SHORT)  # no descriptor or no memory is left for now

    threading.Thread(target=take, daemon=True).start()
    return listener


def connect(host: str, port: int) -> ProbeReply:
    """Open a connection and close it."""
    try:
        socket.create_connection((host, port), timeout=DEADLINE).close()
    except OSError as error:
        return failure(error)
    return ProbeReply("answers")


def ask_dns(resolv: Path, port: int = PORT) -> ProbeReply:
    """Ask the servers of the Pod for the API Service's name; any answer of any of them will do."""
    try:
        asked = parse_resolv(resolv.read_text(errors="replace"))
    except (OSError, ValueError) as error:
        return ProbeReply("unclear", f"{type(error).__name__}: {error}")
    question = Question(f"{NAME}.cluster.local")
    replies = together(lambda server: ask_nameserver(server, question, DEADLINE, False, port), asked.servers)
    if not replies:
        return ProbeReply("unclear", "resolv.conf names no server")
    return next((reply for reply in replies if reply.word == "answers"), replies[0])


def ask_api(environment: Mapping[str, str]) -> ProbeReply:
    """Open a connection to the API Service, where the kubelet says that it is."""
    try:
        host, port = environment["KUBERNETES_SERVICE_HOST"], int(environment.get("KUBERNETES_SERVICE_PORT") or 443)
    except (KeyError, ValueError):
        return ProbeReply("unclear", "KUBERNETES_SERVICE_HOST is not set")
    return connect(host, port)


def peers_after(own: str, addresses: set[str], count: int = PEERS) -> list[str]:
    """Return whom a probe asks: those that follow it in the ring of all, so that each is asked as often."""
    ring = sorted(addresses - {own})
    first = sum(address < own for address in ring)
    return [*ring[first:], *ring[:first]][:count]


def find_peers(service: str, own: str) -> list[str]:
    """Return the peers behind a headless Service; none where its name cannot be looked up."""
    try:
        addresses = {str(entry[4][0]) for entry in socket.getaddrinfo(service, None, type=socket.SOCK_STREAM)}
    except OSError:
        return []
    return peers_after(own, addresses)


def probe(service: str, port: int, environment: Mapping[str, str], resolv: Path) -> dict[str, object]:
    """Ask all once; what is written down."""
    peers = find_peers(service, environment.get("POD_IP", ""))
    replies = together(lambda peer: connect(peer, port), peers)
    return {
        "dns": [*ask_dns(resolv)],
        "api": [*ask_api(environment)],
        "peers": [len(peers), sum(reply.word == "answers" for reply in replies)],
    }


def run(service: str, port: int, result: Path) -> None:
    """Probe once a minute, for ever."""
    serve(port)
    while True:
        seen = probe(service, port, os.environ, Path("/etc/resolv.conf"))
        write_json(result, {"boot_id": boot_id(Path("/proc")), "at": since_boot(), **seen})
        time.sleep(EVERY)

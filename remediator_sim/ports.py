"""Ports of loopback for programs that are told theirs when they start."""

import random
import socket

# Below those that the kernel gives out by itself (32768 and up), so that it gives none of ours to another meanwhile.
OURS = range(20_000, 32_000)
# Processes whose own generator was given the same seed, as a simulation does, would draw the same ports.
_choice = random.SystemRandom().choice


def free_ports(count: int) -> list[int]:
    """Distinct ports that nobody listens on now."""
    ports: list[int] = []
    while len(ports) < count:
        port = _choice(OURS)
        if port not in ports and _is_free(port):
            ports.append(port)
    return ports


def free_port() -> int:
    """A port that nobody listens on now."""
    return free_ports(1)[0]


def _is_free(port: int) -> bool:
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as a server that comes would
        try:
            listener.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True

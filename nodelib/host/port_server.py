"""What a node offers to one other node for a while: to be the other end of measurements of its InfiniBand ports.

It listens on one address of the node, and answers one other node, and of that only who knows the token. A request is a
line of JSON: {"token": ..., "port": "mlx5_0/1"} is answered by {"rate": 400.0}, or by {"why": ...} where the port
cannot be measured, and the bytes of ib_write_bw follow; {"token": ..., "done": true} ends it.
"""

import hmac
import json
import socket
import time
from pathlib import Path
from typing import Any, NamedTuple

from nodelib.contract.operation import Refused
from nodelib.host.port_relay import LISTENS, has_tool, start
from nodelib.host.port_speed import PAIR_SECONDS, infiniband
from nodelib.net.links import Port

LINE_BYTES, LINE_SECONDS = 1024, 5.0
TOKEN_SECONDS = 1.0  # for the line of who has shown no token yet: the one who has it may be next
MOST_RATE = 10_000.0  # Gb/s of one port


class Service(NamedTuple):
    """What is offered: on `address` and TCP port `port`, to the node with the address `client`, for `seconds`."""

    address: str
    port: int
    client: str
    token: str
    seconds: float


def read_service(given: object) -> Service:
    """Return PARAMETERS.serve. Raises Refused for what makes no sense."""
    try:
        if not isinstance(given, dict):
            raise TypeError("an object is expected")
        address, client, token = (str(given[word]) for word in ("address", "client", "token"))
        service = Service(address, int(given["port"]), client, token, float(given["seconds"]))
    except (KeyError, TypeError, ValueError) as error:
        raise Refused(f"PARAMETERS.serve makes no sense ({error!r}): only the controller writes it") from error
    if not (address and client and token and 0 < service.port < 65536 and 0 < service.seconds <= 3600):
        raise Refused("PARAMETERS.serve lacks an address, a port or a token: only the controller writes it")
    return service


def serve(service: Service, sys: Path, program: str) -> str:
    """Answer until the other node says that it is done; return the sentence. Raises Refused where it never does."""
    until, measured = time.monotonic() + service.seconds, 0
    where = f"{service.address}:{service.port}"
    try:
        listener = listen(service.address, service.port)
    except OSError as error:
        raise Refused(f"cannot tell: nothing can listen on {where}: {error.strerror or error}") from error
    with listener:
        while (left := until - time.monotonic()) > 0:
            listener.settimeout(left)
            try:
                connection, who = listener.accept()
            except OSError:
                continue
            with connection:
                request = _request(connection, service) if who[0] == service.client else None
                if request is not None and request.get("done"):
                    return f"measurements for {service.client}: {measured}"
                measured += request is not None and _answer(connection, request.get("port"), sys, program)
    raise Refused(f"cannot tell: {service.client} has not said within {service.seconds:g} s that it is done")


def listen(address: str, port: int) -> socket.socket:
    """Return a socket that listens on this address alone. Raises OSError."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return socket.create_server((address, port), family=family, backlog=4)


def read_line(connection: socket.socket, seconds: float) -> dict[str, Any]:
    """Return one line of JSON, and take nothing of what follows it. Raises OSError, or ValueError for anything else."""
    line, until = bytearray(), time.monotonic() + seconds
    while not line.endswith(b"\n"):
        connection.settimeout(max(0.001, until - time.monotonic()))
        byte = connection.recv(1)
        if not byte or len(line) > LINE_BYTES:
            raise ValueError("no line of JSON has come")
        line += byte
    try:
        answer = json.loads(line)
    except RecursionError as error:
        raise ValueError("JSON within JSON, too deep to be read") from error
    if not isinstance(answer, dict):
        raise ValueError("no JSON object has come")
    return answer


def read_rate(given: object) -> float | None:
    """Return the rate of a port in Gb/s, above 0 and at most MOST_RATE; None for anything else. Raises nothing.

    >>> read_rate(400), read_rate(0), read_rate(float("nan")), read_rate(10**500), read_rate("400")
    (400.0, None, None, None, None)
    """
    if isinstance(given, bool) or not isinstance(given, int | float):
        return None
    return float(given) if 0 < given <= MOST_RATE else None


def send_line(connection: socket.socket, **words: object) -> None:
    """Say one thing. Raises OSError."""
    connection.settimeout(LINE_SECONDS)
    connection.sendall(json.dumps(words).encode() + b"\n")


def _request(connection: socket.socket, service: Service) -> dict[str, Any] | None:
    """What is asked for; None where nobody has said the token."""
    try:
        request = read_line(connection, TOKEN_SECONDS)
        token = request.get("token")
        known = isinstance(token, str) and hmac.compare_digest(token.encode(), service.token.encode())
    except (OSError, ValueError):  # half of a surrogate is a UnicodeError, and so a ValueError
        return None
    return request if known else None


def _answer(connection: socket.socket, asked: object, sys: Path, program: str) -> bool:
    """Measure with one port. Returns whether that was possible."""
    name = asked if isinstance(asked, str) else ""
    port = dict(infiniband(sys)).get(name)
    why = _obstacle(name, port)
    try:
        send_line(connection, **({"why": why} if why or port is None else {"rate": port.rate}))
    except OSError:
        return False
    if not why:
        start(program, LISTENS, connection, name).told(time.monotonic() + PAIR_SECONDS)
    return not why


def _obstacle(name: str, port: Port | None) -> str:
    """Why nobody can measure to this port of this node; "" where one can."""
    if port is None:
        return f"its {name[:40]} is not up"
    if read_rate(port.rate) is None:
        return f"the rate of its {name[:40]} is not known"
    return "" if has_tool() else "it has no ib_write_bw"

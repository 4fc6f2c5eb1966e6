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

LINE_BYTES, LINE_SECONDS = 1024, 5.0


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
                measured += request is not None and _answer(connection, str(request.get("port")), sys, program)
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
    answer = json.loads(line)
    if not isinstance(answer, dict):
        raise ValueError("no JSON object has come")
    return answer


def send_line(connection: socket.socket, **words: object) -> None:
    """Say one thing. Raises OSError."""
    connection.settimeout(LINE_SECONDS)
    connection.sendall(json.dumps(words).encode() + b"\n")


def _request(connection: socket.socket, service: Service) -> dict[str, Any] | None:
    """What is asked for; None where nobody has said the token."""
    try:
        request = read_line(connection, LINE_SECONDS)
    except (OSError, ValueError):
        return None
    known = hmac.compare_digest(str(request.get("token")).encode(), service.token.encode())
    return request if known else None


def _answer(connection: socket.socket, name: str, sys: Path, program: str) -> bool:
    """Measure with one port. Returns whether that was possible."""
    port = dict(infiniband(sys)).get(name)
    why = f"its {name[:40]} is not up" if port is None else "" if has_tool() else "it has no ib_write_bw"
    try:
        send_line(connection, **({"why": why} if why or port is None else {"rate": port.rate}))
    except OSError:
        return False
    if not why:
        start(program, LISTENS, connection, name).told(time.monotonic() + PAIR_SECONDS)
    return not why

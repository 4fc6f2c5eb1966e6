"""Looks names up with a limit on the time: a resolver that does not answer keeps its thread for as long as it likes."""

import socket
import threading
from concurrent.futures import Future, wait


class NoAddress(Exception):
    """Nobody has said in time which addresses a name has."""


class Lookups:
    """A name is looked up once at a time, in a thread of its own: whoever asks meanwhile waits for the same answer."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[tuple[str, int], Future[list[str]]] = {}

    def addresses(self, host: str, port: int, seconds: float) -> list[str]:
        """The addresses of a name, each once, in the order in which they are to be tried.

        Raises NoAddress after so many seconds, and what the resolver raises.
        """
        name = (host, port)
        with self._lock:
            answer = self._open.get(name)
            if answer is None:
                answer = self._open[name] = Future()
                threading.Thread(target=self._look_up, args=(name, answer), name="lookup", daemon=True).start()
        if not wait([answer], max(0.0, seconds)).done:
            raise NoAddress
        return answer.result()

    def _look_up(self, name: tuple[str, int], answer: "Future[list[str]]") -> None:
        try:
            infos = socket.getaddrinfo(*name, type=socket.SOCK_STREAM)
        except Exception as failed:  # whoever waits is told, whatever it is
            self._close(name)
            answer.set_exception(failed)
        else:
            self._close(name)
            answer.set_result(list(dict.fromkeys(str(address[0]) for *_, address in infos)))

    def _close(self, name: tuple[str, int]) -> None:
        with self._lock:
            del self._open[name]

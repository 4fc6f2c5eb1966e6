"""A server of a test on this machine: a thread that takes connections."""

import contextlib
import socket
import threading


class Listening:
    """Hands each connection to `_answer`, one after the other; all stay open until `close` if nobody closes them."""

    def __init__(self, listener: socket.socket):
        self.listener = listener
        self.held: list[socket.socket] = []
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for connection in self.held:
            connection.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.held.append(connection)
            with contextlib.suppress(OSError):
                self._answer(connection)

    def _answer(self, connection: socket.socket) -> None:
        raise NotImplementedError

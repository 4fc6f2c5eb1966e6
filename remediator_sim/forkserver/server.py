"""The process behind ForkServer: forks for each run of a Python program, in place of starting an interpreter.

Runs alone, `python -I -S server.py SOCKET PARENT`, with the standard library only. Each packet on the socket is a
JSON object. Asked {run, path, args, env, cwd}, with the write ends for stdout and stderr, it answers {run, pid}, or
{run, errno} where the kernel would not start such a file, or only {run} where it is no Python program that can be run
here. Asked {wait: pid} it answers {ended: pid, code} after that program's end; until then the id stays taken.

What the forked child sees is what a fresh interpreter would: argv, path, environment, folder, standard streams, no
other descriptors. It differs in sys.flags, which nobody can set, in having more modules loaded (ours, of the standard
library and of the packages beside its folder), and in that all runs share one hash seed. An installed module of one
file that it imports, pynvml, has been executed before. A Python program that it starts by subprocess.Popen is forked in
the same way.
"""

import argparse
import gc
import json
import os
import select
import shutil  # noqa: F401  argparse imports it when it is used: here, once for all
import signal
import socket
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.append(str(Path(__file__).parents[2]))

from remediator_sim.forkserver.child import be, die_with
from remediator_sim.forkserver.library import Library
from remediator_sim.forkserver.started import links_alike

PACKET = 1 << 20


class Server:
    """Answers on one socket until its other end is closed."""

    def __init__(self, asking: socket.socket) -> None:
        self._socket = asking
        self._library = Library()
        self._awaited: set[int] = set()
        self._wake, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wake)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def serve(self) -> None:
        """Answer until nobody can ask any more, or hears an answer."""
        with suppress(BrokenPipeError):
            self._serve()

    def _serve(self) -> None:
        while True:
            ready, _, _ = select.select([self._socket.fileno(), self._wake], [], [])
            if self._wake in ready:
                os.read(self._wake, 4096)
                for pid in list(self._awaited):
                    self._reap(pid)
            if self._socket.fileno() in ready and not self._hear():
                return

    def _hear(self) -> bool:
        try:
            packet, streams, _, _ = socket.recv_fds(self._socket, PACKET, 2)
        except ConnectionResetError:
            return False
        if not packet:
            return False
        asked = json.loads(packet)
        if "wait" in asked:
            self._awaited.add(asked["wait"])
            self._reap(asked["wait"])
            return True
        try:
            answer = self._start(asked, streams)
        except OSError as error:
            answer = {"errno": error.errno}
        finally:
            for stream in streams:
                os.close(stream)
        self._say({"run": asked["run"], **answer})
        return True

    def _start(self, asked: dict[str, Any], streams: list[int]) -> dict[str, Any]:
        path = asked["path"]
        program = self._library.program(path)
        if program is None or not links_alike(asked["env"]):
            return {}
        gc.freeze()  # what is shared with children is not to be copied by their garbage collection
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            be(program, self._library.installed, asked, streams, parent)
        with suppress(OSError):  # it may have ended
            os.setpgid(pid, pid)  # here too, lest it be killed by its group before it has one
        return {"pid": pid}

    def _reap(self, pid: int) -> None:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            self._awaited.discard(pid)
            self._say({"ended": pid, "code": os.waitstatus_to_exitcode(status)})

    def _say(self, answer: dict[str, Any]) -> None:
        self._socket.sendall(json.dumps(answer).encode())


def prepare() -> None:
    """Have `re` compile what argparse asks for in every program."""
    argparse.ArgumentParser(prog="", description="").parse_known_args([])


if __name__ == "__main__":
    sys.path.pop()
    die_with(int(sys.argv[2]))
    sys.dont_write_bytecode = True
    prepare()
    Server(socket.socket(fileno=int(sys.argv[1]))).serve()

"""Containers of simulated Pods: what to run, what it sees, and the process that runs it."""

import asyncio
import contextlib
import os
import re
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from remediator_sim.kubelet.host import SimulatedHost
from remediator_sim.kubelet.program import die_with_parent

IMAGE_PROGRAMS = "/opt/remediator/"
MESSAGE_LIMIT = 4096  # bytes of a termination message that a kubelet keeps

# Where a fieldRef of the downward API points in a Pod.
FIELDS: Mapping[str, tuple[str, str]] = {
    "metadata.name": ("metadata", "name"),
    "metadata.namespace": ("metadata", "namespace"),
    "metadata.uid": ("metadata", "uid"),
    "spec.nodeName": ("spec", "nodeName"),
    "spec.serviceAccountName": ("spec", "serviceAccountName"),
}


class Unstartable(Exception):
    """This container cannot be started as it is written; the text says why."""


def command(pod: Mapping[str, Any]) -> list[str]:
    """Command and arguments of the Pod's first container, as written."""
    container = pod["spec"]["containers"][0]
    return [*container.get("command", ()), *container.get("args", ())]


def is_ours(pod: Mapping[str, Any]) -> bool:
    """Whether this Pod runs one of the programs of operations/ or detectors/; any other is only made to look alive."""
    return any(word.startswith(IMAGE_PROGRAMS) for word in command(pod))


def on_this_machine(words: list[str], programs: Path, env: Mapping[str, str]) -> list[str]:
    """`words` as they can be run here: the image's paths below `programs`, our own interpreter, $(NAME)s filled in."""
    words = [expand(word, env) for word in words]
    mapped = [str(programs / word.removeprefix(IMAGE_PROGRAMS)) if _in_image(word) else word for word in words]
    return [sys.executable if mapped[0] in ("python3", "/usr/bin/python3") else mapped[0], *mapped[1:]]


def _in_image(word: str) -> bool:
    return word.startswith(IMAGE_PROGRAMS)


def expand(text: str, env: Mapping[str, str]) -> str:
    """Fill in each $(NAME) that `env` knows; $$ stands for $, and an unknown name stays as it is."""

    def one(match: re.Match[str]) -> str:
        return "$" if match[0] == "$$" else env.get(match[1], match[0])

    return re.sub(r"\$\$|\$\(([^)]*)\)", one, text)


def environment(pod: Mapping[str, Any]) -> dict[str, str]:
    """The variables that the Pod's first container asks for. Raises Unstartable for a source that is not simulated."""
    env: dict[str, str] = {}
    for entry in pod["spec"]["containers"][0].get("env", ()):
        source = entry.get("valueFrom")
        env[entry["name"]] = _field(pod, entry["name"], source) if source else expand(entry.get("value", ""), env)
    return env


def _field(pod: Mapping[str, Any], name: str, source: Mapping[str, Any]) -> str:
    path = source.get("fieldRef", {}).get("fieldPath", "")
    if path not in FIELDS:
        raise Unstartable(f"variable {name}: a simulated kubelet fills in only {', '.join(FIELDS)}")
    part, key = FIELDS[path]
    return str(pod[part].get(key, ""))


def surroundings(host: SimulatedHost, place: Path, server: tuple[str, int]) -> dict[str, str]:
    """The variables that stand for mounts and the cluster's network in a container whose directory is `place`."""
    return {
        "PATH": f"{host.bin}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        "LANG": "C.UTF-8",
        "HOSTNAME": host.name,
        "HOST_ROOT": str(host.root),
        "TERMINATION_LOG": str(place / "termination-log"),
        "TOKEN_DIR": str(place / "token"),
        "KUBERNETES_SERVICE_HOST": server[0],
        "KUBERNETES_SERVICE_PORT": str(server[1]),
    }


class Container(Protocol):
    """Something that a Pod runs."""

    async def ended(self) -> int:
        """Wait for the end by itself; the exit code as a shell would tell it (128 + signal)."""
        ...

    async def stop(self, grace: float) -> int:
        """End it: ask, wait `grace` seconds, kill. The exit code."""
        ...

    async def kill(self) -> None:
        """End it now, with all its children, and ask nothing; return when it is gone. Harmless after its end."""
        ...


class Idle:
    """An ordinary workload: it does nothing, for ever, and stops when asked."""

    async def ended(self) -> int:
        """Never returns."""
        never: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        return await never

    async def stop(self, grace: float) -> int:
        """Stop at once, content."""
        return 0

    async def kill(self) -> None:
        """Nothing is there to kill."""


class RealProcess:
    """A real process in a session of its own, so that it ends together with all its children."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._over = False  # once its end was seen its id may be given to a stranger

    @classmethod
    async def start(cls, words: list[str], env: Mapping[str, str], place: Path) -> "RealProcess":
        """Start `words` in `place`, its output going to the file `log` there. Raises Unstartable."""
        try:
            with (place / "log").open("ab") as log:
                process = await asyncio.create_subprocess_exec(
                    *words,
                    cwd=place,
                    env=env,
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=log,
                    stderr=asyncio.subprocess.STDOUT,
                    start_new_session=True,
                    preexec_fn=die_with_parent,
                )
        except OSError as error:
            raise Unstartable(f"{words[0]}: {error.strerror}") from error
        return cls(process)

    async def ended(self) -> int:
        """Wait for the program's end; children it left behind end with it, as in a PID namespace."""
        code = await self._process.wait()
        self._kill_all()
        self._over = True
        return code if code >= 0 else 128 - code

    async def stop(self, grace: float) -> int:
        """SIGTERM to the program, `grace` seconds, SIGKILL to all."""
        with contextlib.suppress(ProcessLookupError):
            self._process.terminate()
        with contextlib.suppress(TimeoutError):
            return await asyncio.wait_for(self.ended(), grace)
        self._kill_all()
        return await self.ended()

    async def kill(self) -> None:
        """SIGKILL to the program and all its children."""
        self._kill_all()
        await self.ended()

    def _kill_all(self) -> None:
        if not self._over:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)


def termination_message(path: Path) -> str:
    """The last 4096 bytes of a termination log; empty if there is none."""
    try:
        written = path.read_bytes()
    except FileNotFoundError:
        return ""
    return written[-MESSAGE_LIMIT:].decode("utf-8", "replace")

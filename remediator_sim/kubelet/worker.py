"""The life of one Pod on a simulated node: started once, watched, ended, told to the API server, removed."""

import asyncio
import contextlib
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import msgspec

from remediator.clock import Clock
from remediator.kube.wire import errors
from remediator.kube.wire.client import Client, check
from remediator.kube.wire.transport import STRATEGIC_PATCH
from remediator_sim.accounts import token
from remediator_sim.kubelet import podstatus
from remediator_sim.kubelet.container import (
    Container,
    Idle,
    RealProcess,
    Unstartable,
    command,
    environment,
    is_ours,
    on_this_machine,
    surroundings,
    termination_message,
)
from remediator_sim.kubelet.host import SimulatedHost
from remediator_sim.kubelet.runtime import Record, Runtime, Terminated
from remediator_sim.plain import ACCOUNTS, PAUSE, PODS, Object, patiently

TOKEN_SECONDS = 3607


class ApiAddress(NamedTuple):
    """The API server as containers are to reach it: its URL and the file with the certificate that it is known by."""

    url: str
    ca_file: Path

    @property
    def address(self) -> tuple[str, int]:
        """Host and port."""
        parts = urlsplit(self.url)
        return parts.hostname or "", parts.port or 443


@dataclass(frozen=True, slots=True)
class WorkerNode:
    """What all Pods of one node share."""

    client: Client
    host: SimulatedHost
    runtime: Runtime
    programs: Path
    endpoint: ApiAddress
    clock: Clock


class PodWorker:
    """Plays one Pod. `run` ends when the Pod was removed; cancelled, it kills the container and tells nobody."""

    def __init__(self, machine: WorkerNode, pod: Object) -> None:
        self._machine = machine
        self._status: Object = {}  # as last written by us, which an event on its way may not yet show
        self._deleted = asyncio.Event()
        self.see(pod)

    def see(self, pod: Object) -> None:
        """Take note of a newer state of the Pod."""
        self._pod = {**pod, "status": self._status or pod.get("status", {})}
        if podstatus.is_deleted(pod):
            self._deleted.set()

    async def run(self) -> None:
        """From whatever state the Pod is found in to its removal."""
        if not podstatus.is_over(self._pod):
            await self._bring_to_an_end()
        await self._deleted.wait()
        await self._remove()

    @property
    def _uid(self) -> str:
        return str(self._pod["metadata"]["uid"])

    async def _bring_to_an_end(self) -> None:
        machine = self._machine
        record = machine.runtime.load(self._uid)
        end = podstatus.lost(self._pod, record, machine.host.boot_id, machine.clock.wall())
        if end:
            await self._tell_end(end, record.restarts if record else 0)
        else:
            await self._run_container(record)

    async def _run_container(self, before: Record | None) -> None:
        machine = self._machine
        if before is None:
            await self._tell(podstatus.pending(self._pod, machine.clock.wall()))
        place = machine.runtime.place(self._uid)
        if not await self._mounted(place / "token"):
            return
        record = podstatus.begun(before, machine.host.boot_id, machine.clock.wall())
        # Remembered before it starts: whatever happens now, no later kubelet will start it a second time.
        machine.runtime.save(self._uid, record)
        try:
            container = await self._start(place)
        except Unstartable as error:
            end = Terminated(128, "StartError", str(error), record.started_at, machine.clock.wall())
            await self._tell_end(end, record.restarts)
            return
        await self._accompany(container, record, place)

    async def _accompany(self, container: Container, record: Record, place: Path) -> None:
        try:
            tell = self._tell(podstatus.running(self._pod, record, self._machine.clock.wall()))
            _, (code, too_late) = await asyncio.gather(tell, self._until_end(container))
        finally:
            await container.kill()
        message = termination_message(place / "termination-log")
        reason = "Error" if code else "Completed"
        end = Terminated(code, reason, message, record.started_at, self._machine.clock.wall())
        self._machine.runtime.save(self._uid, msgspec.structs.replace(record, terminated=end))
        await self._tell_end(end, record.restarts, too_late=too_late)

    async def _until_end(self, container: Container) -> tuple[int, bool]:
        """The exit code, and whether the deadline was what ended it."""
        left = self._seconds_left()
        ended, asked = asyncio.ensure_future(container.ended()), asyncio.ensure_future(self._deleted.wait())
        try:
            done, _ = await asyncio.wait({ended, asked}, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            if ended in done:
                return ended.result(), False
            return await container.stop(podstatus.grace(self._pod)), not done
        finally:
            ended.cancel()
            asked.cancel()

    async def _start(self, place: Path) -> Container:
        if not is_ours(self._pod):
            return Idle()
        around = surroundings(self._machine.host, place, self._machine.endpoint.address)
        env = environment(self._pod) | around
        words = on_this_machine(command(self._pod), self._machine.programs, env)
        return await RealProcess.start(words, env, place)

    async def _mounted(self, directory: Path) -> bool:
        """Whether all is in place for the start: not if the Pod was deleted, or its time was over, before."""
        while not self._deleted.is_set():
            with contextlib.suppress(errors.NotFound):
                await patiently(partial(self._mount_token, directory))
                return not self._deleted.is_set()
            if self._seconds_left() == 0:
                await self._tell(podstatus.unmounted(self._pod, self._machine.clock.wall()))
                return False
            await asyncio.sleep(PAUSE)
        return False

    def _seconds_left(self) -> float | None:
        now = self._machine.clock.wall()
        return podstatus.seconds_left(self._pod, podstatus.started_at(self._pod, now), now)

    async def _mount_token(self, directory: Path) -> None:
        meta, account = self._pod["metadata"], self._pod["spec"].get("serviceAccountName", "default")
        client, space = self._machine.client, meta["namespace"]
        if not await self._wants_token(account, space):
            return
        bound = {"apiVersion": "v1", "kind": "Pod", "name": meta["name"], "uid": meta["uid"]}
        granted = await token(client, account, space, bound, TOKEN_SECONDS)
        directory.mkdir(exist_ok=True)
        (directory / "token").write_text(granted)
        (directory / "namespace").write_text(space)
        shutil.copyfile(self._machine.endpoint.ca_file, directory / "ca.crt")

    async def _wants_token(self, account: str, space: str) -> bool:
        """Whether a token is to be mounted: the Pod's own word, else its account's, else yes."""
        if not is_ours(self._pod):
            return False
        own = self._pod["spec"].get("automountServiceAccountToken")
        if own is None:
            body = await self._machine.client.get(ACCOUNTS, account, namespace=space)
            own = body.get("automountServiceAccountToken", True)
        return bool(own)

    async def _tell_end(self, end: Terminated, restarts: int, *, too_late: bool = False) -> None:
        await self._tell(podstatus.finished(self._pod, end, restarts, self._machine.clock.wall(), too_late=too_late))

    async def _tell(self, status: Mapping[str, Any]) -> None:
        """Write the Pod's status; a Pod that is gone, or a namesake in its place, is left alone."""
        meta = self._pod["metadata"]
        body = {"metadata": {"uid": meta["uid"]}, "status": status}
        write = partial(
            self._machine.client.patch,
            PODS,
            meta["name"],
            body,
            namespace=meta["namespace"],
            subresource="status",
            content_type=STRATEGIC_PATCH,
        )
        with contextlib.suppress(errors.NotFound):
            self._status = (await patiently(write))["status"]
            self.see(self._pod)

    async def _remove(self) -> None:
        """Let the object go, now that nothing runs any more; finalizers of others may keep it for a while."""
        if self._pod["metadata"].get("deletionGracePeriodSeconds") == 0:
            return
        meta = self._pod["metadata"]
        body = {"gracePeriodSeconds": 0, "preconditions": {"uid": meta["uid"]}}
        path = PODS.path(meta["name"], meta["namespace"])

        async def delete() -> None:
            with contextlib.suppress(errors.NotFound, errors.Conflict):
                check(await self._machine.client.transport.request("DELETE", path, body=msgspec.json.encode(body)))

        await patiently(delete)

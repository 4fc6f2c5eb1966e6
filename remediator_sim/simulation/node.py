"""A node as a model: its machine, its kubelet and its detectors, which take time and fail."""

import asyncio
import math
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Any
from zlib import crc32

from remediator.core.device_count import DEVICE_INVENTORY
from remediator.kube.wire import errors
from remediator.kube.wire.client import Client
from remediator.kube.wire.times import stamp
from remediator.kube.wire.transport import STRATEGIC_PATCH
from remediator_sim.kubelet.node import GPU
from remediator_sim.plain import NODES, Object
from remediator_sim.simulation.clock import HostClock, now
from remediator_sim.simulation.facts import MIG_FAILS, RESET_BUSY, SHOWN
from remediator_sim.simulation.fault import Fault

BEAT, SLOW_BEAT, RETRY = 60.0, 300.0, 10.0  # seconds
FOR_EVER = 1e7  # seconds: longer than any seed
UNREACHABLE_AFTER = 50.0  # seconds until the control plane says of a silent kubelet that it is Unknown
LABELS = {"nvidia.com/gpu.present": "true", "nvidia.com/gpu.count": "8", "remediator.dev/gpu.present": "true"}
ADDRESS = "0000:3b:00.0"  # of its GPU
RACK, RACKS = "topology.kubernetes.io/rack", 3
SIZE = {word: {"cpu": "64", "memory": "512Gi", "pods": "110", GPU: "8"} for word in ("capacity", "allocatable")}
MIG, MIG_DEVICES, REMADE_AFTER = "nvidia.com/mig-1g.10gb", 56, 20.0  # those of 8 GPUs; seconds
COUNTED = {"gpus": 8, "ports": 8, "nvme": 4, "mounts": 3, "addresses": 2}  # what detectors count, in some plans
Note = Callable[[str, str], None]


def rack(name: str) -> str:
    """The rack in which a node stands."""
    return f"rack-{sum(name.encode()) % RACKS}"


class NodeModel:
    """One node. `busy` says whether something about it is under way, so that its heartbeats matter, `proves` whether a
    case waits for news of its health now.

    `facts`: what else is so of it, in the words of facts.py.
    `rebooted(name, boot, attempt)` is told when it is asked to reboot.
    """

    def __init__(
        self, name: str, client: Client, conditions: list[str], chance: Random, note: Note, *, gpus: bool = True
    ) -> None:
        self.name, self._client, self._chance, self._note = name, client, chance, note
        self.clock, self._gpus = HostClock(), gpus
        self.devices, self.lost_at_boot = 8, 0  # GPUs that the kubelet counts, and those that its next boot loses
        self.mig: int | None = None  # the MIG devices that the kubelet counts, in some plans
        self.counts, self.lost_of_counts = dict[str, int](), Counter[str]()  # what detectors count, in some plans
        self.address = ""  # what it says of how to reach it, in some plans
        self.operands: tuple[str, ...] = ()  # labels of the GPU operator's operands, which hold GPUs, in some plans
        self.faults: dict[str, Fault] = {}
        self.boots, self.alive, self.registered = 1, True, False
        self.markers: set[str] = set()
        self.facts: set[str] = set()
        self.board = ""  # the serial number of its GPU board, which stays when another machine takes the name
        self._reboots: set[asyncio.Future[None]] = set()
        self.busy: Callable[[], bool] = lambda: False
        self.proves: Callable[[], bool] = lambda: False
        self.handed: Callable[[], bool] = lambda: False  # a person has a case of it, and waits for its health
        self.rebooted: Callable[[str, str, str], None] = lambda node, boot, attempt: None
        self.booted, self.died = asyncio.Event(), asyncio.Event()
        self.booted.set()
        self._kinds = ["Ready", *conditions, "DetectorStale"]
        self._since: dict[str, tuple[str, str]] = {}
        self._wake, self._news, self._beat_at = asyncio.Event(), False, 0.0
        self._labels: dict[str, str] = {}
        self.labels, self.kernel = dict[str, str](), ""  # what it shows in some plans
        self.gate, self.machine = "", 0  # the taint with which the next machine of its name comes, and its number then
        self.on_change = set[str]()  # Conditions that are written only when they change, in some plans
        self._power, self._boots, self._asked = asyncio.Event(), True, ""

    @property
    def boot_id(self) -> str:
        """The present boot."""
        return f"{self.name}-boot-{self.boots}"

    # --- what happens to it ------------------------------------------------------------------------------------------

    def break_down(self, fault: Fault) -> None:
        """Let a condition turn bad."""
        self.faults[fault.condition] = fault
        self._note(self.name, f"falls ill: {fault}")
        self.speak()

    def recover(self, condition: str) -> None:
        """Let a condition turn good."""
        if self.faults.pop(condition, None) is not None:
            self._note(self.name, f"is well again: {condition}")
            self.speak()

    def treat(self, operation: str) -> None:
        """An operation was carried out here: what it cures is cured, and a reset destroys MIG devices."""
        if operation == "reset-gpu" and self.mig is not None:
            self._make_mig(0)
            if MIG_FAILS not in self.facts:
                asyncio.get_running_loop().call_later(REMADE_AFTER, self._make_mig, MIG_DEVICES)
        for fault in list(self.faults.values()):
            if fault.cured_by(operation):
                self.recover(fault.condition)
                if fault.returns > 0:
                    asyncio.get_running_loop().call_later(fault.after, self.break_down, fault.again())

    def _make_mig(self, devices: int) -> None:
        self.mig = devices
        self.speak()

    async def look_at_operands(self) -> None:
        """Learn whether the operands of the GPU operator run, which hold every GPU."""
        if not self.operands:
            return
        with suppress(errors.ApiError):
            labels = (await self._client.get(NODES, self.name))["metadata"]["labels"]
            run = any(labels.get(label) == "true" for label in self.operands)
            (self.facts.add if run else self.facts.discard)(RESET_BUSY)

    def shows(self, fact: str) -> bool:
        """Whether one of `facts` is so, which programs see by themselves or by a fault."""
        return fact in self.facts or any(SHOWN.get(condition) == fact for condition in self.faults)

    def begin_reboot(self, attempt: str, seconds: float, late: float = 0.0) -> None:
        """Go down for so many seconds, and let the attempt that asked for it go on until it is killed by that.

        `late`: after so many seconds more, unless the machine has gone down before, and this wish with it.
        """
        self.rebooted(self.name, self.boot_id, attempt)
        reboot = asyncio.ensure_future(self._reboot(self.boots, seconds, late))
        self._reboots.add(reboot)
        reboot.add_done_callback(self._reboots.discard)

    async def _reboot(self, boot: int, seconds: float, late: float) -> None:
        if late:
            self._note(self.name, f"goes down in {late:.0f} s")
            await asyncio.sleep(late)
        if self.alive and self.boots == boot:
            self.treat("reboot")
            await self.go_down(seconds)

    @property
    def off(self) -> bool:
        """Whether a BMC has taken its power away, or it is down and stays so."""
        return not self.alive and not self._boots

    def cut_power(self, attempt: str) -> None:
        """Be off until the power comes back."""
        self.rebooted(self.name, self.boot_id, attempt)
        self._asked = attempt
        if self.alive:
            down = asyncio.ensure_future(self.go_down(FOR_EVER))
            self._reboots.add(down)
            down.add_done_callback(self._reboots.discard)

    def begin_power(self, attempt: str, seconds: float) -> None:
        """Boot within so many seconds, unless it runs."""
        if self.alive and not self._reboots:
            return
        if self._asked != attempt:
            self.rebooted(self.name, self.boot_id, attempt)
        self.treat("power-cycle")
        asyncio.get_running_loop().call_later(seconds, self._power.set)

    async def go_down(self, seconds: float) -> None:
        """Stop, and boot again later, or when the power comes back."""
        self._boots = seconds < FOR_EVER
        self._power.clear()
        self.alive = False
        self.booted.clear()
        self.died.set()
        self._note(self.name, f"goes down for {seconds:.0f} s")
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._power.wait()
        self.boots, self.alive = self.boots + 1, True
        self.markers.clear()
        self.facts.clear()
        self.devices, self.lost_at_boot = self.devices - self.lost_at_boot, 0
        self.counts = dict(Counter(self.counts) - self.lost_of_counts)
        self.lost_of_counts.clear()
        self.mig = None if self.mig is None else MIG_DEVICES  # the MIG manager makes them when it starts
        self._note(self.name, f"is up again as {self.boot_id}")
        self.died.clear()
        self.booted.set()
        self.speak()

    # --- what it says ------------------------------------------------------------------------------------------------

    async def register(self, labels: dict[str, str] | None = None) -> None:
        """Make the Node object."""
        self._labels = labels if labels is not None else self._labels
        self._since.clear()
        with suppress(errors.AlreadyExists):
            labels = (LABELS if self._gpus else {}) | {RACK: rack(self.name)} | self.labels | self._labels
            status: Object = dict(SIZE) if self._gpus else {}
            body: Object = {"metadata": {"name": self.name, "labels": labels}, "status": status}
            if self.gate:
                self.machine += 1
                body["spec"] = {"taints": [{"key": self.gate, "effect": "NoSchedule"}]}
                status["nodeInfo"] = self._info()
            await self._client.create(NODES, body)
        self.registered = True
        await self.publish()

    async def run(self) -> None:
        """Publish what changes, and heartbeats while they matter, until cancelled."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout_at(self._next_beat()):
                    await self._wake.wait()
            self._wake.clear()
            if not self._news and now() < self._next_beat():
                continue
            self._news, self._beat_at = False, now()
            if self.alive and self.registered:
                await self._publish_or_retry()

    def _next_beat(self) -> float:
        """When the next heartbeat is due; never, while none matters. One that is ill proves nothing by many of them."""
        if self.proves() and not self.faults:
            return self._beat_at + BEAT
        return self._beat_at + (SLOW_BEAT if self.busy() or self.faults or self.handed() else math.inf)

    def wake(self) -> None:
        """Look again whether heartbeats matter."""
        self._wake.set()

    def speak(self) -> None:
        """Publish the whole status soon."""
        self._news = True
        self._wake.set()

    async def _publish_or_retry(self) -> None:
        try:
            await self.publish()
        except errors.NotFound:
            return
        except errors.ApiError:
            asyncio.get_running_loop().call_later(RETRY, self.speak)

    async def publish(self) -> None:
        """Write the whole status."""
        at = stamp(self.clock.wall())
        status: Object = {
            "nodeInfo": self._info(),
            "conditions": [self._condition(kind, at) for kind in self._kinds] + self._counted(at),
        }
        if self.address:
            status["addresses"] = [{"type": "InternalIP", "address": self.address}]
        if self._gpus:
            status |= {word: self._resources() for word in ("capacity", "allocatable")}
        await self._write(status)

    def _resources(self) -> dict[str, str]:
        mig = {} if self.mig is None else {MIG: str(self.mig)}
        return {GPU: str(max(0, self.devices))} | mig

    def _counted(self, at: str) -> list[dict[str, Any]]:
        """The Condition by which detectors tell what they count."""
        if not self.counts:
            return []
        self._since.setdefault(DEVICE_INVENTORY, ("True", at))
        counts = " ".join(f"{kind}={count}" for kind, count in self.counts.items())
        message = f"{counts} digest={crc32(counts.encode()):08x}"
        words = {"status": "True", "reason": "DevicesCounted", "message": message}
        times = {"lastHeartbeatTime": at, "lastTransitionTime": self._since[DEVICE_INVENTORY][1]}
        return [{"type": DEVICE_INVENTORY} | words | times]

    def _info(self) -> dict[str, str]:
        machine = f"{self.name}-{self.machine}" if self.gate else ""
        words = {"bootID": self.boot_id, "kernelVersion": self.kernel, "machineID": machine}
        return {word: text for word, text in words.items() if text}

    async def publish_unreachable(self) -> None:
        """What the control plane says of a kubelet that is silent."""
        conditions = [self._condition("Ready", stamp(self.clock.wall()), "Unknown", "NodeStatusUnknown")]
        with suppress(errors.ApiError):
            await self._write({"conditions": conditions})

    async def _write(self, status: Object) -> None:
        body = {"status": status}
        await self._client.patch(NODES, self.name, body, subresource="status", content_type=STRATEGIC_PATCH)

    def _condition(self, kind: str, at: str, status: str = "", reason: str = "") -> dict[str, Any]:
        fault = self.faults.get(kind)
        bad, good = ("False", "True") if kind == "Ready" else ("True", "False")
        status = status or (fault.status or bad if fault else good)
        if self._since.get(kind, ("", ""))[0] != status:
            self._since[kind] = status, at
        message = fault.message if fault else f"{kind} is {status}"
        condition = {"type": kind, "status": status, "reason": reason or f"{kind}{status}", "message": message}
        since = self._since[kind][1]
        return condition | {"lastHeartbeatTime": since if kind in self.on_change else at, "lastTransitionTime": since}

    async def watch_over(self) -> None:
        """The control plane's look at silent kubelets, until cancelled."""
        while True:
            await self.died.wait()
            begun = now()
            with suppress(TimeoutError):
                async with asyncio.timeout(UNREACHABLE_AFTER):
                    await self.booted.wait()
            if not self.alive and now() - begun >= UNREACHABLE_AFTER:
                await self.publish_unreachable()
            await self.booted.wait()

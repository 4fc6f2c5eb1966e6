"""A node, a program whose answer a test changes, and a detector that runs it: the stand-in's or the real one."""

import asyncio
import json
import os
import sys
import uuid
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest

from deploy.images.programs import binary
from remediator.kube.wire import errors
from remediator.kube.wire.times import parse, stamp
from remediator.kube.wire.transport import STRATEGIC_PATCH
from remediator_sim.kubelet.program import RunningProgram
from remediator_sim.npd import Monitor, NodeProblemDetector
from remediator_sim.npd.exporter import EVENTS
from remediator_sim.plain import NODES, Object, condition
from tests.harness.waiting import until

KINDS = ["processes", "fork server", pytest.param("real", marks=pytest.mark.cluster)]
SECONDS = 40.0
# The fork server takes programs whose first line has flags; one word, because the kernel does not split it.
FIRST_LINE = f"#!{Path(sys.executable).parent}/python3 -EsSB\n"
# A run says that it has begun, then does what its orders were at that moment.
PROGRAM = """
import os, sys, time
with open(__file__ + ".begun", "a") as begun:
    begun.write("x")
exec(open(__file__ + ".orders").read())
"""
QUICK = {"invoke_interval": "300ms", "timeout": "20s", "max_output_length": 512}
CONDITION = {"type": "Broken", "reason": "AllWell", "message": "nothing is broken"}
RULE = {"type": "permanent", "condition": "Broken", "reason": "ItBroke"}


class Play:
    """One node and its detector. `kind` says which; `runners` holds the stand-in's by that name."""

    def __init__(self, kind, server, runners, directory):
        self.kind, self.client, self.node = kind, server.client, f"npd-{uuid.uuid4().hex[:8]}"
        self._server, self._runners, self.directory = server, runners, directory
        self._detector = None
        directory.mkdir()

    async def set_up(self):
        await self.client.create(NODES, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": self.node}})

    async def tear_down(self):
        await self.stop()
        with suppress(errors.NotFound):
            await self.client.delete(NODES, self.node)

    def program(self, orders, name="check"):
        """Write a program, or give the one of that name new orders: Python, ending in exit code 0 unless it says so."""
        path = self.directory / f"{name}.py"
        draft = self.directory / f"{name}.draft"
        draft.write_text(orders)
        draft.replace(f"{path}.orders")
        if not path.exists():
            path.write_text(FIRST_LINE + PROGRAM)
            path.chmod(0o755)
        return path

    def says(self, code, text="", name="check"):
        """Let the program print a text and end with a code."""
        return self.program(f"sys.stdout.write({text!r})\nsys.exit({code})\n", name)

    def begun(self, name="check"):
        """How many runs have begun."""
        file = self.directory / f"{name}.py.begun"
        return file.stat().st_size if file.exists() else 0

    async def runs(self, count=2, name="check"):
        """Wait until so many more runs have begun: all but the last of them have ended, too."""
        wanted = self.begun(name) + count
        await until(lambda: self.begun(name) >= wanted, SECONDS)

    def file(self, *rules, name="npd.json", conditions=(CONDITION,), **settings):
        """Write a configuration; a rule without a path runs the program `check`."""
        check = str(self.directory / "check.py")
        body = {
            "plugin": "custom",
            "pluginConfig": QUICK | settings,
            "source": "contract",
            "conditions": list(conditions),
            "rules": [{"path": check} | RULE | rule for rule in rules or ({},)],
        }
        path = self.directory / name
        path.write_text(json.dumps(body))
        return path

    async def start(self, *files, heartbeat=1, env=None):
        """Start the detector; `heartbeat` in whole seconds."""
        env = {"PATH": os.environ["PATH"], **(env or {})}
        if self.kind == "real":
            self._detector = await self._start_real(files, heartbeat, env)
            return
        monitors = [Monitor.read(file) for file in files]
        runner = self._runners[self.kind]
        detector = NodeProblemDetector(self.client, self.node, monitors, env=env, heartbeat=heartbeat, runner=runner)
        self._detector = asyncio.create_task(detector.run())

    async def stop(self):
        """End the detector, however it was started."""
        detector, self._detector = self._detector, None
        if isinstance(detector, RunningProgram):
            await detector.kill()
        elif detector:
            detector.cancel()
            with suppress(asyncio.CancelledError):
                await detector

    async def refuses(self, file):
        """What the detector says when it does not want this file; fails where it goes on."""
        if self.kind != "real":
            with pytest.raises(ValueError, match=str(file)) as refusal:
                Monitor.read(file)
            return str(refusal.value)
        await self.start(file)
        assert await self._detector.ended(SECONDS) != 0
        return self._detector.written()

    async def condition(self, type="Broken"):
        """The node's condition of that type; None while it has none."""
        written = condition(await self.client.get(NODES, self.node), type)
        return WrittenCondition(written) if written else None

    async def writes(self, type, status, reason, message):
        """Write a condition into the node's status as somebody else would."""
        now = stamp(datetime.now(UTC))
        times = {"lastHeartbeatTime": now, "lastTransitionTime": now}
        condition = {"type": type, "status": status, "reason": reason, "message": message} | times
        body = {"status": {"conditions": [condition]}}
        await self.client.patch(NODES, self.node, body, subresource="status", content_type=STRATEGIC_PATCH)

    async def shows(self, status, type="Broken", **more):
        """Wait until the condition has this status, and whatever else is asked for; the condition."""

        async def there():
            seen = await self.condition(type)
            if not seen or seen.status != status or any(getattr(seen, key) != want for key, want in more.items()):
                return None
            return seen

        return await until(there, SECONDS)

    async def beats(self, after, type="Broken"):
        """Wait for a heartbeat later than that moment; the condition then."""

        async def there():
            seen = await self.condition(type)
            return seen if seen and seen.heartbeat > after else None

        return await until(there, SECONDS)

    async def events(self):
        """(type, reason, message) of the node's events, with how often each was seen."""
        return {(one["type"], one["reason"], one["message"]): one["count"] for one in await self.event_bodies()}

    async def event_bodies(self):
        """The node's events as the server keeps them."""
        return await self.client.list_all(EVENTS, namespace="default", fields=f"involvedObject.name={self.node}")

    async def tells(self, kind, reason, message, count=1):
        """Wait until the node's events say this so often."""

        async def told():
            return (await self.events()).get((kind, reason, message), 0) >= count

        try:
            await until(told, SECONDS)
        except AssertionError:
            raise AssertionError(f"{(kind, reason, message)} is not among {await self.events()}") from None

    async def _start_real(self, files, heartbeat, env):
        command = [
            binary("node-problem-detector"),
            f"--hostname-override={self.node}",
            f"--apiserver-override={self._server.url}?inClusterConfig=false&auth={self._server.kubeconfig}",
            f"--config.custom-plugin-monitor={','.join(map(str, files))}",
            "--prometheus-port=0",
            "--port=0",
            f"--k8s-exporter-heartbeat-period={heartbeat}s",
        ]
        return await RunningProgram.start(command, self.directory / "npd.log", env)


class WrittenCondition:
    """A condition as it was read."""

    def __init__(self, body: Object):
        self.status, self.reason, self.message = body["status"], body.get("reason", ""), body.get("message", "")
        self.heartbeat, self.since = parse(body["lastHeartbeatTime"]), parse(body["lastTransitionTime"])

    @property
    def said(self):
        """Status, reason, message."""
        return self.status, self.reason, self.message


def together(body):
    """Make a test of `body(play)`: on each kind of detector, and all that a module holds at the same time."""

    async def test(plays, kind):
        await plays.outcome(kind, body)

    test.__name__, test.__qualname__, test.__doc__, test.body = body.__name__, body.__qualname__, body.__doc__, body
    test.__module__ = body.__module__
    of_kinds = pytest.mark.parametrize("kind", KINDS)(pytest.mark.asyncio(loop_scope="module")(test))
    return pytest.mark.sampled(of_kinds)

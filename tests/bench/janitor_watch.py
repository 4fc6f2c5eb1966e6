"""What passes of a janitor that goes on take: `python -m tests.bench.janitor_watch`.

The Pods and the two IdlePolicies of the benchmark of the janitor, and a process that makes passes over them, each
ten minutes after the one before by its clock, so that each looks at IdlePolicies, too, and as many that do not: by
pages, as with `--once`, then by a watch. Then Pods change, and the process takes in what the watch tells of them.
"""

import argparse
import asyncio
import json
import sys
from datetime import UTC, datetime

from remediator.core import names
from remediator_sim.apiserver import EmbeddedServer
from tests.bench.janitor import PEAK, Ran, Report, pod, policies, server

PASSES, CHANGES = 5, 1000
CHILD = (
    PEAK
    + """
import asyncio, json, resource, sys, time
from remediator.clock import SYSTEM, Clock
from remediator.janitor.run import Janitor
from remediator.janitor.settings import JanitorSettings
from remediator.kube.wire.client import Client
from remediator.kube.wire.http import HttpTransport

def cpu():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime

async def main(kubeconfig, watches, passes):
    transport = await HttpTransport.from_kubeconfig(kubeconfig)
    asked, request = [], transport.request
    async def counted(method, path, **rest):
        asked.append(path)
        return await request(method, path, **rest)
    transport.request = counted
    at = [0.0]
    janitor = Janitor(Client(transport), JanitorSettings(interval=3600), Clock(SYSTEM.wall, lambda: at[0]))
    began, started = cpu(), time.monotonic()
    if watches:
        running = asyncio.create_task(janitor.run())
        while janitor.last is None:
            await asyncio.sleep(0.1)
    else:
        await janitor.once()
    first, first_seconds = cpu(), time.monotonic() - started
    del asked[:]
    for _ in range(passes):
        at[0] += 600
        report = await janitor.once()
    passed, requests = cpu(), len(asked)
    for _ in range(passes):
        report = await janitor.once()
    between = cpu()
    looks, others = (passed - first) / passes, (between - passed) / passes
    numbers = {
        "first_pass_seconds": round(first_seconds, 2),
        "first_pass_cpu_seconds": round(first - began, 2),
        "pass_cpu_seconds": round(looks, 3),
        "pass_without_policies_cpu_seconds": round(others, 3),
        "idle_cpu_percent": round(100 * (looks + 4 * others) / 600, 3),
        "pass_requests": requests / passes,
        "pass_pod_lists": sum(path == "/api/v1/pods" for path in asked[:requests]) / passes,
        "pass_objects": report.counts["resources-processed"],
        "pass_restarting": sum(len(idle.lines) for idle in report.idle if idle.policy.name == "restarts"),
        "problems": report.problems,
    }
    if watches:
        marked = len(janitor._pods._marked)
        print("READY", flush=True)
        while len(janitor._pods._marked) == marked:
            await asyncio.sleep(0.05)
        numbers["changes_cpu_seconds"] = round(cpu() - between, 3)
        running.cancel()
        await asyncio.wait([running])
    print(json.dumps(numbers))
    await transport.close()
asyncio.run(main(sys.argv[1], sys.argv[2] == "watch", int(sys.argv[3])))
"""
)


async def measure(pods: int, how: str, passes: int = PASSES, changes: int = CHANGES) -> Report:
    """The first pass, so many more, and as many changes of Pods; `how`: by pages, or by a watch."""
    made = server(pods)
    await policies(made)
    async with made.serve() as endpoint:
        ran = await _child(made, str(endpoint.kubeconfig), how, passes, min(changes, pods))
    return {"pods": pods, "by": how, **ran.numbers}


async def _child(made: EmbeddedServer, kubeconfig: str, how: str, passes: int, changes: int) -> Ran:
    words = (kubeconfig, how, str(passes))
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", CHILD, *words, stdout=pipe)
    assert process.stdout is not None
    told = []
    async for line in process.stdout:
        told.append(line.decode())
        if told[-1] == "READY\n":
            await _change(made, changes)
    await process.wait()
    assert process.returncode == 0, told
    _, peak, _ = told[-1].split()
    return Ran("", {**json.loads(told[-2]), "peak_mib": round(int(peak) / 1024, 1)})


async def _change(made: EmbeddedServer, changes: int) -> None:
    """As the API server would take them; the last one gets a TTL, by which the process knows that it has all."""
    now = datetime.now(UTC)
    for number in reversed(range(1, changes + 1)):
        changed = pod(number, now)
        changed["status"]["podIP"] = "10.0.0.2"
        if number == 1:
            changed["metadata"]["annotations"][names.JANITOR_TTL] = "30d"
        made.cluster.put("pods", changed)
        if number % 50 == 0:
            await asyncio.sleep(0)


def main() -> None:
    """Print one line of JSON for each way."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", type=int, default=50_000)
    parser.add_argument("--by", nargs="+", default=["pages", "watch"])
    parser.add_argument("--passes", type=int, default=PASSES)
    asked = parser.parse_args()
    for how in asked.by:
        print(json.dumps(asyncio.run(measure(asked.pods, how, asked.passes))))


if __name__ == "__main__":
    main()

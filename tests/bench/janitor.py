"""What a pass of the janitor takes: `python -m tests.bench.janitor`.

`remediator janitor` as it is shipped, a process of its own, and the embedded server over HTTPS with so many Pods in a
hundred namespaces, each with the metadata of one of a Deployment. One Pod of ten has a TTL, and of these one of ten is
over. With `--rules` a rule looks at every Pod as a whole; with `--idle` two IdlePolicies look for Pods that restart
again and again, one in a hundred, and for those that do not begin. The server takes most of the time: a bare client
that reads the same pages and does nothing says how much.
"""

import argparse
import asyncio
import json
import re
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from remediator.kube import api
from remediator.kube.wire.client import Client
from remediator.kube.wire.times import stamp
from remediator.kube.wire.transport import HEADS
from remediator_sim.apiserver import EmbeddedServer
from tests.harness.cluster import with_kinds
from tests.harness.kinds import DEPLOYMENTS, plain
from tests.remediator.janitor.idle_place import JOBS, SETS, STATEFUL, serve

SPACES = 100
RULES = """rules:
- {id: unlabelled, resources: [pods], jmespath: "!(metadata.labels.app)", ttl: 1h}
"""
Report = dict[str, Any]
FIELDS = {f"f:field-{number}": {"f:value": {}} for number in range(40)}  # as long as what the API server notes


def pod(number: int, now: datetime) -> dict[str, Any]:
    """A Pod as the API server stores it; one of ten has a TTL, one of a hundred one that is over."""
    ttl = {"janitor/ttl": "1h" if number % 100 == 0 else "30d"} if number % 10 == 0 else {}
    name, namespace = f"pod-{number:06d}", f"team-{number % SPACES}"
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"{number:08d}-0000-4000-8000-000000000000",
            "creationTimestamp": stamp(now - timedelta(hours=2)),
            "labels": {"app": f"app-{number % 7}", "pod-template-hash": "5d9c7b8f4d"},
            "annotations": {"prometheus.io/scrape": "true", **ttl},
            "managedFields": [{"manager": "kubelet", "operation": "Update", "fieldsV1": FIELDS}],
        },
        "spec": {"nodeName": f"node-{number % 500}", "containers": [{"name": "main", "image": "registry.invalid/x:1"}]},
        "status": {
            "phase": "Running",
            "podIP": "10.0.0.1",
            "startTime": "2026-01-01T00:00:00Z",
            "containerStatuses": [LOOP if number % 100 == 50 else WORKS],
        },
    }


LOOP = {
    "name": "main",
    "restartCount": 12,
    "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 5m0s restarting failed container"}},
    "lastState": {
        "terminated": {"exitCode": 1, "startedAt": "2026-01-01T00:00:00Z", "finishedAt": "2026-01-01T00:01:00Z"}
    },
}
WORKS = {"name": "main", "restartCount": 0, "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}


async def policies(made: EmbeddedServer) -> None:
    """The two policies, and the kinds of those that make Pods."""
    admin = Client(made.transport())
    await serve(admin, DEPLOYMENTS, SETS, JOBS, STATEFUL)
    for finds in ("Pending", "Restarts"):
        meta = {"name": finds.lower()}
        body = {"apiVersion": api.API_VERSION, "kind": "IdlePolicy", "metadata": meta}
        await admin.create(plain(api.IDLE_POLICY), {**body, "spec": {"finds": finds, "namespaces": ["*"]}})


def server(pods: int) -> EmbeddedServer:
    """So many Pods, which nothing has validated."""
    made, now = EmbeddedServer(like=with_kinds()), datetime.now(UTC)
    for number in range(SPACES):
        space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"team-{number}", "uid": f"s-{number}"}}
        made.cluster.put("namespaces", space)
    del made.cluster.followers["pods"]  # nobody counts for budgets
    for number in range(pods):
        made.cluster.put("pods", pod(number, now))
    made.cluster.store.compact()
    return made


async def measure(pods: int, rules: bool, idle: bool) -> Report:
    """One pass in DryRun, with what its process took, and how long a bare client takes to read the same lists."""
    made = server(pods)
    if idle:
        await policies(made)
    async with made.serve() as endpoint:
        with tempfile.TemporaryDirectory(prefix="bench-") as folder:
            file = Path(folder) / "rules.yaml"
            file.write_text(RULES)
            words = [
                "--once",
                "--kubeconfig",
                str(endpoint.kubeconfig),
                *(["--rules-file", str(file)] if rules else []),
            ]
            pass_ = await _child(CHILD, "janitor", *words)
            floor = await _child(FLOOR, str(endpoint.kubeconfig), "application/json" if rules or idle else HEADS)
    return {
        "pods": pods,
        "rules": rules,
        "idle": idle,
        "would_tell_of_restarts": _number(pass_.out, "idle policy restarts", "would tell "),
        "would_delete": _number(pass_.out, "", "would delete "),
        **{f"pass_{name}": number for name, number in pass_.numbers.items()},
        **{f"bare_list_{name}": number for name, number in floor.numbers.items()},
    }


def _number(out: str, after: str, word: str) -> int:
    """The number behind a word, in what is printed after another; 0 where it is not there."""
    digits = re.match("[0-9]+", out.partition(after)[2].partition(word)[2] if after else out.partition(word)[2])
    return int(digits[0]) if digits else 0


class Ran(NamedTuple):
    """What a process printed and took."""

    out: str
    numbers: dict[str, float]


# Told by the process itself at its end: the most memory that it has had, and its time on a core.
PEAK = """
import atexit, resource
def told():
    used = resource.getrusage(resource.RUSAGE_SELF)
    with open("/proc/self/status") as status:
        peak = next(line.split()[1] for line in status if line.startswith("VmHWM"))
    print("took", peak, used.ru_utime + used.ru_stime)
atexit.register(told)
"""
CHILD = PEAK + "from remediator.cli import main; main()"
FLOOR = (
    PEAK
    + """
import asyncio, sys
from remediator.kube.api.builtin import POD_HEAD
from remediator.kube.wire.client import Client
from remediator.kube.wire.http import HttpTransport
async def read():
    transport = await HttpTransport.from_kubeconfig(sys.argv[1])
    limit = 500 if "Partial" in sys.argv[2] else 200
    async for page in Client(transport).pages(POD_HEAD, "", "", "", limit, sys.argv[2]):
        pass
    await transport.close()
asyncio.run(read())
"""
)


async def _child(program: str, *words: str) -> Ran:
    began = time.monotonic()
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, *words, stdout=asyncio.subprocess.PIPE
    )
    out, _ = await process.communicate()
    seconds, text = time.monotonic() - began, out.decode()
    assert process.returncode == 0, text
    _, peak, cpu = text.splitlines()[-1].split()
    numbers = {
        "seconds": round(seconds, 1),
        "cpu_seconds": round(float(cpu), 2),
        "peak_mib": round(int(peak) / 1024, 1),
    }
    return Ran(text, numbers)


def main() -> None:
    """Print one line of JSON for each size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", type=int, nargs="+", default=[50_000])
    parser.add_argument("--rules", action="store_true")
    parser.add_argument("--idle", action="store_true")
    asked = parser.parse_args()
    for pods in asked.pods:
        print(json.dumps(asyncio.run(measure(pods, asked.rules, asked.idle))))


if __name__ == "__main__":
    main()

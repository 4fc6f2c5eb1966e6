"""What all detectors cost a node: `python -m tests.bench.detectors`.

The real node-problem-detector runs every shipped monitor at its shipped interval. GPUs are files and a scripted NVML
library under the real pynvml; everything else is this machine's own. Node-problem-detector itself does not count; the
process that the detectors share does, and who is left behind by any of them.
"""

import argparse
import asyncio
import compileall
import ctypes
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console
from rich.table import Table

from deploy.images.programs import binary
from nodelib.state.slots import SHARES
from remediator.kube.wire.client import Client
from remediator_sim.apiserver import EmbeddedServer
from remediator_sim.kubelet.program import RunningProgram
from remediator_sim.plain import NODES
from tests.detectors.node import Node, program_of
from tests.native import build_stub

ROOT = Path(__file__).resolve().parents[2]
PR_SET_CHILD_SUBREAPER = 36
TICKS = os.sysconf("SC_CLK_TCK")
START = ROOT / "nodelib/forks/start.py"
SHIPPED = sorted((ROOT / "deploy/npd").glob("*.json"))
GPUS = 8
RUNS = 5
SAMPLE = 0.05  # seconds between two looks at memory
ROUND = 240.0  # seconds in which each has run at least once: each runs at the start, too
FIRST = 15.0
# Those that are shown a node with GPUs; a view that is not made of files is this machine's.
ON_FILES = {"proc", "sys", "dev"}
GPU_DETECTORS = {
    "device_nodes", "driver_mismatch", "gpu_busy", "gpu_ecc", "gpu_lost", "gpu_nvlink", "gpu_recovery", "gpu_throttled",
    "gpu_use",
    "node_versions",
}  # fmt: skip
Report = dict[str, Any]


def arguments(name: str, shipped: list[str], node: Node) -> list[str]:
    """The shipped arguments with the roots of this benchmark in the place of the node's own."""
    roots = ON_FILES if name in GPU_DETECTORS else set()
    kept = [one for one in shipped if not one.startswith(("--dev=", "--proc=", "--sys="))]
    return [*kept, f"--state={node.state}", *(f"--{one}={node.root / one}" for one in sorted(roots))]


def monitors(node: Node, folder: Path) -> dict[str, dict[str, Any]]:
    """The shipped files, pointed at the programs of this checkout; by detector."""
    found = {}
    for path in SHIPPED:
        body = json.loads(path.read_text())
        [rule] = body["rules"]
        name, *shipped = rule["args"]
        rule |= {"path": str(START), "args": [name, *arguments(name, shipped, node)]}
        (folder / path.name).write_text(json.dumps(body))
        found[name] = body
    return found


def descendants(root: int) -> Iterator[int]:
    """Every process below `root`, however far."""
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
            children.setdefault(parent, []).append(int(folder.name))
    waiting = [root]
    while waiting:
        for child in children.get(waiting.pop(), []):
            waiting.append(child)
            yield child


def adopt() -> None:
    """Become the parent of every process below this one that loses its own."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")


def shared_memory(root: int, *more: int) -> tuple[int, int]:
    """How many processes there are below `root`, and the bytes that they hold, shared pages divided among their users.

    `more`: processes that count with all below them. One that has not yet become another program than `root` shows the
    memory of that, and is left out.
    """
    count = total = 0
    own = Path(f"/proc/{root}/exe").readlink()
    for pid in [*descendants(root), *(below for one in more for below in (one, *descendants(one)))]:
        try:
            text = Path(f"/proc/{pid}/smaps_rollup").read_text()
            if Path(f"/proc/{pid}/exe").readlink() == own:
                continue
        except OSError:
            continue
        count += 1
        total += sum(int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:")) << 10
    return count, total


def children_seconds(pid: int, itself: bool = False) -> float:
    """Processor time of a process, if `itself`, and of all below it that have ended and were waited for."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11 if itself else 13 : 15])) / TICKS


def orphans(detector: int) -> list[int]:
    """Processes that have lost their parent: the shared one among them. One that has ended stays, with its time."""
    lists = [(thread / "children").read_text().split() for thread in Path("/proc/self/task").iterdir()]
    return [int(pid) for pids in lists for pid in pids if int(pid) != detector]


def spent_so_far(detector: int) -> float:
    """Processor time of all that node-problem-detector has started."""
    return children_seconds(detector) + sum(children_seconds(pid, itself=True) for pid in orphans(detector))


def environment_of_pod() -> dict[str, str]:
    """What the shipped DaemonSet sets for all detectors."""
    daemon = next(yaml.safe_load_all((ROOT / "deploy/node-problem-detector.yaml").read_text()))
    [container] = daemon["spec"]["template"]["spec"]["containers"]
    return {one["name"]: one["value"] for one in container["env"] if "value" in one}


async def together(node: Node, folder: Path, environment: dict[str, str], rounds: int) -> Report:
    """Let node-problem-detector run them all, from its start, and look on."""
    server = EmbeddedServer()
    async with server.serve() as endpoint:
        await Client(server.transport()).create(NODES, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}})
        files = ",".join(str(folder / path.name) for path in SHIPPED)
        detector = await RunningProgram.start(
            [
                binary("node-problem-detector"),
                "--hostname-override=n",
                f"--apiserver-override={endpoint.url}?inClusterConfig=false&auth={endpoint.kubeconfig}",
                f"--config.custom-plugin-monitor={files}",
                "--prometheus-port=0",
                "--port=0",
            ],
            folder / "npd.log",
            environment,
        )
        try:
            return await asyncio.to_thread(_watch, detector.pid, rounds)
        finally:
            await detector.kill()
            for pid in [below for one in orphans(detector.pid) for below in (one, *descendants(one))]:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


def _watch(pid: int, rounds: int) -> Report:
    """Memory counts from the first moment on; processor time from when all have run once, for whole rounds of all."""
    began, peak, most, before = time.monotonic(), 0, 0, None
    while (passed := time.monotonic() - began) < FIRST + rounds * ROUND:
        count, held = shared_memory(pid, *orphans(pid))
        peak, most = max(peak, held), max(most, count)
        if before is None and passed >= FIRST:
            before = spent_so_far(pid)
        time.sleep(SAMPLE)
    spent = spent_so_far(pid) - (before or 0.0)
    return {
        "rounds": rounds,
        "cpu_percent": round(100 * spent / (rounds * ROUND), 2),
        "peak_mib": round(peak / (1 << 20), 1),
        "most_processes": most,
    }


def alone(name: str, body: dict[str, Any], environment: dict[str, str]) -> Report:
    """Run one detector by itself a few times, without the shared process; its processor time, children included."""
    [rule] = body["rules"]
    program = str(program_of(rule))
    spent, code = [], 0
    for _ in range(RUNS):
        before = os.times()
        done = os.spawnve(os.P_WAIT, program, [program, *rule["args"][1:]], environment)
        after = os.times()
        spent.append(after.children_user + after.children_system - before.children_user - before.children_system)
        code = done
    middle = sorted(spent)[RUNS // 2]
    interval = int(body["pluginConfig"]["invoke_interval"].removesuffix("s"))
    return {
        "run_ms": round(1000 * middle),
        "interval_s": interval,
        "cpu_percent": round(100 * middle / interval, 3),
        "exit": code,
    }


async def measure(rounds: int) -> Report:
    """Everything that this benchmark states, of one run. The code is compiled, as the image has it."""
    compileall.compile_dir(ROOT / "nodelib", quiet=1)
    adopt()
    with tempfile.TemporaryDirectory(prefix="remediator-bench-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        (folder / "node").mkdir()
        node = Node(folder / "node", build_stub(folder), GPUS)
        node.orders(gpus=GPUS)
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        environment = {**node.environment(), "PATH": path, **environment_of_pod()}
        by_itself = {name: value for name, value in environment.items() if name != SHARES}
        bodies = monitors(node, folder)
        silence = os.open(os.devnull, os.O_WRONLY)
        kept = os.dup(1)
        os.dup2(silence, 1)
        try:
            each = {detector: alone(detector, body, by_itself) for detector, body in bodies.items()}
        finally:
            os.dup2(kept, 1)
        runs = round(sum(60 / one["interval_s"] for one in each.values()), 2)
        found = await together(node, folder, environment, rounds)
        return {"gpus": GPUS, "runs_a_minute": runs, "each": each, "together": found}


def show(report: Report, console: Console) -> None:
    """The report for people."""
    table = Table(title=f"Detectors on a node with {report['gpus']} GPUs")
    for column in ("detector", "every", "a run", "of a core"):
        table.add_column(column, justify="left" if column == "detector" else "right")
    for name, one in sorted(report["each"].items()):
        table.add_row(name, f"{one['interval_s']} s", f"{one['run_ms']} ms", f"{one['cpu_percent']:.3f} %")
    console.print(table)
    found = report["together"]
    spent = f"{found['cpu_percent']} % of a core over {found['rounds']} x {ROUND:g} s"
    a_run = (
        f"{report['runs_a_minute']:g} runs a minute of {600 * found['cpu_percent'] / report['runs_a_minute']:.0f} ms"
    )
    console.print(f"together: {a_run}, {spent}, at most {found['peak_mib']} MiB in {found['most_processes']} processes")


def main() -> None:
    """Measure and print: one line of JSON on stdout, tables on stderr."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=1, help=f"how long to look on, {ROUND:g} s each (%(default)s)")
    report = asyncio.run(measure(parser.parse_args().rounds))
    show(report, Console(stderr=True))
    print(json.dumps(report))


if __name__ == "__main__":
    main()

#!/usr/bin/env -S python3 -I -S -B
"""Put every GPU of the node to work, and say of each what it can do: memory, arithmetic, its links. Changes nothing.

In steps; the first words of a failure name the layer that fails:
driver: NVML must list each GPU, refuse none of the plain questions, and count no new memory error meanwhile.
runtime: the driver's libraries come from the NVIDIA runtime, else from the node itself, where the driver is.
device plugin: the kubelet offers each GPU to Pods.
CUDA: every GPU that NVML lists must take a program.
memory: nine tenths of what is free is written and compared, every bit both ways; its bandwidth is measured.
arithmetic: products of matrices, also on the tensor cores, are compared bit by bit.
link: bandwidth between host and GPU, and between each two GPUs that reach each other, and whether the data arrives.
dcgm, nccl: `dcgmi diag` and `all_reduce_perf`, where this image or the node has them.
InfiniBand: only where infinibandPercent asks for it, bandwidth from each port of the node to the next one.
InfiniBand to neighbours: only where the template's `neighbours` asks for it, bandwidth from each port to the port of
the same name of an idle node beside it, and of a second one where that is slow. It fails where two of them are slow.

A bandwidth fails below half of what GPU and link could reach in theory. A GPU on which somebody computes is not
touched, and of one with MIG its MIG devices compute, without links. Where there is no driver or no CUDA library, it
says "cannot tell" and exits 2: that is neither health nor a fault.

PARAMETERS: megabytes (of each GPU's memory at most; default: all that is free but a tenth), loadSeconds (for which all
GPUs work side by side, default 20), seconds (after which a GPU that has not answered is broken, default 120; for the
links the same again), expect ("runtime", "device-plugin": without them a Pod of a user does not start, so they fail),
memoryPercent, pciePercent, nvlinkPercent (of the bandwidth in theory, default 50; 0 judges nothing), dcgmLevel (of
dcgmi diag, default 1; 0 leaves it out), infinibandPercent (of the rate of a port, default 0: no port is tried),
neighbourPercent (the same to neighbours, default 50; 0 judges nothing). The template's variable DEFAULTS, a JSON
object, gives any of them, too. The controller adds neighbours (who they are), or serve: then this is the other end of
a measurement, which answers one node for a while and tries no GPU.

Exit codes: 0 all GPUs work, 1 one does not, 2 cannot tell.
"""

import os.path
import sys

sys.path.append(os.path.realpath(f"{__file__}/../.."))  # where nodelib/ is; python3 -I leaves it out

import ctypes
import json
import os
import signal
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from nodelib.contract.operation import MESSAGE_BYTES, Environment, Failed, Refused, main
from nodelib.contract.parameters import number, words
from nodelib.cuda.driver_api import LIBRARY, Broken, Cuda, Missing
from nodelib.cuda.expected import PERCENT
from nodelib.cuda.links import measure
from nodelib.cuda.nvml_view import ask_nvml
from nodelib.cuda.report import Report, name
from nodelib.cuda.work import put_to_work
from nodelib.host.commands import Command
from nodelib.host.driver import NVML, enter, is_loaded, roots
from nodelib.host.gpu_tools import Result, dcgm, nccl
from nodelib.host.gpus import read_offered
from nodelib.host.neighbours import NeighbourOrders, read_orders
from nodelib.host.neighbours import measure as measure_neighbours
from nodelib.host.port_relay import RELAY, relay
from nodelib.host.port_server import read_service, serve
from nodelib.host.port_speed import port_speeds

HEALTH, WORK, LINKS = "--health", "--work", "--links"  # the children
ALL_MEGABYTES, LOAD_SECONDS, SECONDS, OFFER_SECONDS = 1 << 20, 20, 120, 60
HEALTH_SECONDS = 100  # two calls to a GPU's own processor, each given up by the driver after 45 s
TOOL_SECONDS = 150
COMPILER = "libnvidia-ptxjitcompiler.so.1"  # loaded by name by the CUDA library
KUBELET, SYS = "1/root/var/lib/kubelet", "1/root/sys"
KILLED = (-signal.SIGKILL, -signal.SIGTERM)  # exit codes of a child that was ended from outside
Lines = list[dict[str, Any]]


class Unfinished(Failed):
    """A child was late, or somebody has killed it: no fault where the Pod gives way to any other."""


class Plan(NamedTuple):
    """What is asked for. `percent`: of the bandwidth in theory, by kind."""

    megabytes: int
    load: float
    seconds: float
    expect: tuple[str, ...]
    percent: Mapping[str, float]
    dcgm_level: int
    infiniband: float
    neighbours: NeighbourOrders | None


def read_plan(given: Mapping[str, object]) -> Plan:
    """Return PARAMETERS, the template's DEFAULTS below them. Raises Refused for what makes no sense."""
    try:
        defaults = json.loads(os.environ.get("DEFAULTS") or "{}")
    except ValueError as error:
        raise Refused(f"DEFAULTS of the template is not JSON: {error}") from error
    if not isinstance(defaults, dict):
        raise Refused("DEFAULTS of the template is not a JSON object")
    given = {**defaults, **given}
    return Plan(
        megabytes=int(number(given, "megabytes", ALL_MEGABYTES, least=1, most=ALL_MEGABYTES)),
        load=number(given, "loadSeconds", LOAD_SECONDS),
        seconds=number(given, "seconds", SECONDS, least=1),
        expect=words(given, "expect", (), ("runtime", "device-plugin")),
        percent={
            "memory": number(given, "memoryPercent", PERCENT, most=100),
            "pcie": number(given, "pciePercent", PERCENT, most=100),
            "nvlink": number(given, "nvlinkPercent", PERCENT, most=100),
            "neighbour": number(given, "neighbourPercent", PERCENT, most=100),
        },
        dcgm_level=int(number(given, "dcgmLevel", 1, most=4)),
        infiniband=number(given, "infinibandPercent", 0, most=100),
        neighbours=read_orders(given.get("neighbours")),
    )


def check(environment: Environment, dry_run: bool) -> str:
    """Do all of it; return the sentence. A test of an idle node cannot tell where it was not let finish."""
    try:
        return try_out(environment, dry_run)
    except Unfinished as unfinished:
        if not environment.parameters.get("idleTest"):
            raise
        raise Refused(f"cannot tell: {unfinished}; others may have had the processors or the memory") from unfinished


def try_out(environment: Environment, dry_run: bool) -> str:
    """Ask NVML, put each GPU to work, measure its links; return the sentence."""
    plan, proc = read_plan(environment.parameters), Path(environment.host_root) / "proc"
    if "serve" in environment.parameters:
        service = read_service(environment.parameters["serve"])
        would = f"would answer {service.client} on {service.address}:{service.port} for {service.seconds:g} s"
        return f"{would}, and try no GPU" if dry_run else serve(service, proc / SYS, __file__)
    if dry_run:
        size = "all free memory" if plan.megabytes == ALL_MEGABYTES else f"{plan.megabytes} MiB"
        return f"would put every idle GPU to work for {plan.load:g} s, with {size}, and measure its links"
    before = ask_health_of(proc)
    path = [runtime(before, plan.expect)]
    gpus = idle(require(before, "driver"))
    path.append(device_plugin(gpus, proc, plan.expect))
    around = neighbours(plan, proc)  # first of all: they are idle now, and hold their GPUs for it
    done = work(gpus, plan, proc)
    whole = [gpu for gpu in gpus.values() if gpu["mig"] is None]
    report = Report(gpus, done, links(whole, plan, proc) if whole else [])
    problems = [*report.new_errors(idle(require(ask_health_of(proc), "driver"))), *report.slow(plan.percent)]
    if problems:
        raise Failed("; ".join(problems))
    measured = tools(plan, len(whole), proc, around)
    return report.text([*told(around), *path, *measured])


def ask_health_of(proc: Path) -> Lines:
    """Return what the child says that asks NVML. Raises Failed when it does not end."""
    child = start([HEALTH, str(proc)])
    return listen(child, time.monotonic() + HEALTH_SECONDS, "driver: NVML", HEALTH_SECONDS)


def start(arguments: Sequence[str], **variables: str) -> Command:
    """Start a child of this program."""
    flags = ["-I"] if arguments[0] == HEALTH else ["-I", "-S"]  # pynvml lies where packages are
    return Command([sys.executable, *flags, __file__, *arguments], (), variables)


def listen(child: Command, until: float, who: str, seconds: float) -> Lines:
    """Return what a child said, a JSON object a line. Raises Failed when it does not end."""
    result = child.told(until)
    lines = [line for text in result.text.splitlines() if isinstance(line := _json(text), dict)]
    if result.code is None:
        at = next((line["at"] for line in reversed(lines) if "at" in line), "the start")
        raise Unfinished(f"{who} has not answered within {seconds:g} s, at {at}: reboot the node")
    if result.code in KILLED:
        raise Unfinished(f"{who}: its child ended with {result.code}: {result.last}")
    if result.code:
        raise Failed(f"{who}: its child ended with {result.code}: {result.last}")
    return lines


def _json(line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None


def require(lines: Lines, layer: str, who: str = "") -> Lines:
    """Return the lines. Raises Refused where nothing can be asked, Failed where something is broken."""
    for line in lines:
        if "missing" in line:
            raise Refused(f"cannot tell: {line['missing']}")
        if "broken" in line:
            raise Failed(f"{line.get('layer', layer)}: {who}{line['broken']}")
    return lines


def idle(lines: Lines) -> dict[str, dict[str, Any]]:
    """Return the GPUs that NVML lists, by UUID. Raises Refused unless each of them may be put to work."""
    gpus = {line["uuid"]: line for line in lines if "uuid" in line}
    if not gpus:
        raise Refused("cannot tell: NVML lists no GPU")
    busy = sorted(gpu["address"] for gpu in gpus.values() if gpu["busy"])
    if busy:
        raise Refused(f"cannot tell: somebody computes on {', '.join(busy)}; drain the node first")
    empty = sorted(gpu["address"] for gpu in gpus.values() if gpu["mig"] == [])
    if empty:
        raise Refused(f"cannot tell: MIG is on for {', '.join(empty)}, without a MIG device; make them first")
    return gpus


def runtime(lines: Lines, expect: Sequence[str]) -> str:
    """Say whose libraries are used. Raises Failed where the runtime was expected to give them."""
    given = any(line.get("runtime") for line in lines)
    if not given and "runtime" in expect:
        raise Failed("runtime: the container was given no driver libraries: look at runtimeClassName and the toolkit")
    return "libraries from the runtime" if given else "libraries from the node (the runtime gave none)"


def device_plugin(gpus: Mapping[str, Any], proc: Path, expect: Sequence[str]) -> str:
    """Say whether the kubelet offers each GPU. Raises Failed where that was expected and never comes true."""
    until = time.monotonic() + (OFFER_SECONDS if "device-plugin" in expect else 0)
    while (text := not_offered(gpus, proc)) and time.monotonic() < until:
        time.sleep(2)
    if text and "device-plugin" in expect:
        raise Failed(f"device plugin: {text}: restart it")
    return f"device plugin: {text or 'offers every GPU'}"


def not_offered(gpus: Mapping[str, Any], proc: Path) -> str:
    """Return what the kubelet does not offer, or why that is not known; "" where it offers every GPU."""
    offered = read_offered(proc / KUBELET)
    if offered is None or offered.why:
        return offered.why if offered else "the kubelet's list of devices is not here"
    absent = sorted(gpus[uuid]["address"] for uuid in set(gpus) - offered.uuids)
    return f"does not offer {', '.join(absent)}" if absent else ""


def work(gpus: Mapping[str, dict[str, Any]], plan: Plan, proc: Path) -> dict[str, dict[str, Any]]:
    """Put all GPUs to work side by side; return by UUID what each did. Raises Failed, naming all that fail."""
    amounts = [str(plan.megabytes), str(plan.load)]
    parts = [(uuid, part) for uuid, gpu in gpus.items() for part in gpu["mig"] or [uuid]]
    children = [(uuid, start([WORK, str(proc), *amounts], **seen(part))) for uuid, part in parts]
    until, seconds = time.monotonic() + plan.seconds + plan.load, plan.seconds + plan.load
    done: dict[str, dict[str, Any]] = {}
    failures, doubts = list[Failed](), []
    for uuid, child in children:
        try:
            lines = require(listen(child, until, f"CUDA: {name(gpus[uuid])}", seconds), "CUDA", f"{name(gpus[uuid])}: ")
            done[uuid] = {key: value for line in lines for key, value in line.items()}
        except Failed as failure:
            failures.append(failure)
        except Refused as refusal:
            doubts.append(str(refusal))
    if failures:
        unfinished = all(isinstance(failure, Unfinished) for failure in failures)
        raise (Unfinished if unfinished else Failed)("; ".join(map(str, failures)))
    if doubts and done:
        missing = ", ".join(name(gpu) for uuid, gpu in gpus.items() if uuid not in done)
        raise Failed(f"CUDA: it does not show {missing}, which NVML lists: reboot the node")
    if doubts:
        raise Refused(doubts[0])
    return done


def links(gpus: Sequence[dict[str, Any]], plan: Plan, proc: Path) -> Lines:
    """Return the speeds between the host and each GPU, and between each two GPUs."""
    child = start([LINKS, str(proc), str(plan.megabytes)], **seen(",".join(gpu["uuid"] for gpu in gpus)))
    until = time.monotonic() + plan.seconds
    return require(listen(child, until, "link: CUDA", plan.seconds), "link")


def seen(uuids: str) -> dict[str, str]:
    """The variables by which the CUDA driver shows these GPUs only, and keeps no compiled program on a disk."""
    return {"CUDA_VISIBLE_DEVICES": uuids, "CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_CACHE_DISABLE": "1"}


def neighbours(plan: Plan, proc: Path) -> dict[str, Result]:
    """Return how fast the ports send to idle nodes beside this one; nothing where nobody asks for it."""
    if plan.neighbours is None:
        return {}
    percent = plan.percent["neighbour"]
    return {"InfiniBand to neighbours": measure_neighbours(plan.neighbours, proc / SYS, percent, __file__)}


def tools(plan: Plan, gpus: int, proc: Path, around: Mapping[str, Result]) -> list[str]:
    """Return what tests of others say. Raises Failed where one finds something wrong."""
    results = {"dcgm": dcgm(plan.dcgm_level, TOOL_SECONDS), "nccl": nccl(gpus, TOOL_SECONDS)}
    results |= {"InfiniBand": port_speeds(proc / SYS, plan.infiniband)} if plan.infiniband else {}
    problems = [f"{title}: {result.wrong}" for title, result in {**around, **results}.items() if result.wrong]
    if problems:
        raise Failed("; ".join(problems))
    return told(results)


def told(results: Mapping[str, Result]) -> list[str]:
    """Return what each has measured, in words."""
    return [f"{title}: {result.text}" for title, result in results.items()]


def say(**what: Any) -> None:
    """Tell the parent one thing."""
    print(json.dumps(what), flush=True)


def find_library(library: str, proc: Path) -> bool:
    """Return whether this container was given a library of the driver; else let the node's own be found."""
    try:
        ctypes.CDLL(library)
    except OSError:
        if is_loaded(proc):
            enter(roots(proc, None), proc / "1/root", (COMPILER, LIBRARY) if library == LIBRARY else ())
        return False
    return True


def ask_health(proc: Path) -> None:
    """Be the child that asks NVML."""
    try:
        import pynvml
    except ImportError:
        say(missing="the module pynvml (nvidia-ml-py) is not in this image")
        return
    say(runtime=find_library(NVML, proc))
    ask_nvml(pynvml, say)


def use_cuda(proc: Path, arguments: Sequence[str]) -> None:
    """Be the child that uses GPUs: one at work, for so many seconds, or the links of all. What is wrong is told."""
    find_library(LIBRARY, proc)
    megabytes, seconds = int(arguments[0]), [float(argument) for argument in arguments[1:]]
    try:
        devices = list(Cuda().devices())
        if seconds:
            put_to_work(devices[0], megabytes, seconds[0], say)
        else:
            measure(devices, megabytes, say)
    except Missing as error:
        say(missing=str(error))
    except Broken as error:
        say(broken=str(error), layer=error.layer)


if __name__ == "__main__":
    if sys.argv[1:2] == [HEALTH]:
        ask_health(Path(sys.argv[2]))
    elif sys.argv[1:2] in ([WORK], [LINKS]):
        use_cuda(Path(sys.argv[2]), sys.argv[3:])
    elif sys.argv[1:2] == [RELAY]:
        sys.exit(relay(sys.argv[2:]))
    else:
        main(check, __doc__, MESSAGE_BYTES)

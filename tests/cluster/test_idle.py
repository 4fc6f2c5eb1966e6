"""What a real Prometheus says of idle GPUs, from the series that dcgm-exporter writes, with both sets of labels."""

import subprocess
import time
from collections.abc import Iterator
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import pytest

from remediator.clock import SYSTEM
from remediator.core.idle_policy import SIGNALS, Finding, IdlePolicy, Signal
from remediator.core.pod_facts import PodFacts
from remediator.janitor.idle.evidence import WITHIN, SignalAnswers, by_pod, judge, questions
from remediator.janitor.idle.table import State
from remediator.prometheus.prometheus import Prometheus
from remediator.prometheus.reading import CannotTell, Doubt
from tests.cluster.prometheus import Missing, RealPrometheus, program, real_prometheus

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(180)]
POLICY = IdlePolicy("gpus", ("team",), idle_for=timedelta(minutes=30))
EVERY, MINUTES = 15, 40  # seconds between two scrapes, as dcgm-exporter's chart has it; how long it has scraped


class Row(NamedTuple):
    """A Pod with so many GPUs, its samples (minutes ago, GPU) → value or None for none, and what is to be found."""

    pod: str
    gpus: int
    state: State
    busy: tuple[float, ...] = ()  # minutes ago that GPU 0 worked
    silent: tuple[float, ...] = ()  # minutes ago that nothing was scraped
    shown: int = 0  # GPUs without samples


ROWS = (
    Row("idle", 2, State.IDLE),
    Row("one-busy-sample", 2, State.BUSY, busy=(20,)),
    Row("gap-of-five-minutes", 1, State.UNKNOWN, silent=(12, 13, 14, 15, 16)),
    Row("one-lost-scrape", 1, State.IDLE, silent=(12.25,)),
    Row("twelve-minutes-of-samples", 1, State.UNKNOWN, silent=tuple(range(12, MINUTES + 1))),
    Row("one-gpu-not-shown", 2, State.UNKNOWN, shown=1),
    Row("never-heard-of", 1, State.UNKNOWN, shown=1),
)


def labels(row: Row, gpu: int, own: bool) -> str:
    """As dcgm-exporter has them; `own`: with honorLabels: true, else Prometheus names the exporter's own Pod."""
    said = {"gpu": str(gpu), "UUID": f"GPU-{row.pod}-{gpu}-{own}", "device": f"nvidia{gpu}", "container": "main"}
    said |= {"modelName": "NVIDIA A100-SXM4-40GB", "Hostname": "gpu-1", "DCGM_FI_DRIVER_VERSION": "570.86.15"}
    mine = {"namespace": "team", "pod": name(row, own)}
    scraped = {"namespace": "gpu-operator", "pod": "dcgm-exporter-x7k2p"}
    said |= mine if own else {f"exported_{key}": text for key, text in mine.items()} | scraped
    return ",".join(f'{key}="{text}"' for key, text in said.items())


def name(row: Row, own: bool) -> str:
    return row.pod if own else f"{row.pod}-exported"


def samples(row: Row, gpu: int, now: float) -> Iterator[tuple[float, int]]:
    """Time and value of each."""
    for count in range(MINUTES * 60 // EVERY, -1, -1):
        ago = count * EVERY / 60
        silent = any(minute == ago or (minute == int(minute) and int(ago) == minute) for minute in row.silent)
        if not silent:
            yield now - ago * 60, 87 * (gpu == 0 and ago in row.busy)


class Use(NamedTuple):
    """A Pod without GPUs, its containers, and what is to be found."""

    pod: str
    containers: int
    state: State
    burst: float = 0  # seconds of CPU in the twentieth minute before now
    silent: tuple[int, ...] = ()  # minutes ago that nothing was scraped
    shown: tuple[str, ...] = ("main", "proxy")


CPU_POLICY = IdlePolicy("cpu", ("team",), idle_for=timedelta(minutes=30), finds=Finding.IDLE_CPU)
(CPU,) = SIGNALS[Finding.IDLE_CPU]
USES = (
    Use("cpu-idle", 2, State.IDLE),
    Use("cpu-busy-minute", 2, State.BUSY, burst=30),
    Use("cpu-gap-of-two-minutes", 2, State.IDLE, silent=(12, 13)),  # what a counter has counted meanwhile is seen
    Use("cpu-gap-of-twelve-minutes", 2, State.UNKNOWN, silent=tuple(range(8, 20))),
    Use("cpu-container-not-shown", 2, State.UNKNOWN, shown=("main",)),
    Use("cpu-never-heard-of", 1, State.UNKNOWN, shown=()),
)


def cpu_lines(now: float) -> Iterator[str]:
    """As cAdvisor has them, each container with a thousandth of a core; with its sums, which are no containers."""
    yield "# TYPE container_cpu_usage_seconds counter"
    for row in USES:
        sums = ("", "POD") if row.shown else ()
        for container in (*row.shown, *sums):
            said = {
                "namespace": "team",
                "pod": row.pod,
                "container": container,
                "id": f"/kubepods/{row.pod}/{container}",
            }
            text = ",".join(f'{key}="{value}"' for key, value in said.items())
            for count in range(MINUTES * 2, -1, -1):
                ago = count / 2
                if int(ago) not in row.silent:
                    used = (MINUTES - ago) * 0.06 + (row.burst if container == "main" and ago <= 20 else 0)
                    yield f"container_cpu_usage_seconds_total{{{text}}} {used:.3f} {now - ago * 60:.3f}"


def backfill(folder: Path, now: float) -> None:
    """Blocks with all of it, made by Prometheus' own tool."""
    lines = ["# TYPE DCGM_FI_DEV_GPU_UTIL gauge"]
    for row in ROWS:
        for own in (True, False):
            for gpu in range(row.gpus - row.shown):
                text = f"DCGM_FI_DEV_GPU_UTIL{{{labels(row, gpu, own)}}}"
                lines += [f"{text} {value} {at:.3f}" for at, value in samples(row, gpu, now)]
    # A GPU without a Pod: by honorLabels: false it has the exporter's.
    free = 'DCGM_FI_DEV_GPU_UTIL{gpu="7",UUID="GPU-free",namespace="gpu-operator",pod="dcgm-exporter-x7k2p"}'
    lines += [f"{free} 0 {now - 15:.3f}", *cpu_lines(now), "# EOF", ""]
    (folder / "samples").write_text("\n".join(lines))
    tool = program().parent / "promtool"
    command = [tool, "tsdb", "create-blocks-from", "openmetrics", folder / "samples", folder / "data"]
    subprocess.run(command, check=True, capture_output=True, timeout=60)


async def test_only_a_pod_whose_gpus_were_all_scraped_and_all_idle_is_idle(tmp_path: Path) -> None:
    now = time.time()
    try:
        backfill(tmp_path, now)
        with real_prometheus(tmp_path) as prometheus:
            await judged(prometheus)
    except Missing as why:
        pytest.skip(str(why))


async def answers_of(source: Prometheus, signal: Signal, policy: IdlePolicy) -> SignalAnswers:
    asked = questions(signal, policy)
    readings = [await source.instant(query, WITHIN) for query in (asked.highest, asked.devices, asked.proven)]
    values = [by_pod(reading) for reading in readings if not isinstance(reading, CannotTell)]
    assert len(values) == 3, readings
    return SignalAnswers(signal, *values)


async def judged(prometheus: RealPrometheus) -> None:
    async with aclosing(Prometheus(prometheus.url, SYSTEM)) as source:
        (signal,) = POLICY.signals
        answers = await answers_of(source, signal, POLICY)
        at = datetime.now(UTC)
        pods = {name(row, own): (row, own) for row in ROWS for own in (True, False)}
        found = {
            pod: judge(PodFacts("team", pod, "u", row.gpus, at - timedelta(hours=2)), [answers], POLICY, at)
            for pod, (row, _) in pods.items()
        }
        assert {pod: each.state for pod, each in found.items()} == {pod: row.state for pod, (row, _) in pods.items()}
        assert found["one-gpu-not-shown-exported"].why.endswith("shows 1 of the 2 GPUs of one-gpu-not-shown-exported")
        nothing = await source.instant(questions(signal, POLICY).highest.replace("GPU_UTIL", "NOT_SCRAPED"), WITHIN)
        assert isinstance(nothing, CannotTell)
        assert nothing.doubt is Doubt.EMPTY
        await judged_by_cpu(source)


async def judged_by_cpu(source: Prometheus) -> None:
    answers, at = await answers_of(source, CPU, CPU_POLICY), datetime.now(UTC)
    pods = {
        row.pod: PodFacts("team", row.pod, "u", 0, at - timedelta(hours=2), containers=row.containers) for row in USES
    }
    states = {name: judge(pod, [answers], CPU_POLICY, at).state for name, pod in pods.items()}
    assert states == {row.pod: row.state for row in USES}

"""What the benchmarks make of their samples."""

import os

from tests.bench.claim import latencies
from tests.bench.numbers import cpu_seconds, memory, quantiles


def test_quantiles_are_samples_of_the_run_in_milliseconds() -> None:
    hundred = [at / 1000 for at in range(1, 101)]
    assert quantiles(hundred[::-1]) == {"p50": 50.0, "p95": 95.0, "p99": 99.0, "max": 100.0}
    assert quantiles([0.0042]) == {"p50": 4.2, "p95": 4.2, "p99": 4.2, "max": 4.2}


def test_the_ratio_compares_the_same_quantile_of_both_sides() -> None:
    found = latencies([0.030] * 99 + [0.300], [0.010] * 99 + [0.200])
    assert found["ratio"] == {"p50": 3.0, "p95": 3.0, "p99": 3.0, "max": 1.5}


def test_memory_and_processor_time_are_those_of_the_process_that_is_asked_for() -> None:
    held, used = memory(os.getpid()), cpu_seconds(os.getpid())
    block = bytearray(os.urandom(1 << 20) * 64)
    after = memory(os.getpid())
    assert after["resident"] - held["resident"] > 48, len(block)
    assert after["peak"] >= after["resident"]
    while cpu_seconds(os.getpid()) < used + 0.05:
        sum(range(10_000))

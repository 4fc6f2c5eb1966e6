"""NVIDIA's own tests of GPUs, where the container or the node has them: dcgmi diag, and all_reduce_perf of nccl-tests.

What is not here is no fault. Their output is read, not trusted: what cannot be read says nothing.
"""

import json
import re
import shutil
from collections.abc import Iterator
from typing import Any, NamedTuple

from nodelib.host.commands import CommandOutput, run, run_here

HERE = "not here"
SOFTWARE = ("deployment", "software")  # categories that judge how the node is set up, not its GPUs
WRONG = re.compile(r"Out of bounds values\s*:\s*(\d+)")
BANDWIDTH = re.compile(r"Avg bus bandwidth\s*:\s*([0-9.]+)")


class Result(NamedTuple):
    """What a test says, in words; `wrong`: what it finds wrong with the GPUs, "" for nothing."""

    text: str
    wrong: str = ""


def dcgm(level: int, seconds: float) -> Result:
    """Run dcgmi's diagnostics of this level (0: not at all)."""
    words = ("dcgmi", "diag", "-r", str(level), "-j")
    answer = _run(words, seconds) if level else None
    if answer is None:
        return Result(HERE if level else "not asked for")
    if answer.code is None:
        return Result(f"has not answered within {seconds:g} s")
    fails = sorted(set(failures(answer.text)))
    if fails:
        return Result("failed", ", ".join(fails)[:300])
    return Result("passed" if answer.code == 0 else f"cannot be run ({answer.last[:80]})")


def failures(text: str) -> Iterator[str]:
    """Yield the tests of GPUs that failed, from the JSON of `dcgmi diag` (of DCGM 2 to 4)."""
    try:
        report = json.loads(text[text.index("{") :])
        parts = [part for part in report.values() if isinstance(part, dict)]
        categories = [category for part in parts for category in part["test_categories"]]
        for category in categories:
            if str(category["category"]).lower() not in SOFTWARE:
                yield from (_failure(test, result) for test in category["tests"] for result in _failed(test))
    except (ValueError, KeyError, TypeError, AttributeError):
        return


def _failed(test: dict[str, Any]) -> list[dict[str, Any]]:
    return [result for result in test["results"] if str(result["status"]).lower() == "fail"]


def _failure(test: dict[str, Any], result: dict[str, Any]) -> str:
    gpu = result.get("gpu_ids", result.get("gpu_id", result.get("entity_id", "")))
    return f"{test['name']} of GPU {gpu}" if gpu != "" else str(test["name"])


def nccl(gpus: int, seconds: float) -> Result:
    """Let NCCL add numbers up over all GPUs."""
    words = ("all_reduce_perf", "-b", "256M", "-e", "256M", "-g", str(gpus), "-n", "10", "-c", "1")
    answer = _run(words, seconds)
    if answer is None:
        return Result(HERE)
    wrong, speed = WRONG.search(answer.text), BANDWIDTH.search(answer.text)
    if wrong and int(wrong[1]):
        return Result("failed", f"all_reduce has {wrong[1]} wrong values")
    if answer.code or not speed:
        return Result(f"cannot be run ({answer.last[:80]})")
    return Result(f"all_reduce right, bus bandwidth {float(speed[1]):.0f} GB/s")


def _run(words: tuple[str, ...], seconds: float) -> CommandOutput | None:
    """Run a program of this container, else of the node; None where neither has it."""
    if shutil.which(words[0]):
        return run_here(words, seconds)
    if not shutil.which("nsenter") or run(("sh", "-c", f"command -v {words[0]}"), 5.0).code != 0:
        return None
    return run(words, seconds)

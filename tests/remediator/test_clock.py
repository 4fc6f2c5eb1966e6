"""Only one module reads the time: everything else is handed a clock, so that it runs in virtual time, too."""

import ast
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

import remediator
from remediator.clock import Clock

ROOT = Path(remediator.__file__).parents[1]
MODULES = sorted(
    str(path.relative_to(ROOT)) for folder in ("remediator", "remediator_sim") for path in (ROOT / folder).rglob("*.py")
)
# The loop's own clock is handed in with the loop.
LOOP_TIME = (
    *("remediator/kube/runtime/", "remediator/kube/wire/", "remediator_sim/apiserver/", "remediator_sim/npd/"),
    "remediator_sim/simulation/clock.py",
)
# Programs of simulated nodes: each is a process of its own, as on a real node.
ON_NODES = {"kubelet/nsenter.py", "nvml/pynvml.py"}
CLOCKS = {"remediator/clock.py", *(f"remediator_sim/{program}" for program in ON_NODES)}
READERS = {"now", "utcnow", "today"}
WORDS = re.compile(rf"\btime\b|\b({'|'.join(READERS)})\b")  # a module without them need not be parsed


def readings(source: str, loop_time: bool) -> Iterator[str]:
    """Each place where a module reads a clock, as `line: what`; with `loop_time` it may read the loop's."""
    if not WORDS.search(source):
        return
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names) if any(alias.name == "time" for alias in names):
                yield f"{node.lineno}: import time"
            case ast.ImportFrom(module="time"):
                yield f"{node.lineno}: from time import"
            case ast.Attribute(value=ast.Name(id="datetime" | "date") | ast.Attribute(attr="datetime" | "date")):
                if node.attr in READERS:
                    yield f"{node.lineno}: {ast.unparse(node)}"
            case ast.Call(func=ast.Attribute(attr="time", value=value)) if not loop_time and _is_loop(value):
                yield f"{node.lineno}: {ast.unparse(node)}"


def _is_loop(value: ast.expr) -> bool:
    return ast.unparse(value).endswith(("loop", "loop()"))


@pytest.mark.parametrize("folder", ["remediator/", "remediator_sim/"])
def test_no_module_but_the_clock_reads_the_time(folder: str) -> None:
    modules = [module for module in MODULES if module.startswith(folder) and module not in CLOCKS]
    found = {module: list(readings((ROOT / module).read_text(), module.startswith(LOOP_TIME))) for module in modules}
    assert len(modules) > 200
    assert {module: places for module, places in found.items() if places} == {}


@pytest.mark.parametrize(
    "source",
    [
        "import time",
        "from time import monotonic",
        "datetime.now(UTC)",
        "datetime.datetime.utcnow()",
        "clock = datetime.now",
        "date.today()",
        "asyncio.get_running_loop().time()",
        "loop.time()",
    ],
)
def test_each_way_to_read_the_time_is_found(source: str) -> None:
    assert len(list(readings(source, loop_time=False))) == 1


@pytest.mark.parametrize("source", ["clock.now()", "metrics.SECONDS.labels(call).time()", "datetime.fromtimestamp(0)"])
def test_what_reads_no_clock_is_not_found(source: str) -> None:
    assert list(readings(source, loop_time=False)) == []


def test_the_time_of_a_pass_is_in_whole_seconds() -> None:
    clock = Clock(lambda: datetime(2026, 11, 20, 12, 0, 0, 999_999, tzinfo=UTC), lambda: 0.0)
    assert clock.now() == datetime(2026, 11, 20, 12, tzinfo=UTC)

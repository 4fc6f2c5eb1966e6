"""What a decision costs in calls, which no machine changes: `python -m tests.bench.decide` tells the microseconds."""

import json
import sys
from collections import Counter
from collections.abc import Callable
from enum import EnumType
from functools import partial
from types import CodeType, FrameType
from typing import Any

import pytest

from remediator.core.decide import decide as decision
from tests.bench import decide

# Of functions, in one decision about a node under 40 policies: 200 microseconds are about 1,100 calls.
MOST = {"well": 575, "one_fault": 615, "unknown": 655, "all_faults": 895}
OFTEN = 20  # functions that are called for each second policy, or more


def calls(work: Callable[[], object]) -> tuple[int, Counter[CodeType], dict[CodeType, dict[str, Any]]]:
    """How many functions a call of `work` calls, once what it caches is there; those in Python, and their modules."""
    work()
    count, functions, modules = 0, Counter[CodeType](), {}

    def profile(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")
        if event == "call":
            functions[frame.f_code] += 1
            modules[frame.f_code] = frame.f_globals

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count, functions, modules


def work(count: int, kind: str) -> Callable[[], object]:
    """One decision about a node of this kind under so many policies, with 20 cases behind it."""
    node = decide.nodes(count)[kind]
    return partial(decision, node, decide.policies(count), decide.cases(decide.PAST), decide.NOW, decide.COVERS)


def decided(count: int, kind: str) -> int:
    """Its calls."""
    return calls(work(count, kind))[0]


@pytest.mark.parametrize("kind", MOST)
def test_what_is_asked_of_each_policy_looks_no_member_of_an_enum_up(kind):
    """Each look-up takes Python as long as three calls: that was a third of a decision."""
    _, functions, modules = calls(work(40, kind))
    often = [code for code, times in functions.items() if times >= OFTEN]
    enums = {
        (code.co_qualname, name)
        for code in often
        for name in code.co_names
        if isinstance(modules[code].get(name), EnumType)
    }
    assert len(often) >= 4
    assert enums == set()


@pytest.mark.parametrize("kind", MOST)
def test_a_decision_about_a_node_under_forty_policies_takes_at_most_895_calls_and_grows_with_them(kind):
    forty = decided(40, kind)
    assert forty <= MOST[kind]
    assert decided(80, kind) <= 2 * forty


@pytest.mark.slow
def test_the_benchmark_tells_the_microseconds_of_each_kind_of_node_and_of_what_is_known(capsys):
    """A case asks only for the cases of its node and its boards: less than a decision looks at."""
    decide.main(["--policies", "40"])
    figures = json.loads(capsys.readouterr().out)["microseconds"]
    assert figures.keys() == {*MOST, "known"}
    assert figures["known"] < figures["well"]

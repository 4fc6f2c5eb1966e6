"""What a decision costs in calls, which no machine changes: `python -m tests.bench.decide` tells the microseconds."""

import json
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from remediator.core.decide import decide as decision
from tests.bench import decide

# Of functions, in one decision about a node under 40 policies: 200 microseconds are about 1,500 calls.
MOST = {"well": 700, "one_fault": 775, "unknown": 825, "all_faults": 1500}


def calls(work: Callable[[], object]) -> int:
    """How many functions a call of `work` calls, once what it caches is there."""
    work()
    count = 0

    def profile(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


def decided(count: int, kind: str) -> int:
    """The calls of one decision about a node of this kind under so many policies, with 20 cases behind it."""
    node = decide.nodes(count)[kind]
    return calls(partial(decision, node, decide.policies(count), decide.cases(decide.PAST), decide.NOW, decide.COVERS))


@pytest.mark.parametrize("kind", MOST)
def test_a_decision_about_a_node_under_forty_policies_takes_at_most_1_500_calls_and_grows_with_them(kind):
    forty = decided(40, kind)
    assert forty <= MOST[kind]
    assert decided(80, kind) <= 2 * forty


def test_the_benchmark_tells_the_microseconds_of_each_kind_of_node_and_of_what_is_known(capsys):
    """A case asks only for the cases of its node and its boards: less than a decision looks at."""
    decide.main(["--policies", "40"])
    figures = json.loads(capsys.readouterr().out)["microseconds"]
    assert figures.keys() == {*MOST, "known"}
    assert figures["known"] < figures["well"]

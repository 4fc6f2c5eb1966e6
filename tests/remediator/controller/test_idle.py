"""How often nodes are looked at on whose Pods cases wait, and windows calculated."""

from dataclasses import replace
from datetime import timedelta

import pytest

from remediator import windows
from remediator.controller.case_view import case_view
from remediator.controller.fleet import fleet_context
from remediator.controller.idle import IdleLooks
from remediator.core.case import Diagnosis, Phase
from remediator.core.idle import Work
from remediator.core.policy import Urgency
from remediator.core.window import Window
from remediator.kube.api.builtin import USER_PODS
from remediator.kube.wire import errors
from tests.builders import a_case, a_node, a_policy, a_sick_node, at, minutes
from tests.harness.replica import empty_cache

pytestmark = pytest.mark.sampled("idle")

PATIENT = a_policy(urgency=Urgency.WHEN_IDLE, idle_deadline=minutes(600))
CLAIMED = {"phase": Phase.DRAINING, "started": at(0), "diagnosis": Diagnosis.SUCCEEDED}


class Lists:
    """A client that lists the Pods of nodes: nothing but what `pods` says, or a refusal."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.refused, self.fails = False, set[str]()

    async def list_all(self, kind, *, fields: str, limit: int):
        assert limit == USER_PODS, "users may make each of their Pods 1.5 MiB large"
        self.asked.append(fields.removeprefix("spec.nodeName="))
        if self.refused or self.asked[-1] in self.fails:
            raise errors.Unavailable(503, "", "away")
        return []


def fleet(count: int):
    """A cache with so many nodes whose cases wait for them to be idle."""
    cache = empty_cache()
    cache.policies._reflector._keep("gpu-lost", PATIENT)
    for number in range(count):
        name = f"gpu-{number}"
        cache.nodes._reflector._keep(name, a_sick_node(name, unschedulable=True, cordoned_by=f"uid-case-{number}"))
        cache.cases._reflector._keep(f"case-{number}", a_case(f"case-{number}", node=name, **CLAIMED))
    return cache


def views(cache, now):
    return [case_view(cache, case, now) for case in cache.cases]


def busy(cache, lists):
    """What was listed had a Pod that works."""
    for uid, work in cache.working.items():
        cache.working[uid] = replace(work, pods=("team/train",))


async def test_a_node_on_which_pods_work_is_listed_every_25_seconds():
    cache, lists = fleet(1), Lists()
    looks, asked = IdleLooks(cache, lists), []
    for second in range(0, 60, 5):
        await looks.look(views(cache, at(0, second)), at(0, second))
        busy(cache, lists)
        asked.append(len(lists.asked))
    assert asked == [1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 3, 3]


async def test_that_a_node_is_idle_is_believed_once():
    cache, lists = fleet(1), Lists()
    looks = IdleLooks(cache, lists)
    for second in (0, 1, 2):
        await looks.look(views(cache, at(0, second)), at(0, second))
    assert len(lists.asked) == 3


async def test_of_200_nodes_50_are_listed_in_ten_seconds_and_all_have_their_turn():
    cache, lists = fleet(200), Lists()
    looks, asked = IdleLooks(cache, lists), []
    for second in range(0, 40, 2):
        again = await looks.look(views(cache, at(0, second)), at(0, second))
        busy(cache, lists)
        asked.append(len(lists.asked))
        assert again == 10.0, "somebody waits for a turn: those that were first are due again"
    assert asked == [50] * 5 + [100] * 5 + [150] * 5 + [200] * 5
    assert len(set(lists.asked)) == 200


@pytest.mark.parametrize("first", ["idle", "not listed"])
async def test_60_nodes_that_are_looked_at_in_each_pass_keep_nobody_from_a_turn(first):
    """Idle ones that a budget holds, or ones whose lists fail: of 120 nodes each has its turn within 24 seconds."""
    cache, lists = fleet(120), Lists()
    looks = IdleLooks(cache, lists)
    lists.fails = {f"gpu-{number}" for number in range(60)} if first == "not listed" else set()
    for second in range(24):
        await looks.look(views(cache, at(0, second)), at(0, second))
        for uid, work in cache.working.items():
            if int(uid.rpartition("-")[2]) >= 60:
                cache.working[uid] = replace(work, pods=("team/train",))
    assert len(set(lists.asked)) == 120


async def test_what_cannot_be_listed_starts_nothing_and_is_tried_again():
    cache, lists = fleet(1), Lists()
    lists.refused = True
    looks = IdleLooks(cache, lists)
    await looks.look(views(cache, at(0)), at(0))
    assert cache.working == {}
    lists.refused = False
    await looks.look(views(cache, at(0, 1)), at(0, 1))
    assert cache.working["uid-case-0"].pods == ()


@pytest.mark.parametrize(
    "change",
    [
        {"hold": True},
        {"started": None, "phase": Phase.HELD},
        {"started": at(-601)},
    ],
    ids=["a user holds it", "not claimed", "its deadline is over"],
)
async def test_nobody_looks_for_a_case_that_does_not_wait_for_pods_alone(change):
    cache, lists = fleet(1), Lists()
    cache.cases._reflector._keep("case-0", replace(cache.cases.get("case-0"), **change))
    cache.working["uid-case-0"] = Work(("team/train",), at(0))
    await IdleLooks(cache, lists).look(views(cache, at(0)), at(0))
    assert (lists.asked, cache.working) == ([], {})


async def test_a_clock_that_is_set_back_keeps_nobody_from_looking():
    cache, lists = fleet(60), Lists()
    looks = IdleLooks(cache, lists)
    await looks.look(views(cache, at(60)), at(60))
    busy(cache, lists)
    await looks.look(views(cache, at(0)), at(0))
    assert len(lists.asked) == 100


def test_windows_are_calculated_once_for_a_policy_and_a_pass_whatever_the_number_of_cases(monkeypatch):
    cache, calculated = empty_cache(), []
    window = Window("0 2 * * 1-5", timedelta(hours=4), "Asia/Tokyo")
    cache.policies._reflector._keep("gpu-lost", a_policy(windows=(window,)))
    for number in range(500):
        name = f"gpu-{number}"
        cache.nodes._reflector._keep(name, a_node(name))
        cache.cases._reflector._keep(f"case-{number}", a_case(f"case-{number}", node=name, **CLAIMED))
    first_after = windows._first_after
    monkeypatch.setattr(windows, "_first_after", lambda *given: calculated.append(given) or first_after(*given))
    windows._spell.cache_clear()
    fleet_context(cache, at(7))
    views(cache, at(7))
    assert len(calculated) == 1

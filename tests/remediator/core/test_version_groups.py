"""Groups of nodes that should be alike: what nearly all have, in any order, and when a group last moved."""

import random
from collections import Counter
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remediator.core import version_groups
from remediator.core.node_drift import GRACE, NONE, UPGRADED, concerned, drift
from remediator.core.version_groups import LONGEST_STEP, SETTLED, GroupsSeen, Standing, VersionReport, look
from tests.builders import at
from tests.harness.examples import examples

POOL = ("pool-a",)
GROUP = ("pool-a", "")  # no node here tells a model
STEP = timedelta(minutes=30)  # between two looks


def says(node: int, value: str | None, kind: str = "vbios", **more) -> VersionReport:
    """One node; None: nobody can tell now."""
    return VersionReport(f"n{node}", POOL, ((kind, value),) if value else (), **more)


def fleet(*values: str | None) -> list[VersionReport]:
    return [says(number, value) for number, value in enumerate(values)]


def stands(seen: GroupsSeen, kind: str = "vbios") -> Standing:
    return seen.standings[GROUP, kind]


def after(*looks: list[VersionReport], minutes: float = 60) -> GroupsSeen:
    """Looks at these, one each `minutes`; each is said for long enough to count."""
    seen = None
    for number, reports in enumerate(looks):
        seen = look(seen, reports, at(number * minutes) - SETTLED)
        seen = look(seen, reports, at(number * minutes))
    assert seen is not None
    return seen


@pytest.mark.parametrize(
    ("values", "value", "having"),
    [
        (["a"] * 4 + ["b"], "a", 4),  # 80 % of five
        (["a"] * 3 + ["b"] * 2, "", 0),
        (["a"] * 4, "", 0),  # fewer than five
        (["a"] * 5, "a", 5),
        (["a"] * 5 + ["b"] * 5, "", 0),  # a tie
        (["a"] * 38 + ["b", "c"], "a", 38),
        (["a"] * 4 + ["b"] + [None] * 90, "a", 4),  # of those that tell it
    ],
)
def test_nearly_all_are_80_percent_of_at_least_five_that_tell_it(values, value, having):
    standing = stands(look(None, fleet(*values), at(0)))
    told = sum(each is not None for each in values)
    assert (standing.value, standing.having, standing.nodes) == (value, having, told)


def test_of_no_nodes_and_of_one_nothing_follows():
    assert look(None, [], at(0)).standings == {}
    alone = look(None, fleet("a"), at(0))
    assert concerned(alone, fleet("a"), at(0) + GRACE) == []


def test_a_node_of_which_neither_model_nor_label_is_known_is_compared_with_nobody():
    nobody = [VersionReport(f"n{number}", ("",), (("kernel", "6.8"),)) for number in range(9)]
    assert look(None, nobody, at(0)).standings == {}


def test_the_model_is_part_of_the_group_and_is_kept_while_the_driver_is_away():
    full = (("gpu", "H100"), ("kernel", "6.8"))
    seen = after([VersionReport("n0", POOL, full)], [VersionReport("n0", POOL, full[1:])])
    assert set(seen.standings) == {(("pool-a", "H100"), "gpu"), (("pool-a", "H100"), "kernel")}


@pytest.mark.parametrize(
    ("then", "moves"),
    [
        (["a"] * 9 + ["b"], False),  # as before
        (["a"] * 9 + [None], False),  # it says nothing now
        (["a"] * 9, True),  # a node with another value is gone
        (["a"] * 8, True),
        (["a"] * 8 + ["b", "b"], True),  # one more has it
        (["a"] * 9 + ["b"] + ["a"] * 5, False),  # the group grows
        (["a"] * 9 + ["b", "b"], True),
        (["a"] * 10, True),
        (["a"] * 8 + ["b", "a"], True),  # two change places
        (["b"] * 10, True),
    ],
)
def test_a_group_moves_where_a_value_changes_or_another_than_that_of_nearly_all_comes_or_goes(then, moves):
    seen = after(fleet(*["a"] * 9, "b"), fleet(*then))
    assert (stands(seen).moved in (at(60), at(60) - SETTLED)) is moves, "who comes or goes counts at once"


def test_nodes_with_the_value_of_nearly_all_may_go_and_the_group_moves_only_where_too_few_are_left():
    nine = [*fleet(*["a"] * 9), says(9, "b")]
    seen = after(nine, nine[1:], nine[4:], nine[5:], nine[6:])
    assert stands(seen).moved == at(240) - SETTLED, "four of five had it, then three of four"


def test_a_group_that_another_system_upgrades_moves_and_only_by_what_the_upgrade_changes():
    drivers = [says(number, "580" if number else "570", "driver") for number in range(10)]
    going_on = [report._replace(rolling=UPGRADED) for report in drivers[:1]] + drivers[1:]
    seen = after(drivers, going_on)
    assert stands(seen, "driver").moved == at(60)
    firmware = fleet(*["a"] * 9, "b")
    upgraded = after(firmware, [firmware[0]._replace(rolling=UPGRADED), *firmware[1:]])
    assert stands(upgraded).moved is None


VALUES = st.sampled_from(["a", "b", "c"])
FLEETS = st.lists(st.one_of(st.none(), VALUES), max_size=40)


@settings(max_examples=examples(100))
@given(before=FLEETS, then=FLEETS, seed=st.integers())
def test_the_order_of_nodes_is_nothing(before, then, seed):
    mixed = random.Random(seed)

    def shuffled(values):
        reports = fleet(*values)
        mixed.shuffle(reports)
        return reports

    straight, other = after(fleet(*before), fleet(*then)), after(shuffled(before), shuffled(then))
    assert straight == other
    late = at(60) + GRACE
    assert sorted(concerned(straight, fleet(*then), late)) == sorted(concerned(other, shuffled(then), late))


# Of each look: which nodes change to which value (None: they are away), and how many looks go by until the next one.
# At least two: what is said for one look alone does not count.
SCHEDULES = st.lists(
    st.tuples(st.dictionaries(st.integers(0, 11), st.one_of(st.none(), VALUES), max_size=4), st.integers(2, 16)),
    max_size=12,
)


@settings(max_examples=examples(150), deadline=None)
@given(schedule=SCHEDULES)
def test_a_roll_out_of_any_schedule_blames_nobody_until_it_has_stood_still_for_the_grace(schedule):
    values: list[str | None] = ["a"] * 12
    last = list(values)  # what each node said last, and for long enough to count
    changed, now, seen = at(0), at(0), look(None, fleet(*values), at(0))
    for changes, looks in schedule:
        for node, value in changes.items():
            values[node] = value
        for number in range(looks):
            now += STEP
            seen = look(seen, fleet(*values), now)
            if number:
                new = [value or known for value, known in zip(values, last, strict=True)]
                changed, last = (now if new != last else changed), new
            blamed = concerned(seen, fleet(*values), now)
            right = max(set(last), key=last.count)
            odd = {
                f"n{node}" for node, value in enumerate(values) if value not in (None, right) and value == last[node]
            }
            few = last.count(right) * 100 >= 80 * len(last)
            assert set(blamed) == (odd if few and now - changed >= GRACE else set())


@pytest.mark.parametrize("every", [24, 5, 1])  # hours
def test_nodes_that_boot_and_are_as_before_soon_do_not_keep_their_group_from_being_told_of(every):
    told, looks, seen = 0, 12 * 48, None  # two days, a look each five minutes
    for number in range(looks):
        now, booted = at(5 * number), number // (12 * every)
        boots = booted > 0 and number % (12 * every) < 2
        values = ["off" if boots and node == booted % 40 else "on" for node in range(40)]
        reports = fleet(*values, "off")
        seen = look(seen, reports, now)
        blamed = concerned(seen, reports, now)
        assert set(blamed) <= {"n40"}, "a node that has just booted is not told of"
        told += bool(blamed)
    assert told == looks - GRACE // timedelta(minutes=5)


def test_a_step_that_a_node_does_not_leave_is_no_roll_out():
    def reports(step: str) -> list[VersionReport]:
        drivers = [says(number, "580" if number else "570", "driver") for number in range(10)]
        return [drivers[0]._replace(rolling=UPGRADED, step=step), *drivers[1:]]

    seen, hours = None, LONGEST_STEP // timedelta(hours=1)
    for hour in range(hours + 3):
        seen = look(seen, reports("drain-required"), at(60 * hour))
    assert seen is not None
    assert stands(seen, "driver").moved == at(60 * (hours - 1))
    late = at(60 * (hours + 3))
    assert stands(look(seen, reports("uncordon-required"), late), "driver").moved == late, "it goes on"


def test_5000_nodes_that_say_few_things_are_judged_and_counted_a_few_times_and_kept_in_few_objects(monkeypatch):
    reports = [
        VersionReport(f"n{number}", (f"pool-{number % 20}",), (("vbios", "a"), ("kernel", "6.8")))
        for number in range(5000)
    ]
    reports[7] = reports[7]._replace(versions=(("vbios", "b"), ("kernel", "6.8")))
    calls = Counter[str]()
    for name in ("_of_nearly_all", "_facts"):
        original = getattr(version_groups, name)

        def counted(*given, original=original, name=name):
            calls[name] += 1
            return original(*given)

        monkeypatch.setattr(version_groups, name, counted)
    seen = look(None, reports, at(0))
    calls.clear()
    seen = look(seen, reports, at(5))
    assert calls == {"_of_nearly_all": 40}, "once for each of two kinds in 20 groups; no node has changed"
    assert len({id(sample) for sample in seen.samples.values()}) == 21
    judged = Counter[str]()
    monkeypatch.setattr("remediator.core.node_drift.drift", lambda *given: judged.update(["drift"]) or drift(*given))
    assert concerned(seen, reports, at(0) + GRACE) == ["n7"]
    assert judged == {"drift": 21}


def test_what_a_node_differs_in_names_the_values_and_how_many_have_the_other():
    reports = [
        VersionReport(
            f"n{number}", ("H100", "p5.48xlarge"), (("gpu", "H100"), ("vbios", "96.A5" if number else "96.89"))
        )
        for number in range(40)
    ]
    seen = look(None, reports, at(0))
    found = drift(seen, seen.samples["n0"].group, reports[0].versions, NONE, at(0) + GRACE)
    assert found.differences == {"vbios": "vbios 96.89 where 39 of 40 nodes of H100, p5.48xlarge have 96.A5"}

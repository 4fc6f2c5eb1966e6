"""Facts from the reflectors, with our own writes visible at once."""

import pytest

from remediator.controller.cache import OVERLAY_SECONDS, ClusterCache, Store
from tests.builders import a_case, a_node


class Clock:
    """A monotonic clock that a test turns."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def base():
    """What the reflector has."""
    return {}


@pytest.fixture
def store(clock, base):
    found = Store(clock, "node", "uid")
    found.attach(base)
    return found


def seen(store, base, fact):
    """The reflector sees a version of an object."""
    old = base.get(fact.name)
    base[fact.name] = fact
    store.changed(fact.name, old, fact)


def gone(store, base, name):
    store.changed(name, base.pop(name), None)


OLD, WRITTEN, NEWER = (a_case("c", version=str(version), message=f"v{version}") for version in (9, 10, 11))


def test_our_own_write_is_visible_before_the_watch_has_it(store, base):
    seen(store, base, OLD)
    store.note("c", WRITTEN)
    assert store.get("c") is WRITTEN
    assert list(store) == [WRITTEN]
    assert store.by("node", "gpu-1") == [WRITTEN]


def test_an_object_that_we_made_is_visible_before_the_watch_has_it(store):
    store.note("c", WRITTEN)
    assert (store.get("c"), list(store), len(store)) == (WRITTEN, [WRITTEN], 1)


def test_a_stale_echo_does_not_hide_it(store, base):
    store.note("c", WRITTEN)
    seen(store, base, OLD)
    assert store.get("c") is WRITTEN


def test_what_came_after_it_is_not_hidden_by_it(store, base):
    store.note("c", WRITTEN)
    seen(store, base, NEWER)
    assert store.get("c") is NEWER


def test_nor_where_the_watch_had_passed_it_before_the_answer_came(store, base):
    seen(store, base, NEWER)
    store.note("c", WRITTEN)
    assert store.get("c") is NEWER


def test_nor_by_an_update_that_the_reflector_thinks_not_worth_telling(store, base):
    """Heartbeats change a version and nothing else."""
    store.note("c", WRITTEN)
    base["c"] = NEWER
    assert store.get("c") is NEWER


def test_versions_that_are_no_numbers_are_compared_for_equality(store, base):
    store.note("c", a_case("c", version="x10"))
    seen(store, base, a_case("c", version="x11"))
    assert store.get("c").version == "x10"
    seen(store, base, a_case("c", version="x10", message="echo"))
    assert store.get("c").message == "echo"


def test_it_expires_where_the_watch_never_shows_it(store, base, clock):
    seen(store, base, OLD)
    store.note("c", WRITTEN)
    clock.now += OVERLAY_SECONDS
    assert store.get("c") is WRITTEN
    clock.now += 0.1
    assert store.get("c") is OLD


def test_a_deletion_takes_it_away(store, base):
    seen(store, base, OLD)
    store.note("c", WRITTEN)
    gone(store, base, "c")
    assert (store.get("c"), store.by("node", "gpu-1"), list(store)) == (None, [], [])


def test_facts_are_found_by_field_in_order_of_their_names(store, base):
    for name in ("b", "a"):
        seen(store, base, a_case(name, node="n1"))
    seen(store, base, a_case("other", node="n2"))
    assert [case.name for case in store.by("node", "n1")] == ["a", "b"]
    assert store.by("node", "nobody") == []


def test_a_namesake_that_came_later_is_not_found_under_the_uid_of_the_one_before(clock, base):
    """A list that is read anew may show both at once."""
    cache = ClusterCache(clock)
    cache.cases.attach(base)
    seen(cache.cases, base, a_case("c", uid="first"))
    seen(cache.cases, base, a_case("c", uid="second", version="20"))
    assert cache.case("first") is None
    assert cache.case("second").version == "20"


def test_nodes_are_found_by_name_only(clock):
    cache = ClusterCache(clock)
    cache.nodes.note("n", a_node("n"))
    assert cache.nodes.get("n").name == "n"

"""Facts from the reflectors, with our own writes visible at once."""

import pytest

from remediator.controller.cache import OVERLAY_SECONDS, Shelf, World
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
def shelf(clock, base):
    found = Shelf(clock, "node", "uid")
    found.attach(base)
    return found


def seen(shelf, base, fact):
    """The reflector sees a version of an object."""
    old = base.get(fact.name)
    base[fact.name] = fact
    shelf.changed(fact.name, old, fact)


def gone(shelf, base, name):
    shelf.changed(name, base.pop(name), None)


OLD, WRITTEN, NEWER = (a_case("c", version=str(version), message=f"v{version}") for version in (9, 10, 11))


def test_our_own_write_is_visible_before_the_watch_has_it(shelf, base):
    seen(shelf, base, OLD)
    shelf.note("c", WRITTEN)
    assert shelf.get("c") is WRITTEN
    assert list(shelf) == [WRITTEN]
    assert shelf.by("node", "gpu-1") == [WRITTEN]


def test_an_object_that_we_made_is_visible_before_the_watch_has_it(shelf):
    shelf.note("c", WRITTEN)
    assert (shelf.get("c"), list(shelf), len(shelf)) == (WRITTEN, [WRITTEN], 1)


def test_a_stale_echo_does_not_hide_it(shelf, base):
    shelf.note("c", WRITTEN)
    seen(shelf, base, OLD)
    assert shelf.get("c") is WRITTEN


def test_what_came_after_it_is_not_hidden_by_it(shelf, base):
    shelf.note("c", WRITTEN)
    seen(shelf, base, NEWER)
    assert shelf.get("c") is NEWER


def test_nor_where_the_watch_had_passed_it_before_the_answer_came(shelf, base):
    seen(shelf, base, NEWER)
    shelf.note("c", WRITTEN)
    assert shelf.get("c") is NEWER


def test_nor_by_an_update_that_the_reflector_thinks_not_worth_telling(shelf, base):
    """Heartbeats change a version and nothing else."""
    shelf.note("c", WRITTEN)
    base["c"] = NEWER
    assert shelf.get("c") is NEWER


def test_versions_that_are_no_numbers_are_compared_for_equality(shelf, base):
    shelf.note("c", a_case("c", version="x10"))
    seen(shelf, base, a_case("c", version="x11"))
    assert shelf.get("c").version == "x10"
    seen(shelf, base, a_case("c", version="x10", message="echo"))
    assert shelf.get("c").message == "echo"


def test_it_expires_where_the_watch_never_shows_it(shelf, base, clock):
    seen(shelf, base, OLD)
    shelf.note("c", WRITTEN)
    clock.now += OVERLAY_SECONDS
    assert shelf.get("c") is WRITTEN
    clock.now += 0.1
    assert shelf.get("c") is OLD


def test_a_deletion_takes_it_away(shelf, base):
    seen(shelf, base, OLD)
    shelf.note("c", WRITTEN)
    gone(shelf, base, "c")
    assert (shelf.get("c"), shelf.by("node", "gpu-1"), list(shelf)) == (None, [], [])


def test_facts_are_found_by_field_in_order_of_their_names(shelf, base):
    for name in ("b", "a"):
        seen(shelf, base, a_case(name, node="n1"))
    seen(shelf, base, a_case("other", node="n2"))
    assert [case.name for case in shelf.by("node", "n1")] == ["a", "b"]
    assert shelf.by("node", "nobody") == []


def test_a_namesake_that_came_later_is_not_found_under_the_uid_of_the_one_before(clock, base):
    """A list that is read anew may show both at once."""
    world = World(clock)
    world.cases.attach(base)
    seen(world.cases, base, a_case("c", uid="first"))
    seen(world.cases, base, a_case("c", uid="second", version="20"))
    assert world.case("first") is None
    assert world.case("second").version == "20"


def test_nodes_are_found_by_name_only(clock):
    world = World(clock)
    world.nodes.note("n", a_node("n"))
    assert world.nodes.get("n").name == "n"

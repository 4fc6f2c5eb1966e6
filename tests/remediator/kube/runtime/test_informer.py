"""Facts as the watch tells them, with our own writes visible at once."""

import pytest
from structlog.testing import capture_logs

from remediator.kube import api
from remediator.kube.api import decode
from remediator.kube.runtime.informer import Informer
from remediator.kube.wire.client import Client
from remediator_sim.apiserver import EmbeddedServer
from tests.builders import a_case
from tests.harness.replica import clock_of


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
def informer(clock):
    """An informer of cases whose watch is played by the test."""
    client = Client(EmbeddedServer().transport())
    return Informer(client, api.CASE, decode.remediation_case, clock_of(clock), index=("node", "uid"))


def passes(informer, version):
    """The watch tells that there is nothing else up to this version, as a bookmark or another object's event does."""
    informer._reflector._version = version


def seen(informer, fact):
    """The watch shows a version of an object."""
    informer._reflector._keep(fact.name, fact)


def gone(informer, name):
    informer._reflector._drop(name)


OLD, WRITTEN, NEWER = (a_case("c", version=str(version), message=f"v{version}") for version in (9, 10, 11))


def test_our_own_write_is_visible_before_the_watch_has_it(informer):
    seen(informer, OLD)
    informer.note("c", WRITTEN)
    assert informer.get("c") is WRITTEN
    assert list(informer) == [WRITTEN]
    assert informer.by("node", "gpu-1") == [WRITTEN]


def test_an_object_that_we_made_is_visible_before_the_watch_has_it(informer):
    informer.note("c", WRITTEN)
    assert (informer.get("c"), list(informer), len(informer)) == (WRITTEN, [WRITTEN], 1)


def test_a_stale_echo_does_not_hide_it(informer):
    informer.note("c", WRITTEN)
    seen(informer, OLD)
    assert informer.get("c") is WRITTEN


def test_what_came_after_it_is_not_hidden_by_it(informer):
    informer.note("c", WRITTEN)
    seen(informer, NEWER)
    assert informer.get("c") is NEWER


def test_nor_where_the_watch_had_passed_it_before_the_answer_came(informer):
    seen(informer, NEWER)
    informer.note("c", WRITTEN)
    assert informer.get("c") is NEWER


def test_nor_by_an_update_that_the_reflector_thinks_not_worth_telling(informer):
    """Heartbeats change a version and nothing else."""
    informer.note("c", WRITTEN)
    informer._reflector.store["c"] = NEWER
    assert informer.get("c") is NEWER


def test_versions_that_are_no_numbers_are_compared_for_equality(informer):
    informer.note("c", a_case("c", version="x10"))
    seen(informer, a_case("c", version="x11"))
    assert informer.get("c").version == "x10"
    seen(informer, a_case("c", version="x10", message="echo"))
    assert informer.get("c").message == "echo"


def test_it_stands_while_the_watch_is_silent_for_an_hour(informer, clock):
    seen(informer, OLD)
    passes(informer, "9")
    informer.note("c", WRITTEN)
    clock.now += 3600
    assert informer.get("c") is WRITTEN


def test_it_ends_where_the_watch_has_passed_its_version_without_showing_it(informer):
    """Who has changed it meanwhile so that we no longer watch it has hidden it from us."""
    seen(informer, OLD)
    informer.note("c", WRITTEN)
    passes(informer, WRITTEN.version)
    assert informer.get("c") is OLD


async def test_a_list_that_began_later_ends_it_and_one_that_had_begun_does_not(informer):
    """A server that was restored from a backup counts its versions from where that ends."""
    informer._reflector.lists_begun = 1
    informer.note("c", WRITTEN)
    await informer._reflector._adopt({}, "3")
    assert informer.get("c") is WRITTEN
    informer._reflector.lists_begun = 2
    await informer._reflector._adopt({}, "4")
    assert informer.get("c") is None


def test_a_late_answer_about_an_object_that_has_gone_since_brings_it_not_back(informer):
    seen(informer, OLD)
    gone(informer, "c")
    passes(informer, "20")
    informer.note("c", WRITTEN)
    assert list(informer) == []


def test_a_deletion_takes_it_away(informer):
    seen(informer, OLD)
    informer.note("c", WRITTEN)
    passes(informer, "11")
    gone(informer, "c")
    assert (informer.get("c"), informer.by("node", "gpu-1"), list(informer)) == (None, [], [])


def test_the_deletion_of_an_earlier_object_of_its_name_does_not(informer):
    """The watch is late: it was deleted by version 9, and we have made it anew since then."""
    seen(informer, a_case("c", version="8"))
    informer.note("c", WRITTEN)
    passes(informer, "9")
    gone(informer, "c")
    assert (informer.get("c"), informer.by("node", "gpu-1"), list(informer)) == (WRITTEN, [WRITTEN], [WRITTEN])


def test_facts_are_found_by_field_in_order_of_their_names(informer):
    for name in ("b", "a"):
        seen(informer, a_case(name, node="n1"))
    seen(informer, a_case("other", node="n2"))
    assert [case.name for case in informer.by("node", "n1")] == ["a", "b"]
    assert informer.by("node", "nobody") == []


def test_a_namesake_that_came_later_is_not_found_under_the_uid_of_the_one_before(informer):
    """A list that is read anew may show both at once."""
    seen(informer, a_case("c", uid="first"))
    seen(informer, a_case("c", uid="second", version="20"))
    assert informer.by("uid", "first") == []
    assert [case.version for case in informer.by("uid", "second")] == ["20"]


def test_a_thousand_objects_that_came_and_went_leave_no_entry_in_an_index(informer):
    for number in range(1000):
        name = f"case-{number}"
        informer.note(name, a_case(name, uid=f"uid-{number}", node=f"gpu-{number}", version="10"))
        seen(informer, a_case(name, uid=f"uid-{number}", node=f"gpu-{number}", version="11"))
        gone(informer, name)
    assert {field: len(index) for field, index in informer._index.items()} == {"node": 0, "uid": 0}


def test_an_object_that_we_made_and_the_watch_never_showed_leaves_no_entry_either(informer):
    informer.note("c", WRITTEN)
    passes(informer, WRITTEN.version)
    assert informer.by("node", "gpu-1") == []
    assert {field: len(index) for field, index in informer._index.items()} == {"node": 0, "uid": 0}


def test_each_handler_hears_of_a_change_though_another_one_fails(informer):
    heard = []

    def fails(key, old, new):
        raise ValueError("a bug")

    informer.on_change(fails)
    informer.on_change(lambda key, old, new: heard.append((key, old, new)))
    with capture_logs() as logs:
        seen(informer, OLD)
        gone(informer, "c")
    assert heard == [("c", None, OLD), ("c", OLD, None)]
    assert [entry["event"] for entry in logs] == ["one object failed; the others go on"] * 2


def test_a_fact_that_stays_the_same_is_a_beat_and_no_change(informer):
    changes, beats = [], []
    informer.on_change(lambda key, old, new: changes.append(key))
    informer.on_beat(beats.append)
    for _ in range(3):
        seen(informer, OLD)
    assert (changes, beats) == (["c"], ["c", "c"])


def test_a_handler_of_changes_hears_the_watch_and_one_of_views_what_is_shown(informer):
    """A write of ours is shown once: its echo changes nothing; one that never arrives is taken back."""
    told, shown = [], []
    informer.on_change(lambda key, old, new: told.append((old, new)))
    informer.on_view(lambda old, new: shown.append((old, new)))
    seen(informer, OLD)
    informer.note("c", WRITTEN)
    assert told == [(None, OLD)]
    assert shown == [(None, OLD), (OLD, WRITTEN)]
    passes(informer, WRITTEN.version)
    assert informer.get("c") is OLD
    assert shown[2:] == [(WRITTEN, OLD)]


def test_an_answer_that_comes_late_does_not_hide_a_newer_one(informer):
    informer.note("c", NEWER)
    informer.note("c", WRITTEN)
    assert informer.get("c") is NEWER


def test_a_late_answer_about_the_object_before_leaves_its_namesake_in_the_index(informer):
    later = a_case("c", uid="second", version="13")
    seen(informer, later)
    informer.note("c", a_case("c", uid="first", version="11"))
    assert (informer.by("uid", "second"), informer.by("uid", "first")) == ([later], [])


def test_a_write_that_is_over_gives_the_index_back_what_the_watch_has_told(informer):
    """A write that made a namesake anew, which the watch does not show."""
    before = a_case("c", uid="first", version="9")
    seen(informer, before)
    informer.note("c", a_case("c", uid="second", version="11"))
    passes(informer, "11")
    assert (informer.by("uid", "first"), informer.by("uid", "second")) == ([before], [])

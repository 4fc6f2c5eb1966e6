"""A list of names that is sent again is told by its bytes, and its answer is that of a list that nobody has seen."""

import asyncio
import json
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from remediator.scheduler import asked
from remediator.scheduler.asked import KEPT, SLICE, NameLists
from remediator.scheduler.pieces import MARK
from remediator.scheduler.protocol import Malformed, decode, decoding
from remediator.scheduler.reasons import VerdictReason
from remediator.scheduler.row import NodeState
from remediator.scheduler.turns import at_once
from tests.harness.scheduler import GPU, names_body, pod
from tests.remediator.scheduler.test_extender import ROWS, warm

HEALTH = tuple(VerdictReason)
MANY = [f"n{index}" for index in range(3 * SLICE + 5)]


def kept(*bodies: bytes) -> NameLists:
    """What is known after these requests."""
    lists = NameLists()
    for body in bodies:
        lists.keep(body, decode(body).names)
    return lists


@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")], ids=["as Go writes it", "as Python writes it"])
def test_the_names_of_a_list_that_is_sent_again_are_not_read_again(separators: tuple[str, str]) -> None:
    first, then = (
        json.dumps({"Pod": pod(gpus=gpus), "Nodes": None, "NodeNames": MANY}, separators=separators).encode()
        for gpus in (1, 2)
    )
    lists = kept(first)
    again = [at_once(decoding(then, lists)) for _ in range(2)]
    plain = decode(then)
    assert all((found.pod, found.names, found.whole) == (plain.pod, plain.names, None) for found in again)
    assert again[0].again is again[1].again is not None
    assert [name for names in again[0].again.slices.values() for name in names] == MANY


POD = json.dumps(pod())
ODD = {
    "another list comes last": '{"Pod":%s,"NodeNames":["a"],"Other":["b"]}',
    "names come first": '{"NodeNames":["a","b"],"Pod":%s}',
    "in another case": '{"pod":%s,"nodes":null,"nodenames":["a"]}',
    "a bracket in a name": '{"Pod":%s,"NodeNames":["a[b"]}',
    "a closing bracket in a name": '{"Pod":%s,"NodeNames":["a]","b"]}',
    "a list in a list of the Pod": '{"NodeNames":["a"],"Pod":{"metadata":{},"x":["y"]}}',
    "more after it": '{"Pod":%s,"NodeNames":["a"]} ',
}


@pytest.mark.parametrize("body", ODD.values(), ids=ODD)
def test_a_request_of_another_form_is_not_kept(body: str) -> None:
    sent = body.replace("%s", POD).encode()
    assert kept(sent).again(sent) is None


WRONG = {
    "the list of something else": b'{"Pod":%s,"NodeNames":["x"],"Other":["a","b"]}',
    "within a string": b'{"Pod":{"metadata":{"name":"["a","b"]}',
    "within the Pod": b'{"NodeNames":["x"],"Pod":{"metadata":{},"x":["a","b"]}',
    "the end of a longer list": b'{"Pod":%s,"NodeNames":[["a","b"]}',
    "whole Nodes beside it": b'{"Pod":%s,"Nodes":{"items":[]},"NodeNames":["a","b"]}',
    "no Pod": b'{"Nodes":null,"NodeNames":["a","b"]}',
    "a Pod that is none": b'{"Pod":7,"NodeNames":["a","b"]}',
    "names in another case": b'{"Pod":%s,"NODENAMES":["a","b"]}',
    "names twice": b'{"Pod":%s,"NodeNames":["x"],"NodeNames":["a","b"]}',
}


@pytest.mark.parametrize("body", WRONG.values(), ids=WRONG)
def test_a_request_that_only_ends_like_one_before_it_is_read_as_if_it_were_the_first(body: bytes) -> None:
    sent = body.replace(b"%s", POD.encode())
    lists = kept(b'{"Pod":%s,"NodeNames":["a","b"]}' % POD.encode())

    def read(with_lists: NameLists | None) -> Any:
        try:
            request = at_once(decoding(sent, with_lists))
        except Malformed as error:
            return str(error)
        return request.pod, request.names, request.whole

    assert read(lists) == read(None)


def test_the_lists_that_were_sent_last_are_kept_and_no_long_one(monkeypatch: pytest.MonkeyPatch) -> None:
    bodies = [names_body([name]) for name in "abcde"]
    lists = kept(*bodies[:KEPT])
    assert lists.again(bodies[0]) is not None
    lists.keep(bodies[4], ["e"])
    assert [lists.again(body) is not None for body in bodies] == [True, False, True, True, True]
    monkeypatch.setattr(asked, "LONGEST", 4)
    assert kept(bodies[0]).again(bodies[0]) is None
    monkeypatch.setattr(asked, "BEFORE", 20)
    assert lists.again(bodies[0]) is None, "a Pod that is as large is read as others are"


def test_nobody_who_writes_a_request_has_to_know_the_mark_to_be_read() -> None:
    body = names_body([MARK.decode().strip('"')])
    assert at_once(decoding(body, kept(body))).names == [MARK.decode().strip('"')]


# --- answers --------------------------------------------------------------------------------------------------------

Life = list[tuple[list[tuple[str, NodeState | None]], tuple[list[str], dict[str, int]]]]
changes = st.tuples(st.sampled_from([*ROWS, *MANY[:3], "nobody"]), st.none() | st.sampled_from(list(ROWS.values())))
lists = st.sampled_from([[*ROWS], [*reversed(ROWS), "nobody", *ROWS], MANY, [*MANY, *ROWS, *MANY[:9]], []])
questions = st.tuples(lists, st.sampled_from([{}, {"gpus": 2}, {"gpus": 0}]))


@settings(max_examples=60, deadline=None, phases=[Phase.generate])
@given(st.lists(st.tuples(st.lists(changes, max_size=3), questions), min_size=2, max_size=12))
def test_whatever_changes_the_answer_about_a_list_is_that_of_an_extender_that_begins_now(
    life: Life,
) -> None:
    asyncio.run(_lived(life))  # marks of nodes wait in its loop


async def _lived(life: Life) -> None:
    rows = {**ROWS, **{name: NodeState(HEALTH[at % len(HEALTH)], ((GPU, 4),)) for at, name in enumerate(MANY)}}
    lived = warm(dict(rows))
    for changed, (names, wanted) in life:
        for name, row in changed:
            if row is not None or name in lived._fleet.rows:
                lived._fleet._put(name, row)
        body, fresh = names_body(names, pod(**wanted)), warm(dict(lived._fleet.rows))
        for _ in range(2):
            assert json.loads(lived.filter(body)) == json.loads(fresh.filter(body))
            assert json.loads(lived.prioritize(body)) == json.loads(fresh.prioritize(body))
        assert lived._requeuer._refused >= fresh._requeuer._refused

"""What a detector keeps is what the next run reads; what is of another boot, form or time is no memory."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodelib.contract.memory import Nonsense, Scope, Stamp, keep, reader, recall

HERE = Stamp("one", 1000.0)


class Sample(NamedTuple):
    at: float
    count: int
    word: str = ""


class Known(NamedTuple):
    had: frozenset[str] = frozenset()
    samples: Mapping[str, tuple[Sample, ...]] = {}
    pairs: frozenset[tuple[str, int]] = frozenset()
    cursor: int | None = None
    grade: Literal["good", "bad"] = "good"
    up: bool = False


TEXTS, NUMBERS = st.text(max_size=3), st.floats(-1e6, 1e6)
SAMPLES = st.builds(Sample, NUMBERS, st.integers(-9, 9), TEXTS)
KNOWN = st.builds(
    Known,
    st.frozensets(TEXTS, max_size=3),
    st.dictionaries(TEXTS, st.lists(SAMPLES, max_size=2).map(tuple), max_size=2),
    st.frozensets(st.tuples(TEXTS, st.integers(-9, 9)), max_size=2),
    st.none() | st.integers(-9, 9),
    st.sampled_from(["good", "bad"]),
    st.booleans(),
)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A state file."""
    return tmp_path_factory.mktemp("state") / "known.json"


@given(KNOWN)
def test_what_is_kept_is_what_is_recalled(path: Path, known: Known) -> None:
    keep(path, known, HERE)
    assert recall(path, Known, Stamp("one", 1060.0)) == known


@given(st.dictionaries(st.sampled_from(Known._fields), ANYTHING) | st.binary(max_size=20).map(repr))
def test_whatever_is_in_the_file_each_field_is_of_its_type_or_nothing_is_known(path: Path, content: Any) -> None:
    path.write_text(json.dumps({"boot_id": "one", **content}) if isinstance(content, dict) else content)
    known = recall(path, Known, HERE)
    keep(path, known, HERE)
    assert recall(path, Known, HERE) == known
    assert known == Known() or set(content) & set(Known._fields)


@pytest.mark.parametrize(
    ("written", "read", "scope", "is_known"),
    [
        (Stamp("one", 940.0), HERE, Scope.BOOT, True),
        (Stamp("one", 1000.5), HERE, Scope.BOOT, False),  # the clock went back
        (Stamp("two", 940.0), HERE, Scope.BOOT, False),
        (Stamp("", 940.0), Stamp("", 1000.0), Scope.BOOT, True),
        (Stamp("", 940.0), Stamp("", 1000.0), Scope.KNOWN_BOOT, False),
        (Stamp("one", 940.0), HERE, Scope.KNOWN_BOOT, True),
        (Stamp("two", 9000.0), HERE, Scope.NODE, True),
    ],
)
def test_a_memory_is_good_for_one_boot_or_for_the_node_and_never_from_the_future(
    tmp_path: Path, written: Stamp, read: Stamp, scope: Scope, is_known: bool
) -> None:
    known = Known(cursor=7)
    keep(tmp_path / "known.json", known, written)
    assert recall(tmp_path / "known.json", Known, read, scope) == (known if is_known else Known())


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (int, True),
        (int, 2**64),
        (float, float("nan")),
        (float, float("inf")),
        (bool, 1),
        (str, None),
        (int | None, "7"),
        (Literal["good"], "bad"),
        (frozenset[str], "abc"),
        (frozenset[Any], [[1]]),
        (tuple[str, int], ["a"]),
        (tuple[int, ...], {"a": 1}),
        (dict[str, int], [1]),
        (Sample, [1.0]),
        (Sample, [1.0, 2, "a", "b"]),
        (Sample, {"at": 1.0}),
        (Sample, {"at": 1.0, "count": "2"}),
        (Sample, {"at": 1.0, "count": 2, "of tomorrow": 1}),
    ],
)
def test_a_value_of_another_type_is_nonsense(kind: Any, value: Any) -> None:
    with pytest.raises(Nonsense):
        reader(kind)(value)


def test_a_record_that_an_earlier_version_kept_by_the_names_of_its_fields_is_read() -> None:
    assert reader(dict[str, Sample])({"a": {"count": 2, "at": 1.0}, "b": [3.0, 4, "c"]}) == {
        "a": Sample(1.0, 2),
        "b": Sample(3.0, 4, "c"),
    }


def test_fields_that_a_file_lacks_are_as_nothing_known_and_others_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "known.json"
    path.write_text(json.dumps({"boot_id": "one", "cursor": 7, "of tomorrow": 1, "samples": {"a": [[1.0, 2]]}}))
    assert recall(path, Known, HERE) == Known(cursor=7, samples={"a": (Sample(1.0, 2),)})

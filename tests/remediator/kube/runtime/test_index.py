"""The index behind look-ups by a field."""

from hypothesis import given
from hypothesis import strategies as st

from remediator.kube.runtime.index import FEW, Index

KEYS = [f"k{number}" for number in range(FEW + 3)]
CHANGES = st.lists(st.tuples(st.booleans(), st.sampled_from("ab"), st.sampled_from(KEYS)), max_size=60)


@given(CHANGES)
def test_an_index_finds_what_was_added_and_not_discarded_since(changes: list[tuple[bool, str, str]]) -> None:
    index, known = Index(), {"a": set(), "b": set()}
    for adds, value, key in changes:
        (index.add if adds else index.discard)(value, key)
        (known[value].add if adds else known[value].discard)(key)
    assert {value: set(index.keys(value)) for value in known} == known
    assert len(index) == sum(bool(keys) for keys in known.values())


def test_a_few_keys_of_a_value_take_no_set() -> None:
    index = Index()
    for key in KEYS:
        index.add("many", key)
    for key in KEYS[:FEW]:
        index.add("few", key)
    assert (type(index.keys("few")), type(index.keys("many"))) == (tuple, set)


def test_the_only_key_of_a_value_takes_nothing_beside_itself() -> None:
    index, bare = Index(), {}
    for key in KEYS:
        index.add(f"of {key}", key)
        bare[f"of {key}"] = key
    assert vars(index) == {"_keys": bare}
    assert [index.keys(f"of {key}") for key in KEYS] == [(key,) for key in KEYS]

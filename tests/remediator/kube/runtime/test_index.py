"""The index behind look-ups by a field."""

from hypothesis import given
from hypothesis import strategies as st

from remediator.kube.runtime.index import Index

CHANGES = st.lists(st.tuples(st.booleans(), st.sampled_from("ab"), st.sampled_from(["k1", "k2", "k3"])), max_size=30)


@given(CHANGES)
def test_an_index_finds_what_was_added_and_not_discarded_since(changes: list[tuple[bool, str, str]]) -> None:
    index, known = Index(), {"a": set(), "b": set()}
    for adds, value, key in changes:
        (index.add if adds else index.discard)(value, key)
        (known[value].add if adds else known[value].discard)(key)
    assert {value: set(index.keys(value)) for value in known} == known
    assert len(index) == sum(bool(keys) for keys in known.values())

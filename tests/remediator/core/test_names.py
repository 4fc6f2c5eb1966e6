"""Names that the API server takes for any node, and that say the same thing twice."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remediator.core.names import name

LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
SUBDOMAIN = re.compile(rf"{LABEL}(\.{LABEL})*")
labels = st.from_regex(rf"\A{LABEL}\Z").filter(lambda text: len(text) <= 63)
subdomains = st.lists(labels, min_size=1, max_size=8).map(".".join).filter(lambda text: len(text) <= 253)
identities = st.lists(st.text(max_size=20).filter(lambda text: "\0" not in text), min_size=1, max_size=3)


@pytest.mark.slow
@given(node=subdomains, what=subdomains, identity=identities)
def test_a_name_is_valid_for_every_node_and_fits_a_host_name(node, what, identity):
    made = name(node, what, *identity)
    assert SUBDOMAIN.fullmatch(made), made
    assert len(made) <= 63


@pytest.mark.slow
@given(node=subdomains, what=subdomains, identity=identities)
def test_it_is_the_same_each_time(node, what, identity):
    assert name(node, what, *identity) == name(node, what, *identity)


@given(first=identities, second=identities)
def test_another_identity_has_another_name(first, second):
    assert (name("n", "w", *first) == name("n", "w", *second)) is (first == second)


def test_long_names_are_cut_where_a_dash_may_follow():
    assert name("a" * 29 + ".b", "c" * 19 + "-d", "x").startswith(f"{'a' * 29}-{'c' * 19}-")

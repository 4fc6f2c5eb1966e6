"""Label selectors match as Kubernetes matches them."""

import pytest

from remediator.core.selector import Operator, Requirement, Selector

LABELS = {"pool": "a100", "empty": ""}


@pytest.mark.parametrize(
    ("key", "operator", "values", "matches"),
    [
        ("pool", Operator.IN, ("a100", "h100"), True),
        ("pool", Operator.IN, ("h100",), False),
        ("gone", Operator.IN, ("a100",), False),
        ("pool", Operator.NOT_IN, ("h100",), True),
        ("pool", Operator.NOT_IN, ("a100",), False),
        pytest.param("gone", Operator.NOT_IN, ("a100",), True, id="NotIn holds where the key is absent"),
        ("pool", Operator.EXISTS, (), True),
        pytest.param("empty", Operator.EXISTS, (), True, id="an empty value is there"),
        ("gone", Operator.EXISTS, (), False),
        ("gone", Operator.DOES_NOT_EXIST, (), True),
        ("pool", Operator.DOES_NOT_EXIST, (), False),
    ],
)
def test_one_requirement(key, operator, values, matches):
    assert Requirement(key, operator, values).matches(LABELS) is matches


def test_all_requirements_must_hold_and_none_means_every_node():
    both = (Requirement("pool", Operator.EXISTS), Requirement("gone", Operator.EXISTS))
    assert not Selector(both).matches(LABELS)
    assert Selector(both[:1]).matches(LABELS)
    assert Selector().matches({})

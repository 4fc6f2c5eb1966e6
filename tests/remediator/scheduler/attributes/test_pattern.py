"""What admission takes of an annotation is what the extender can read."""

import re
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from remediator.scheduler.attributes.catalog import ATTRIBUTES
from remediator.scheduler.attributes.expression import parse
from remediator.scheduler.attributes.pattern import pattern
from tests.remediator.scheduler.attributes.test_selector import ASKED

EXAMPLE = Path(__file__).parents[4] / "deploy" / "examples" / "gpu-pods-attributes.yaml"
PATTERN = re.compile(pattern(), re.ASCII)
COUNTED = ("takes 1 to 16 values", "more than 16 requirements", "longer than")


def readable(text: str) -> bool:
    """Whether the extender can read it, but for how much it is."""
    try:
        parse(text)
    except ValueError as error:
        return str(error).endswith(COUNTED) or any(words in str(error) for words in COUNTED)
    return True


@pytest.mark.parametrize("text", [row.values[2] for row in ASKED])
def test_what_can_be_read_is_taken(text: str) -> None:
    assert readable(text)
    assert PATTERN.match(text)


names = st.sampled_from([*ATTRIBUTES, "nvidia.com/gpu-memory", "memroy", "nvidia_com/gpu.memory"])
signs = st.sampled_from([">", ">=", "<", "<=", "=", "==", "!=", "=>", ""])
values = st.sampled_from(["40Gi", "40", "8.0", "1.2.3.4.5", "true", "ON", "yes", "*A100*", "a$", "", "40ki", "1.5T"])
terms = (
    names
    | names.map("! {}".format)
    | st.tuples(names, signs, values).map("".join)
    | st.builds(" {} {} ( {} )".format, names, st.sampled_from(["in", "notin", "on"]), st.lists(values).map(",".join))
)


@given(st.lists(terms, max_size=3).map(", ".join))
def test_exactly_what_can_be_read_is_taken(text: str) -> None:
    assert bool(PATTERN.match(text)) is readable(text)


def test_the_example_has_this_pattern() -> None:
    policy, _ = yaml.safe_load_all(EXAMPLE.read_text())
    variables = {entry["name"]: entry["expression"] for entry in policy["spec"]["variables"]}
    assert variables["pattern"] == f"r'''{pattern()}'''"

"""What admission takes of an annotation is what the extender can read."""

import json
import re
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from remediator.scheduler.attributes import affinity_pattern
from remediator.scheduler.attributes.catalog import ATTRIBUTES
from remediator.scheduler.attributes.expression import parse
from remediator.scheduler.attributes.pattern import pattern
from remediator.scheduler.attributes.requirement import AttributeOperator
from remediator.scheduler.attributes.selector import LONGEST, selector
from tests.remediator.scheduler.attributes.test_selector import ASKED

EXAMPLE = Path(__file__).parents[4] / "deploy" / "examples" / "gpu-pods-attributes.yaml"
PATTERN = re.compile(pattern(), re.ASCII)
SHAPE, FOUND = re.compile(affinity_pattern.shape()), re.compile(affinity_pattern.REQUIREMENT)
RULES = [(re.compile(rule.where), re.compile(rule.has)) for rule in affinity_pattern.rules()]
TWICE = re.compile(affinity_pattern.TWICE)
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


def admitted(affinity: str) -> bool:
    """What the example does in CEL."""
    rows = [match[0] for match in FOUND.finditer(affinity)]
    holds = all(has.search(row) for row in rows for where, has in RULES if where.search(row))
    return bool(SHAPE.match(affinity)) and not TWICE.search(affinity) and holds


def mistaken(affinity: str) -> bool:
    """Whether the extender cannot read it."""
    return bool(selector(None, None, affinity).mistake)


fields = st.fixed_dictionaries(
    {"key": names, "operator": st.sampled_from([*AttributeOperator, "Is", ""])},
    optional={"values": st.lists(values, max_size=3, unique=True), "value": values},
)
rows = fields | fields.map(lambda row: dict(reversed(row.items()))) | st.sampled_from([{}, {"key": "ecc"}, [], None, 1])
affinities = st.dictionaries(st.sampled_from(["required", "preferred", "requird"]), st.lists(rows, max_size=2) | values)


@given(affinities, st.sampled_from([None, 1]))
def test_exactly_the_affinities_that_can_be_read_are_taken(sent: object, indent: int | None) -> None:
    text = json.dumps(sent, indent=indent)
    assert admitted(text) is not mistaken(text)


READ = {"key": "memory", "operator": "In", "values": ["40G", "80G"]}


@given(st.sampled_from([{"required": [READ]}, {"preferred": [READ, READ]}, {}]), st.data())
def test_an_affinity_in_which_a_character_is_missing_or_another_one_is_taken_only_where_it_can_be_read(
    sent: object, data: st.DataObject
) -> None:
    text = json.dumps(sent)
    assert admitted(text)
    at = data.draw(st.integers(0, len(text)))
    spoiled = (
        text[:at]
        + data.draw(st.sampled_from(list('[]{}",: \x0b\\kG0'))) * data.draw(st.integers(0, 1))
        + text[at + 1 :]
    )
    assert not (admitted(spoiled) and mistaken(spoiled)), spoiled


@pytest.mark.parametrize(
    "text",
    [
        '{"required": [ROW], "required": []}',
        '{"required": [], "preferred": [], "preferred" : [ROW]}',
        '{"required": [{"key": "ecc", "key": "memory", "operator": "Exists"}]}',
        '{"required": [{"key": "ecc", "operator": "Exists", "operator": "DoesNotExist"}]}',
        '{"required": [{"key": "ecc", "operator": "In", "values": ["on"], "values":\n["off"]}]}',
    ],
)
def test_a_field_that_stands_twice_is_taken_by_nobody_whichever_a_decoder_would_take(text: str) -> None:
    text = text.replace("ROW", json.dumps(READ))
    assert not admitted(text)
    assert "stands twice in one object; write it once" in selector(None, None, text).mistake


def test_the_example_has_this_pattern() -> None:
    policy, _ = yaml.safe_load_all(EXAMPLE.read_text())
    variables = {entry["name"]: entry["expression"] for entry in policy["spec"]["variables"]}
    assert variables["pattern"] == f"r'''{pattern()}'''"
    assert variables["affinity"] == f"r'''{affinity_pattern.shape()}'''"
    assert f"r'''{affinity_pattern.REQUIREMENT}'''" in variables["requirements"]
    assert any(f"r'''{affinity_pattern.TWICE}'''" in rule["expression"] for rule in policy["spec"]["validations"])
    pairs = ([rule.where, rule.has] for rule in affinity_pattern.rules())
    quoted = (", ".join(f"r'''{text}'''" if text else "''" for text in pair) for pair in pairs)
    assert variables["rules"] == f"[{', '.join(f'[{pair}]' for pair in quoted)}]"
    assert any(f"size() <= {LONGEST}" in rule["expression"] for rule in policy["spec"]["validations"])

"""The words of an API server for keywords that the contract suite's kinds do not have."""

from typing import Any

import pytest

from remediator.kube.manifests.schema import build
from remediator_sim.apiserver import validation

WORDS: list[tuple[dict[str, Any], Any, str, str]] = [
    ({"x-kubernetes-int-or-string": True}, [], "TypeInvalid", 'a in body must be of type integer,string: "array"'),
    ({"type": "integer"}, 2**63, "TypeInvalid", "a in body must be of type integer"),
    ({"type": "integer"}, -(2**63) - 1, "TypeInvalid", "a in body must be of type integer"),
    ({"maxProperties": 0}, {"b": 1}, "TooMany", "Too many: 1: must have at most 0 items"),
    ({"minProperties": 1}, {}, "Invalid", "Invalid value: 0: a in body should have at least 1 properties"),
    ({"maximum": 5, "exclusiveMaximum": True}, 5, "Invalid", "a in body should be less than 5"),
    ({"minimum": 5, "exclusiveMinimum": True}, 5, "Invalid", "a in body should be greater than 5"),
    ({"maximum": 5}, 6, "Invalid", "a in body should be less than or equal to 5"),
    ({"minimum": 5}, 4, "Invalid", "a in body should be greater than or equal to 5"),
    ({"multipleOf": 2}, 3, "Invalid", "Invalid value: 3: a in body should be a multiple of 2"),
    ({"pattern": "^a+$"}, "b", "Invalid", "Invalid value: \"b\": a in body should match '^a+$'"),
    ({"allOf": [{"minimum": 5}]}, 4, "Invalid", 'Invalid value: "integer": a in body must validate all the schemas'),
    ({"anyOf": [{"minimum": 5}]}, 4, "Invalid", "must validate at least one schema (anyOf)"),
    ({"oneOf": [{"minimum": 5}]}, 4, "Invalid", "must validate one and only one schema (oneOf)"),
    ({"not": {"minimum": 4}}, 4, "Invalid", "must validate no schema (not)"),
]


@pytest.mark.parametrize(("raw", "value", "reason", "words"), WORDS, ids=[words for *_, words in WORDS])
def test_a_keyword_has_the_reason_and_words_of_an_api_server(raw: Any, value: Any, reason: str, words: str) -> None:
    (cause,) = validation.check({"a": value}, build({"properties": {"a": raw}}))
    assert (cause.field, cause.reason) == ("a", f"FieldValue{reason}")
    assert words in cause.message


def test_of_a_text_only_the_first_fault_is_told() -> None:
    text = {"type": "string", "maxLength": 2, "pattern": "^a+$"}
    causes = validation.check({"a": "bbb", "b": "bbb"}, build({"properties": {"a": text, "b": text}}))
    assert [(cause.field, cause.reason) for cause in causes] == [("a", "FieldValueTooLong"), ("b", "FieldValueTooLong")]


def test_a_second_item_of_one_key_is_a_duplicate_named_by_its_key() -> None:
    raw = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}
    (cause,) = validation.check([{"k": 1}, {"k": 1, "v": 2}], build(raw))
    assert cause == ("[1]", "FieldValueDuplicate", 'Duplicate value: {"k":1}')


def test_a_value_that_rules_cannot_read_is_refused() -> None:
    rules = [{"rule": "self.d > duration('1s')"}]
    raw = {"properties": {"d": {"type": "string", "format": "duration"}}, "x-kubernetes-validations": rules}
    (cause,) = validation.check({"d": "soon"}, build(raw))
    assert cause.reason == "FieldValueInvalid"
    assert "rule evaluation error" in cause.message

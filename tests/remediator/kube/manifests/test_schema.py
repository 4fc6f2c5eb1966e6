"""Schemas: what is removed, put in, refused and said, for the keywords and corners that no kind of ours has."""

import re
from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from remediator.kube.manifests import schema
from remediator.kube.manifests.schema.cel import CelValidation
from remediator.kube.manifests.schema.node import ABSENT
from remediator.kube.manifests.schema.seen import parts

WORDS: list[tuple[dict[str, Any], Any, str]] = [
    ({"type": "object"}, [], "must be an object (a line with name: value for each field), not array"),
    ({"x-kubernetes-int-or-string": True}, True, "true must be a whole number of at most 64 bits or text"),
    ({"enum": ["a", "b"]}, "c", '"c" must be one of a, b'),
    (
        {"type": "string", "format": "date-time"},
        "2026-01-02",
        '"2026-01-02" must be a date-time, such as 2026-01-02T03:04:05Z',
    ),
    ({"type": "string", "pattern": "^a+$"}, "b", '"b" must match ^a+$'),
    ({"type": "string", "maxLength": 1}, "ab", '"ab" must have at most 1 characters; shorten it'),
    ({"type": "string", "minLength": 1}, "", '"" must have at least 1 characters; write it, or remove the field'),
    ({"type": "array", "maxItems": 1}, [1, 2], "must have at most 1 items; remove some"),
    ({"type": "array", "minItems": 1}, [], "must have at least 1 items; add one"),
    (
        {"type": "object", "additionalProperties": True, "maxProperties": 0},
        {"a": 1},
        "must have at most 0 entries; remove some",
    ),
    ({"type": "object", "minProperties": 1}, {}, "must have at least 1 entries; add one"),
    ({"type": "integer", "maximum": 5}, 6, "6 must be at most 5"),
    ({"type": "integer", "minimum": 5}, 4, "4 must be at least 5"),
    ({"type": "integer", "maximum": 5, "exclusiveMaximum": True}, 5, "5 must be less than 5"),
    ({"type": "integer", "minimum": 5, "exclusiveMinimum": True}, 5, "5 must be more than 5"),
    ({"type": "integer", "multipleOf": 2}, 3, "3 must be a multiple of 2"),
    ({"allOf": [{"minimum": 1}, {"maximum": 3}]}, 4, "4 must fit all the schemas of allOf"),
    ({"anyOf": [{"minimum": 3}, {"maximum": 1}]}, 2, "2 must fit a schema of anyOf"),
    ({"oneOf": [{"minimum": 1}, {"maximum": 3}]}, 2, "2 must fit exactly one schema of oneOf"),
    ({"not": {"minimum": 1}}, 2, "2 must not fit the schema of not"),
]


def said(value: Any, raw: dict[str, Any]) -> list[tuple[str, str]]:
    return [tuple(violation) for violation in schema.review(value, schema.build(raw))]


@pytest.mark.parametrize(("raw", "value", "words"), WORDS, ids=[words for _, _, words in WORDS])
def test_every_keyword_is_said_in_plain_words(raw: dict[str, Any], value: Any, words: str) -> None:
    assert said({"a": value}, {"type": "object", "properties": {"a": raw}}) == [("a", words)]


def test_every_limit_that_a_text_does_not_keep_to_is_said() -> None:
    found = said("bbb", {"type": "string", "maxLength": 2, "pattern": "^a+$"})
    assert found == [("", '"bbb" must have at most 2 characters; shorten it'), ("", '"bbb" must match ^a+$')]


@pytest.mark.parametrize(
    "raw",
    [
        {"type": "string", "pattern": "^a$"},
        {"type": "string", "x-kubernetes-validations": [{"rule": "self.matches('^a$')", "message": "must be a"}]},
    ],
)
def test_the_end_of_a_pattern_is_that_of_the_text_as_an_api_server_reads_it(raw: dict[str, Any]) -> None:
    assert said("a", raw) == []
    assert len(said("a\n", raw)) == 1


def test_a_rule_about_a_list_is_not_asked_of_a_long_text() -> None:
    """celpy takes memory without end to walk a text."""
    items = {"type": "array", "items": {"type": "string"}}
    rule = {"rule": "!has(self.a) || self.a.exists(x, x == 'b')", "message": "must have b"}
    raw = {"type": "object", "properties": {"a": items}, "x-kubernetes-validations": [rule]}
    assert said({"a": "x" * 40}, raw) == [
        ("a", f'"{"x" * 40}" must be a list (a line with - for each item)'),
    ]


def test_a_required_field_is_named_by_its_own_path() -> None:
    raw = {"type": "array", "items": {"type": "object", "required": ["a"]}}
    assert said([{}], raw) == [("[0].a", "is required; add it")]


@pytest.mark.parametrize(
    ("raw", "value", "places"),
    [
        ({"x-kubernetes-list-type": "set"}, ["a", "b", "a"], ["[2]"]),
        ({"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}, [{"k": 1}, {"k": 1, "v": 2}], ["[1]"]),
        ({}, ["a", "a"], []),
    ],
)
def test_an_item_may_not_stand_twice_in_a_set_or_a_map(raw: dict[str, Any], value: Any, places: list[str]) -> None:
    assert said(value, {"type": "array"} | raw) == [(place, "stands here twice; remove one") for place in places]


def test_a_review_leaves_the_object_as_it_was() -> None:
    raw = {"type": "object", "properties": {"a": {"type": "integer", "default": 1}, "b": {"type": "string"}}}
    value = {"b": None, "c": 5}
    before = deepcopy(value)
    assert said(value, raw) == [("c", "unknown field; write one of a, b")]
    assert value == before


def test_an_object_that_stands_in_two_places_is_judged_in_both() -> None:
    shared = {"x": 1, "z": 1}
    parts = {name: {"type": "object", "properties": {name: {"type": "integer"}}} for name in ("x", "y")}
    found = said({"x": shared, "y": shared}, {"type": "object", "properties": parts})
    assert found == [
        (path, f"unknown field; write one of {name}") for path, name in (("x.z", "x"), ("y.x", "y"), ("y.z", "y"))
    ]


def test_a_key_that_is_no_text_is_unknown_and_no_crash() -> None:
    assert said({5: 1}, {"type": "object"}) == [("5", "unknown field; remove it")]


def test_what_a_limit_leaves_unsaid_is_not_asked() -> None:
    assert said("anything", {"type": "string", "pattern": None, "maxLength": None, "format": "hostname"}) == []


def ruled(rule: str, **properties: Any) -> dict[str, Any]:
    part = {"type": "object", "properties": properties}
    part["x-kubernetes-validations"] = [{"rule": rule, "message": "never", "fieldPath": ".n"}]
    return {"type": "object", "properties": {"part": part, "party": {"type": "string"}}}


def test_a_broken_rule_is_told_beside_faults_elsewhere() -> None:
    raw = ruled("self.n > 5", n={"type": "integer"})
    assert said({"part": {"n": 1}, "party": 5}, raw) == [
        ("party", "5 must be text; put it in quotes"),
        ("part.n", "never"),
    ]


def test_a_rule_that_a_fault_below_it_makes_unanswerable_is_silent() -> None:
    raw = ruled("self.n > 5", n={"type": "integer"})
    assert said({"part": {"n": "many"}}, raw) == [("part.n", '"many" must be a whole number of at most 64 bits')]


def test_a_rule_that_nothing_excuses_is_told_with_why_it_cannot_be_evaluated() -> None:
    raw = ruled("self.n > 5", n={"type": "integer"})
    (first, second) = said({"part": {}, "party": 5}, raw)
    assert first == ("party", "5 must be text; put it in quotes")
    assert second[0] == "part.n"
    assert "rule evaluation error" in second[1]


def test_a_value_that_rules_cannot_read_is_told_and_no_crash() -> None:
    raw = ruled("self.n > duration('1s')", n={"type": "string", "format": "duration"})
    ((path, message),) = said({"part": {"n": "soon"}}, raw)
    assert path == "part"
    assert "rule evaluation error" in message


def test_rules_read_dates_as_dates_and_reserved_words_escaped() -> None:
    raw = ruled(
        "self.n > timestamp('2026-01-01T00:00:00Z') && self.__for__ == 'a'",
        n={"type": "string", "format": "date-time"},
        **{"for": {"type": "string"}},
    )
    assert said({"part": {"n": "2026-01-01T02:00:00+01:00", "for": "a"}}, raw) == []
    assert said({"part": {"n": "2026-01-01T00:30:00+01:00", "for": "a"}}, raw) == [("part.n", "never")]


def test_a_schema_with_a_pattern_or_rule_that_cannot_be_read_is_refused() -> None:
    with pytest.raises(re.error):
        schema.build({"pattern": "("})
    with pytest.raises(schema.RuleError):
        schema.build({"x-kubernetes-validations": [{"rule": "self ="}]})


@pytest.mark.parametrize(("raw", "value", "words"), WORDS, ids=[words for _, _, words in WORDS])
def test_no_value_fits_that_breaks_a_keyword(raw: dict[str, Any], value: Any, words: str) -> None:
    assert not schema.fits({"a": value}, schema.build({"type": "object", "properties": {"a": raw}}))


FIELDS: dict[str, dict[str, Any]] = {
    "a": {"type": "string", "maxLength": 1},
    "b": {"type": "integer", "default": 1},
    "c": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
    "d": {"type": "object", "properties": {"e": {"type": "boolean", "nullable": True}}, "required": ["e"]},
    "f": {"type": "object", "additionalProperties": {"type": "number"}},
    "g": {"x-kubernetes-preserve-unknown-fields": True},
}
ANY = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.just(0.5) | st.sampled_from(["", "x", "xyz"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abcdefgh"), inner, max_size=4),
)
# Of each field what may stand there, and anything else.
LIKELY = {
    "a": st.just("x"),
    "b": st.integers(),
    "c": st.lists(st.sampled_from("xyz"), max_size=3),
    "d": st.fixed_dictionaries({"e": st.booleans()}),
    "f": st.dictionaries(st.sampled_from("xy"), st.just(0.5)),
    "g": ANY,
}
FIELD = {key: value | ANY for key, value in LIKELY.items()}
METADATA = st.fixed_dictionaries({}, optional={"name": ANY, "odd": ANY})
MAYBE = {key: field for key, field in FIELD.items() if key != "b"} | {"metadata": METADATA | ANY, "h": ANY}
OBJECTS = st.fixed_dictionaries({"b": FIELD["b"]}, optional=MAYBE)


@given(LIKELY["d"].map(lambda part: {"b": 1, "d": part, "metadata": {"name": "x"}}) | OBJECTS | ANY, st.booleans())
def test_of_a_value_that_fits_nothing_is_removed_put_in_or_refused(value: Any, root: bool) -> None:
    node = schema.build({"type": "object", "properties": FIELDS}, root=root)
    if schema.fits(value, node):
        before = deepcopy(value)
        assert schema.prune(value, node) == []
        schema.fill(value, node)
        assert value == before
        assert list(schema.faults(value, node)) == []
    else:
        event("does not fit")


def test_an_object_with_all_that_it_may_have_fits() -> None:
    whole = {"a": "x", "b": 2, "c": ["x", "y"], "d": {"e": True}, "f": {"x": 0.5}, "g": {"h": [1]}}
    node = schema.build({"type": "object", "properties": FIELDS}, root=True)
    assert schema.fits(whole | {"kind": "Thing", "metadata": {"name": "x"}}, node)
    assert not schema.fits(whole | {"h": 1}, node)


def test_an_object_with_metadata_fits_though_its_schema_names_no_field_of_it() -> None:
    node = schema.build({"type": "object", "properties": {"metadata": {"type": "object"}}}, root=True)
    assert schema.fits({"kind": "Thing", "metadata": {"name": "a", "labels": {"b": "c"}}}, node)
    assert not schema.fits({"kind": "Thing", "metadata": {"nane": "a"}}, node)


PHASE = "!has(self.spec.release) || (has(self.status) && self.status.phase == 'Escalated')"


@pytest.mark.parametrize(
    ("rule", "values", "broken", "times"),
    [
        ("self.n > 5", ({"n": 1, "m": 1}, {"n": 1, "m": 2}, {"n": 9, "m": 2}), (0, 1), 2),
        ("has(self.n)", ({"n": {"of": 1}}, {"n": {"of": 2}}, {"m": 1}, {}), (2, 3), 2),
        ("has(self.n.of) && self.n == oldSelf.n", ({"n": {"of": 1, "m": 1}}, {"n": {"of": 1, "m": 2}}), (0, 1), 2),
        (
            PHASE,
            (
                {"spec": {"release": True, "node": "a"}, "status": {"phase": "Draining", "waits": 1}},
                {"spec": {"release": True, "node": "b"}, "status": {"phase": "Draining", "waits": 2}},
                {"spec": {"release": True, "node": "b"}, "status": {"phase": "Escalated", "waits": 2}},
                {"spec": {"node": "b"}, "status": {"phase": "Draining"}},
            ),
            (0, 1),
            3,
        ),
    ],
    ids=["a field", "whether a field is there", "a part and all of it", "fields of fields"],
)
def test_a_rule_is_not_asked_again_where_only_what_it_does_not_speak_of_has_changed(
    monkeypatch: pytest.MonkeyPatch, rule: str, values: Sequence[Any], broken: Sequence[int], times: int
) -> None:
    node = schema.build({"type": "object", "x-kubernetes-validations": [{"rule": rule, "message": "never"}]})
    old = {"n": {}} if "oldSelf" in rule else ABSENT
    asked: list[Any] = []
    evaluate = CelValidation.broken

    def answer(self: CelValidation, values: dict[str, Any]) -> str | None:
        asked.append(values)
        return evaluate(self, values)

    monkeypatch.setattr(CelValidation, "broken", answer)
    found = [[each.value for each in schema.broken(value, node, old)] for value in values]
    assert found == [[value] if at in broken else [] for at, value in enumerate(values)]
    assert len(asked) == times


@pytest.mark.parametrize(
    ("text", "spoken_of"),
    [
        ("self.all(key, key.size() < 9)", None),
        ("self == oldSelf", None),
        ("self.__namespace__ != ''", None),
        (
            "self.spec.names.exists(name, name == self.metadata.name)",
            {"spec": {"names": None}, "metadata": {"name": None}},
        ),
        ("has(self.a) && self.a.b == 1", {"a": {"b": None}}),
        ("has(self.a) && self.a == 1 && has(self.a.b)", {"a": None}),
        ("has(self.a[0].b)", {"a": None}),
        ("self.a.b.c > 1 && self.a.b == oldSelf.a.b", {"a": {"b": None}}),
    ],
)
def test_a_rule_speaks_of_the_fields_that_it_names_and_of_all_where_that_is_not_sure(
    text: str, spoken_of: dict[str, Any] | None
) -> None:
    assert parts(text) == spoken_of

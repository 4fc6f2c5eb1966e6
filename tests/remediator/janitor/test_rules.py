"""The rules file: kube-janitor's cases, and rules that cannot be used."""

from datetime import timedelta
from typing import Any

import pytest

from remediator.janitor.rules import RuleMatch, WrongRules, first_match, read

TEMPORARY = """
rules:
- id: temporary-pr-namespaces
  resources: [namespaces]
  jmespath: "starts_with(metadata.name, 'pr-')"
  ttl: 4h
- id: require-application-label
  resources: [deployments, statefulsets]
  jmespath: "!(spec.template.metadata.labels.application)"
  ttl: 4d
"""


def rule(**fields: Any) -> str:
    written = {"id": "a", "resources": "[pods]", "jmespath": "metadata", "ttl": "1h"} | fields
    return "- {" + ", ".join(f"{key}: {value}" for key, value in written.items() if value is not None) + "}\n"


def rules(*entries: str) -> str:
    return "rules:\n" + "".join(entries)


def test_a_file_of_kube_janitor_is_read_as_it_is() -> None:
    first, second = read(TEMPORARY)
    assert (first.id, first.resources, first.ttl) == ("temporary-pr-namespaces", {"namespaces"}, timedelta(hours=4))
    assert second.resources == {"deployments", "statefulsets"}
    assert first_match((first, second), "namespaces", {"metadata": {"name": "pr-7"}}, {}).rule is first
    assert first_match((first, second), "namespaces", {"metadata": {"name": "team"}}, {}) == RuleMatch()
    unlabelled: dict[str, Any] = {"spec": {"template": {"metadata": {"labels": {}}}}}
    assert first_match((first, second), "deployments", unlabelled, {}).rule is second
    assert first_match((first, second), "services", unlabelled, {}) == RuleMatch()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "has no list rules"),
        ("[]", "has no list rules"),
        ("rules: {}", "has no list rules"),
        ("rules: [", "is no YAML"),
        ("rules: [text]", r"rules\[0\] is no mapping"),
        (rules("- {id: a}\n"), r"rules\[0\]: resources, jmespath, ttl missing"),
        (rules(rule(), rule(id="X")), r"rules\[1\].id 'X': write lower-case letters"),
        (rules(rule(resources="pods")), r"rules\[0\].resources of a: write a list of plurals"),
        (rules(rule(jmespath="7")), r"rules\[0\].jmespath of a: write an expression"),
        (rules(rule(ttl="soon")), r"rules\[0\].ttl of a: 'soon' is no length of time: write"),
    ],
)
def test_a_file_that_cannot_be_meant_names_the_rule_and_the_field(text: str, says: str) -> None:
    with pytest.raises(WrongRules, match=says):
        read(text)


def test_an_empty_list_of_rules_is_none() -> None:
    assert read("rules: []") == ()


@pytest.mark.parametrize(
    ("expression", "place"),
    [
        (
            "metadata..name",
            "column 10: Expecting: ['quoted_identifier', 'unquoted_identifier', 'lbracket', 'lbrace'], got: dot",
        ),
        ("metadata.name == ", "column 18"),
        ("'open", "column 1: Unclosed ' delimiter"),
        ("metadata.name && begins_with(metadata.name, 'x')", "column 18: there is no function begins_with"),
        ("metadata.name\n&& #", "line 2, column 4"),
    ],
)
def test_a_rule_that_does_not_compile_names_the_column_and_the_others_go_on(expression: str, place: str) -> None:
    quoted = '"' + expression.replace("\n", "\\n") + '"'
    broken, sound = read(rules(rule(id="broken", jmespath=quoted, ttl="1m"), rule(id="sound")))
    assert broken.problem.startswith(place)
    match = first_match((broken, sound), "pods", {"metadata": {"name": "x"}}, {})
    assert (match.rule, match.ttl, match.doubts) == (sound, timedelta(hours=1), ())


@pytest.mark.parametrize(("longer", "ttl"), [("7d", timedelta(days=7)), ("forever", None)])
def test_what_a_rule_might_have_kept_longer_is_not_deleted_earlier_by_one_behind_it(
    longer: str, ttl: timedelta | None
) -> None:
    broken, sound = read(rules(rule(id="broken", jmespath="a..b", ttl=longer), rule(id="sound")))
    assert first_match((broken, sound), "pods", {"metadata": {"name": "x"}}, {}).ttl == ttl
    assert first_match((sound, broken), "pods", {"metadata": {"name": "x"}}, {}).ttl == timedelta(hours=1)


def test_a_rule_that_fails_on_one_object_cannot_tell_of_it_and_says_why() -> None:
    labelled, every = read(
        rules(rule(id="labelled", jmespath="\"starts_with(metadata.labels.app, 'x')\""), rule(id="every", ttl="2h"))
    )
    match = first_match((labelled,), "pods", {"metadata": {}}, {})
    assert match.rule is None
    assert "rule labelled: In function starts_with()" in match.doubts[0]
    assert first_match((labelled, every), "pods", {"metadata": {"name": "x"}}, {}).rule is every
    assert first_match((labelled,), "pods", {"metadata": {"labels": {"app": "x1"}}}, {}).rule is labelled


def test_a_rule_about_a_context_that_nobody_could_read_cannot_tell() -> None:
    (asks,) = read(rules(rule(jmespath='"!(_context.pvc_is_mounted)"')))
    assert first_match((asks,), "pods", {}, {}).rule is asks
    assert first_match((asks,), "pods", {}, None) == RuleMatch(None, None, ("rule a: _context could not be read",))


@pytest.mark.parametrize(
    ("value", "matches"),
    [({}, False), ([], False), ("", False), (None, False), (False, False), (0, False), ("x", True), ({"a": 1}, True)],
)
def test_a_result_matches_unless_it_is_false_null_zero_or_empty(value: Any, matches: bool) -> None:
    (one,) = read(rules(rule(jmespath="metadata.x")))
    assert (first_match((one,), "pods", {"metadata": {"x": value}}, {}).rule is not None) is matches


def test_a_star_concerns_every_kind() -> None:
    (one,) = read(rules(rule(resources="['*']")))
    assert first_match((one,), "widgets", {"metadata": {"name": "x"}}, {}).rule is one

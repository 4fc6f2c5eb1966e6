"""Lint of drains: what an API server takes, and no user means."""

import pytest

from remediator.kube.manifests import lint
from tests.remediator.kube.manifests.examples import Object, manifest

TEAM, BOTH = {"namespaces": ["team"]}, {"namespaces": ["team", "lab"]}
JOBS, WEB = {"owners": ["Job"]}, {"selector": {"matchLabels": {"app": "web"}}}


def findings(**drain: Object | str | list[Object]) -> list[tuple[str, str]]:
    document = manifest("NodeOperationTemplate", drain={"strategy": "EvictThenDelete"} | drain)
    return [(finding.field, finding.message) for finding in lint.lint([("x.yaml:1", document)])]


@pytest.mark.parametrize(
    ("first", "second"), [(TEAM, TEAM), (BOTH, TEAM), (BOTH, TEAM | JOBS), (JOBS, JOBS | WEB), (WEB, WEB | TEAM)]
)
def test_a_rule_that_no_pod_reaches_is_an_error(first: Object, second: Object) -> None:
    rules = [first | {"strategy": "Delete"}, second | {"strategy": "None"}]
    message = "chooses no Pod: rules[0] has all of them; remove it, or put it before that one"
    assert findings(rules=rules) == [("spec.drain.rules[1]", message)]


@pytest.mark.parametrize(
    ("first", "second"), [(TEAM, BOTH), (TEAM, JOBS), (TEAM | JOBS, TEAM), (JOBS | WEB, WEB), (WEB | TEAM, WEB)]
)
def test_a_rule_that_chooses_some_pods_of_its_own_is_none(first: Object, second: Object) -> None:
    assert findings(rules=[first | {"strategy": "Delete"}, second | {"strategy": "None"}]) == []


def test_a_time_for_evictions_that_leaves_none_for_deletions_is_an_error() -> None:
    message = "leaves no time to delete before the timeout of 10m; shorten it, or choose Evict"
    assert findings(timeout="10m", evictFor="600s") == [("spec.drain.evictFor", message)]
    assert findings(timeout="10m", evictFor="599s") == []


def test_a_time_after_which_annotations_are_overridden_that_never_comes_is_an_error() -> None:
    message = "never comes: the drain ends after 10m; shorten it, or give the drain a longer timeout"
    assert findings(timeout="10m", overrideAnnotationsAfter="10m") == [("spec.drain.overrideAnnotationsAfter", message)]
    assert findings(timeout="10m", overrideAnnotationsAfter="9m") == []

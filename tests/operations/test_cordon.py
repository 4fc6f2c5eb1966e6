"""The cordon program against an API server over HTTPS."""

import json

import pytest

from tests.harness.apiserver import NODE, change
from tests.operations.conftest import Program

BY, KEPT = "remediator.dev/cordoned-by", "remediator.dev/kept-cordoned"


@pytest.fixture
def api(api):
    """The API server, with gpu-1 cordoned by the claim of case-1."""
    change(NODE, "spec", unschedulable=True)(api)
    change(NODE, "metadata", annotations={BY: "case-1", "team": "a"})(api)
    return api


@pytest.fixture
def cordon(tmp_path, api):
    """The program, told of `api`, for case-1."""
    program = Program(tmp_path, "cordon")
    program.variables |= api.environment()
    return lambda *options, **more: program(*options, parameters={"caseUID": "case-1"}, **more)


def test_the_cordon_of_the_case_becomes_one_that_outlives_it(api, cordon):
    ran = cordon()
    assert (ran.code, ran.message) == (0, "gpu-1 stays cordoned for a person"), ran.out
    assert api.node["spec"]["unschedulable"] is True
    assert api.node["metadata"]["annotations"] == {KEPT: "case-1", "team": "a"}
    assert len(api.writes()) == 1


def test_doing_it_twice_changes_nothing_more(api, cordon):
    cordon()
    ran = cordon()
    assert (ran.code, ran.message) == (0, "gpu-1 is kept cordoned already")
    assert len(api.writes()) == 1


def test_a_node_that_a_user_has_uncordoned_is_not_cordoned_again(api, cordon):
    api.edit(NODE, lambda node: node["spec"].pop("unschedulable"))
    ran = cordon()
    assert (ran.code, ran.message) == (2, "refused: a user has uncordoned gpu-1")
    assert api.writes() == []


@pytest.mark.parametrize(
    ("by", "words"),
    [({}, "by somebody else"), ({BY: "case-2"}, "by case case-2"), ({KEPT: "case-0"}, "by somebody else")],
)
def test_the_cordon_of_another_is_left_as_it_is(api, cordon, by, words):
    change(NODE, "metadata", annotations=by)(api)
    ran = cordon()
    assert ran.code == 0
    assert ran.message.startswith("left as it is")
    assert words in ran.message
    assert api.writes() == []


def test_it_refuses_when_the_case_does_not_hold_the_node(api, cordon):
    change(NODE, "spec", taints=[])(api)
    ran = cordon()
    assert (ran.code, ran.message) == (2, "refused: node gpu-1 is not held by case case-1")
    assert api.writes() == []


def test_a_node_that_changes_meanwhile_is_looked_at_again(api, cordon):
    def a_person_takes_it_over_first(method, path):
        if method == "PATCH" and BY in api.node["metadata"]["annotations"]:
            change(NODE, "metadata", annotations={})(api)

    api.on_request = a_person_takes_it_over_first
    ran = cordon()
    assert (ran.code, ran.message) == (0, "left as it is: gpu-1 was cordoned by somebody else")
    assert api.node["metadata"]["annotations"] == {}


def test_an_api_server_that_stumbles_is_asked_again(api, cordon):
    api.refuse(503, 429)
    assert cordon().code == 0


def test_a_node_that_is_gone_is_refused(api, cordon):
    ran = cordon(NODE_NAME="gpu-2")
    assert (ran.code, api.writes()) == (2, [])


def test_a_dry_run_says_what_it_would_write(api, cordon):
    ran = cordon("--dry-run")
    assert (ran.code, ran.message) == (0, "")
    assert ran.out.strip() == "would keep gpu-1 cordoned with remediator.dev/kept-cordoned=case-1"
    assert api.writes() == []


def test_without_a_token_it_refuses(tmp_path):
    ran = Program(tmp_path, "cordon")(TOKEN_DIR=str(tmp_path), KUBERNETES_SERVICE_HOST="127.0.0.1")
    assert ran.code == 2
    assert "no API server to talk to" in ran.message


def test_the_log_says_what_has_changed_and_that_the_operation_is_over(api, cordon):
    ran = cordon(OPERATION="cordon", ON_BEHALF_OF="User ann", CASE_NAME="gpu-1-manual-1")
    said = [json.loads(line) for line in ran.out.splitlines() if line.startswith("{")]
    assert [(line["verb"], line["resource"], line["who"], line["outcome"]) for line in said] == [
        ("patch", "nodes", "ann", "Done"),
        ("end", "operations", "ann", "Done"),
    ]
    assert said[0]["changes"] == [
        {"field": f"metadata.annotations[{BY}]", "before": "case-1", "after": None},
        {"field": f"metadata.annotations[{KEPT}]", "before": None, "after": "case-1"},
    ]

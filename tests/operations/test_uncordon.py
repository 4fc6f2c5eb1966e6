"""The uncordon program against an API server over HTTPS."""

import pytest

from tests.harness.apiserver import NODE, change
from tests.operations.conftest import Program

BY, KEPT = "remediator.dev/cordoned-by", "remediator.dev/kept-cordoned"


@pytest.fixture
def api(api):
    """The API server, with gpu-1 kept cordoned by case-1."""
    change(NODE, "spec", unschedulable=True)(api)
    change(NODE, "metadata", annotations={KEPT: "case-1", "team": "a"})(api)
    return api


@pytest.fixture
def uncordon(tmp_path, api):
    """The program, told of `api`, for case-1."""
    program = Program(tmp_path, "uncordon")
    program.variables |= api.environment()
    return lambda *options, **more: program(*options, parameters={"caseUID": "case-1"}, **more)


def test_the_cordon_ends_with_the_case_again(api, uncordon):
    ran = uncordon()
    assert (ran.code, ran.message) == (0, "the cordon of gpu-1 ends with the case"), ran.out
    assert api.node["spec"]["unschedulable"] is True
    assert api.node["metadata"]["annotations"] == {BY: "case-1", "team": "a"}
    assert len(api.writes()) == 1


def test_doing_it_twice_changes_nothing_more(api, uncordon):
    uncordon()
    ran = uncordon()
    assert (ran.code, ran.message) == (0, "the cordon of gpu-1 ends with the case already")
    assert len(api.writes()) == 1


@pytest.mark.parametrize(
    ("by", "words"),
    [({}, "by somebody else"), ({BY: "case-2"}, "by case case-2"), ({KEPT: "c"}, "by somebody else")],
)
def test_the_cordon_of_another_is_left_as_it_is(api, uncordon, by, words):
    change(NODE, "metadata", annotations=by)(api)
    ran = uncordon()
    assert ran.code == 0
    assert ran.message == f"left as it is: gpu-1 was cordoned {words}"
    assert api.node["spec"]["unschedulable"] is True
    assert api.writes() == []


def test_a_node_that_a_user_has_uncordoned_is_left_to_them(api, uncordon):
    api.edit(NODE, lambda node: node["spec"].pop("unschedulable"))
    ran = uncordon()
    assert (ran.code, ran.message) == (2, "refused: a user has uncordoned gpu-1")
    assert api.writes() == []


def test_it_refuses_when_the_case_does_not_hold_the_node(api, uncordon):
    change(NODE, "spec", taints=[])(api)
    ran = uncordon()
    assert (ran.code, ran.message) == (2, "refused: node gpu-1 is not held by case case-1")
    assert api.writes() == []


def test_a_person_who_makes_the_cordon_theirs_meanwhile_keeps_it(api, uncordon):
    def a_person_takes_it_over(method, path):
        if method == "PATCH" and KEPT in api.node["metadata"]["annotations"]:
            api.edit(NODE, lambda node: node["metadata"]["annotations"].pop(KEPT))

    api.on_request = a_person_takes_it_over
    assert uncordon().message == "left as it is: gpu-1 was cordoned by somebody else"
    assert api.node["spec"]["unschedulable"] is True


def test_an_api_server_that_stumbles_is_asked_again(api, uncordon):
    api.refuse(503, 429)
    assert uncordon().message == "the cordon of gpu-1 ends with the case"


def test_a_dry_run_says_what_it_would_write(api, uncordon):
    ran = uncordon("--dry-run")
    assert (ran.code, ran.message) == (0, "")
    assert ran.out.strip() == f"would set {BY}=case-1 on gpu-1"
    assert api.writes() == []

"""What a user's operation names is what its case is about: the node, the machine, the program and its parameters."""

import pytest

from remediator.controller.case_view import case_view, taken_back
from remediator.controller.request_view import is_meant
from remediator.core.case import Manual
from remediator.core.manual import policy
from remediator.core.reasons import Reason
from remediator.kube.api import encode
from tests.builders import a_case, a_node, an_operation, at
from tests.remediator.controller.test_observe_plan import a_cache

ASKED = an_operation("by-hand", node="gpu-2", node_uid="n2", case_uid="", parameters={"waitSeconds": "60"})
MANUAL = Manual("by-hand", ASKED.uid, "drain", {"waitSeconds": "60"}, "ann")
CASE = a_case(policy="", trigger=None, manual=MANUAL)


def test_its_case_has_its_node_its_machine_its_template_and_its_parameters():
    spec = encode.manual_case("case-1", ASKED)["spec"]
    assert (spec["nodeName"], spec["nodeUID"]) == ("gpu-2", "n2")
    assert (spec["manual"]["templateName"], spec["manual"]["parameters"]) == ("reboot", {"waitSeconds": "60"})


@pytest.mark.parametrize(("uid", "meant"), [("n2", True), ("n3", False)])
def test_a_namesake_of_the_node_that_it_names_is_not_meant(uid, meant):
    assert is_meant(ASKED, a_node("gpu-2", uid=uid)) is meant


def test_what_rules_its_case_is_one_try_of_the_template_that_it_names_with_its_parameters():
    (rung,) = policy(MANUAL).ladder
    assert (rung.operation, rung.attempts, rung.parameters) == ("drain", 1, {"waitSeconds": "60"})


@pytest.mark.parametrize(("name", "ends"), [("by-hand", None), ("of-somebody-else", Reason.OPERATION_DELETED)])
def test_its_case_goes_on_while_the_operation_of_its_name_is_there(name, ends):
    there = an_operation(name, uid=ASKED.uid, case_uid="")
    assert case_view(a_cache(CASE, there), CASE, at(5)).leave is ends


@pytest.mark.parametrize(("uid", "ends"), [(ASKED.uid, None), ("of-a-later-one", Reason.OPERATION_DELETED)])
def test_an_operation_that_a_user_has_made_anew_is_another_one(uid, ends):
    assert taken_back(CASE, an_operation("by-hand", uid=uid)) is ends

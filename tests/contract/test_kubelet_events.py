"""deploy/admission/kubelets.yaml: about which nodes a worker tells Events, by its CEL, without a server."""

from pathlib import Path
from typing import Any

import celpy
import pytest

from tests.harness import yaml_files

FILE = Path(__file__).parents[2] / "deploy" / "admission" / "kubelets.yaml"
(POLICY, BINDING) = yaml_files.read_all(FILE)
SPEC = POLICY["spec"]
OWN, OTHER = {"kind": "Node", "name": "gpu-1"}, {"kind": "Node", "name": "gpu-2"}
KUBELET = "system:node:gpu-1"


def evaluated(expression: str, values: dict[str, Any]) -> Any:
    environment = celpy.Environment()
    context = {name: celpy.json_to_cel(value) for name, value in values.items()}
    return environment.program(environment.compile(expression)).evaluate(context)


def allowed(user: str, new: Any, old: Any = None, namespace: str = "default") -> bool:
    """Whether a request is let through: it is not meant, or all is valid."""
    operation = "CREATE" if old is None else "DELETE" if new is None else "UPDATE"
    request = {"operation": operation, "namespace": namespace, "userInfo": {"username": user}}
    values: dict[str, Any] = {"request": request, "object": new, "oldObject": old}
    if not all(evaluated(each["expression"], values) for each in SPEC["matchConditions"]):
        return True
    variables = {each["name"]: evaluated(each["expression"], values) for each in SPEC["variables"]}
    return all(evaluated(each["expression"], {**values, "variables": variables}) for each in SPEC["validations"])


@pytest.mark.parametrize("field", ["involvedObject", "regarding"])
@pytest.mark.parametrize(
    ("user", "new", "old", "let"),
    [
        (KUBELET, OWN, None, True),
        (KUBELET, OWN, OWN, True),
        (KUBELET, None, OWN, True),
        (KUBELET, OTHER, None, False),
        (KUBELET, OTHER, OWN, False),
        (KUBELET, OWN, OTHER, False),
        (KUBELET, None, OTHER, False),
        (KUBELET, {"kind": "Node"}, None, False),
        (KUBELET, {"kind": "Pod", "name": "gpu-2"}, None, True),
        (KUBELET, {}, None, True),
        ("system:node:gpu-1-a", OWN, None, False),
        ("system:serviceaccount:remediator-system:remediator", OTHER, None, True),
        ("somebody", OTHER, None, True),
    ],
)
def test_a_worker_tells_events_of_its_own_node_alone(user: str, new: Any, old: Any, let: bool, field: str) -> None:
    about = [None if subject is None else {field: subject} for subject in (new, old)]
    assert allowed(user, *about) is let
    assert allowed(user, *about, namespace="team")


def test_it_holds_for_both_groups_of_events_and_refuses() -> None:
    (rule,) = SPEC["matchConstraints"]["resourceRules"]
    assert (rule["apiGroups"], rule["resources"]) == (["", "events.k8s.io"], ["events"])
    assert SPEC["failurePolicy"] == "Fail"
    assert BINDING["spec"] == {"policyName": POLICY["metadata"]["name"], "validationActions": ["Deny"]}

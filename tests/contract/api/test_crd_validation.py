"""Custom kinds: what their schema and their CEL rules refuse, and in which words."""

import pytest

from tests.contract.api.widgets import schema_of_spec


@pytest.mark.parametrize(
    ("field", "body"),
    [
        ("spec.whenn", {"whenn": []}),
        ("spec.verify.settel", {"verify": {"settel": "1m"}}),
        ("spec.when[0].conditoin", {"when": [{"condition": "GpuLost", "conditoin": "x"}]}),
    ],
)
async def test_a_mistyped_field_is_refused_by_name_when_strict(api, widgets, field, body):
    refusal = await api.post(widgets.path, widgets.body("a", **body), fieldValidation="Strict")
    assert f'unknown field "{field}"' in refusal.refused(400, "BadRequest")["message"]
    warned = await api.post(widgets.path, widgets.body("a", **body), fieldValidation="Warn")
    warned.ok(201)
    assert field in warned.headers["warning"]


REFUSALS = [
    ("spec.node", "FieldValueRequired", {"node": None}),
    ("spec.node", "FieldValueInvalid", {"node": ""}),
    ("spec.node", "FieldValueTooLong", {"node": "n" * 64}),
    ("spec.node", "FieldValueTypeInvalid", {"node": 5}),
    ("spec.mode", "FieldValueNotSupported", {"mode": "Sometimes"}),
    ("spec.wait", "FieldValueInvalid", {"wait": "5 minutes"}),
    ("spec.rungs", "FieldValueInvalid", {"rungs": 0}),
    ("spec.rungs", "FieldValueInvalid", {"rungs": 11}),
    ("spec.rungs", "FieldValueTypeInvalid", {"rungs": "3"}),
    ("spec.rungs", "FieldValueTypeInvalid", {"rungs": 1.5}),
    ("spec.since", "FieldValueTypeInvalid", {"since": "yesterday"}),
    ("spec.limit", "FieldValueTypeInvalid", {"limit": []}),
    ("spec.when", "FieldValueInvalid", {"when": []}),
    ("spec.when", "FieldValueTooMany", {"when": [{"condition": "x"}] * 5}),
    ("spec.when[0].condition", "FieldValueRequired", {"when": [{"for": "2m"}]}),
    ("spec.labels.a", "FieldValueTypeInvalid", {"labels": {"a": 1}}),
]


@pytest.mark.parametrize(("field", "reason", "spec"), REFUSALS, ids=[f"{one[0]}-{one[1]}" for one in REFUSALS])
async def test_a_value_outside_the_schema_is_refused_by_field(api, widgets, field, reason, spec):
    answer = await api.post(widgets.path, widgets.body("a", **spec))
    body = answer.refused(422, "Invalid")
    assert (field, reason) in answer.causes()
    assert body["details"]["kind"] == widgets.kind
    assert body["details"]["group"] == widgets.group
    assert field in body["message"]


async def test_a_missing_field_is_told_as_required_value(api, widgets):
    body = widgets.body("a")
    del body["spec"]["node"]
    message = (await api.post(widgets.path, body)).refused(422, "Invalid")["message"]
    assert message.startswith(f'{widgets.kind}.{widgets.group} "a" is invalid: ')
    assert "spec.node: Required value" in message


async def test_an_enum_is_refused_with_the_values_that_are_there(api, widgets):
    refusal = (await api.post(widgets.path, widgets.body("a", mode="Sometimes"))).refused(422, "Invalid")
    assert 'Unsupported value: "Sometimes": supported values: "Enforce", "DryRun"' in refusal["message"]


async def test_several_mistakes_are_told_at_once(api, widgets):
    answer = await api.post(widgets.path, widgets.body("a", mode="Sometimes", rungs=0))
    answer.refused(422, "Invalid")
    assert {field for field, _ in answer.causes()} >= {"spec.mode", "spec.rungs"}


@pytest.mark.parametrize("limit", [1, "10%"])
async def test_an_int_or_string_takes_both(api, widgets, limit):
    made = (await api.post(widgets.path, widgets.body("a", limit=limit))).ok(201)
    assert made["spec"]["limit"] == limit


async def test_a_patch_is_held_to_the_schema(api, widgets):
    (await api.post(widgets.path, widgets.body("a"))).ok(201)
    (await api.patch(f"{widgets.path}/a", {"spec": {"rungs": 0}})).refused(422, "Invalid")
    (await api.patch(f"{widgets.path}/a/status", {"status": {"claims": [1]}})).refused(422, "Invalid")


async def test_a_mistyped_field_of_a_patch_is_refused_when_strict(api, widgets):
    (await api.post(widgets.path, widgets.body("a"))).ok(201)
    refusal = await api.patch(f"{widgets.path}/a", {"spec": {"rungz": 1}}, fieldValidation="Strict")
    assert 'unknown field "spec.rungz"' in refusal.refused(422, "Invalid")["message"]


async def test_a_rule_refuses_with_its_message(api, widgets):
    answer = await api.post(widgets.path, widgets.body("a", low=2, high=1))
    refusal = answer.refused(422, "Invalid")
    assert "low must not pass high" in refusal["message"]
    assert ("spec", "FieldValueInvalid") in answer.causes()
    (await api.post(widgets.path, widgets.body("a", low=1, high=1))).ok(201)


async def test_a_rule_may_make_its_message_and_name_its_field_and_reason(api, widgets):
    answer = await api.post(widgets.path, widgets.body("a", rungs=7))
    refusal = answer.refused(422, "Invalid")
    assert "seven rungs on gpu-1 are not served" in refusal["message"]
    assert ("spec.rungs", "FieldValueForbidden") in answer.causes()


async def test_a_rule_is_held_after_a_patch(api, widgets):
    (await api.post(widgets.path, widgets.body("a", low=1, high=2))).ok(201)
    refusal = (await api.patch(f"{widgets.path}/a", {"spec": {"high": 0}})).refused(422, "Invalid")
    assert "low must not pass high" in refusal["message"]


async def test_a_transition_rule_forbids_changing_a_value(api, widgets):
    (await api.post(widgets.path, widgets.body("a", caseUID="one"))).ok(201)
    answer = await api.patch(f"{widgets.path}/a", {"spec": {"caseUID": "two"}})
    assert "caseUID cannot change" in answer.refused(422, "Invalid")["message"]
    assert ("spec.caseUID", "FieldValueInvalid") in answer.causes()
    (await api.patch(f"{widgets.path}/a", {"spec": {"caseUID": "one", "rungs": 2}})).ok()


async def test_a_transition_rule_says_nothing_where_a_value_comes_new(api, widgets):
    (await api.post(widgets.path, widgets.body("a"))).ok(201)
    (await api.patch(f"{widgets.path}/a", {"spec": {"caseUID": "one"}})).ok()
    (await api.patch(f"{widgets.path}/a", {"spec": {"caseUID": None}})).ok()


async def test_a_crd_whose_rule_does_not_compile_is_refused(api, widgets):
    crd = (await api.get(widgets.crd_path)).ok()
    schema_of_spec(crd)["x-kubernetes-validations"] = [{"rule": "self.absent > 1", "message": "x"}]
    (await api.put(widgets.crd_path, crd)).refused(422, "Invalid")


async def test_a_crd_without_a_structural_schema_is_refused(api, widgets):
    crd = (await api.get(widgets.crd_path)).ok()
    schema_of_spec(crd)["properties"]["mode"] = {"enum": ["x"]}
    (await api.put(widgets.crd_path, crd)).refused(422, "Invalid")

"""The CustomResourceDefinitions: structural, bounded, described, and the same as in deploy/crds."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from remediator.kube import api
from remediator.kube.manifests import crd
from remediator.kube.manifests.schema import broken, build
from remediator.kube.manifests.structural import structural

CRDS = {found["spec"]["names"]["kind"]: found for found in crd.crds()}
DEPLOYED = Path(__file__).parents[4] / "deploy" / "crds"


class Chain(msgspec.Struct):
    """A type that contains itself."""

    following: "Chain | None" = None


class Choice(msgspec.Struct):
    """A union that a CRD does not know."""

    value: int | bool


def root(kind: str) -> dict[str, Any]:
    return CRDS[kind]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]


def nodes(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every schema within a schema, with its path."""
    yield path, schema
    for name, part in schema.get("properties", {}).items():
        yield from nodes(part, f"{path}.{name}")
    for inner in ("items", "additionalProperties"):
        if isinstance(schema.get(inner), dict):
            yield from nodes(schema[inner], f"{path}[]")


def test_the_files_in_deploy_are_what_the_types_give() -> None:
    written = {path.name: path.read_text() for path in DEPLOYED.glob("*.yaml") if path.name != "kustomization.yaml"}
    assert written == crd.render()


@pytest.mark.parametrize("kind", CRDS)
def test_every_place_of_a_schema_has_one_type(kind: str) -> None:
    for path, schema in nodes(root(kind)):
        assert ("type" in schema) != bool(schema.get("x-kubernetes-int-or-string")), path


@pytest.mark.parametrize("kind", CRDS)
def test_a_schema_uses_only_words_that_a_structural_schema_has(kind: str) -> None:
    words = {
        *(
            "type",
            "description",
            "properties",
            "required",
            "items",
            "additionalProperties",
            "default",
            "enum",
            "format",
        ),
        *(
            "pattern",
            "minLength",
            "maxLength",
            "minimum",
            "maximum",
            "minItems",
            "maxItems",
            "minProperties",
            "maxProperties",
        ),
        *("x-kubernetes-validations", "x-kubernetes-list-type", "x-kubernetes-list-map-keys"),
        *("x-kubernetes-int-or-string", "x-kubernetes-preserve-unknown-fields"),
    }
    for path, schema in nodes(root(kind)):
        assert schema.keys() <= words, path
        assert not ("properties" in schema and "additionalProperties" in schema), path


@pytest.mark.parametrize("kind", CRDS)
def test_whatever_a_rule_may_look_at_is_bounded(kind: str) -> None:
    """An API server refuses rules whose cost it cannot bound."""
    ruled = [schema for _, schema in nodes(root(kind)["properties"]["spec"]) if "x-kubernetes-validations" in schema]
    for path, schema in (found for top in ruled for found in nodes(top)):
        bounds = {"array": ("maxItems",), "string": ("maxLength", "enum", "format"), "object": ()}
        wanted = ("maxProperties",) if "additionalProperties" in schema else bounds.get(schema.get("type", ""), ())
        assert not wanted or any(word in schema for word in wanted), path


@pytest.mark.parametrize("kind", CRDS)
def test_every_field_says_what_it_is(kind: str) -> None:
    for part in sorted(root(kind)["properties"].keys() & {"spec", "status"}):
        for path, schema in nodes(root(kind)["properties"][part], part):
            fields = schema.get("properties", {})
            assert [name for name in fields if not fields[name].get("description", "").endswith(".")] == [], path


@pytest.mark.parametrize("kind", CRDS)
def test_a_default_is_told_in_the_description(kind: str) -> None:
    for path, schema in nodes(root(kind)):
        default = schema.get("default", {})
        assert default == {} or str(default) in schema["description"], path
        assert default not in ("", None), path


@pytest.mark.parametrize("kind", CRDS)
def test_a_rule_has_a_message_and_points_at_a_field(kind: str) -> None:
    for path, schema in nodes(root(kind)):
        for rule in schema.get("x-kubernetes-validations", ()):
            assert rule["message"], path
            blamed = schema
            for name in filter(None, rule.get("fieldPath", "").split(".")):
                blamed = blamed["properties"][name]


def test_a_field_left_out_gets_the_defaults_of_its_parts() -> None:
    verify = root("RemediationPolicy")["properties"]["spec"]["properties"]["verify"]
    assert verify["default"] == {}
    assert {name: part.get("default") for name, part in verify["properties"].items()} == {
        "settle": "5m",
        "fresh": "3m",
        "timeout": "20m",
        "probe": None,
        "inventory": "Keep",
    }


def test_a_count_or_percentage_is_an_int_or_string() -> None:
    limit = root("NodeDisruptionBudget")["properties"]["spec"]["properties"]["maxUnavailable"]
    assert limit["x-kubernetes-int-or-string"] is True
    assert limit["minimum"] == 0


def test_kinds_have_their_scope_status_short_name_and_category() -> None:
    short = {kind: found["spec"]["names"]["shortNames"] for kind, found in CRDS.items()}
    assert short == {
        "RemediationPolicy": ["rp"],
        "NodeRemediation": ["nr"],
        "NodeOperation": ["nop"],
        "NodeOperationTemplate": ["nopt"],
        "NodeDisruptionBudget": ["ndb"],
        "Ticket": ["tkt"],
        "GpuLedger": ["gl"],
        "IdlePolicy": ["ip"],
        "NodeInventory": ["ninv"],
        "TicketRoute": ["tktr"],
    }
    assert [kind for kind, found in CRDS.items() if found["spec"]["scope"] == "Namespaced"] == ["TicketRoute"]
    for found in CRDS.values():
        assert found["spec"]["scope"] in ("Cluster", "Namespaced")
        assert found["spec"]["names"]["categories"] == ["remediator"]
        version = found["spec"]["versions"][0]
        without = ("NodeOperationTemplate", "GpuLedger", "IdlePolicy")  # nobody writes one; a ledger is one write
        has_status = found["spec"]["names"]["kind"] not in without
        assert ("status" in version["schema"]["openAPIV3Schema"]["properties"]) == has_status
        assert version.get("subresources") == ({"status": {}} if has_status else None)


def _field(schema: dict[str, Any], path: str) -> dict[str, Any] | None:
    for step in path.split("[")[0].strip(".").split("."):
        schema = schema.get("properties", {}).get(step, {})
    return schema or None


@pytest.mark.parametrize("kind", CRDS)
def test_every_column_shows_a_field_that_exists(kind: str) -> None:
    for column in CRDS[kind]["spec"]["versions"][0]["additionalPrinterColumns"]:
        if not column["jsonPath"].startswith(".metadata"):
            assert _field(root(kind), column["jsonPath"]), column


def test_a_list_of_budgets_shows_groups_that_are_full_and_nodes_without_one() -> None:
    columns = CRDS["NodeDisruptionBudget"]["spec"]["versions"][0]["additionalPrinterColumns"]
    paths = {column["name"]: column["jsonPath"] for column in columns}
    assert (paths["GROUPS FULL"], paths["UNGROUPED"]) == (".status.groupsFull", ".status.ungrouped")


def test_what_a_crd_cannot_say_is_an_error() -> None:
    for wrong in (Chain, Choice):
        drawn = msgspec.json.schema(wrong)
        with pytest.raises(ValueError, match=r"contains itself|no union"):
            structural({"$ref": drawn["$ref"]}, drawn["$defs"])


def test_the_fields_of_a_spec_that_must_not_change_say_so() -> None:
    case = root("NodeRemediation")["properties"]["spec"]["properties"]
    for field in ("nodeName", "nodeUID"):
        assert [rule["rule"] for rule in case[field]["x-kubernetes-validations"]] == ["self == oldSelf"]
    rules = [rule["message"] for rule in root("NodeRemediation")["properties"]["spec"]["x-kubernetes-validations"]]
    for field in ("policyName", "manual"):
        assert f"{field} is immutable" in rules, "one of the two is there, and stays"
    operation = root("NodeOperation")["properties"]["spec"]
    assert "self == oldSelf" in [rule["rule"] for rule in operation["x-kubernetes-validations"]]
    assert not any("preserve" in word for _, part in nodes(operation) for word in part), "rules do not see such fields"


@pytest.mark.parametrize(
    ("phase", "before", "after", "refused"),
    [
        ("Operating", {}, {"release": True}, True),
        ("Operating", {"release": False}, {"release": True}, True),
        ("", {}, {"release": True}, True),
        ("Recovered", {}, {"release": True}, True),
        ("Escalated", {}, {"release": True}, False),
        ("Operating", {}, {"release": False}, False),
        ("Operating", {"release": True}, {}, False),
        ("Operating", {"release": True}, {"release": True, "hold": True}, False),  # of before this rule
    ],
)
def test_a_case_takes_a_release_only_once_it_is_escalated(
    phase: str, before: dict[str, Any], after: dict[str, Any], refused: bool
) -> None:
    status = {"phase": phase} if phase else {}
    about = {"nodeName": "gpu-17", "policyName": "gpu-lost"}
    old, new = ({"spec": about | spec, "status": status} for spec in (before, after))
    wrong = list(broken(new, build(root("NodeRemediation"), root=True), old))
    assert [each.path for each in wrong] == (["spec.release"] if refused else []), wrong
    assert all(each.answered for each in wrong)


def test_the_kinds_of_the_api_are_those_of_the_crds() -> None:
    assert {kind.name: kind.plural for kind in api.KINDS} == {
        name: found["spec"]["names"]["plural"] for name, found in CRDS.items()
    }

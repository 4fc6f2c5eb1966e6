"""The chart is made from the kustomization: all that changes replace is there, and each value is used and described."""

import json
import re

import jsonschema
import pytest
import yaml

from deploy.chart import generate
from deploy.chart.changes import Change

FILES = generate.files()
VALUES = yaml.safe_load(FILES["values.yaml"])
SCHEMA = json.loads(FILES["values.schema.json"])
DIGEST = "sha256:" + 64 * "a"


def leaves(values, path=()):
    """The paths of all values; what a user fills in by keys of their own is one."""
    if isinstance(values, dict) and values:
        return {leaf for name, inner in values.items() for leaf in leaves(inner, (*path, name))}
    return {path}


def described(path):
    schema = SCHEMA
    for name in path:
        schema = schema["properties"][name]
    return schema


def test_a_manifest_that_is_no_longer_as_a_change_says_is_told_with_what_to_mend():
    with pytest.raises(generate.Stale, match=r"deploy/chart/changes.py: 0 times in the manifest: 'replicas: 9'"):
        generate.template("replicas: 2\n", (Change("replicas: 9", ""),))
    with pytest.raises(generate.Stale, match=r"2 times in the manifest"):
        generate.template("a: 1\na: 1\n", (Change("a: 1", ""),))


def test_braces_of_a_manifest_are_no_template():
    assert generate.template("rule: has({{node}})\n") == 'rule: has({{ "{{" }}node}})\n'


def test_namespaces_and_images_are_those_of_the_release_everywhere():
    made = [text for name, text in FILES.items() if name.startswith(("templates/deploy/", "defaults"))]
    assert len(made) > 70
    for word in ("remediator-system", "remediator-operations", "registry.invalid"):
        assert not [text for text in made if word in text], word


def test_every_file_of_the_kustomization_is_in_the_chart_once():
    names = [name.rsplit("/", 1)[-1] for name in FILES]
    for name in generate.resources():
        if name != "registry.yaml":
            ends = name.rsplit("/", 1)[-1]
            assert sum(each.endswith(ends) for each in names) >= 1, name
    assert sum(name.startswith("crds/") for name in FILES) == 10


@pytest.mark.parametrize("path", sorted(leaves(VALUES)), ids=".".join)
def test_a_value_is_described_by_the_schema_and_used_by_a_template(path):
    assert described(path)
    texts = "".join(text for name, text in FILES.items() if name.startswith("templates/"))
    assert f".Values.{path[0]}" in texts
    assert f".{path[-1]}" in texts or path[:2] == ("image", "digests")  # by the name of the image


def test_the_default_values_fit_the_schema_and_what_is_misspelt_or_out_of_bounds_does_not():
    jsonschema.validate(VALUES, SCHEMA)
    for wrong in (
        {"controler": {}},
        {"controller": {"replicas": 1}},
        {"controller": {"replica": 2}},
        {"image": {"digests": {"controller": "sha256:1"}}},
        {"fleet": {"nodes": "many"}},
        {"newCriteria": {"quietHours": -1}},
        {"newCriteria": {"quietHours": 8761}},
        {"newCriteria": {"quietShare": 0}},
        {"newCriteria": {"quietShare": 101}},
        {"newCriteria": {"quietDays": 7}},
        {"defaults": {"restore": ["gpu-lost"]}},
        {"tickets": {"enabled": True, "routes": {}}},
        {"image": {"registry": "registry.example/"}},
        {"alertmanager": {"urls": [""]}},
        {"alertmanager": {"urls": [f"http://alertmanager-{number}" for number in range(17)]}},
        {"controller": {"extraVolumes": [{"secret": {"secretName": "own"}}]}},
        {"monitoring": {"labels": {"release": 1}}},
        {"page": {"enabled": "yes"}},
        *(
            {"monitoring": {"runbooks": url}}
            for url in ("git.example.org/docs", "https://git.example.org/docs/", "https://a b")
        ),
    ):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, SCHEMA)
    jsonschema.validate({"image": {"digests": {"node": DIGEST}}}, SCHEMA)


def test_definitions_are_brought_up_to_date_before_an_install_too_since_helm_skips_those_that_an_earlier_one_has_left():
    assert '"helm.sh/hook" "pre-install,pre-upgrade"' in FILES["templates/definitions.yaml"]


def test_the_namespace_of_operations_outlives_the_release_with_the_secrets_of_its_user():
    namespaces = FILES["templates/deploy/namespaces.yaml"].partition("{{ .Values.operationsNamespace }}")[2]
    assert namespaces.startswith("\n  annotations: {helm.sh/resource-policy: keep}\n")


def test_resources_grow_with_the_fleet_and_are_never_below_what_was_measured():
    """docs/security.md: 246 MiB while 5,000 whole Nodes are read. docs/figures.md: 491 with 100,000 nodes."""
    text = (
        FILES["templates/_helpers.tpl"]
        .partition('define "remediator.resources"')[2]
        .partition("{{- end }}\n{{- end")[0]
    )
    requests = re.findall(r'requests: \{cpu: "?\w+"?, memory: (\d+)(Mi|Gi)\}', text)
    sizes = [int(number) * (1024 if unit == "Gi" else 1) for number, unit in requests]
    assert sizes == sorted(sizes)
    assert (len(sizes), sizes[1] > 246, sizes[-1] > 491) == (4, True, True)


def test_the_version_of_the_chart_is_that_of_the_product():
    chart = yaml.safe_load(FILES["Chart.yaml"])
    pyproject = (generate.DEPLOY.parent / "pyproject.toml").read_text()
    assert f'version = "{chart["version"]}"' in pyproject
    assert chart["appVersion"] == chart["version"]

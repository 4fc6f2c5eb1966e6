"""No field of a spec that drives a repair is accepted and then forgotten: each has a test that fails where it is."""

import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest
import yaml

from remediator.kube import api
from remediator.kube.manifests import crd
from tests.contract.fields import walk
from tests.contract.fields_used.decoded import DECODED, fields, uses
from tests.contract.fields_used.ignoring import VALUES

ROOT = Path(__file__).parents[3]


def read(name: str) -> dict[tuple[str, str], str]:
    """The tests that a file beside this one names, by kind and field."""
    kinds = yaml.safe_load(Path(__file__).with_name(name).read_text())
    return {(kind, field): test for kind, rows in kinds.items() for field, test in rows.items()}


ROWS, ON_SERVER = read("tests.yaml"), read("on_server.yaml")
TESTS = {field: test for field, test in ROWS.items() if test}
# What no decision rests on.
UNREAD = {
    ("RemediationPolicy", "spec.allNodes"): "the API server alone asks: nodeSelector must then be empty",
    ("NodeOperation", "spec.attempt"): "people read it; the case says which attempt it makes",
}


def described(kind: str) -> set[str]:
    """The fields of the spec, as the CRD has them; those of maps and of podTemplate are nobody's of ours."""
    known = next(each for each in api.KINDS if each.name == kind)
    schema = crd.crd(known)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    return {f"spec.{field.path.replace('[]', '')}" for field in walk(schema) if "{}" not in field.path}


@pytest.mark.parametrize("kind", DECODED)
def test_every_field_is_in_the_documents_and_no_other(kind):
    here = {path for of, path in fields() if of == kind}
    unread = {path for of, path in UNREAD if of == kind}
    assert here | unread == described(kind)


@pytest.mark.parametrize(("kind", "field"), fields(), ids=" ".join)
def test_every_field_is_read_where_it_is_decoded(kind, field):
    assert bool(uses(kind, field)) != ((kind, field) in UNREAD)


def test_every_field_that_is_read_names_a_test_that_is_there():
    assert ROWS.keys() == set(fields()) - UNREAD.keys()
    assert [field for field, test in ROWS.items() if not test] == [], "a new field comes with its test"
    assert missing(TESTS.values()) == []


def test_what_a_server_could_do_otherwise_has_a_scenario_on_the_real_one():
    assert [field for field in ON_SERVER if field not in ROWS] == []
    assert [test for test in ON_SERVER.values() if not test.startswith("tests/cluster/")] == []
    assert missing(ON_SERVER.values()) == []


def missing(tests: Iterable[str]) -> list[tuple[str, ...]]:
    """Those that no file has."""
    named = {tuple(test.partition("[")[0].split("::")) for test in tests}
    return [(path, name) for path, name in named if f"def {name}(" not in (ROOT / path).read_text()]


def status(kind: str, field: str, value: str) -> int:
    """The exit status of pytest where the field has this value, whatever is written; a process of its own is broken."""
    words = [sys.executable, "-m", "tests.contract.fields_used.ignoring", kind, field, value, TESTS[kind, field]]
    env = os.environ | {"SHARE": "1"}
    return subprocess.run(words, cwd=ROOT, env=env, capture_output=True, timeout=300, check=False).returncode


@pytest.mark.long
@pytest.mark.timeout(330)
@pytest.mark.parametrize(("kind", "field"), TESTS, ids=" ".join)
def test_the_test_of_a_field_fails_where_the_field_is_ignored(kind, field):
    statuses = {value: status(kind, field, value) for value in VALUES}
    assert pytest.ExitCode.TESTS_FAILED in statuses.values(), statuses

"""`remediator convert noc`: where it reads, what goes where, and how it exits."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from remediator.cli.every import app
from remediator.kube.manifests import yamlfile
from tests.remediator.kube.manifests import noc_examples as noc

EMPTY_RULE = noc.remediations()


def convert(*args: object, stdin: str = ""):
    return CliRunner().invoke(app, ["convert", "noc", *map(str, args)], input=stdin, env={"TERM": "dumb"})


def written(tmp_path: Path, *documents: object) -> Path:
    path = tmp_path / "noc.json"
    path.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": documents}))
    return path


def test_ours_go_to_stdout_as_yaml_and_what_is_different_to_stderr_with_its_place(tmp_path: Path) -> None:
    path = written(tmp_path, noc.template(), noc.budget(maxUnavailable=1))
    done = convert(path)
    kinds = [document.value["kind"] for document in yamlfile.documents(done.stdout)]
    assert (done.exit_code, kinds) == (0, ["NodeOperationTemplate", "NodeDisruptionBudget"])
    assert (
        f"note: {path}:1: NodeOperationTemplate/repair: spec.template.spec.jobTemplate.spec: has no active"
        in done.stderr
    )
    assert done.stderr.endswith("2 objects read, 2 objects of ours made, 0 refused\n")


def test_a_refusal_exits_1_and_the_others_are_printed_all_the_same(tmp_path: Path) -> None:
    done = convert(written(tmp_path, EMPTY_RULE, noc.budget(maxUnavailable=1)))
    assert (done.exit_code, done.stdout.count("kind:")) == (1, 1)
    assert "NodeRemediationTemplate/sick: spec.template.spec.rule.conditions: is empty" in done.stderr


def test_a_dash_is_stdin() -> None:
    done = convert("-", stdin=json.dumps(noc.budget(minAvailable=2)))
    assert (done.exit_code, "minAvailable: 2" in done.stdout) == (0, True)


def test_a_template_that_is_in_the_cluster_may_be_named(tmp_path: Path) -> None:
    path = written(tmp_path, noc.remediations(("GpuLost", "True")))
    assert [convert(path).exit_code, convert("--template", "repair", path).exit_code] == [1, 0]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "No such file"),
        (b"", "nothing to convert in"),
        (b"a: [", "unreadable YAML"),
        (b"\xff\xfe", "not text in UTF-8"),
    ],
    ids=["absent", "empty", "no YAML", "no text"],
)
def test_what_cannot_be_read_exits_2_and_names_the_file(tmp_path: Path, text: bytes | None, words: str) -> None:
    path = tmp_path / "noc.yaml"
    if text is not None:
        path.write_bytes(text)
    done = convert(path)
    assert (done.exit_code, done.stdout) == (2, "")
    assert str(path) in done.stderr
    assert words in done.stderr

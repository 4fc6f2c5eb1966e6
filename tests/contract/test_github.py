"""What GitHub reads: the workflow runs what CI runs, the forms are forms, and the hooks are those of `make check`."""

import re
import subprocess
import tomllib
from collections import Counter
from pathlib import Path

import pytest
import yaml

from deploy.images.programs import MODULES, binary

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*"))
FORMS = sorted(path for path in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*") if path.name != "config.yml")
FIELDS = {"textarea", "input", "dropdown", "checkboxes", "markdown"}
(JOB,) = yaml.safe_load((ROOT / ".github/workflows/ci.yaml").read_text())["jobs"].values()


def action(name: str) -> dict[str, str]:
    """What the workflow hands to the action of that name."""
    (step,) = (step for step in JOB["steps"] if step.get("uses", "").startswith(f"{name}@"))
    return step["with"]


def named(path: Path) -> str:
    return path.name


@pytest.mark.cluster
@pytest.mark.parametrize("path", WORKFLOWS, ids=named)
def test_actionlint_finds_nothing_in_a_workflow(path):
    command = [binary("actionlint"), "-shellcheck=", "-pyflakes=", path]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_workflow_runs_what_ci_runs_with_the_least_python_and_the_go_that_builds_the_programs():
    assert [step["run"] for step in JOB["steps"] if "run" in step] == [".ci/run"]
    assert (ROOT / ".ci/run").stat().st_mode & 0o111
    needed = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"]
    assert needed == f">={action('actions/setup-python')['python-version']}"
    asked = {re.search(r"^go ([\d.]+)", path.read_text(), re.MULTILINE)[1] for path in MODULES.glob("*/go.mod")}
    go = action("actions/setup-go")["go-version"]
    assert max(tuple(map(int, version.split(".")[:2])) for version in asked) <= tuple(map(int, go.split(".")))


def test_the_workflow_names_files_that_exist_and_fetches_all_commits():
    patterns = [action("actions/setup-go")["cache-dependency-path"]]
    patterns += re.findall(r"'([^']+)'", action("actions/cache")["key"])
    assert len(patterns) == 3
    assert all(any(ROOT.glob(pattern.replace("**", "**/*"))) for pattern in patterns)
    assert action("actions/checkout")["fetch-depth"] == 0, "the sample of a test is chosen by the number of commits"


RELEASE = yaml.safe_load((ROOT / ".github/workflows/release.yaml").read_text())


@pytest.mark.parametrize("path", WORKFLOWS, ids=named)
def test_every_action_is_pinned_by_a_commit_and_says_which_release_that_is(path):
    uses = re.findall(r"uses: (?!\./)(.+)$", path.read_text(), re.MULTILINE)
    assert uses
    assert [one for one in uses if not re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", one)] == []


def test_one_action_has_one_commit_in_all_workflows():
    found = {one for path in WORKFLOWS for one in re.findall(r"uses: (\S+@\S+)", path.read_text())}
    assert len(found) == len({one.partition("@")[0] for one in found})


def test_a_release_may_write_only_what_it_must():
    attests = {"contents": "read", "id-token": "write", "attestations": "write"}
    assert RELEASE["permissions"] == {}
    assert {name: job["permissions"] for name, job in RELEASE["jobs"].items()} == {
        "tests": {"contents": "read"},
        "wheels": attests,
        "images": attests,
        "release": {"contents": "write"},
    }
    checkouts = [step for job in RELEASE["jobs"].values() for step in job.get("steps", ()) if "checkout" in str(step)]
    assert [step["with"]["persist-credentials"] for step in checkouts] == [False, False]


def test_a_release_comes_from_a_tag_after_all_tests_and_builds_both_images_for_both_architectures():
    assert RELEASE[True] == {"push": {"tags": ["v[0-9]+.[0-9]+.[0-9]+"]}}, "YAML reads `on` as true"
    jobs = RELEASE["jobs"]
    assert jobs["tests"]["uses"] == "./.github/workflows/ci.yaml"
    assert (jobs["wheels"]["needs"], jobs["images"]["needs"]) == ("tests", "tests")
    assert sorted(jobs["images"]["strategy"]["matrix"]["image"]) == sorted(
        path.stem for path in (ROOT / "deploy/images").glob("*.Dockerfile")
    )
    (build,) = (step["with"] for step in jobs["images"]["steps"] if "build-push-action" in step.get("uses", ""))
    assert build["platforms"] == "linux/amd64,linux/arm64"
    assert (build["sbom"], build["provenance"]) == (True, "mode=max")


def test_there_is_a_form_for_a_bug_a_false_alarm_and_a_feature():
    assert [path.stem for path in FORMS] == ["bug", "false-alarm", "feature"]


@pytest.mark.parametrize("path", FORMS, ids=named)
def test_a_form_has_fields_that_github_shows(path):
    form = yaml.safe_load(path.read_text())
    assert {"name", "description", "labels", "body"} == set(form)
    assert all(field["type"] in FIELDS and field["attributes"]["label"] for field in form["body"])
    assert all(field["attributes"].get("options") for field in form["body"] if field["type"] == "dropdown")
    ids = Counter(field["id"] for field in form["body"])
    assert max(ids.values()) == 1
    assert all(re.fullmatch(r"[a-z][a-z0-9-]*", field) for field in ids)
    assert any(field.get("validations", {}).get("required") for field in form["body"])


def test_a_pull_request_is_asked_for_its_test():
    text = (ROOT / ".github/pull_request_template.md").read_text()
    assert all(word in text for word in ("make check", "make test", "make test-cluster", "CHANGELOG.md"))


def test_the_hooks_before_a_commit_are_the_programs_of_make_check():
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
    assert [repo["repo"] for repo in config["repos"]] == ["local"]
    entries = [hook["entry"] for hook in config["repos"][0]["hooks"]]
    checked = re.findall(r"\$\(BIN\)/(ruff|mypy)", (ROOT / "Makefile").read_text())
    assert [entry.split()[0] for entry in entries] == [f".venv/bin/{program}" for program in checked]
    assert all(hook["language"] == "system" for hook in config["repos"][0]["hooks"])

"""Lint warns of times that are legal, and hardly meant in production."""

from pathlib import Path

import pytest

from remediator.kube.manifests import lint, times
from tests.remediator.kube.manifests.examples import Object, manifest

ROOT = Path(__file__).parents[4]


def warned(document: Object) -> list[str]:
    return list(times.warnings([("x.yaml:1", document)]))


def _policy(**spec: object) -> Object:
    return manifest("RemediationPolicy", name="p", **spec)


def _template(**spec: object) -> Object:
    return manifest("NodeOperationTemplate", name="t", **spec)


@pytest.mark.parametrize(
    ("document", "place", "value"),
    [
        (_policy(when=[{"condition": "A"}, {"condition": "B", "for": "8d"}]), "spec.when[1].for", "8d"),
        (_policy(cooldown="30d"), "spec.cooldown", "30d"),
        (_policy(verify={"settle": "0s"}), "spec.verify.settle", "0s"),
        (_policy(verify={"fresh": "59s"}), "spec.verify.fresh", "59s"),
        (_policy(verify={"timeout": "30s"}), "spec.verify.timeout", "30s"),
        (_policy(verify={"timeout": "25h"}), "spec.verify.timeout", "25h"),
        (_policy(attempts={"window": "1h"}), "spec.attempts.window", "1h"),
        (_policy(urgency={"mode": "WhenIdle", "deadline": "5s"}), "spec.urgency.deadline", "5s"),
        (_template(timeout="1s"), "spec.timeout", "1s"),
        (_template(drain={"strategy": "Evict", "timeout": "2s"}), "spec.drain.timeout", "2s"),
    ],
)
def test_a_time_that_is_hardly_meant_is_legal_and_warned_of(document: Object, place: str, value: str) -> None:
    assert lint.lint([("x.yaml:1", document)], {"reboot"}) == []
    (warning,) = warned(document)
    assert f": {place} is {value}; usual is " in warning


@pytest.mark.slow
def test_no_shipped_manifest_has_one() -> None:
    files = [*ROOT.glob("deploy/**/*.yaml"), *ROOT.glob("operations/*.yaml")]
    documents = [each for file in files for each in lint.read(str(file), file.read_text())[0]]
    assert len(documents) > 100
    assert list(times.warnings(documents)) == []


@pytest.mark.parametrize("spec", [None, 5, {"verify": 5, "when": 5, "cooldown": 5, "attempts": {"window": "?"}}])
def test_nonsense_is_left_to_the_findings(spec: object) -> None:
    assert warned({"kind": "RemediationPolicy", "spec": spec}) == []


def test_each_path_is_one_of_a_kind_and_each_limit_a_duration() -> None:
    from remediator.kube import api
    from remediator.kube.manifests import crd

    kinds = {kind.name: crd.crd(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"] for kind in api.KINDS}
    for usual in times.USUAL:
        place = kinds[usual.kind]
        for name in usual.path.split("."):
            place = place["properties"][name.removesuffix("[]")]
            place = place["items"] if name.endswith("[]") else place
        assert place["type"] == "string", usual.path
        assert api.seconds(usual.least) < api.seconds(usual.most)

"""What is legal in `covers` and most likely not meant: each is told, and nothing is refused."""

from remediator.kube.manifests import covers, lint
from tests.remediator.kube.manifests.examples import Object, manifest


def told(*documents: Object, known: tuple[str, ...] = ()) -> list[str]:
    return list(covers.warnings([("x.yaml:1", document) for document in documents], frozenset(known)))


def template(name: str, *names: str) -> Object:
    return manifest("NodeOperationTemplate", name, covers=list(names))


def policy(*operations: str) -> Object:
    return manifest("RemediationPolicy", "gpu-lost", ladder=[{"operation": name} for name in operations])


def test_templates_that_cover_milder_ones_are_as_they_should_be():
    documents = (template("reboot", "reset-gpu"), template("reset-gpu"), policy("reset-gpu", "reboot"))
    assert told(*documents) == []
    assert told(template("reboot", "reset-gpu"), known=("reset-gpu",)) == []


def test_a_name_that_is_no_template_is_told():
    assert told(template("reboot", "reset")) == [
        "template reboot: spec.covers names reset, which is no template; create it, or take it out"
    ]


def test_templates_that_cover_each_other_are_told():
    found = told(template("a", "b"), template("b", "c"), template("c", "a"), template("d", "a"))
    assert found == [
        f"template {name}: spec.covers leads back to {name}; let only the stronger one cover the other"
        for name in "abc"
    ]


def test_a_rung_that_an_earlier_one_covers_is_told():
    documents = (template("reboot", "reset-gpu"), template("reset-gpu"), policy("reboot", "reset-gpu"))
    assert told(*documents) == [
        "policy gpu-lost: spec.ladder[1] (reset-gpu) is skipped where reboot has worked, which covers it; "
        "put it before reboot, or take it out"
    ]


def test_a_rung_after_isolate_gpu_is_told():
    documents = (template("reset-gpu"), template("isolate-gpu"), template("reboot"))
    assert told(*documents, policy("reset-gpu", "isolate-gpu", "reboot")) == [
        "policy gpu-lost: spec.ladder[2] (reboot) is only tried where isolate-gpu has not worked; "
        "put it before isolate-gpu, or take it out"
    ]
    assert told(*documents, policy("reset-gpu", "reboot", "isolate-gpu")) == []


def test_nothing_of_it_is_refused_and_what_cannot_be_read_is_passed_over():
    documents = [("x.yaml:1", template("a", "a", "nobody")), ("x.yaml:2", policy("a"))]
    assert lint.lint(documents) == []
    assert told(manifest("NodeOperationTemplate", covers=7)) == []

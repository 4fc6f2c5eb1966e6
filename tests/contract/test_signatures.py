"""The example that refuses unsigned images names what the release workflow builds and signs, in Kyverno's fields."""

import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

ROOT = Path(__file__).parents[2]
POLICY = yaml.safe_load((ROOT / "deploy/examples/verify-images.yaml").read_text())
RELEASE = yaml.safe_load((ROOT / ".github/workflows/release.yaml").read_text())
(RULE,) = POLICY["spec"]["rules"]
(VERIFIED,) = RULE["verifyImages"]
(ATTESTATION,) = VERIFIED["attestations"]
SIGNER = ATTESTATION["attestors"][0]["entries"][0]["keyless"]


def of(required: list[str], /, **properties: object) -> dict[str, object]:
    """An object of these fields and no others."""
    return {"type": "object", "required": required, "properties": properties, "additionalProperties": False}


def some(items: object) -> dict[str, object]:
    """A list that is not empty."""
    return {"type": "array", "items": items, "minItems": 1}


TEXT, YES, NO = {"type": "string", "minLength": 1}, {"const": True}, {"const": False}
KEYLESS = of(["issuer", "subjectRegExp"], issuer=TEXT, subjectRegExp=TEXT)
ATTESTORS = some(of(["entries"], entries=some(of(["keyless"], keyless=KEYLESS))))
# What the example may be made of: the fields of a ClusterPolicy of Kyverno 1.13 that refuse, and none that only warn.
SCHEMA = of(
    ["apiVersion", "kind", "metadata", "spec"],
    apiVersion={"const": "kyverno.io/v1"},
    kind={"const": "ClusterPolicy"},
    metadata=of(["name"], name=TEXT),
    spec=of(
        ["background", "webhookConfiguration", "rules"],
        background=NO,  # images are looked at when a Pod is made
        webhookConfiguration=of(
            ["failurePolicy"],
            failurePolicy={"const": "Fail"},
            timeoutSeconds={"type": "integer", "minimum": 1, "maximum": 30},
        ),
        rules=some(
            of(
                ["name", "match", "verifyImages"],
                name=TEXT,
                match=of(["any"], any=some(of(["resources"], resources={"type": "object"}))),
                verifyImages=some(
                    of(
                        ["type", "imageReferences", "failureAction", "required", "verifyDigest", "attestations"],
                        type={"const": "SigstoreBundle"},  # as attest-build-provenance pushes it
                        imageReferences=some(TEXT),
                        failureAction={"const": "Enforce"},
                        required=YES,
                        verifyDigest=YES,
                        mutateDigest=NO,
                        attestations=some(of(["type", "attestors"], type=TEXT, attestors=ATTESTORS)),
                    )
                ),
            )
        ),
    ),
)


def test_the_example_has_the_fields_of_kyverno_and_refuses_what_it_does_not_verify() -> None:
    jsonschema.Draft202012Validator(SCHEMA).validate(POLICY)


def images() -> set[str]:
    """The images that a release pushes, in the registry that nobody owns until it is set."""
    return {f"registry.invalid/remediator/{name}" for name in RELEASE["jobs"]["images"]["strategy"]["matrix"]["image"]}


def named(document: Any) -> set[str]:
    """Every image that stands anywhere in a manifest."""
    if isinstance(document, dict):
        own = {document["image"]} if isinstance(document.get("image"), str) else set[str]()
        return own.union(*map(named, document.values()))
    return set[str]().union(*map(named, document)) if isinstance(document, list) else set()


@pytest.mark.slow
def test_it_is_about_every_image_that_a_release_pushes_and_that_manifests_name() -> None:
    (pattern,) = VERIFIED["imageReferences"]
    prefix = pattern.removesuffix("*")
    assert all(image.startswith(prefix) for image in images())
    files = [path for path in (ROOT / "deploy").rglob("*.yaml") if not {"examples", "chart"} & set(path.parts)]
    shipped = set[str]().union(*(named(list(yaml.safe_load_all(path.read_text()))) for path in files))
    ours = {image for image in shipped if image.startswith("registry.invalid/")}
    assert {image.partition("@")[0].rpartition(":")[0] or image for image in ours} <= images()
    assert all(image.startswith(prefix) for image in ours)


def test_it_holds_the_namespaces_in_which_our_pods_run() -> None:
    (about,) = RULE["match"]["any"]
    spaces = [one["metadata"]["name"] for one in yaml.safe_load_all((ROOT / "deploy/namespaces.yaml").read_text())]
    assert about["resources"] == {"kinds": ["Pod"], "namespaces": spaces}


def test_only_the_release_workflow_of_that_repository_on_a_tag_of_a_version_is_believed() -> None:
    assert SIGNER["issuer"] == "https://token.actions.githubusercontent.com"
    signer = re.compile(SIGNER["subjectRegExp"].replace("ORG", "acme"))
    own = "https://github.com/acme/remediator/.github/workflows/release.yaml@refs/tags/v1.2.3"
    assert signer.search(own)
    (tag,) = RELEASE[True]["push"]["tags"]  # YAML reads `on` as true
    assert re.fullmatch(tag, "v1.2.3")
    assert (ROOT / ".github/workflows/release.yaml").exists()
    others = {
        "another owner": own.replace("acme", "mallory"),
        "an owner whose name ends so": own.replace("acme", "x/acme"),
        "another workflow": own.replace("release.yaml", "ci.yaml"),
        "a branch": own.replace("tags/v1.2.3", "heads/main"),
        "a tag that is no version": own.replace("v1.2.3", "v1.2.3-evil"),
        "another host": own.replace("github.com", "githubxcom"),
        "something before it": f"x{own}",
    }
    assert [why for why, subject in others.items() if signer.search(subject)] == []


def test_the_workflow_pushes_what_the_example_asks_for_beside_the_image() -> None:
    steps = RELEASE["jobs"]["images"]["steps"]
    (attest,) = (step["with"] for step in steps if "attest-build-provenance" in step.get("uses", ""))
    assert ATTESTATION["type"] == "https://slsa.dev/provenance/v1"
    assert attest["push-to-registry"] is True
    assert attest["subject-digest"] == "${{ steps.build.outputs.digest }}"


def test_the_sbom_of_a_release_is_of_what_the_images_install() -> None:
    (sbom,) = (step["with"] for step in RELEASE["jobs"]["wheels"]["steps"] if "sbom-action" in step.get("uses", ""))
    assert sbom["file"] == "requirements.txt"
    assert "requirements.txt" in (ROOT / "deploy/images/controller.Dockerfile").read_text()
    assert "remediator_sim" not in (ROOT / "deploy/images/controller.Dockerfile").read_text()

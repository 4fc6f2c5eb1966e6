"""Lint warns of fields about starts where nothing starts."""

import pytest

from remediator.kube.manifests.never_starts import warnings
from tests.remediator.kube.manifests.examples import Object, manifest

WINDOWS = {"windows": [{"cron": "0 2 * * *", "duration": "4h"}]}


def warned(**spec: object) -> list[str]:
    return list(warnings([("x.yaml:1", manifest("RemediationPolicy", name="told", **spec))]))


@pytest.mark.parametrize(
    "spec", [WINDOWS, {"maxBlastRadius": {"jobs": 1}}, {"requireSpareGPUs": True}, {"approval": "Required"}]
)
def test_a_field_about_starts_is_named_where_urgency_is_never_and_only_there(spec: Object) -> None:
    (field,) = spec
    (warning,) = warned(urgency={"mode": "Never"}, **spec)
    assert warning == (
        f"policy told: spec.{field} has no effect, for nothing starts with urgency.mode Never; "
        "remove it, or choose Now or WhenIdle"
    )
    assert warned(urgency={"mode": "WhenIdle"}, **spec) == warned(**spec) == []


def test_a_ladder_may_wait_for_the_day_on_which_urgency_is_taken_away() -> None:
    assert warned(urgency={"mode": "Never"}, ladder=[{"operation": "reboot"}], approval="None", windows=[]) == []


@pytest.mark.parametrize("spec", [None, 5, {"urgency": "Never"}])
def test_nonsense_is_left_to_the_findings(spec: object) -> None:
    assert list(warnings([("x.yaml:1", manifest("RemediationPolicy") | {"spec": spec, "metadata": None})])) == []

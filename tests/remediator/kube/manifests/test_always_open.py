"""Lint warns of windows that keep nothing out."""

from dataclasses import replace
from datetime import timedelta

from remediator.core.window import Window
from remediator.kube.manifests.always_open import warnings
from tests.builders import a_policy

DAY = Window("0 2 * * *", timedelta(hours=24))
NIGHT = replace(DAY, duration=timedelta(hours=4))


def test_it_is_named_with_its_policy_and_its_field():
    (warning,) = warnings([a_policy("nightly", windows=(NIGHT,)), a_policy("daily", windows=(NIGHT, DAY))])
    assert warning == (
        "policy daily: spec.windows[1] is always open: it opens again before its duration (1 day, 0:00:00) is "
        "over; make it shorter, or remove the windows"
    )


def test_one_that_cannot_be_read_is_left_to_the_findings():
    assert list(warnings([a_policy(windows=(replace(DAY, zone="Asia/Tokio"),))])) == []

"""Which operands of the GPU operator we pause, and which we resume."""

import pytest

from remediator.core.gpu_operator import PAUSED, paused, resumed

DCGM, DRIVER = "nvidia.com/gpu.deploy.dcgm", "nvidia.com/gpu.deploy.driver"
THEIRS = "paused-for-driver-upgrade"


@pytest.mark.parametrize(
    ("value", "pauses", "resumes"),
    [
        pytest.param("true", PAUSED, None, id="it runs"),
        pytest.param("false", None, None, id="its owner keeps it off"),
        pytest.param("", None, None, id="the label is empty"),
        pytest.param(PAUSED, None, "true", id="we have paused it"),
        pytest.param(THEIRS, None, None, id="another has paused it"),
        pytest.param(f"{PAUSED}_{THEIRS}", None, THEIRS, id="another has paused it after us"),
        pytest.param(f"{PAUSED}-and-more", None, None, id="a word of others that begins as ours does"),
    ],
)
def test_what_runs_is_paused_and_only_what_we_have_paused_is_resumed(value, pauses, resumes):
    labels = {DCGM: value, DRIVER: value, "pool": "gpu"}
    assert paused(labels) == ({DCGM: pauses} if pauses else {})
    assert resumed(labels) == ({DCGM: resumes} if resumes else {})


def test_what_the_driver_manager_makes_of_a_pause_of_ours_comes_back():
    """It keeps what it found, adds its word, and later writes what it found without its word."""
    found = paused({DCGM: "true"})[DCGM]
    ours_ended = resumed({DCGM: f"{found}_{THEIRS}"})[DCGM]
    assert ours_ended == THEIRS
    assert resumed({DCGM: found}) == {DCGM: "true"}, "it writes our word back, and we resume again"

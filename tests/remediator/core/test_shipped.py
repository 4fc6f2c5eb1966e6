"""What becomes of a shipped object: made, updated, or left to the user who has edited or deleted it."""

import pytest

from remediator.core.shipped import Live, Shipped, Step, judge, patch

OLD, NEW = {"mode": "DryRun", "cooldown": "30m"}, {"mode": "DryRun", "cooldown": "1h"}
EDITED = {"mode": "Enforce", "cooldown": "30m"}
GPU_LOST = Shipped("RemediationPolicy", "gpu-lost", NEW)


@pytest.mark.parametrize(
    ("live", "made", "restore", "step"),
    [
        (None, False, False, Step.CREATE),
        (None, True, False, Step.DELETED),
        (None, True, True, Step.CREATE),
        (Live(NEW, NEW), True, False, Step.NOTHING),
        (Live(NEW, OLD), True, False, Step.NOTE),  # edited to what is shipped now
        (Live(NEW, None), False, False, Step.NOTE),  # made by kubectl apply -k
        (Live(OLD, OLD), True, False, Step.UPDATE),
        (Live(EDITED, OLD), True, False, Step.EDITED),
        (Live(EDITED, OLD), True, True, Step.UPDATE),
        (Live(EDITED, None), False, False, Step.EDITED),  # nobody knows what it was: it stays
        (Live(None, OLD), True, False, Step.EDITED),
        (Live(None, None), True, False, Step.EDITED),  # two that cannot be read are not the same
        (Live(None, OLD), True, True, Step.UPDATE),
    ],
)
def test_only_what_no_user_has_touched_is_written(live, made, restore, step):
    assert judge(GPU_LOST, live, made=made, restore=restore).step is step


def test_what_is_left_alone_says_what_it_has_and_what_is_shipped():
    wanted = Shipped("RemediationPolicy", "p", {"a": {"b": 1, "c": [1]}, "e": "x"})
    live = Live({"a": {"b": 2, "c": [1]}, "d": "y" * 200}, None)
    assert judge(wanted, live, made=True).lines == (
        "RemediationPolicy/p: left alone, since it was edited here; as shipped it would differ:",
        "  spec.a.b: 2 here, 1 shipped",
        f'  spec.d: "{"y" * 119}... here, nothing shipped',
        '  spec.e: nothing here, "x" shipped',
    )


def test_a_deleted_one_says_how_to_have_it_again():
    (line,) = judge(GPU_LOST, None, made=True).lines
    assert line.endswith("to have it again, name it in defaults.restore for one upgrade, then take it out")


def test_a_patch_takes_away_what_is_no_longer_shipped_also_deep_inside():
    live = {"a": {"b": 1, "c": 2}, "d": [1, 2], "e": 5}
    assert patch(live, {"a": {"c": 3}, "d": [2]}) == {"a": {"b": None, "c": 3}, "d": [2], "e": None}

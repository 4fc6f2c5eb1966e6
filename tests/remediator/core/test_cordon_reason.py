"""Why a node is cordoned, as Slurm shows it: one line, that names the case."""

from dataclasses import replace

from remediator.core import cordon_reason
from remediator.core.case import Manual
from tests.builders import a_case

CASE = a_case()
OF_CASE = " (remediator case-1)"


def seen(**trigger):
    assert CASE.trigger is not None
    return cordon_reason.text(replace(CASE, trigger=replace(CASE.trigger, **trigger)))


def test_it_says_what_was_seen_and_which_case_it_is():
    assert cordon_reason.text(CASE) == f"GpuLost: GPU fell off the bus{OF_CASE}"
    assert seen(message="") == f"GpuLost: Xid79{OF_CASE}", "its reason, where it has no message"


def test_a_case_without_a_condition_says_what_is_done_or_which_policy_rules():
    assert cordon_reason.text(replace(CASE, trigger=None)) == f"policy gpu-lost{OF_CASE}"
    asked = replace(CASE, trigger=None, policy="", manual=Manual("reboot-now", "u", "reboot", {}))
    assert cordon_reason.text(asked) == f"operation reboot{OF_CASE}"


def test_it_is_one_line_of_ascii_of_at_most_200_characters_and_the_case():
    assert seen(message="a\nb\x00  \u2028c\u00e9d") == f"GpuLost: a b c d{OF_CASE}"
    assert seen(message="x" * 1000) == f"GpuLost: {'x' * 191}{OF_CASE}"


def test_ours_is_what_ends_with_our_case():
    assert cordon_reason.ours(cordon_reason.text(CASE))
    for theirs in ("", "bad RAM", "(remediator case-1) says alice", "remediator case-1", "(remediator two words)"):
        assert not cordon_reason.ours(theirs), theirs

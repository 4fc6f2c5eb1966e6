"""Lint names what a policy trusts without effect."""

from remediator.core.policy import Clause
from remediator.kube.manifests import trusted
from tests.builders import a_policy, when


def test_a_policy_that_trusts_what_it_does_not_ask_for_is_told_what_is_new_there():
    typo = a_policy("tests", when(Clause("IdleTestFailed")), trusts=frozenset({"IdleTestFailed", "IdleTestFaild"}))
    none = a_policy(trusts=frozenset({"IdleTestFailed"}))
    assert list(trusted.warnings([typo, none])) == [
        "policy tests: the annotation remediator.dev/trusted-criteria names IdleTestFaild, which has no effect "
        "(what is new there: IdleTestFailed); correct it, or remove it",
        "policy gpu-lost: the annotation remediator.dev/trusted-criteria names IdleTestFailed, which has no effect "
        "(nothing that it asks for is new); correct it, or remove it",
    ]
